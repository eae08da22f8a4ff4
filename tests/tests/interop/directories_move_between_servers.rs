//! A directory with the metadata of Windows is the same through smbeam and through smbd, whichever
//! of the two wrote it: streams, extended attributes, DOS attributes, creation times, links and
//! access lists.

mod acls;

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use smbeam_tests::lab::Lab;
use smbeam_tests::python::Python;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::subject::{ALICE, Plan, Server, Subject};
use smbeam_tests::tests;

tests!(
    smbeam_writes_and_smbd_reads,
    smbd_writes_and_smbeam_reads,
    acls_of_smbeam_are_those_of_smbd,
    acls_of_smbd_are_those_of_smbeam,
    local_changes_of_permissions_count_on_both,
);

const PROGRAM: &str = include_str!("../../src/python/metadata_tree.py");
/// The settings of smbd that store what smbeam stores.
const SETTINGS: [&str; 4] = [
    "vfs objects = streams_xattr",
    "ea support = yes",
    "store dos attributes = yes",
    "hide dot files = yes",
];

fn smbeam_writes_and_smbd_reads() -> Result<()> {
    move_directory(Subject::Smbeam, Subject::Samba)
}

fn smbd_writes_and_smbeam_reads() -> Result<()> {
    move_directory(Subject::Samba, Subject::Smbeam)
}

fn acls_of_smbeam_are_those_of_smbd() -> Result<()> {
    acls::move_acls(Subject::Smbeam, Subject::Samba)
}

fn acls_of_smbd_are_those_of_smbeam() -> Result<()> {
    acls::move_acls(Subject::Samba, Subject::Smbeam)
}

fn local_changes_of_permissions_count_on_both() -> Result<()> {
    acls::change_permissions()
}

fn move_directory(writer: Subject, reader: Subject) -> Result<()> {
    let scratch = Scratch::new("moved")?;
    let share = scratch.open_directory("share")?;
    let written = items(writer, &share, "write")?;
    let read = items(reader, &share, "read")?;
    ensure!(!written.is_empty(), "{writer:?} lists nothing");
    for (written, read) in written.lines().zip(read.lines()) {
        ensure!(written == read, "{writer:?}: {written}\n{reader:?}: {read}");
    }
    ensure!(
        written == read,
        "{writer:?} lists:\n{written}\n{reader:?} lists:\n{read}"
    );
    Ok(())
}

/// Serves a directory and returns its items as the program prints them.
fn items(subject: Subject, share: &Path, mode: &str) -> Result<String> {
    let mut plan = Plan::sharing(share);
    plan.samba_globals = SETTINGS.map(String::from).to_vec();
    let server = Server::start_as(subject, Some(&Lab::find()?), None, plan)?;
    let port = server.tcp.port().to_string();
    let arguments = [mode, &port, "data", ALICE.name, ALICE.password, "tree"];
    let output = Python::find()?
        .command(PROGRAM, &arguments)
        .output()
        .context("cannot run Python")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "{subject:?}, {mode}:\n{text}{errors}"
    );
    Ok(text)
}
