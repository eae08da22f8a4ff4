//! The addresses of a server, bound before its workers listen.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;

use net::{Endpoint, Transport};
use rdma::Provider;
use tracing::info;

use crate::config::{Config, ListenAddress};
use crate::error::StartError;
use crate::inherited::InheritedSockets;
use crate::ports::bind_when_free;
use crate::quic;
use crate::smbdirect;

/// An address that the configuration wants, with its port: 0 lets the kernel choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) transport: Transport,
    pub(crate) address: SocketAddr,
}

/// A bound address on which no worker listens yet.
pub(crate) struct Reserved {
    pub(crate) wanted: Wanted,
    /// The address with the port that the kernel chose.
    pub(crate) address: SocketAddr,
    pub(crate) sockets: Sockets,
}

/// The sockets of a bound address.
pub(crate) enum Sockets {
    /// Bound and not listening: the workers bind the address again.
    Tcp(socket2::Socket),
    /// Listening, of the service manager. For the first worker.
    Inherited(TcpListener),
    /// One for each worker.
    Quic(Arc<net::quic::Server>, Vec<UdpSocket>),
    /// For the first worker.
    SmbDirect(Box<dyn rdma::Listener>, Arc<dyn Provider>),
}

/// The result of [`reserve`].
pub(crate) struct Reservation {
    /// All addresses that the configuration wants.
    pub(crate) wanted: Vec<Wanted>,
    /// Those without a listener.
    pub(crate) reserved: Vec<Bound>,
}

/// As [`Reserved`], before the QUIC server exists.
pub(crate) struct Bound {
    pub(crate) wanted: Wanted,
    pub(crate) address: SocketAddr,
    sockets: BoundSockets,
}

enum BoundSockets {
    Tcp(socket2::Socket),
    Inherited(TcpListener),
    Quic(Vec<UdpSocket>),
    SmbDirect(Box<dyn rdma::Listener>, Arc<dyn Provider>),
}

impl Bound {
    /// Adds the server of QUIC. `quic` is set if any address is one of QUIC.
    pub(crate) fn with(self, quic: Option<&Arc<net::quic::Server>>) -> Reserved {
        let sockets = match self.sockets {
            BoundSockets::Tcp(socket) => Sockets::Tcp(socket),
            BoundSockets::Inherited(socket) => Sockets::Inherited(socket),
            BoundSockets::Quic(sockets) => {
                let server = quic.expect("a server that listens for QUIC has its certificate");
                Sockets::Quic(Arc::clone(server), sockets)
            }
            BoundSockets::SmbDirect(listener, provider) => Sockets::SmbDirect(listener, provider),
        };
        Reserved {
            wanted: self.wanted,
            address: self.address,
            sockets,
        }
    }
}

/// The listeners that a server has already, the sockets of its service manager, and its provider of
/// RDMA.
#[derive(Default)]
pub(crate) struct Present {
    pub(crate) listeners: Vec<(Wanted, SocketAddr)>,
    pub(crate) provider: Option<Arc<dyn Provider>>,
    pub(crate) inherited: Arc<InheritedSockets>,
}

/// Binds every address of the configuration that has no listener yet.
///
/// # Errors
/// The first address that cannot be bound. IPv6 may be missing if no address is configured.
pub(crate) fn reserve(
    config: &Config,
    workers: usize,
    present: &Present,
) -> Result<Reservation, StartError> {
    let mut reserving = Reserving {
        workers,
        present,
        done: Reservation {
            wanted: Vec::new(),
            reserved: Vec::new(),
        },
    };
    reserving.smb_direct(config)?;
    let endpoints = config.endpoints().into_iter();
    for endpoint in endpoints.filter(|endpoint| endpoint.transport != Transport::SmbDirect) {
        reserving.endpoint(config, endpoint)?;
    }
    Ok(reserving.done)
}

struct Reserving<'a> {
    workers: usize,
    present: &'a Present,
    done: Reservation,
}

