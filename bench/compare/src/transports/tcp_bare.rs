//! The baseline of TCP: a server that reads a file in pieces and sends it, and a client that
//! receives it. It is the copying data path alone, with a thread per connection at each end.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddrV4, TcpListener, TcpStream};
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::net::sockopt::set_tcp_congestion;
use smbeam_tests::files::write_random;

use super::bare::{self, own_cpu};
use super::environment::Topology;
use super::smbeam::warm_up_bytes;
use super::{Figures, MESSAGE_BYTES};
use crate::options::Options;

/// First argument of the server process.
pub(super) const SERVER: &str = "--be-tcp-server";
/// First argument of the client process.
pub(super) const CLIENT: &str = "--be-tcp-client";
/// Congestion control of smbeam for connections within a machine. Others pace, which is not useful
/// here.
const CONGESTION: &str = "reno";
/// The file that is sent.
const FILE: &str = "bare";

/// Starts both ends, measures, and ends them.
pub(super) fn run(
    topology: &Topology<'_>,
    connections: usize,
    options: &Options,
) -> Result<Figures> {
    let path = topology.tmpfs.join(FILE);
    write_random(&path, warm_up_bytes(topology.is_link), 1)?;
    let address = SocketAddrV4::new(topology.address, topology.ports[1]).to_string();
    let name = path.to_str().context("a path in UTF-8")?;
    let (count, seconds) = (connections.to_string(), options.seconds.to_string());
    let figures = bare::run(
        topology,
        &[SERVER, name, &address],
        &[CLIENT, &address, &count, &seconds],
        options.seconds,
    );
    std::fs::remove_file(&path)?;
    figures
}

/// The server process: `FILE ADDRESS`.
pub(super) fn serve(arguments: &[String]) -> Result<()> {
    let [file, address] = arguments else {
        bail!("the server takes two arguments");
    };
    let file = File::open(file)?;
    let listener = TcpListener::bind(address)?;
    // Accepted connections inherit the setting. A later change would not stop pacing.
    set_tcp_congestion(&listener, CONGESTION)?;
    bare::be_ready();
    thread::scope(|scope| {
        loop {
            let (stream, _) = listener.accept()?;
            // The function ends with an error when the client closes the connection.
            scope.spawn(|| send(&file, stream));
        }
    })
}

/// Sends a file again and again.
fn send(file: &File, mut stream: TcpStream) -> Result<()> {
    let bytes = file.metadata()?.len();
    let mut message = vec![0; MESSAGE_BYTES];
    let mut offset = 0;
    loop {
        file.read_exact_at(&mut message, offset)?;
        stream.write_all(&message)?;
        offset = (offset + MESSAGE_BYTES as u64) % bytes;
    }
}

/// The client process: `ADDRESS CONNECTIONS SECONDS`. It prints one line of JSON.
pub(super) fn client(arguments: &[String]) -> Result<()> {
    let [address, connections, seconds] = arguments else {
        bail!("the client takes three arguments");
    };
    let time = Duration::from_secs(seconds.parse()?);
    let received = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..connections.parse::<usize>()? {
            let mut stream = TcpStream::connect(address)?;
            let received = &received;
            scope.spawn(move || {
                let mut message = vec![0; MESSAGE_BYTES];
                while stream.read_exact(&mut message).is_ok() {
                    received.fetch_add(MESSAGE_BYTES as u64, Ordering::Relaxed);
                }
            });
        }
        while received.load(Ordering::Relaxed) < warm_up_bytes(false) {
            thread::sleep(Duration::from_millis(1));
        }
        let (before, cpu, start) = (received.load(Ordering::Relaxed), own_cpu()?, Instant::now());
        thread::sleep(time);
        let seconds = start.elapsed().as_secs_f64();
        let bytes = received.load(Ordering::Relaxed) - before;
        bare::print_result(bytes, seconds, own_cpu()? - cpu)
    })
}
