//! SMB Direct at the server: its listeners, and who is let in by which worker.
//!
//! The first worker has all listeners: to be let in is rare beside what comes after it, and the
//! queue pair is made on the thread of the worker that serves it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use net::smbdirect::Stream;
use net::{Endpoint, Transport};
use rdma::{Network, Provider, Request};
use ring::{Interest, Readiness};
use tracing::{debug, info, warn};

use crate::config::Config;
use crate::gate::Permit;
use crate::placement::Seat;
use crate::start::{Listening, StartError};
use crate::worker::{Message, Worker};

/// How often it is looked whether a device is there again.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);

/// Listeners of SMB Direct, and where they are.
#[derive(Debug, Default)]
pub(crate) struct Direct {
    pub(crate) listeners: Vec<Box<dyn rdma::Listener>>,
    /// Whose they are; none where there are none.
    pub(crate) provider: Option<Arc<dyn Provider>>,
}

impl Direct {
    /// Listens on every port of SMB Direct. Where there are several, one is enough: devices of
    /// iWARP share their ports with TCP, where another transport may have it.
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
                    warn!(%address, %error, "SMB Direct is not listened for");
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

    /// Where it listens.
    pub(crate) fn listening(&self) -> impl Iterator<Item = Listening> {
        self.listeners.iter().map(|listener| Listening {
            address: listener.local_addr(),
            transport: Transport::SmbDirect,
        })
    }
}

type Opened = Vec<Box<dyn rdma::Listener>>;

fn listen(
    provider: &dyn Provider,
    config: &Config,
    endpoint: Endpoint,
) -> Result<Opened, (SocketAddr, io::Error)> {
    let listen = |ip| {
        let address = SocketAddr::new(ip, endpoint.port);
        let listener = provider.listen(address);
        listener.map_err(|error| (address, error))
    };
    let addresses = addresses_for(provider, config, endpoint);
    addresses.into_iter().map(listen).collect()
}

/// Where to listen on a port. A device of iWARP listens by TCP, and takes the port away from it:
/// where ours is to be there, such devices are left out.
fn addresses_for(provider: &dyn Provider, config: &Config, endpoint: Endpoint) -> Vec<IpAddr> {
    let wanted = &config.server.listen;
    let is_of_tcp = |other: &Endpoint| {
        other.port == endpoint.port && matches!(other.transport, Transport::Tcp | Transport::Nbt)
    };
    if !config.endpoints().iter().any(is_of_tcp) {
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
        let is_meant = |wanted: &IpAddr| {
            wanted == ip || wanted.is_unspecified() && wanted.is_ipv4() == ip.is_ipv4()
        };
        wanted.iter().any(is_meant)
    };
    let others = devices
        .into_iter()
        .filter(|(_, network)| *network != Network::Iwarp);
    others.map(|(ip, _)| ip).filter(is_wanted).collect()
}

/// A client on its way to the worker that serves it.
#[derive(Debug)]
pub(crate) struct Knock {
    request: Box<dyn Request>,
    permit: Permit,
    seat: Seat,
}

impl Worker {
    /// Decides about all who come to a listener. One whose device is taken away is closed, for the
    /// device to be free, and listens again when there is one that has its address.
    pub(crate) async fn accept_direct(
        self: Rc<Self>,
        mut listener: Box<dyn rdma::Listener>,
        provider: Arc<dyn Provider>,
    ) {
        let transport = Transport::SmbDirect;
        loop {
            let address = listener.local_addr();
            let Err(error) = self.accept_until_lost(&*listener).await else {
                return;
            };
            warn!(%address, %transport, %error, "nobody is listened for");
            drop(listener);
            listener = loop {
                self.handle.sleep(LISTEN_AGAIN).await;
                if let Ok(listener) = provider.listen(address) {
                    break listener;
                }
            };
            info!(%address, %transport, "listening again");
        }
    }

    /// An error is the listener's end; without one the worker has ended.
    async fn accept_until_lost(self: &Rc<Self>, listener: &dyn rdma::Listener) -> io::Result<()> {
        let readiness = Readiness::new(&self.handle, listener.descriptor())?;
        while readiness.ready(Interest::Readable).await.is_ok() {
            match listener.accept() {
                Ok(request) => request
                    .into_iter()
                    .for_each(|request| self.place_direct(request)),
                Err(error) if ring::is_shortage(&error) => {
                    warn!(%error, "cannot accept for now");
                    self.handle.sleep(LISTEN_AGAIN).await;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn place_direct(self: &Rc<Self>, request: Box<dyn Request>) {
        let address = request.peer_addr().ip().to_canonical();
        let permit = match self.gate().enter(address) {
            Ok(permit) => permit,
            Err(limit) => return self.refuse(address, limit),
        };
        let seat = self.placement().take(address, self.index, None);
        let worker = seat.worker;
        let knock = Knock {
            request,
            permit,
            seat,
        };
        if worker == self.index {
            self.let_in_direct(knock);
        } else {
            self.shared.tell(worker, Message::Knocked(knock));
        }
    }

    /// Negotiates with a client, and serves it.
    pub(crate) fn let_in_direct(self: &Rc<Self>, knock: Knock) {
        let Knock {
            request,
            permit,
            seat,
        } = knock;
        let peer = request.peer_addr();
        let worker = Rc::clone(self);
        self.handle.spawn(async move {
            let settings = worker.smb_direct();
            match Stream::accept(&worker.handle, request, settings).await {
                Ok(_) if worker.stopping.is_raised() => {}
                Ok(stream) => {
                    let transport = Transport::SmbDirect;
                    worker.serve(transport, stream.into(), peer, permit, seat);
                }
                Err(error) => debug!(%peer, %error, "SMB Direct was not negotiated"),
            }
        });
    }
}

/// The provider of a configuration, to see whether it is there.
pub(crate) fn check(config: &Config) -> Result<(), StartError> {
    if !config.listens_by(Transport::SmbDirect) {
        return Ok(());
    }
    config.rdma().open().map(drop).map_err(StartError::Rdma)
}
