//! FLUSH and write-through put data on the disk, or do not, as the key `sync` of the share says.
//! Samba has the same effect with `strict sync` and `sync always`.

use anyhow::{Result, bail};
use smbeam_tests::lab::{Lab, Missing};
use smbeam_tests::python::Python;
use smbeam_tests::scratch::{Scratch, open_directory};
use smbeam_tests::subject::{ALICE, Plan, Server, Share};
use smbeam_tests::tests;

tests!(a_share_syncs_as_configured);

const PROGRAM: &str = include_str!("../../src/python/smbprotocol_flushes.py");
/// The exit code of the program where the machine does not report which pages are written.
const SKIPPED: i32 = 77;

fn a_share_syncs_as_configured() -> Result<()> {
    let lab = Lab::find()?;
    let python = Python::find()?;
    // Not on a tmpfs: its pages are never written.
    let scratch = Scratch::new("sync")?;
    let mut plan = Plan::default();
    for sync in ["client", "flush", "always"] {
        let path = scratch.path().join(sync);
        open_directory(&path)?;
        let mut share = Share::new(sync, &path);
        share.sync = sync;
        plan.shares.push(share);
    }
    let server = Server::start(&lab, plan)?;
    let port = server.tcp.port().to_string();
    let directory = scratch.path().display().to_string();
    let arguments = [&*port, ALICE.name, ALICE.password, &directory];
    let output = python.command(PROGRAM, &arguments).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    match output.status.code() {
        Some(0) => Ok(()),
        Some(SKIPPED) => Err(Missing(text.trim().to_owned()).into()),
        _ => bail!("{text}{}", String::from_utf8_lossy(&output.stderr)),
    }
}
