//! The example programs of the client work.

use std::env;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use crate::rig::{Peer, Rig, SHARE, TIME_LIMIT, for_each_transport, pattern};
use anyhow::{Context as _, Result, ensure};
use smbeam_client::Transport;
use smbeam_tests::background::Background;
use smbeam_tests::direct::port::rdma_directory;
use smbeam_tests::files::{assert_same_file, assert_same_tree, make_tree, write_random};
use smbeam_tests::subject::ALICE;
use smbeam_tests::wait;

for_each_transport!(
    list_lists,
    put_sends_and_get_fetches,
    copy_tree_copies,
    watch_watches,
    parallel_read_reads,
    a_missing_path_is_reported,
);

/// The variable that names the directory of the examples.
const EXAMPLES: &str = "SMBEAM_EXAMPLES";

/// The directory of the examples: `cargo xtask test` names it, elsewhere cargo builds them.
fn directory() -> Result<PathBuf> {
    if let Some(directory) = env::var_os(EXAMPLES) {
        return Ok(directory.into());
    }
    static BUILT: Mutex<Option<PathBuf>> = Mutex::new(None);
    let mut built = BUILT.lock().ok().context("a panic")?;
    if built.is_none() {
        *built = Some(build()?);
    }
    built.clone().context("it was just built")
}

fn build() -> Result<PathBuf> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--package", "smbeam-client", "--examples"])
        .args(["--message-format", "json-render-diagnostics"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "cannot build the examples: {errors}"
    );
    let messages = String::from_utf8(output.stdout)?;
    let mut paths = messages.lines().filter_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        message["executable"].as_str().map(PathBuf::from)
    });
    let list = paths.rfind(|path| path.file_name().is_some_and(|name| name == "list"));
    let list = list.context("there is no example `list`")?;
    Ok(list.parent().context("a path has a parent")?.to_path_buf())
}

/// An example with the server, the share and the user as arguments.
fn example(rig: &Rig, name: &str, arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new(directory()?.join(name));
    let endpoint = rig.endpoint();
    // The server's certificate is self-signed and valid for a name.
    let host = match endpoint.transport {
        Transport::Quic => "localhost",
        _ => "127.0.0.1",
    };
    let rdma = format!("emulated:{}", rdma_directory().display());
    command
        .args([&format!("{host}:{}", endpoint.port), SHARE, ALICE.name])
        .env("SMBEAM_TRANSPORTS", endpoint.transport.name())
        .env("SMBEAM_CA_FILE", rig.server.certificate())
        .env("SMBEAM_RDMA", rdma)
        .args(arguments)
        .env("SMBEAM_PASSWORD", ALICE.password)
        .stdin(Stdio::null());
    Ok(command)
}

fn run(rig: &Rig, name: &str, arguments: &[&str]) -> Result<String> {
    let output = example(rig, name, arguments)?.output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name} {arguments:?}: {errors}");
    Ok(String::from_utf8(output.stdout)?)
}

fn list_lists(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    fs::create_dir(rig.path("dir"))?;
    fs::write(rig.path("dir/file"), vec![1; 12_345])?;
    let top = run(&rig, "list", &[])?;
    let is_directory = |line: &str| line.starts_with('d') && line.ends_with(" dir");
    ensure!(
        top.lines().count() == 1 && top.lines().all(is_directory),
        "{top}"
    );
    let below = run(&rig, "list", &["dir"])?;
    let words: Vec<&str> = below.split_whitespace().collect();
    ensure!(words == ["-", "12345", "file"], "{below}");
    Ok(())
}

fn put_sends_and_get_fetches(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    let (file, back) = (rig.beside("file"), rig.beside("back"));
    write_random(&file, 20_000_003, 1)?;
    let (from, to) = (file.display().to_string(), back.display().to_string());
    let sent = run(&rig, "put", &[&from, "sent"])?;
    ensure!(sent.starts_with("20000003 bytes"), "{sent}");
    assert_same_file(&file, &rig.path("sent"))?;
    run(&rig, "get", &["sent", &to])?;
    assert_same_file(&file, &back)
}

fn copy_tree_copies(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    fs::create_dir(rig.path("tree"))?;
    make_tree(&rig.path("tree"), 3)?;
    run(&rig, "copy_tree", &["tree", "copies/copy"])?;
    assert_same_tree(&rig.path("tree"), &rig.path("copies/copy"))
}

/// A program that runs until the value goes, and the lines that it prints.
struct Running {
    program: Background,
    lines: Receiver<String>,
}

fn watch_watches(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    fs::create_dir(rig.path("dir"))?;
    let mut command = example(&rig, "watch", &["dir"])?;
    let mut program = Background::start(command.stdout(Stdio::piped()))?;
    let output = program.0.stdout.take().context("the output was piped")?;
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    let mut running = Running { program, lines };
    // The example does not report its start: the test makes files until one is reported.
    let mut number = 0;
    let mut seen = String::new();
    wait::until("the watcher to see a file", TIME_LIMIT, || {
        number += 1;
        let _ = fs::write(rig.path(&format!("dir/file-{number}")), "x");
        seen.extend(running.lines.try_iter().map(|line| line + "\n"));
        let has_ended = running
            .program
            .0
            .try_wait()
            .is_ok_and(|status| status.is_some());
        has_ended || seen.contains("file-")
    })?;
    ensure!(seen.contains("file-"), "it ended instead");
    fs::write(rig.path("dir/the last"), "x")?;
    wait::until("the watcher to see the last file", TIME_LIMIT, || {
        seen.extend(running.lines.try_iter().map(|line| line + "\n"));
        seen.contains("the last")
    })
}

fn parallel_read_reads(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    fs::write(rig.path("file"), pattern(3_000_000, 1))?;
    let text = run(&rig, "parallel_read", &["file", "20"])?;
    let is_report = |line: &str| line.contains(": 20 in ");
    ensure!(
        text.lines().count() == 2 && text.lines().all(is_report),
        "{text}"
    );
    Ok(())
}

fn a_missing_path_is_reported(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    let output = example(&rig, "get", &["missing", "/dev/null"])?.output()?;
    let errors = String::from_utf8(output.stderr)?;
    ensure!(
        output.status.code() == Some(1),
        "{output:?}",
        output = output.status
    );
    ensure!(
        errors.contains("missing") && !errors.contains("panicked"),
        "{errors}"
    );
    let wrong = example(&rig, "list", &[])?
        .env("SMBEAM_PASSWORD", "wrong")
        .output()?;
    let errors = String::from_utf8(wrong.stderr)?;
    ensure!(
        wrong.status.code() == Some(1) && errors.contains("Login"),
        "{errors}"
    );
    Ok(())
}
