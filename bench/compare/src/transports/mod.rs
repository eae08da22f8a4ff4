//! The transports, each beside a yardstick: TCP beside a bare read and send, QUIC beside bare quinn
//! and beside TCP, four channels beside one, SMB Direct beside TCP.
//!
//! A *transport_bench* has two sides that take turns, A B A B, as servers do in the other benches; A is the
//! yardstick. Both ends of smbeam are measured: `smbeam bench read` asks, `smbeam serve` answers.
//! What a server costs is read from /proc around the time that the client says it measured.

mod bare;
mod cpu_samples;
mod environment;
mod link;
mod quinn_bare;
mod smbeam;
mod tcp_bare;
mod transport_bench;

use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, UdpSocket};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

pub(crate) use environment::{Environment, Network};
pub(crate) use link::Link;
pub(crate) use quinn_bare::Congestion;
pub(crate) use transport_bench::TransportBench;

use serde_json::Value;

use crate::options::Options;
use cpu_samples::CpuSamples;

/// Bytes of the largest datagram that is tried, without the headers of UDP and IP: that of smbeam.
pub(crate) const DATAGRAM_BYTES_MAX: u16 = 8952;
/// Bytes of a packet of the loopback of QUIC. quinn sends ten datagrams with one call whatever
/// their size, and the kernel refuses more than 64 KiB: larger datagrams would be lost.
pub(crate) const LOOPBACK_MTU: u16 = 6528;
/// Bytes that are asked of the kernel for each socket and direction: those of smbeam.
pub(crate) const SOCKET_BYTES: usize = 8 << 20;
/// Bytes of a message and of a READ.
pub(crate) const MESSAGE_BYTES: usize = 1 << 20;

/// One end of a yardstick, given its arguments.
type End = fn(&[String]) -> Result<()>;

/// The end of a yardstick that a process is whose first argument is `name`.
pub(crate) fn end(name: &str) -> Option<End> {
    match name {
        tcp_bare::SERVER => Some(tcp_bare::serve),
        tcp_bare::CLIENT => Some(tcp_bare::client),
        quinn_bare::SERVER => Some(quinn_bare::serve),
        quinn_bare::CLIENT => Some(quinn_bare::client),
        _ => None,
    }
}

/// What a run yielded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Figures {
    /// Bytes that the client got while it measured.
    pub(crate) bytes: u64,
    /// For how long it measured.
    pub(crate) seconds: f64,
    /// CPU seconds of the client, user and system, in that time.
    pub(crate) client_cpu: f64,
    /// CPU seconds of the server, user and system, in that time.
    pub(crate) server_cpu: f64,
}

impl Figures {
    /// What a client told as JSON, and what the server cost meanwhile.
    fn from_json(line: &Value, samples: &CpuSamples) -> Result<Figures> {
        let number = |name: &str| line[name].as_f64().with_context(|| format!("no {name}"));
        let seconds = number("seconds")?;
        Ok(Figures {
            bytes: line["bytes"].as_u64().context("no bytes")?,
            seconds,
            client_cpu: number("client_cpu")?,
            server_cpu: samples.last(seconds),
        })
    }
}

/// The facts that both sides of the transport_benches of QUIC share, for the report.
pub(crate) fn facts(options: &Options) -> Vec<(String, String)> {
    let read = |name: &str| {
        let path = format!("/proc/sys/net/{name}");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.trim().to_owned()
    };
    let facts = [
        (
            "QUIC, both sides",
            format!(
                "datagrams of up to {DATAGRAM_BYTES_MAX} bytes (discovered; packets of \
                 {LOOPBACK_MTU} \
                 bytes on loopback, 1,500 on the link), \
                 windows of {} MiB ({} on the link), socket buffers of {SOCKET_BYTES} bytes, {}",
                options.window_mb(false),
                options.window_mb(true),
                options.congestion.name()
            ),
        ),
        (
            "bare quinn",
            format!(
                "0.11.12 on tokio with {} threads at each end, GSO and GRO as it finds them",
                options.quinn_threads
            ),
        ),
        (
            "TCP",
            format!("congestion control {}", read("ipv4/tcp_congestion_control")),
        ),
        (
            "the link",
            format!(
                "1,500 bytes, {} of 10,000 packets lost, {} ms each way, {}",
                link::LOST_OF_10_000,
                link::DELAY.as_millis(),
                match options.link_mbit {
                    0 => "as fast as the machine forwards".to_owned(),
                    rate => format!("{rate} Mbit/s"),
                }
            ),
        ),
    ];
    facts.map(|(name, fact)| (name.to_owned(), fact)).into()
}

/// A command that the kernel ends with this program, run in a network namespace if one is given by
/// the process that holds it.
fn command_in(holder: Option<u32>, program: &std::path::Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]);
    if let Some(holder) = holder {
        command.args(["nsenter", &format!("--net=/proc/{holder}/ns/net"), "--"]);
    }
    command.arg(program).stdin(Stdio::null());
    command
}

/// Runs a command of the system that must succeed.
fn run(program: &str, arguments: &[&str]) -> Result<()> {
    let output = Command::new(program).args(arguments).output();
    let output = output.with_context(|| format!("cannot run {program}"))?;
    ensure!(
        output.status.success(),
        "{program} {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(())
}

/// A port of loopback that was free a moment ago for TCP and UDP.
fn free_port() -> Result<u16> {
    for _ in 0..100 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        if UdpSocket::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    anyhow::bail!("no port is free for both TCP and UDP")
}
