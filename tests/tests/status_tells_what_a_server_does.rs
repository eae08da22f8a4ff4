//! `smbeam status` tells who is connected, by what, and what is open; and says clearly why not
//! where it does not.

mod rig;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use client::{Channels, LockKind, OpenOptions, Options, Wait};
use rig::{Peer, Rig, SHARE, for_each_transport};
use serde_json::Value;
use smbeam_tests::client::{Client, Output};
use smbeam_tests::lab::{Lab, is_root};
use smbeam_tests::scratch::Scratch;
use smbeam_tests::smbclient::Smbclient;
use smbeam_tests::subject::{self, BOB, Plan, Server, Subject};
use smbeam_tests::wait;

for_each_transport!(
    channels_files_and_locks_are_told,
    connections_of_quic_tell_their_path,
    smbclient_is_seen_to_come_and_go,
    who_may_not_ask_is_told_so,
    there_may_be_no_server,
    a_socket_that_was_left_behind_is_replaced,
);

/// Whose server it is not.
const NOBODY: u32 = 65_534;

/// Runs `smbeam status`.
fn run(arguments: &[&str]) -> Result<Output> {
    Client::of("nowhere")?.try_run(&[&["status"], arguments].concat())
}

fn ask(server: &Server) -> Result<Value> {
    let socket = server.control();
    let output = run(&["--json", "--socket", &socket.display().to_string()])?;
    ensure!(output.code == Some(0), "{output}");
    serde_json::from_str(&output.text).context("one object")
}

fn list<'a>(status: &'a Value, what: &str) -> Result<&'a Vec<Value>> {
    status[what].as_array().with_context(|| format!("{status}"))
}

/// smbd has no control socket.
fn is_samba(peer: Peer) -> bool {
    peer.subject == Subject::Samba
}

fn channels_files_and_locks_are_told(peer: Peer) -> Result<()> {
    if is_samba(peer) {
        return Ok(());
    }
    let rig = Rig::with(peer, |plan| plan.channels = true)?;
    let session = rig.connect(Options {
        channels: Channels::Exactly(4),
        ..Options::default()
    })?;
    let share = session.share(SHARE).wait()?;
    let new = OpenOptions::new().read(true).write(true).create(true);
    let file = share.open("open", &new).wait()?;
    file.lock(10..30, LockKind::Exclusive, false).wait()?;
    let status = ask(&rig.server)?;

    let connections = list(&status, "connections")?;
    ensure!(connections.len() == 4, "{status}");
    let mut ids = Vec::new();
    let channels = session.info().channels;
    for connection in connections {
        ensure!(connection["transport"] == peer.transport.name(), "{status}");
        ensure!(connection["dialect"] == "3.1.1", "{status}");
        ensure!(connection["cipher"] == "AES-128-GCM", "{status}");
        ensure!(connection["signing"] == "AES-GMAC", "{status}");
        ensure!(connection["received"].as_u64() > Some(0), "{status}");
        ensure!(connection["sent"].as_u64() > Some(0), "{status}");
        let from = connection["peer"].as_str().context("a peer")?;
        let is_ours = channels
            .iter()
            .any(|channel| channel.local.to_string() == from);
        ensure!(is_ours, "{from} is none of {channels:?}");
        ids.push(connection["id"].clone());
    }
    let sessions = list(&status, "sessions")?;
    ensure!(sessions.len() == 1, "{status}");
    ensure!(
        sessions[0]["user"] == "alice" && sessions[0]["kind"] == "named",
        "{status}"
    );
    ensure!(sessions[0]["channels"] == Value::Array(ids), "{status}");
    let names: Vec<_> = list(&sessions[0], "trees")?
        .iter()
        .map(|tree| &tree["share"])
        .collect();
    ensure!(names == [SHARE], "{status}");

    let files = list(&status, "files")?;
    ensure!(files.len() == 1, "{status}");
    let told = &files[0];
    ensure!(told["path"] == "open" && told["share"] == SHARE, "{told}");
    ensure!(
        told["session"] == sessions[0]["id"] && told["kind"] == "file",
        "{told}"
    );
    let access = list(told, "access")?;
    ensure!(
        access.contains(&"read".into()) && access.contains(&"write".into()),
        "{told}"
    );
    let lock = &told["locks"][0];
    ensure!(lock["offset"] == 10 && lock["length"] == 20, "{told}");
    ensure!(
        lock["is_exclusive"] == true && told["lock_count"] == 1,
        "{told}"
    );

    let socket = rig.server.control().display().to_string();
    let text = run(&["--socket", &socket])?.text;
    for word in [
        "CONNECTION",
        "alice",
        "AES-GMAC",
        "open",
        "read,write",
        SHARE,
    ] {
        ensure!(text.contains(word), "{word} is missing in {text}");
    }
    file.close().wait()?;
    ensure!(
        list(&ask(&rig.server)?, "files")?.is_empty(),
        "it is closed"
    );
    session.close().wait()?;
    let gone = || {
        ask(&rig.server).is_ok_and(|status| {
            list(&status, "connections").is_ok_and(Vec::is_empty)
                && list(&status, "sessions").is_ok_and(Vec::is_empty)
        })
    };
    wait::until("the session to be gone", rig::PATIENCE, gone)
}

