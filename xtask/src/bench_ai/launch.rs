//! Runs this program again to measure, in a mount namespace: the mounts of a run that was killed
//! end with it.

use std::env;
use std::ffi::OsString;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use smbeam_tests::scratch::Scratch;

use super::options::{MEASURE, Options, Table};
use super::python;
use crate::workspace;

/// Measures a table with `program` as server and client.
pub(crate) fn run(table: Table, options: &Options, program: &OsString) -> Result<()> {
    let stage = Scratch::new("bench-ai-python")?;
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "--"]);
    command
        .arg(env::current_exe()?)
        .args(["bench-ai", MEASURE])
        .args(options.to_measure(table))
        .env(workspace::BINARY, program);
    if table == Table::Host {
        python::prepare(&mut command, stage.path())?;
    }
    let status = command.status().context("cannot run unshare")?;
    ensure!(status.success(), "the measurement ends with {status}");
    Ok(())
}
