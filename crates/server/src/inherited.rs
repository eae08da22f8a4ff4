//! Listening TCP sockets that a service manager has opened (socket activation). sd_listen_fds(3)

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener};

use listenfd::ListenFd;
use tracing::warn;

/// Most sockets that a server takes over.
const SOCKETS_MAX: usize = 64;

/// Listening TCP sockets that the process has inherited from a service manager. A server uses them
/// for the addresses of its configuration instead of new ones, so that it needs no right to open
/// privileged ports, and no client is refused while the server starts again.
#[derive(Debug, Default)]
pub struct InheritedSockets(Vec<Inherited>);

/// A listening TCP socket of a service manager.
#[derive(Debug)]
struct Inherited {
    address: SocketAddr,
    /// Whether an IPv6 socket also accepts IPv4 clients.
    is_dual: bool,
    socket: TcpListener,
}

impl InheritedSockets {
    /// Takes over the sockets that the environment announces (`LISTEN_FDS`). Call it once, before
    /// the process starts threads.
    ///
    /// # Errors
    /// There are more than 64, or one of them is no listening TCP socket.
    pub fn from_environment() -> io::Result<Self> {
        let mut announced = ListenFd::from_env();
        if announced.len() > SOCKETS_MAX {
            let why = format!("more than {SOCKETS_MAX} sockets of the service manager");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let sockets = (0..announced.len()).map(|index| {
            let socket = announced.take_tcp_listener(index).map_err(|error| {
                let why = format!("socket {index} of the service manager: {error}");
                io::Error::new(io::ErrorKind::InvalidInput, why)
            })?;
            let socket = socket.expect("each socket is taken once");
            Inherited::new(socket)
        });
        sockets.collect::<io::Result<_>>().map(Self)
    }

    /// Finds the socket that accepts the clients of an address, and returns its own address: also
    /// a socket of the unspecified IPv6 address that accepts IPv4 clients.
    pub(crate) fn find(&self, wanted: SocketAddr) -> Option<SocketAddr> {
        let sockets = self.0.iter();
        let exact = sockets.clone().find(|socket| socket.address == wanted);
        let any = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), wanted.port());
        let is_any = wanted.is_ipv4() && wanted.ip().is_unspecified();
        let mut dual = sockets.filter(|socket| is_any && socket.is_dual && socket.address == any);
        Some(exact.or(dual.next())?.address)
    }

    /// Returns the socket with an address. It stays open when the result is closed, because the
    /// configuration may drop the address and want it again later.
    ///
    /// # Errors
    /// The process has no free descriptor.
    pub(crate) fn socket(&self, address: SocketAddr) -> io::Result<TcpListener> {
        let found = self.0.iter().find(|socket| socket.address == address);
        let found = found.ok_or(io::ErrorKind::NotFound)?;
        found.socket.try_clone()
    }

    /// Logs the sockets that no listener uses. `used` are the addresses of all listeners.
    pub(crate) fn log_unused(&self, used: &[SocketAddr]) {
        for Inherited { address, .. } in &self.0 {
            if !used.contains(address) {
                warn!(
                    %address,
                    "socket of the service manager not used: server.listen and server.transports \
                     do not have its address and port"
                );
            }
        }
    }
}

impl Inherited {
    fn new(socket: TcpListener) -> io::Result<Self> {
        let address = socket.local_addr()?;
        let is_dual = match address {
            SocketAddr::V4(_) => false,
            SocketAddr::V6(_) => !socket2::SockRef::from(&socket).only_v6()?,
        };
        Ok(Self {
            address,
            is_dual,
            socket,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inherited(address: &str, only_v6: bool) -> Inherited {
        use socket2::{Domain, Socket, Type};
        let address: SocketAddr = address.parse().expect("an address");
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None);
        let socket = socket.expect("a socket");
        if address.is_ipv6() {
            socket.set_only_v6(only_v6).expect("an option");
        }
        socket.bind(&address.into()).expect("an address");
        socket.listen(1).expect("a listener");
        Inherited::new(socket.into()).expect("a listener")
    }

    #[test]
    fn a_socket_of_both_families_serves_both_wildcards() {
        let sockets = InheritedSockets(vec![inherited("[::]:0", false)]);
        let bound = sockets.0[0].address;
        let v4 = |ip: &str| SocketAddr::new(ip.parse().expect("an address"), bound.port());
        assert_eq!(sockets.find(bound), Some(bound));
        assert_eq!(sockets.find(v4("0.0.0.0")), Some(bound));
        // Clients of other addresses would enter, too.
        assert_eq!(sockets.find(v4("127.0.0.1")), None);
        assert!(sockets.socket(bound).is_ok());
    }

    #[test]
    fn a_socket_of_ipv6_serves_ipv6_alone() {
        let sockets = InheritedSockets(vec![inherited("[::]:0", true)]);
        let bound = sockets.0[0].address;
        assert_eq!(sockets.find(bound), Some(bound));
        let v4 = SocketAddr::new("0.0.0.0".parse().expect("an address"), bound.port());
        assert_eq!(sockets.find(v4), None);
    }

    #[test]
    fn a_socket_of_one_address_serves_it_alone() {
        let sockets = InheritedSockets(vec![inherited("127.0.0.1:0", false)]);
        let bound = sockets.0[0].address;
        assert_eq!(sockets.find(bound), Some(bound));
        let any = SocketAddr::new("0.0.0.0".parse().expect("an address"), bound.port());
        assert_eq!(sockets.find(any), None);
    }
}
