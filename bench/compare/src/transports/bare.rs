//! The two ends of a baseline. Each is a new process of this program, so that their CPU times are
//! separate, and each can have its own network namespace.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{self, Child, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::cpu_samples::CpuSamples;
use super::environment::Topology;
use super::{Figures, command_in};
use crate::accounting;

/// The server prints this line when it accepts connections.
const READY: &str = "ready";

/// Starts both ends, measures, and ends them. The first argument of each end selects its role.
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

/// A child process that is killed when the value is dropped.
struct ChildProcess(Child);

impl ChildProcess {
    /// Starts one end in the network namespace of the process `holder`.
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

/// Reports that the server accepts connections.
pub(super) fn be_ready() {
    println!("{READY}");
}

/// Prints the result of a client and ends the process at once, because the peer is about to be
/// killed.
pub(super) fn print_result(bytes: u64, seconds: f64, client_cpu: f64) -> ! {
    let line = json!({ "bytes": bytes, "seconds": seconds, "client_cpu": client_cpu });
    println!("{line}");
    process::exit(0);
}

/// CPU seconds of this process.
pub(super) fn own_cpu() -> Result<f64> {
    accounting::cpu_of(process::id()).context("no CPU time in /proc")
}
