//! The name of a server, and connections to its addresses.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use smbeam_client::{Endpoint, Transport};
use smbeam_server::Reason as _;
use smbeam_server::doctor::Check;

use super::super::codes::Found;
use crate::failure::plain_reason;

/// Most addresses of a host that are tried.
const ADDRESSES_MAX: usize = 16;
/// Time in which another port must answer.
const OTHER_LIMIT: Duration = Duration::from_secs(2);

/// The addresses of a host; none if the name is unknown.
pub(super) fn resolve(
    host: &str,
    port: u16,
    limit: Duration,
    checks: &mut Vec<Check>,
) -> Vec<SocketAddr> {
    let subject = format!("name {host}");
    let bare = host.trim_matches(['[', ']']);
    if let Ok(address) = bare.parse::<IpAddr>() {
        checks.push(Check::ok(subject, "an address"));
        return vec![SocketAddr::new(address, port)];
    }
    let start = Instant::now();
    match look_up(bare, port, limit) {
        Ok(found) => {
            let shown: Vec<String> = found.iter().map(|found| found.ip().to_string()).collect();
            let milliseconds = start.elapsed().as_millis();
            let message = format!("{} ({milliseconds} ms)", shown.join(", "));
            checks.push(Check::ok(subject, message));
            found
        }
        Err(error) => {
            let code = Found::NameUnknown.code();
            let check = Check::refused(subject, code, plain_reason(&error));
            checks.push(check.mended_by(format!(
                "getent hosts {bare}; correct the name or DNS, or use the address of the server"
            )));
            Vec::new()
        }
    }
}

/// The resolver of the system blocks, so it has a thread. If it does not end in time, the thread
/// ends with the process.
fn look_up(host: &str, port: u16, limit: Duration) -> io::Result<Vec<SocketAddr>> {
    let (sender, receiver) = mpsc::channel();
    let name = host.to_owned();
    thread::Builder::new()
        .name("resolve".to_owned())
        .spawn(move || {
            let found = (name.as_str(), port).to_socket_addrs();
            // The receiver may have given up.
            let _ = sender.send(found.map(|found| found.take(ADDRESSES_MAX).collect::<Vec<_>>()));
        })?;
    let late = |_| io::Error::other("the resolver does not answer in time");
    let mut found = receiver.recv_timeout(limit).map_err(late)??;
    found.dedup();
    match found.is_empty() {
        true => Err(io::Error::other("the name has no address")),
        false => Ok(found),
    }
}

/// Connects to each address. Returns the first that accepts.
pub(super) fn reach(
    endpoint: Endpoint,
    addresses: &[SocketAddr],
    limit: Duration,
    checks: &mut Vec<Check>,
) -> Option<SocketAddr> {
    let tried: Vec<(SocketAddr, Result<Duration, io::Error>)> = addresses
        .iter()
        .map(|address| (*address, connect(*address, limit)))
        .collect();
    let reached = tried.iter().find(|(_, result)| result.is_ok());
    let reached = reached.map(|(address, _)| *address);
    for (address, result) in tried {
        checks.push(match result {
            Ok(time) => {
                let milliseconds = time.as_secs_f64() * 1e3;
                let message = format!("connects in {milliseconds:.1} ms");
                Check::ok(format!("port {address}"), message)
            }
            Err(error) => failed(endpoint, address, &error, reached.is_some()),
        });
    }
    reached
}

fn connect(address: SocketAddr, limit: Duration) -> io::Result<Duration> {
    let start = Instant::now();
    TcpStream::connect_timeout(&address, limit).map(|_| start.elapsed())
}

/// Another address of the server may accept: then the failure is a warning.
fn failed(endpoint: Endpoint, address: SocketAddr, error: &io::Error, is_reached: bool) -> Check {
    let (code, hint) = reason(error);
    let mut remedy = hint.to_owned();
    if !is_reached && let Some(other) = other_port(endpoint, address) {
        remedy = format!("{other}; {remedy}");
    }
    let subject = format!("port {address}");
    let message = plain_reason(error);
    let check = match is_reached {
        true => Check::warning(subject, code.code(), message),
        false => Check::refused(subject, code.code(), message),
    };
    check.mended_by(remedy)
}

fn reason(error: &io::Error) -> (Found, &'static str) {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => (
            Found::PortClosed,
            "start the server, or give the port that it listens on (smb://host:PORT/share); a \
             firewall can refuse connections as well",
        ),
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => (
            Found::PortSilent,
            "a firewall drops the packets, or the machine is off: open the port (445/tcp) on the \
             server and between; many Internet providers block 445: use QUIC (443/udp) or a VPN",
        ),
        _ => (
            Found::Unreachable,
            "check the network of this machine (ip route get ADDRESS), VPN and address",
        ),
    }
}

/// A transport of the server that this machine reaches instead.
fn other_port(endpoint: Endpoint, address: SocketAddr) -> Option<&'static str> {
    let others = [
        (Transport::Tcp, 445, "port 445 is open: leave the port out"),
        (Transport::Nbt, 139, "port 139 is open: --transports nbt"),
    ];
    let others = others
        .iter()
        .filter(|(transport, port, _)| *transport != endpoint.transport || *port != endpoint.port);
    let mut open = others.filter(|(_, port, _)| {
        let address = SocketAddr::new(address.ip(), *port);
        connect(address, OTHER_LIMIT).is_ok()
    });
    open.next().map(|(_, _, hint)| *hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_connections_have_codes() {
        let of = |kind: io::ErrorKind| reason(&kind.into()).0;
        assert_eq!(of(io::ErrorKind::ConnectionRefused), Found::PortClosed);
        assert_eq!(of(io::ErrorKind::TimedOut), Found::PortSilent);
        assert_eq!(of(io::ErrorKind::HostUnreachable), Found::Unreachable);
    }

    #[test]
    fn an_address_needs_no_look_up() {
        let mut checks = Vec::new();
        let found = resolve("[::1]", 445, Duration::from_secs(1), &mut checks);
        assert_eq!(found, ["[::1]:445".parse().expect("an address")]);
        assert_eq!(checks.len(), 1);
    }
}
