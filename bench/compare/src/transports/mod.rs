//! Transport benches, each with a baseline: TCP against a bare read and send, QUIC against bare
//! quinn and against TCP, four channels against one, SMB Direct against TCP.
//!
//! The two sides of a [`TransportBench`] run in turn, A B A B. A is the baseline. Both ends of
//! smbeam are measured: `smbeam bench read` is the client, `smbeam serve` the server. /proc has the
//! CPU time of the server for the time that the client measures.

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

/// Largest UDP payload in bytes, as in smbeam.
pub(crate) const DATAGRAM_BYTES_MAX: u16 = 8952;
/// MTU of the loopback device for QUIC, in bytes. quinn sends ten datagrams with one call, and the
/// kernel refuses more than 64 KiB, so larger datagrams would be lost.
pub(crate) const LOOPBACK_MTU: u16 = 6528;
/// Requested size of socket buffers in bytes, for each socket and direction, as in smbeam.
pub(crate) const SOCKET_BYTES: usize = 8 << 20;
/// Bytes per message and per READ.
pub(crate) const MESSAGE_BYTES: usize = 1 << 20;

/// The main function of one end of a baseline.
type End = fn(&[String]) -> Result<()>;

/// The end of a baseline for the first argument of this process.
pub(crate) fn end(name: &str) -> Option<End> {
    match name {
        tcp_bare::SERVER => Some(tcp_bare::serve),
        tcp_bare::CLIENT => Some(tcp_bare::client),
        quinn_bare::SERVER => Some(quinn_bare::serve),
        quinn_bare::CLIENT => Some(quinn_bare::client),
        _ => None,
    }
}

/// The result of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Figures {
    /// Bytes that the client received during the measurement.
    pub(crate) bytes: u64,
    /// Duration of the measurement in seconds.
    pub(crate) seconds: f64,
    /// CPU seconds of the client in that time, user and system.
    pub(crate) client_cpu: f64,
    /// CPU seconds of the server in that time, user and system.
    pub(crate) server_cpu: f64,
}

impl Figures {
    /// Combines the JSON output of a client with the CPU time of the server.
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

/// Settings that both sides of the QUIC benches share, for the report.
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

/// A command that the kernel kills with this program. It runs in the network namespace of the
/// process `holder` if there is one.
fn command_in(holder: Option<u32>, program: &std::path::Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]);
    if let Some(holder) = holder {
        command.args(["nsenter", &format!("--net=/proc/{holder}/ns/net"), "--"]);
    }
    command.arg(program).stdin(Stdio::null());
    command
}

/// Runs a system command that must succeed.
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

/// Finds a loopback port that is free for TCP and UDP.
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
