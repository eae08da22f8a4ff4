//! CPU time of this process, and of the server if it runs on this host.
//!
//! The server process is found through its sockets. The kernel lists every socket with its inode,
//! and /proc shows the socket inodes of every process. All QUIC connections share the UDP sockets
//! that are bound to the port of the server. Emulated RDMA uses a Unix socket in a directory.
//! Queues of RDMA devices appear in none of these lists, so their server cannot be found.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use smbeam_client::{RdmaChoice, Transport};

/// Clock ticks per second in /proc. All supported Linux platforms use 100.
const TICKS_PER_SECOND: f64 = 100.0;

/// The processes that hold the server ends of the connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Server {
    processes: BTreeSet<u32>,
}

/// The two ends of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    /// The transport of the connection.
    pub(crate) transport: Transport,
    /// Address and port of the client.
    pub(crate) local: SocketAddr,
    /// Address and port of the server.
    pub(crate) peer: SocketAddr,
    /// Whether both ends are on this machine.
    pub(crate) is_local: bool,
}

impl Server {
    /// Finds the server processes of these connections. `rdma` is the RDMA provider of the SMB
    /// Direct connections. Returns `None` if no process of this host serves them, or if this user
    /// cannot read the descriptors of the process.
    pub(crate) fn of(connections: &[Ends], rdma: &RdmaChoice) -> Option<Self> {
        let inodes = sockets(connections, rdma);
        if inodes.is_empty() {
            return None;
        }
        let processes = processes().filter(|pid| holds_any(*pid, &inodes)).collect();
        let server = Self { processes };
        (!server.processes.is_empty()).then_some(server)
    }

    /// CPU seconds since the start of the processes, user and system.
    pub(crate) fn seconds(&self) -> f64 {
        self.processes
            .iter()
            .filter_map(|pid| of_process(*pid))
            .sum()
    }
}

/// CPU seconds of all threads of this process since its start, user and system.
pub(crate) fn own_seconds() -> f64 {
    of_process(std::process::id()).unwrap_or(0.0)
}

/// Inodes of the sockets at the server ends.
fn sockets(connections: &[Ends], rdma: &RdmaChoice) -> BTreeSet<u64> {
    let mut inodes = BTreeSet::new();
    for transport in [Transport::Tcp, Transport::Quic, Transport::SmbDirect] {
        let ends = connections.iter().filter(|ends| match ends.transport {
            Transport::Nbt => transport == Transport::Tcp,
            other => transport == other,
        });
        let mut ends = ends.peekable();
        if ends.peek().is_none() {
            continue;
        }
        match (transport, rdma) {
            (Transport::Quic, _) => inodes.extend(inodes_of("udp", ends.flat_map(bound))),
            (Transport::SmbDirect, RdmaChoice::Emulated(directory)) => {
                let paths = ends.map(|ends| directory.join(format!("{}.sock", ends.peer.port())));
                inodes.extend(named(&paths.collect::<Vec<_>>()));
            }
            (Transport::SmbDirect, RdmaChoice::Verbs) => {}
            (Transport::Tcp | Transport::Nbt, _) => {
                inodes.extend(inodes_of("tcp", ends.flat_map(spellings)));
            }
        }
    }
    inodes
}

/// Inodes of the sockets with a pair of addresses in `wanted`, for IPv4 and IPv6.
fn inodes_of(protocol: &str, wanted: impl Iterator<Item = (String, String)>) -> BTreeSet<u64> {
    let wanted: BTreeSet<_> = wanted.collect();
    let tables = ["", "6"].map(|family| format!("/proc/net/{protocol}{family}"));
    let texts = tables.map(|table| fs::read_to_string(table).unwrap_or_default());
    let lines = texts.iter().flat_map(|text| text.lines());
    lines.filter_map(|line| inode_of(line, &wanted)).collect()
}

/// Returns the inode in a line of /proc/net/tcp or /proc/net/udp if its addresses are in `wanted`.
fn inode_of(line: &str, wanted: &BTreeSet<(String, String)>) -> Option<u64> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let ends = ((*fields.get(1)?).to_owned(), (*fields.get(2)?).to_owned());
    let inode = fields.get(9)?.parse().ok()?;
    (inode != 0 && wanted.contains(&ends)).then_some(inode)
}

/// Possible addresses of the socket that receives the packets of all clients, in the notation of
/// /proc/net/udp and udp6: bound to the address of the server or to any address, and not connected.
/// For a server on another host the list is empty.
fn bound(ends: &Ends) -> Vec<(String, String)> {
    if !ends.is_local {
        return Vec::new();
    }
    let any = [
        IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    ];
    let unconnected = any.map(|any| SocketAddr::new(any, 0));
    let addresses = [ends.peer.ip(), any[0], any[1]];
    let sockets = addresses.map(|ip| SocketAddr::new(ip, ends.peer.port()));
    let spellings = sockets.iter().flat_map(|socket| {
        let socket = *socket;
        let of = |spell: fn(SocketAddr) -> Option<String>, to| Some((spell(socket)?, spell(to)?));
        [of(spell_v4, unconnected[0]), of(spell_v6, unconnected[1])]
    });
    spellings.flatten().collect()
}

/// Inodes of the Unix sockets with one of these paths. proc_net_unix(5)
fn named(paths: &[PathBuf]) -> BTreeSet<u64> {
    let real = |path: &Path| fs::canonicalize(path).ok();
    let wanted: Vec<PathBuf> = paths.iter().filter_map(|path| real(path)).collect();
    let text = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let lines = text.lines().filter_map(|line| {
        let mut fields = line.split_whitespace().skip(6);
        let inode = fields.next()?.parse().ok()?;
        let path = Path::new(fields.next()?);
        let is_wanted = || real(path).is_some_and(|path| wanted.contains(&path));
        (path.extension() == Some("sock".as_ref()) && is_wanted()).then_some(inode)
    });
    lines.collect()
}

