//! The SMB Direct listeners of a server.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use net::{Endpoint, Transport};
use rdma::{Network, Provider};
use tracing::warn;

use crate::config::Config;
use crate::error::StartError;

/// The SMB Direct listeners that the configuration wants.
#[derive(Debug, Default)]
pub(crate) struct SmbDirectListeners {
    /// Wanted addresses with a listener already.
    pub(crate) kept: Vec<SocketAddr>,
    /// New listeners, with their wanted addresses.
    pub(crate) listeners: Vec<NewListener>,
}

/// A listener, its wanted address, and its provider.
pub(crate) type NewListener = (SocketAddr, Box<dyn rdma::Listener>, Arc<dyn Provider>);

/// Listens on every SMB Direct address of the configuration that is not `present`. If there are
/// several, one must succeed: iWARP devices share their ports with TCP, where another transport may
/// listen. Opens the provider, if the server has none.
///
/// # Errors
/// The provider cannot be opened, or no address can be listened on.
pub(crate) fn open(
    config: &Config,
    provider: Option<&Arc<dyn Provider>>,
    present: &[SocketAddr],
) -> Result<SmbDirectListeners, StartError> {
    let mut opened = SmbDirectListeners::default();
    if !config.listens_with(Transport::SmbDirect) {
        return Ok(opened);
    }
    let provider = match provider {
        Some(provider) => Arc::clone(provider),
        None => config.rdma().open().map_err(StartError::Rdma)?,
    };
    let endpoints = config.endpoints().into_iter();
    let endpoints = endpoints.filter(|endpoint| endpoint.transport == Transport::SmbDirect);
    let mut failed = None;
    for endpoint in endpoints {
        for ip in addresses_for(&*provider, config, endpoint) {
            let address = SocketAddr::new(ip, endpoint.port);
            if present.contains(&address) {
                opened.kept.push(address);
                continue;
            }
            match provider.listen(address) {
                Ok(listener) => {
                    let opening = (address, listener, Arc::clone(&provider));
                    opened.listeners.push(opening);
                }
                Err(error) => {
                    warn!(%address, %error, "cannot listen for SMB Direct");
                    failed = Some((address, error));
                }
            }
        }
    }
    match failed {
        Some((address, error)) if opened.kept.is_empty() && opened.listeners.is_empty() => {
            Err(StartError::Listen {
                address,
                transport: Transport::SmbDirect,
                error,
            })
        }
        _ => Ok(opened),
    }
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
