//! The transport benches.

use anyhow::Result;

use super::smbeam::{Encryption, Session, Share};
use super::{Environment, Figures, Network, quinn_bare, smbeam, tcp_bare};
use crate::options::Options;
use crate::sample::{Metric, Row};

/// Two sides that transfer the same data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TransportBench {
    /// Name on the command line, and prefix of the title of its row.
    pub(crate) name: &'static str,
    /// Description of both sides for `--list`.
    pub(crate) about: &'static str,
    /// The network.
    pub(crate) network: Network,
    /// A, the baseline, and B.
    sides: [Side; 2],
}

/// One side of a bench.
#[derive(Clone, Copy, Debug)]
enum Side {
    /// Bare TCP: a file is read and sent over this number of connections.
    BareTcp(usize),
    /// Bare quinn: messages on a stream.
    BareQuinn,
    /// Both ends of smbeam.
    Smbeam(Session),
}

const TCP: Session = Session {
    transport: "tcp",
    channels: 1,
    encryption: Encryption::None,
    share: Share::Tmpfs,
};
const FOUR_TCP: Session = Session { channels: 4, ..TCP };
const QUIC: Session = Session {
    transport: "quic",
    encryption: Encryption::Tls,
    ..TCP
};
const ENCRYPTED_QUIC: Session = Session {
    encryption: Encryption::Session,
    ..QUIC
};
const FOUR_QUIC: Session = Session {
    channels: 4,
    ..QUIC
};
const SMB_DIRECT: Session = Session {
    transport: "smbdirect",
    ..TCP
};

const TCP_DISK: Session = Session {
    share: Share::Disk,
    ..TCP
};
const SMB_DIRECT_DISK: Session = Session {
    share: Share::Disk,
    ..SMB_DIRECT
};
const SMB_DIRECT_PAST_CACHE: Session = Session {
    share: Share::Direct,
    ..SMB_DIRECT
};

impl TransportBench {
    /// All transport benches.
    pub(crate) const ALL: [TransportBench; 10] = [
        TransportBench {
            name: "tcp-read-1m",
            about: "READ 1 MiB over one channel of TCP / bare pread and send; loopback",
            network: Network::Loopback,
            sides: [Side::BareTcp(1), Side::Smbeam(TCP)],
        },
        TransportBench {
            name: "tcp-four-read-1m",
            about: "the same over four channels / over four connections; loopback",
            network: Network::Loopback,
            sides: [Side::BareTcp(4), Side::Smbeam(FOUR_TCP)],
        },
        TransportBench {
            name: "quic-read-1m",
            about: "READ 1 MiB over QUIC, encrypted by TLS alone / bare quinn; loopback",
            network: Network::Narrow,
            sides: [Side::BareQuinn, Side::Smbeam(QUIC)],
        },
        TransportBench {
            name: "quic-encrypted-read-1m",
            about: "the same with the session encrypted inside TLS / bare quinn; loopback",
            network: Network::Narrow,
            sides: [Side::BareQuinn, Side::Smbeam(ENCRYPTED_QUIC)],
        },
        TransportBench {
            name: "quic-link-read-1m",
            about: "READ 1 MiB over QUIC / bare quinn; 1,500 bytes, 1 % loss, 20 ms",
            network: Network::Link,
            sides: [Side::BareQuinn, Side::Smbeam(QUIC)],
        },
        TransportBench {
            name: "quic-link-tcp-read-1m",
            about: "READ 1 MiB over QUIC / over TCP; 1,500 bytes, 1 % loss, 20 ms",
            network: Network::Link,
            sides: [Side::Smbeam(TCP), Side::Smbeam(QUIC)],
        },
        TransportBench {
            name: "quic-four-read-1m",
            about: "READ 1 MiB over four channels of QUIC / over one; loopback",
            network: Network::Narrow,
            sides: [Side::Smbeam(QUIC), Side::Smbeam(FOUR_QUIC)],
        },
        TransportBench {
            name: "smbdirect-read-1m",
            about: "READ 1 MiB over SMB Direct (emulated) / over TCP; loopback",
            network: Network::Loopback,
            sides: [Side::Smbeam(TCP), Side::Smbeam(SMB_DIRECT)],
        },
        TransportBench {
            name: "smbdirect-disk-read-1m",
            about: "the same of a disk's file, both from the page cache; loopback",
            network: Network::Loopback,
            sides: [Side::Smbeam(TCP_DISK), Side::Smbeam(SMB_DIRECT_DISK)],
        },
        TransportBench {
            name: "smbdirect-past-cache-read-1m",
            about: "SMB Direct (emulated) past the page cache / TCP from it; a disk, loopback",
            network: Network::Loopback,
            sides: [Side::Smbeam(TCP_DISK), Side::Smbeam(SMB_DIRECT_PAST_CACHE)],
        },
    ];

    /// The selected transport benches.
    pub(crate) fn chosen(options: &Options) -> impl Iterator<Item = TransportBench> + '_ {
        TransportBench::ALL
            .into_iter()
            .filter(|transport_bench| options.is_chosen(transport_bench.name))
    }

    /// Runs one side: 0 for A, 1 for B.
    pub(crate) fn run(
        &self,
        side: usize,
        environment: &Environment,
        options: &Options,
    ) -> Result<Vec<Row>> {
        let topology = environment.topology(self.network)?;
        let figures = match self.sides[side] {
            Side::BareTcp(connections) => tcp_bare::run(&topology, connections, options)?,
            Side::BareQuinn => quinn_bare::run(&topology, options)?,
            Side::Smbeam(session) => smbeam::run(&topology, session, options)?,
        };
        Ok(vec![figures.row(self.name)])
    }
}

impl Figures {
    fn row(self, name: &str) -> Row {
        let gb = self.bytes as f64 / 1e9;
        let metrics = vec![
            (Metric::GbPerSecond, gb / self.seconds),
            (Metric::CpuSecondsPerGb, self.server_cpu / gb),
            (Metric::ClientCpuSecondsPerGb, self.client_cpu / gb),
            (
                Metric::CoresBusy,
                (self.server_cpu + self.client_cpu) / self.seconds,
            ),
        ];
        // The space distinguishes titles with a common prefix.
        let title = format!("{name} ");
        Row { title, metrics }
    }
}