fn connections_of_quic_tell_their_path(peer: Peer) -> Result<()> {
    if is_samba(peer) {
        return Ok(());
    }
    for congestion in ["cubic", "bbr", "newreno"] {
        let rig = Rig::with(peer, |plan| {
            plan.quic.insert("congestion".into(), congestion.into());
            plan.quic.insert("max_datagram".into(), 1400.into());
            plan.quic.insert("idle_timeout_s".into(), 20.into());
        })?;
        let session = rig.connect(Options {
            channels: Channels::Exactly(1),
            quic: format!("congestion={congestion},send-window=4096").parse()?,
            ..Options::default()
        })?;
        let share = session.share(SHARE).wait()?;
        let new = OpenOptions::new().read(true).write(true).create(true);
        let file = share.open("moved", &new).wait()?;
        let bytes = vec![7; 3 << 20];
        file.write_all_at_blocking(&bytes, 0)?;
        let mut back = vec![0; bytes.len()];
        file.read_exact_at_blocking(&mut back, 0)?;
        ensure!(back == bytes, "it came back");
        let status = ask(&rig.server)?;
        let path = &list(&status, "connections")?[0]["path"];
        if peer.transport != client::Transport::Quic {
            ensure!(path.is_null(), "{status}");
            continue;
        }
        ensure!(path["congestion"] == congestion, "{status}");
        ensure!(path["datagram"].as_u64() <= Some(1400), "{status}");
        for count in ["window", "round_trip_us", "datagrams_sent"] {
            ensure!(path[count].as_u64() > Some(0), "{count}: {status}");
        }
        ensure!(path["datagrams_lost"].is_u64(), "{status}");
    }
    Ok(())
}

fn smbclient_is_seen_to_come_and_go(peer: Peer) -> Result<()> {
    if is_samba(peer) {
        return Ok(());
    }
    let lab = Lab::find()?;
    let scratch = Scratch::new("status")?;
    let plan = Plan::sharing(&scratch.open_folder("share")?);
    let server = Server::start_as(peer.subject, Some(&lab), None, plan)?;
    let mut smbclient = Smbclient::new(&lab, &server).user(BOB).stay()?;
    let users = || -> Result<Vec<String>> {
        let status = ask(&server)?;
        let sessions = list(&status, "sessions")?;
        let users = sessions
            .iter()
            .filter_map(|session| session["user"].as_str());
        Ok(users.map(str::to_owned).collect())
    };
    let is_there = || users().is_ok_and(|users| users == [BOB.name]);
    let came = wait::until("smbclient to come", rig::PATIENCE, is_there);
    drop(smbclient.stdin.take());
    wait::for_end(&mut smbclient, rig::PATIENCE)?;
    came?;
    let is_gone = || users().is_ok_and(|users| users.is_empty());
    wait::until("smbclient to go", rig::PATIENCE, is_gone)
}

fn who_may_not_ask_is_told_so(peer: Peer) -> Result<()> {
    if is_samba(peer) {
        return Ok(());
    }
    let rig = Rig::new(peer)?;
    let socket = rig.server.control();
    let mode = fs::metadata(&socket)?.permissions().mode();
    ensure!(mode & 0o777 == 0o600, "{mode:o}");
    let by_file = run(&[
        "--config",
        &rig.server.configuration().display().to_string(),
    ])?;
    ensure!(by_file.code == Some(0), "{by_file}");
    if !is_root() {
        return Ok(());
    }
    // The folders above are root's as well: it takes a socket that others can see.
    let scratch = Scratch::new("s")?;
    let folder = scratch.open_folder("seen")?;
    let (seen, program) = (folder.join("socket"), folder.join("smbeam"));
    fs::hard_link(&socket, &seen)?;
    fs::copy(subject::program()?, &program)?;
    let asked = Command::new(&program)
        .args(["status", "--socket"])
        .arg(&seen)
        .uid(NOBODY)
        .gid(NOBODY)
        .output()?;
    let errors = String::from_utf8_lossy(&asked.stderr);
    ensure!(asked.status.code() == Some(6), "{asked:?}");
    ensure!(errors.contains("somebody else's"), "{errors}");
    Ok(())
}

fn there_may_be_no_server(peer: Peer) -> Result<()> {
    let scratch = Scratch::new("nobody")?;
    let socket = scratch.path().join("control");
    let output = run(&["--socket", &socket.display().to_string()])?;
    let is_told = output.code == Some(3) && output.errors.contains("no server is there");
    ensure!(is_told, "{output}");
    if is_samba(peer) {
        return Ok(());
    }
    let mut rig = Rig::new(peer)?;
    rig.server.kill()?;
    let output = run(&["--socket", &rig.server.control().display().to_string()])?;
    ensure!(output.code == Some(3), "{output}");
    let file = rig.server.configuration();
    let output = run(&["--config", &file.display().to_string()])?;
    ensure!(output.code == Some(3), "{output}");
    let output = run(&["--config", "/no/such/file"])?;
    ensure!(output.code == Some(2), "{output}");
    Ok(())
}

fn a_socket_that_was_left_behind_is_replaced(peer: Peer) -> Result<()> {
    if is_samba(peer) {
        return Ok(());
    }
    let mut rig = Rig::new(peer)?;
    rig.server.kill()?;
    ensure!(rig.server.control().exists(), "it is not left behind");
    rig.server.restart()?;
    let is_there = || ask(&rig.server).is_ok();
    wait::until("the server to answer", rig::PATIENCE, is_there)?;
    rig.server.stop()?;
    ensure!(!rig.server.control().exists(), "it stays");
    not_replaced(&rig.server.control(), &mut rig)
}

/// What is no socket is not taken away.
fn not_replaced(socket: &Path, rig: &mut Rig) -> Result<()> {
    fs::write(socket, "precious")?;
    ensure!(rig.server.restart().is_err(), "it starts");
    ensure!(fs::read_to_string(socket)? == "precious", "it is gone");
    ensure!(
        rig.server.log().contains("server.control_socket"),
        "{}",
        rig.server.log()
    );
    Ok(())
}
