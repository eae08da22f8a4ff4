//! The SMB Direct listeners of a server.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use net::{Endpoint, Transport};
use rdma::{Network, Provider};
use tracing::warn;

use crate::config::Config;
use crate::error::StartError;
use crate::listening::Listening;

/// The SMB Direct listeners of a server.
#[derive(Debug, Default)]
pub(crate) struct SmbDirectListeners {
    pub(crate) listeners: Vec<Box<dyn rdma::Listener>>,
    /// The provider of the listeners; `None` if the server does not listen for SMB Direct.
    pub(crate) provider: Option<Arc<dyn Provider>>,
}

impl SmbDirectListeners {
    /// Listens on every SMB Direct port of the configuration. If there are several, one must
    /// succeed: iWARP devices share their ports with TCP, where another transport may listen.
    pub(crate) fn open(config: &Config) -> Result<Self, StartError> {
        let endpoints = config.endpoints().into_iter();
        let wanted = endpoints.filter(|endpoint| endpoint.transport == Transport::SmbDirect);
        let wanted: Vec<Endpoint> = wanted.collect();
        if wanted.is_empty() {
            return Ok(Self::default());
        }
        let provider = config.rdma().open().map_err(StartError::Rdma)?;
        let mut listeners = Vec::new();
        let mut failed = None;
        for endpoint in wanted {
            match listen(&*provider, config, endpoint) {
                Ok(opened) => listeners.extend(opened),
                Err((address, error)) => {
                    warn!(%address, %error, "cannot listen for SMB Direct");
                    failed = Some((address, error));
                }
            }
        }
        match failed {
            Some((address, error)) if listeners.is_empty() => Err(StartError::Listen {
                address,
                transport: Transport::SmbDirect,
                error,
            }),
            _ => Ok(Self {
                listeners,
                provider: Some(provider),
            }),
        }
    }

    /// The addresses of the listeners.
    pub(crate) fn listening(&self) -> impl Iterator<Item = Listening> {
        self.listeners.iter().map(|listener| Listening {
            address: listener.local_addr(),
            transport: Transport::SmbDirect,
        })
    }
}

fn listen(
    provider: &dyn Provider,
    config: &Config,
    endpoint: Endpoint,
) -> Result<Vec<Box<dyn rdma::Listener>>, (SocketAddr, io::Error)> {
    let listen = |ip| {
        let address = SocketAddr::new(ip, endpoint.port);
        let listener = provider.listen(address);
        listener.map_err(|error| (address, error))
    };
    let addresses = addresses_for(provider, config, endpoint);
    addresses.into_iter().map(listen).collect()
}

/// The addresses of the configuration. RDMA-CM listens on `::` for both families, so `0.0.0.0`
/// beside it would be in use.
fn listen_ips(config: &Config) -> Vec<IpAddr> {
    let mut ips = config.listen_ips();
    if ips.contains(&Ipv6Addr::UNSPECIFIED.into()) {
        ips.retain(|ip| *ip != Ipv4Addr::UNSPECIFIED);
    }
    ips
}

/// The addresses to listen on at one port. An iWARP device listens with TCP and takes the port. If
/// the server listens with TCP on the same port, such devices are left out.
fn addresses_for(provider: &dyn Provider, config: &Config, endpoint: Endpoint) -> Vec<IpAddr> {
    let wanted = &listen_ips(config);
    let is_tcp = |other: &Endpoint| {
        other.port == endpoint.port && matches!(other.transport, Transport::Tcp | Transport::Nbt)
    };
    if !config.endpoints().iter().any(is_tcp) {
        return provider.to_listen(wanted);
    }
    let devices = provider.addresses().unwrap_or_default();
    if devices
        .iter()
        .all(|(_, network)| *network != Network::Iwarp)
    {
        return provider.to_listen(wanted);
    }
    let is_wanted = |ip: &IpAddr| {
        let matches = |wanted: &IpAddr| {
            wanted == ip || wanted.is_unspecified() && wanted.is_ipv4() == ip.is_ipv4()
        };
        wanted.iter().any(matches)
    };
    let others = devices
        .into_iter()
        .filter(|(_, network)| *network != Network::Iwarp);
    others.map(|(ip, _)| ip).filter(is_wanted).collect()
}

/// Opens the RDMA provider of the configuration, and closes it again.
pub(crate) fn check(config: &Config) -> Result<(), StartError> {
    if !config.listens_with(Transport::SmbDirect) {
        return Ok(());
    }
    config.rdma().open().map(drop).map_err(StartError::Rdma)
}
