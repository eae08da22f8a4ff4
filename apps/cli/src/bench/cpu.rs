//! CPU time of this process, and of the server where it runs on this host.
//!
//! A server on this host is found by its ends of our connections: the kernel lists every socket
//! with its inode, and every process shows the inodes of its sockets. Connections of QUIC share the
//! sockets that are bound to the server's port, and those of emulated RDMA come by a socket that
//! has a name in a directory. Queues of RDMA devices are in none of these lists.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use smbeam_client::{RdmaChoice, Transport};

/// Clock ticks in a second, as /proc counts them; the same on every Linux that we run on.
const TICKS_PER_SECOND: f64 = 100.0;

/// The processes that hold the other ends of our connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Server {
    processes: BTreeSet<u32>,
}

/// A connection as we see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    /// What carries it.
    pub(crate) transport: Transport,
    /// Our end.
    pub(crate) local: SocketAddr,
    /// The server's end.
    pub(crate) peer: SocketAddr,
    /// Whether both are on this machine.
    pub(crate) is_local: bool,
}

impl Server {
    /// Who serves these connections, of which those of SMB Direct are made by `rdma`; `None` where
    /// no process of this host does, or none that we may look at.
    pub(crate) fn of(connections: &[Ends], rdma: &RdmaChoice) -> Option<Self> {
        let inodes = sockets(connections, rdma);
        if inodes.is_empty() {
            return None;
        }
        let processes = processes().filter(|pid| holds_any(*pid, &inodes)).collect();
        let server = Self { processes };
        (!server.processes.is_empty()).then_some(server)
    }

    /// CPU seconds so far, user and system.
    pub(crate) fn seconds(&self) -> f64 {
        self.processes
            .iter()
            .filter_map(|pid| of_process(*pid))
            .sum()
    }
}

/// CPU seconds of this process so far, user and system, over all its threads.
pub(crate) fn own_seconds() -> f64 {
    of_process(std::process::id()).unwrap_or(0.0)
}

/// Inodes of the sockets at the server's ends.
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

/// Inodes of the sockets whose two addresses are among `wanted`, of both families.
fn inodes_of(protocol: &str, wanted: impl Iterator<Item = (String, String)>) -> BTreeSet<u64> {
    let wanted: BTreeSet<_> = wanted.collect();
    let tables = ["", "6"].map(|family| format!("/proc/net/{protocol}{family}"));
    let texts = tables.map(|table| fs::read_to_string(table).unwrap_or_default());
    let lines = texts.iter().flat_map(|text| text.lines());
    lines.filter_map(|line| inode_of(line, &wanted)).collect()
}

/// The inode of a line of /proc/net/tcp or udp, if its addresses are among `wanted`.
fn inode_of(line: &str, wanted: &BTreeSet<(String, String)>) -> Option<u64> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let ends = ((*fields.get(1)?).to_owned(), (*fields.get(2)?).to_owned());
    let inode = fields.get(9)?.parse().ok()?;
    (inode != 0 && wanted.contains(&ends)).then_some(inode)
}

/// A socket that takes the packets of all clients, as /proc/net/udp and udp6 may spell it: bound
/// to the server's address or to any, connected to unconnected. Whoever speaks to an address of its own
/// host does so from there; of another host there is no such socket here.
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

/// Inodes of the local sockets that have one of these names. proc_net_unix(5)
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

/// The server's end and ours as /proc/net/tcp and tcp6 spell them: a server that listens on
/// `[::]` has the IPv4 addresses of its connections as IPv6 ones.
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
    // Fields 14 and 15, utime and stime. The name before them may hold anything.
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
    fn an_end_that_is_not_here_is_nobody() {
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
            // The same port of another host.
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
        fs::remove_dir_all(directory).expect("gone");
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
