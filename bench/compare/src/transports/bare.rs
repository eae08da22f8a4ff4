//! The two ends of a yardstick. Each is this program, started again: their CPU time can be told
//! apart, and each can live in a network of its own.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{self, Child, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::cpu_samples::CpuSamples;
use super::environment::Topology;
use super::{Figures, command_in};
use crate::accounting;

/// What a server prints when it can be connected to.
const READY: &str = "ready";

/// Starts both ends, measures, ends them. The first argument of each says which it is.
pub(super) fn run(
    topology: &Topology<'_>,
    server: &[&str],
    client: &[&str],
    seconds: u32,
) -> Result<Figures> {
    let mut server = ChildProcess::start(topology.server, server)?;
    let output = server.0.stdout.take().context("the output was piped")?;
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line)?;
    ensure!(line.trim() == READY, "the bare server does not start");
    let mut client = ChildProcess::start(topology.client, client)?;
    let samples = CpuSamples::during(&mut client.0, server.0.id(), f64::from(seconds))?;
    let mut text = String::new();
    let output = client.0.stdout.as_mut().context("the output was piped")?;
    output.read_to_string(&mut text)?;
    let line: Value = serde_json::from_str(&text).context("the bare client fails")?;
    Figures::from_json(&line, &samples)
}

/// A process that ends with the value.
struct ChildProcess(Child);

impl ChildProcess {
    /// One end, in the network of `holder`.
    fn start(holder: Option<u32>, arguments: &[&str]) -> Result<ChildProcess> {
        let program = std::env::current_exe()?;
        let child = command_in(holder, &program)
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {arguments:?}"))?;
        Ok(ChildProcess(child))
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Says that a server can be connected to.
pub(super) fn be_ready() {
    println!("{READY}");
}

/// Says what a client has measured, and ends it: nobody waits for a peer that is about to be
/// killed.
pub(super) fn print_result(bytes: u64, seconds: f64, client_cpu: f64) -> ! {
    let line = json!({ "bytes": bytes, "seconds": seconds, "client_cpu": client_cpu });
    println!("{line}");
    process::exit(0);
}

/// CPU seconds that this process has had.
pub(super) fn own_cpu() -> Result<f64> {
    accounting::cpu_of(process::id()).context("no CPU time in /proc")
}