impl Reserving<'_> {
    fn smb_direct(&mut self, config: &Config) -> Result<(), StartError> {
        let transport = Transport::SmbDirect;
        let wanted = |address| Wanted { transport, address };
        let present = self.present.listeners.iter();
        let present: Vec<SocketAddr> = present
            .filter(|(wanted, _)| wanted.transport == transport)
            .map(|(wanted, _)| wanted.address)
            .collect();
        let opened = smbdirect::open(config, self.present.provider.as_ref(), &present)?;
        self.done.wanted.extend(opened.kept.into_iter().map(wanted));
        for (address, listener, provider) in opened.listeners {
            self.add(
                wanted(address),
                listener.local_addr(),
                BoundSockets::SmbDirect(listener, provider),
            );
        }
        Ok(())
    }

    /// Binds the addresses of one transport.
    fn endpoint(&mut self, config: &Config, endpoint: Endpoint) -> Result<(), StartError> {
        let is_default = config.server.listen.is_none();
        let mut port = endpoint.port;
        for address in &config.listen() {
            match self.address(address, endpoint, port) {
                // The port that the kernel chose is the port of the other family, too.
                Ok(bound) => port = bound.port(),
                Err(error) if is_default && address.ip.is_ipv6() && is_without_ipv6(&error) => {
                    info!(%error, "IPv6 is not available: listening on IPv4 only");
                }
                Err(error) => {
                    return Err(StartError::Listen {
                        address: SocketAddr::new(address.ip, port),
                        transport: endpoint.transport,
                        error,
                    });
                }
            }
        }
        Ok(())
    }

    fn address(
        &mut self,
        address: &ListenAddress,
        endpoint: Endpoint,
        port: u16,
    ) -> io::Result<SocketAddr> {
        let transport = endpoint.transport;
        let wanted = Wanted {
            transport,
            address: address.socket(endpoint.port)?,
        };
        let present = self.present.listeners.iter();
        if let Some((_, bound)) = present.clone().find(|(other, _)| *other == wanted) {
            self.done.wanted.push(wanted);
            return Ok(*bound);
        }
        let target = address.socket(port)?;
        if transport != Transport::Quic
            && let Some(bound) = self.present.inherited.find(target)
        {
            self.take_over(wanted, bound)?;
            return Ok(bound);
        }
        let is_own = present.clone().any(|(other, bound)| {
            is_same_kind(other.transport, transport) && meets(*bound, target)
        });
        let (bound, sockets) = if transport == Transport::Quic {
            let bind = || quic::bind(target, self.workers, is_own);
            let (bound, sockets) = bind_when_free(bind)?;
            (bound, BoundSockets::Quic(sockets))
        } else {
            let (socket, bound) = bind_when_free(|| bind_tcp(target, is_own))?;
            (bound, BoundSockets::Tcp(socket))
        };
        self.add(wanted, bound, sockets);
        Ok(bound)
    }

    /// Uses a socket of the service manager, unless another address uses it.
    fn take_over(&mut self, wanted: Wanted, bound: SocketAddr) -> io::Result<()> {
        let present = self.present.listeners.iter();
        let mut used = present
            .map(|(other, bound)| (other.transport, *bound))
            .chain(
                self.done
                    .reserved
                    .iter()
                    .map(|other| (other.wanted.transport, other.address)),
            );
        if used.any(|other| other == (wanted.transport, bound)) {
            self.done.wanted.push(wanted);
            return Ok(());
        }
        let socket = self.present.inherited.socket(bound)?;
        self.add(wanted, bound, BoundSockets::Inherited(socket));
        Ok(())
    }

    fn add(&mut self, wanted: Wanted, address: SocketAddr, sockets: BoundSockets) {
        self.done.wanted.push(wanted);
        self.done.reserved.push(Bound {
            wanted,
            address,
            sockets,
        });
    }
}

/// Whether two transports use the same ports of the kernel.
fn is_same_kind(one: Transport, other: Transport) -> bool {
    (one == Transport::Quic) == (other == Transport::Quic)
        && one != Transport::SmbDirect
        && other != Transport::SmbDirect
}

