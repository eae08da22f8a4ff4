//! A gate: a program is prepared, and starts on command.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::accounting;

/// A shell script that prints "ready", waits for a line and executes the program: `GATE OUTPUT
/// PROGRAM ARG...`.
pub(super) const GATE: &str = r#"echo ready; read -r line && exec "$@" </dev/null >"$0" 2>&1"#;

/// Time limit of a program. It is killed afterwards.
const LIMIT: Duration = Duration::from_secs(240);

/// The cost of a program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// Seconds from start to end.
    pub(super) seconds: f64,
    /// CPU seconds, user and system.
    pub(super) cpu: f64,
}

/// Runs a program behind a [`GATE`]. `command` is a shell that runs the script, `output` is the
/// file for the output of the program, and `act` is called just before the program starts.
pub(super) fn run(
    command: &mut Command,
    output: &Path,
    act: impl FnOnce() -> Result<()>,
) -> Result<Cost> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {command:?}"))?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.context("a process has a number")?;
    let gate = child.stdin.take().zip(child.stdout.take());
    let (mut gate, mut ready) = gate.context("both were piped")?;
    let is_ready = ready.read_exact(&mut [0; "ready\n".len()]);
    is_ready.with_context(|| format!("{command:?} does not start"))?;
    act()?;
    let cpu_before = cpu_of(pid)?;
    let start = Instant::now();
    gate.write_all(b"go\n")?;
    wait_but_keep(pid)?;
    let seconds = start.elapsed().as_secs_f64();
    let cpu = cpu_of(pid)? - cpu_before;
    let status = child.wait()?;
    ensure!(
        status.success(),
        "{command:?} ends with {status}:\n{}",
        fs::read_to_string(output).unwrap_or_default().trim()
    );
    Ok(Cost { seconds, cpu })
}

/// Waits until a child has ended, without reaping it, so that /proc still has its CPU time.
fn wait_but_keep(pid: Pid) -> Result<()> {
    let (done, ended) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            if ended.recv_timeout(LIMIT) == Err(RecvTimeoutError::Timeout) {
                let _ = kill_process(pid, Signal::KILL);
            }
        });
        let result = waitid(
            WaitId::Pid(pid),
            WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
        );
        drop(done);
        result.map(drop)
    })?;
    Ok(())
}

fn cpu_of(pid: Pid) -> Result<f64> {
    let pid = pid.as_raw_nonzero().get().cast_unsigned();
    accounting::cpu_of(pid).context("/proc has no CPU time of the client")
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbeam_tests::scratch::Scratch;

    fn gated(output: &Path, script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", GATE]).arg(output);
        command.args(["sh", "-c", script]);
        command
    }

    #[test]
    fn what_is_before_the_gate_costs_nothing() {
        let scratch = Scratch::new("gate").expect("a directory");
        let path = scratch.path().join("output");
        let mut is_ready = false;
        let cost = run(&mut gated(&path, "sleep 0.2; echo done"), &path, || {
            is_ready = true;
            thread::sleep(Duration::from_millis(300));
            ensure!(!path.exists(), "it started");
            Ok(())
        });
        let cost = cost.expect("it runs");
        assert!(is_ready && cost.seconds >= 0.2);
        assert_eq!(fs::read_to_string(&path).expect("its output"), "done\n");
    }

    #[test]
    fn the_error_of_a_failed_program_has_its_output() {
        let scratch = Scratch::new("gate").expect("a directory");
        let path = scratch.path().join("output");
        let failed = run(&mut gated(&path, "echo alas >&2; exit 3"), &path, || Ok(()));
        let text = failed.expect_err("it fails").to_string();
        assert!(text.contains("alas") && text.contains('3'), "{text}");
    }
}
