//! The addresses of a server, bound before its workers start.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use net::{Endpoint, Transport};
use tracing::info;

use crate::config::{Config, ListenAddress};
use crate::error::StartError;
use crate::listening::Listening;
use crate::ports::bind_when_free;
use crate::quic;
use crate::smbdirect::SmbDirectListeners;

/// The addresses that are bound before the workers start.
pub(crate) struct Reserved {
    pub(crate) listening: Vec<Listening>,
    /// TCP sockets, bound and not listening.
    pub(crate) sockets: Vec<socket2::Socket>,
    /// The QUIC sockets of each worker.
    pub(crate) quic_sockets: Vec<Vec<UdpSocket>>,
    pub(crate) smb_direct: SmbDirectListeners,
}

/// Binds every address once: port 0 becomes the same port for all workers, and a used address fails
/// before a worker starts.
///
/// # Errors
/// The first address that cannot be bound. IPv6 may be missing if no address is configured.
pub(crate) fn reserve(config: &Config, workers: usize) -> Result<Reserved, StartError> {
    let mut reserved = Reserved {
        listening: Vec::new(),
        sockets: Vec::new(),
        quic_sockets: (0..workers).map(|_| Vec::new()).collect(),
        smb_direct: SmbDirectListeners::open(config)?,
    };
    let endpoints = config.endpoints().into_iter();
    for endpoint in endpoints.filter(|endpoint| endpoint.transport != Transport::SmbDirect) {
        reserved.endpoint(config, endpoint)?;
    }
    reserved.listening.extend(reserved.smb_direct.listening());
    Ok(reserved)
}

impl Reserved {
    /// Binds the addresses of one transport.
    fn endpoint(&mut self, config: &Config, endpoint: Endpoint) -> Result<(), StartError> {
        let is_default = config.server.listen.is_none();
        let mut port = endpoint.port;
        for address in &config.listen() {
            match self.address(address, Endpoint { port, ..endpoint }) {
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

    fn address(&mut self, address: &ListenAddress, endpoint: Endpoint) -> io::Result<SocketAddr> {
        let Endpoint { transport, port } = endpoint;
        let wanted = address.socket(port)?;
        let bound = if transport == Transport::Quic {
            let workers = self.quic_sockets.len();
            let (bound, sockets) = bind_when_free(|| quic::bind(wanted, workers))?;
            let workers = self.quic_sockets.iter_mut().zip(sockets);
            workers.for_each(|(of_worker, socket)| of_worker.push(socket));
            bound
        } else {
            let (socket, bound) = bind_when_free(|| bind_tcp(wanted))?;
            self.sockets.push(socket);
            bound
        };
        self.listening.push(Listening {
            address: bound,
            transport,
        });
        Ok(bound)
    }
}

/// The kernel has no IPv6, or an administrator has switched it off.
fn is_without_ipv6(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL))
}

/// Binds without SO_REUSEPORT first: with it, two servers would share the port unnoticed.
fn bind_tcp(address: SocketAddr) -> io::Result<(socket2::Socket, SocketAddr)> {
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
    let (alone, bound) = bind(false, address)?;
    drop(alone);
    bind(true, bound)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn listening(text: &str) -> Vec<SocketAddr> {
        let config = Config::parse(Path::new("smbeam.toml"), text).expect("good");
        let reserved = reserve(&config, 2).expect("free addresses");
        let listening = reserved.listening.iter();
        listening.map(|listening| listening.address).collect()
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
        let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = taken.local_addr().expect("an address").port();
        let text = format!("[server]\nlisten = [\"127.0.0.1\"]\ntransports = [\"tcp:{port}\"]\n");
        let config = Config::parse(Path::new("smbeam.toml"), &text).expect("good");
        let failed = reserve(&config, 1)
            .map(drop)
            .expect_err("a used port")
            .to_string();
        assert!(
            failed.starts_with(&format!("cannot listen on 127.0.0.1:{port} (tcp)")),
            "{failed}"
        );
    }
}