/// The addresses of server and client in the notation of /proc/net/tcp and tcp6. A server that
/// listens on `[::]` has IPv4 connections with IPv4-mapped IPv6 addresses.
fn spellings(ends: &Ends) -> Vec<(String, String)> {
    let both =
        |spell: fn(SocketAddr) -> Option<String>| Some((spell(ends.peer)?, spell(ends.local)?));
    [both(spell_v4), both(spell_v6)]
        .into_iter()
        .flatten()
        .collect()
}

fn spell_v4(address: SocketAddr) -> Option<String> {
    let SocketAddr::V4(address) = address else {
        return None;
    };
    let word = u32::from_ne_bytes(address.ip().octets());
    Some(format!("{word:08X}:{:04X}", address.port()))
}

fn spell_v6(address: SocketAddr) -> Option<String> {
    let ip = match address {
        SocketAddr::V4(address) => address.ip().to_ipv6_mapped(),
        SocketAddr::V6(address) => *address.ip(),
    };
    let mut text = String::new();
    for bytes in ip.octets().as_chunks::<4>().0 {
        write!(text, "{:08X}", u32::from_ne_bytes(*bytes)).ok()?;
    }
    write!(text, ":{:04X}", address.port()).ok()?;
    Some(text)
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn holds_any(pid: u32, inodes: &BTreeSet<u64>) -> bool {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd"));
    descriptors.into_iter().flatten().flatten().any(|entry| {
        let target = fs::read_link(entry.path()).unwrap_or_default();
        let target = target.to_string_lossy();
        let inode = target
            .strip_prefix("socket:[")
            .and_then(|rest| rest.strip_suffix(']'));
        inode
            .and_then(|inode| inode.parse().ok())
            .is_some_and(|inode: u64| inodes.contains(&inode))
    })
}

fn of_process(pid: u32) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Fields 14 and 15 are utime and stime. The process name before them can contain any character.
    let (_, fields) = text.rsplit_once(')')?;
    let times = fields.split_whitespace().skip(11).take(2);
    let ticks = times.map(|field| field.parse::<u64>().ok());
    Some(ticks.sum::<Option<u64>>()? as f64 / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::unix::net::UnixListener;

    fn connected(address: &str) -> (TcpStream, TcpStream, Ends) {
        let listener = TcpListener::bind(address).expect("given");
        let ours = TcpStream::connect(listener.local_addr().expect("given")).expect("given");
        let theirs = listener.accept().expect("given").0;
        let ends = Ends {
            transport: Transport::Tcp,
            local: ours.local_addr().expect("given"),
            peer: ours.peer_addr().expect("given"),
            is_local: true,
        };
        (ours, theirs, ends)
    }

    #[test]
    fn the_process_at_the_other_end_is_found() {
        let (_ours, theirs, ends) = connected("127.0.0.1:0");
        let server = Server::of(&[ends], &RdmaChoice::Verbs).expect("given");
        assert!(server.processes.contains(&std::process::id()));
        assert!(server.seconds() >= 0.0);
        drop(theirs);
    }

    #[test]
    fn a_server_on_another_host_is_not_found() {
        let (_ours, _theirs, mut ends) = connected("127.0.0.1:0");
        ends.peer = "192.0.2.1:445".parse().expect("given");
        assert_eq!(Server::of(&[ends], &RdmaChoice::Verbs), None);
    }

    #[test]
    fn the_process_that_takes_packets_is_found() {
        for address in ["127.0.0.1:0", "0.0.0.0:0", "[::]:0"] {
            let server = UdpSocket::bind(address).expect("given");
            let port = server.local_addr().expect("given").port();
            let ends = Ends {
                transport: Transport::Quic,
                local: "127.0.0.1:1".parse().expect("given"),
                peer: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
                is_local: true,
            };
            let found = Server::of(&[ends], &RdmaChoice::Verbs).expect(address);
            assert!(found.processes.contains(&std::process::id()));
            // The same port on another host.
            let peer = SocketAddr::from(([192, 0, 2, 1], port));
            let is_local = false;
            let elsewhere = Ends {
                peer,
                is_local,
                ..ends
            };
            assert_eq!(Server::of(&[elsewhere], &RdmaChoice::Verbs), None);
        }
    }

    #[test]
    fn the_process_at_a_name_is_found() {
        let directory = std::env::temp_dir().join(format!("smbeam-bench-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory");
        let listener = UnixListener::bind(directory.join("5445.sock")).expect("a name");
        let ends = |port| Ends {
            transport: Transport::SmbDirect,
            local: "127.0.0.1:1".parse().expect("given"),
            peer: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            is_local: true,
        };
        let rdma = RdmaChoice::Emulated(directory.clone());
        let found = Server::of(&[ends(5445)], &rdma).expect("it listens");
        assert!(found.processes.contains(&std::process::id()));
        assert_eq!(Server::of(&[ends(5446)], &rdma), None);
        assert_eq!(Server::of(&[ends(5445)], &RdmaChoice::Verbs), None);
        drop(listener);
        fs::remove_dir_all(directory).expect("an empty directory");
    }

    #[test]
    fn addresses_are_spelt_as_the_kernel_does() {
        let address: SocketAddr = "127.0.0.1:445".parse().expect("given");
        let (v4, v6) = if cfg!(target_endian = "little") {
            ("0100007F:01BD", "0000000000000000FFFF00000100007F:01BD")
        } else {
            ("7F000001:01BD", "00000000000000000000FFFF7F000001:01BD")
        };
        assert_eq!(spell_v4(address).expect("given"), v4);
        assert_eq!(spell_v6(address).expect("given"), v6);
    }
}