/// Whether sockets on two addresses would receive the same clients.
fn meets(one: SocketAddr, other: SocketAddr) -> bool {
    let covers = |wide: IpAddr| wide.is_unspecified() || one.ip() == other.ip();
    one.port() == other.port()
        && one.is_ipv4() == other.is_ipv4()
        && (covers(one.ip()) || covers(other.ip()))
}

/// The kernel has no IPv6, or an administrator has switched it off.
fn is_without_ipv6(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL))
}

/// Binds without SO_REUSEPORT first: with it, two servers would share the port unnoticed. `is_own`:
/// this server has a listener there.
fn bind_tcp(address: SocketAddr, is_own: bool) -> io::Result<(socket2::Socket, SocketAddr)> {
    use socket2::{Domain, Socket, Type};
    let bind = |reuse_port: bool, address: SocketAddr| {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        socket.set_reuse_address(true)?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        socket.set_reuse_port(reuse_port)?;
        socket.bind(&address.into())?;
        let bound = socket.local_addr()?.as_socket().expect("an IP socket");
        io::Result::Ok((socket, bound))
    };
    if is_own {
        return bind(true, address);
    }
    let (alone, bound) = bind(false, address)?;
    drop(alone);
    bind(true, bound)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn reserved(text: &str, present: &Present) -> Result<Reservation, StartError> {
        let config = Config::parse(Path::new("smbeam.toml"), text).expect("good");
        reserve(&config, 2, present)
    }

    fn listening(text: &str) -> Vec<SocketAddr> {
        let reservation = reserved(text, &Present::default()).expect("free addresses");
        let bound = reservation.reserved.iter();
        bound.map(|bound| bound.address).collect()
    }

    #[test]
    fn both_families_have_the_port_that_the_kernel_chose() {
        let addresses = listening("[server]\ntransports = [\"tcp:0\", \"quic:0\"]\n");
        let of = |addresses: &[SocketAddr]| {
            let port = addresses[0].port();
            assert!(port != 0 && addresses[0].ip().is_ipv4());
            assert!(
                addresses[1..]
                    .iter()
                    .all(|v6| v6.ip().is_ipv6() && v6.port() == port)
            );
        };
        // A machine without IPv6 has half of them.
        let (tcp, quic) = addresses.split_at(addresses.len() / 2);
        of(tcp);
        of(quic);
    }

    #[test]
    fn a_used_address_is_an_error() {
        let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = taken.local_addr().expect("an address").port();
        let text = format!("[server]\nlisten = [\"127.0.0.1\"]\ntransports = [\"tcp:{port}\"]\n");
        let failed = reserved(&text, &Present::default())
            .map(drop)
            .expect_err("a used port")
            .to_string();
        assert!(
            failed.starts_with(&format!("cannot listen on 127.0.0.1:{port} (tcp)")),
            "{failed}"
        );
    }

    #[test]
    fn an_address_with_a_listener_is_not_bound_again() {
        let listen = |ip: &str, port: u16| {
            format!("[server]\nlisten = [\"{ip}\"]\ntransports = [\"tcp:{port}\"]\n")
        };
        let first = reserved(&listen("0.0.0.0", 0), &Present::default()).expect("a free port");
        let [bound] = &first.reserved[..] else {
            panic!("one address");
        };
        let present = Present {
            listeners: vec![(bound.wanted, bound.address)],
            ..Present::default()
        };
        let again = reserved(&listen("0.0.0.0", 0), &present).expect("nothing to bind");
        assert_eq!(again.wanted, first.wanted);
        assert!(again.reserved.is_empty());
        // A part of the own address is no used address.
        let port = bound.address.port();
        if let BoundSockets::Tcp(socket) = &bound.sockets {
            socket.listen(1).expect("the own socket");
        }
        let narrow = reserved(&listen("127.0.0.1", port), &present).expect("the own port");
        assert_eq!(narrow.reserved.len(), 1);
        assert!(reserved(&listen("127.0.0.1", port), &Present::default()).is_err());
    }
}
