//! `smbeam status` reports the connected clients, their transports and the open files, or a clear
//! reason for its failure.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use crate::rig::{Peer, Rig, SHARE, TIME_LIMIT, for_each_transport, server_status};
use anyhow::{Context as _, Result, ensure};
use crypto::{Cipher, SigningAlgorithm};
use serde_json::Value;
use smbeam_client::{Channels, LockKind, OpenOptions, Options, Protection, Transport, Wait};
use smbeam_tests::client::{Client, Output};
use smbeam_tests::lab::{Lab, is_root};
use smbeam_tests::scratch::Scratch;
use smbeam_tests::smbclient::Smbclient;
use smbeam_tests::subject::{self, BOB, Plan, Server, Subject};
use smbeam_tests::wait;
use wire::dialect::Dialect;

for_each_transport!(
    channels_files_and_locks_are_reported,
    connections_of_quic_report_their_path,
    negotiated_algorithms_are_reported,
    encryption_that_the_server_requires_is_reported,
    totals_have_closed_connections,
    channels_of_several_transports_are_reported,
    smbclient_is_seen_to_come_and_go,
    other_users_are_refused,
    there_may_be_no_server,
    a_socket_that_was_left_behind_is_replaced,
);

/// A user that does not own the server.
const OTHER_USER: u32 = 65_534;

/// Runs `smbeam status`.
fn run(arguments: &[&str]) -> Result<Output> {
    Client::of("nowhere")?.try_run(&[&["status"], arguments].concat())
}

fn list<'a>(status: &'a Value, what: &str) -> Result<&'a Vec<Value>> {
    status[what].as_array().with_context(|| format!("{status}"))
}

/// smbd has no control socket.
fn is_samba(peer: Peer) -> bool {
    peer.subject == Subject::Samba
}

fn channels_files_and_locks_are_reported(peer: Peer) -> Result<()> {
    if is_samba(peer) {
        return Ok(());
    }
    let rig = Rig::with(peer, |plan| plan.channels = true)?;
    let session = rig.connect(Options::default().channels(Channels::Exactly(4)))?;
    let share = session.share(SHARE).wait()?;
    let new = OpenOptions::new().read(true).write(true).create(true);
    let file = share.open("open", &new).wait()?;
    file.lock(10..30, LockKind::Exclusive, false).wait()?;
    let status = server_status(&rig.server)?;

    let connections = list(&status, "connections")?;
    ensure!(connections.len() == 4, "{status}");
    let mut ids = Vec::new();
    let port = format!(":{}", rig.endpoint().port);
    let channels = session.info().channels;
    for connection in connections {
        ensure!(connection["transport"] == peer.transport.name(), "{status}");
        ensure!(connection["dialect"] == "3.1.1", "{status}");
        ensure!(connection["cipher"] == "AES-128-GCM", "{status}");
        ensure!(connection["signing"] == "AES-CMAC", "{status}");
        ensure!(connection["received"].as_u64() > Some(0), "{status}");
        ensure!(connection["sent"].as_u64() > Some(0), "{status}");
        ensure!(
            connection["sessions"].as_array().map(Vec::len) == Some(1),
            "{status}"
        );
        ensure!(connection["requests"] == 0, "{status}");
        let own = connection["local"].as_str().context("our end")?;
        ensure!(own.ends_with(&port), "{status}");
        let from = connection["peer"].as_str().context("a peer")?;
        let is_ours = channels
            .iter()
            .any(|channel| channel.local.to_string() == from);
        ensure!(is_ours, "{from} is none of {channels:?}");
        ids.push(connection["id"].clone());
    }
    let listening = list(&status["server"], "listening")?;
    let is_listed = listening.iter().any(|place| {
        place["transport"] == peer.transport.name()
            && place["address"]
                .as_str()
                .is_some_and(|address| address.ends_with(&port))
    });
    ensure!(is_listed, "{status}");
    let sessions = list(&status, "sessions")?;
    ensure!(sessions.len() == 1, "{status}");
    ensure!(
        sessions[0]["user"] == "alice" && sessions[0]["kind"] == "named",
        "{status}"
    );
    ensure!(sessions[0]["channels"] == Value::Array(ids), "{status}");
    ensure!(sessions[0]["files"] == 1, "{status}");
    let names: Vec<_> = list(&sessions[0], "trees")?
        .iter()
        .map(|tree| &tree["share"])
        .collect();
    ensure!(names == [SHARE], "{status}");

    let files = list(&status, "files")?;
    ensure!(files.len() == 1, "{status}");
    let entry = &files[0];
    ensure!(
        entry["path"] == "open" && entry["share"] == SHARE,
        "{entry}"
    );
    ensure!(
        entry["session"] == sessions[0]["id"] && entry["kind"] == "file",
        "{entry}"
    );
    let access = list(entry, "access")?;
    ensure!(
        access.contains(&"read".into()) && access.contains(&"write".into()),
        "{entry}"
    );
    ensure!(
        entry["user"] == "alice" && entry["oplock"].is_string(),
        "{entry}"
    );
    let sharing = list(entry, "sharing")?;
    ensure!(sharing.contains(&"read".into()), "{entry}");
    let lock = &entry["locks"][0];
    ensure!(lock["offset"] == 10 && lock["length"] == 20, "{entry}");
    ensure!(
        lock["is_exclusive"] == true && entry["lock_count"] == 1,
        "{entry}"
    );

    let socket = rig.server.control().display().to_string();
    let text = run(&["--socket", &socket])?.text;
    for word in [
        "CONNECTION",
        "alice",
        "NEGOTIATED",
        "AES-128-GCM, AES-CMAC",
        "in all ",
        "open",
        "read,write",
        SHARE,
    ] {
        ensure!(text.contains(word), "{word} is missing in {text}");
    }
    file.close().wait()?;
    ensure!(
        list(&server_status(&rig.server)?, "files")?.is_empty(),
        "it is closed"
    );
    session.close().wait()?;
    wait::until("the session to be gone", TIME_LIMIT, || is_idle(&rig))
}

/// A dialect, a signing algorithm, a cipher and a protection, and their names.
type Agreement = (
    Dialect,
    SigningAlgorithm,
    Cipher,
    Protection,
    (&'static str, &'static str, Option<&'static str>),
);

const AGREEMENTS: [Agreement; 4] = [
    (
        Dialect::SMB_3_1_1,
        SigningAlgorithm::AesCmac,
        Cipher::Aes256Gcm,
        Protection::Encrypt,
        ("3.1.1", "AES-CMAC", Some("AES-256-GCM")),
    ),
    (
        Dialect::SMB_3_1_1,
        SigningAlgorithm::HmacSha256,
        Cipher::Aes256Ccm,
        Protection::Sign,
        ("3.1.1", "HMAC-SHA256", Some("AES-256-CCM")),
    ),
    (
        Dialect::SMB_3_0_2,
        SigningAlgorithm::AesCmac,
        Cipher::Aes128Ccm,
        Protection::AsAsked,
        ("3.0.2", "AES-CMAC", Some("AES-128-CCM")),
    ),
    (
        Dialect::SMB_2_1,
        SigningAlgorithm::HmacSha256,
        Cipher::Aes128Ccm,
        Protection::Sign,
        ("2.1", "HMAC-SHA256", None),
    ),
];

fn negotiated_algorithms_are_reported(peer: Peer) -> Result<()> {
    if is_samba(peer) {
        return Ok(());
    }
    let rig = Rig::new(peer)?;
    for (dialect, signing, cipher, protection, names) in AGREEMENTS {
        let session = rig.connect(
            Options::default()
                .dialects(vec![dialect])
                .signing_algorithms(vec![signing])
                .ciphers(vec![cipher])
                .protection(protection),
        )?;
        session.echo().wait()?;
        let status = server_status(&rig.server)?;
        let (dialect, signing, cipher) = names;
        let reported = [
            &list(&status, "connections")?[0],
            &list(&status, "sessions")?[0],
        ];
        for entry in reported {
            ensure!(entry["dialect"] == dialect, "{entry}");
            ensure!(entry["signing"] == signing, "{entry}");
            ensure!(entry["cipher"].as_str() == cipher, "{entry}");
        }
        let [connection, login] = reported;
        ensure!(connection["transport"] == peer.transport.name(), "{status}");
        // The server reports only encryption that it requires: here the client has chosen it.
        let is_reported = login["is_encrypted"] == false
            && login["is_signed"] == (protection != Protection::AsAsked);
        ensure!(is_reported, "{status}");
        ensure!(connection["sessions"][0] == login["id"], "{status}");
        ensure!(login["channels"][0] == connection["id"], "{status}");
        session.close().wait()?;
        wait::until("the session to be gone", TIME_LIMIT, || is_idle(&rig))?;
    }
    Ok(())
}

fn encryption_that_the_server_requires_is_reported(peer: Peer) -> Result<()> {
    if is_samba(peer) {
        return Ok(());
    }
    let rig = Rig::with(peer, |plan| plan.encryption_required = true)?;
    let session = rig.session()?;
    session.echo().wait()?;
    let status = server_status(&rig.server)?;
    let login = &list(&status, "sessions")?[0];
    ensure!(login["is_encrypted"] == true, "{status}");
    ensure!(login["cipher"] == "AES-128-GCM", "{status}");
    let since = login["since"].as_u64();
    ensure!(since >= status["server"]["since"].as_u64(), "{status}");
    let connection = &list(&status, "connections")?[0];
    ensure!(connection["protection"] == "encrypted", "{status}");
    let rdma = (peer.transport == Transport::SmbDirect).then_some("emulated");
    ensure!(connection["rdma"].as_str() == rdma, "{status}");
    Ok(())
}

fn totals_have_closed_connections(peer: Peer) -> Result<()> {
    if is_samba(peer) {
        return Ok(());
    }
    let rig = Rig::new(peer)?;
    let session = rig.session()?;
    let share = session.share(SHARE).wait()?;
    let options = OpenOptions::new().read(true);
    let missing = share.open("missing", &options).wait();
    ensure!(missing.is_err(), "it does not exist");
    let status = server_status(&rig.server)?;
    let connection = &list(&status, "connections")?[0];
    ensure!(connection["errors"] == 1, "{status}");
    // NEGOTIATE, two of the login, TREE_CONNECT and CREATE at least.
    ensure!(connection["answered"].as_u64() >= Some(5), "{status}");
    drop(share);
    session.close().wait()?;
    wait::until("the session to be gone", TIME_LIMIT, || is_idle(&rig))?;
    let status = server_status(&rig.server)?;
    let totals = &status["server"]["totals"];
    ensure!(totals["logins"] == 1 && totals["errors"] == 1, "{status}");
    for (total, of_one) in [
        ("connections", Some(1)),
        ("answered", connection["answered"].as_u64()),
        ("received", connection["received"].as_u64()),
        ("sent", connection["sent"].as_u64()),
    ] {
        ensure!(totals[total].as_u64() >= of_one, "{total}: {status}");
    }
    Ok(())
}

/// Whether no client is connected.
fn is_idle(rig: &Rig) -> bool {
    server_status(&rig.server).is_ok_and(|status| {
        list(&status, "connections").is_ok_and(Vec::is_empty)
            && list(&status, "sessions").is_ok_and(Vec::is_empty)
    })
}

fn channels_of_several_transports_are_reported(peer: Peer) -> Result<()> {
    // Channels of NetBIOS share a session with no others.
    if is_samba(peer) || peer.transport == Transport::Nbt {
        return Ok(());
    }
    let rig = Rig::with(peer, |plan| plan.channels = true)?;
    let all = [Transport::Tcp, Transport::Quic, Transport::SmbDirect];
    let others = all.into_iter().filter(|other| *other != peer.transport);
    let named = [peer.transport].into_iter().chain(others);
    let named = named.map(|transport| rig.endpoint_of(transport));
    let options = Options::default().channels(Channels::Over(named.collect()));
    let session = rig.connect(options)?;
    let status = server_status(&rig.server)?;
    let channels = list(&list(&status, "sessions")?[0], "channels")?;
    let connections = list(&status, "connections")?;
    let of = |channel: &Value| connections.iter().find(|other| other["id"] == *channel);
    let transports: BTreeSet<_> = channels
        .iter()
        .filter_map(|channel| of(channel)?["transport"].as_str())
        .collect();
    ensure!(transports == all.map(Transport::name).into(), "{status}");
    ensure!(channels.len() == 3 && connections.len() == 3, "{status}");
    session.close().wait()?;
    Ok(())
}

fn connections_of_quic_report_their_path(peer: Peer) -> Result<()> {
    if is_samba(peer) {
        return Ok(());
    }
    for congestion in ["cubic", "bbr", "newreno"] {
        let rig = Rig::with(peer, |plan| {
            plan.quic.insert("congestion".into(), congestion.into());
            plan.quic.insert("max_datagram".into(), 1400.into());
            plan.quic.insert("idle_timeout_s".into(), 20.into());
        })?;
        let session = rig.connect(
            Options::default()
                .channels(Channels::Exactly(1))
                .quic(format!("congestion={congestion},send-window=4096").parse()?),
        )?;
        let share = session.share(SHARE).wait()?;
        let new = OpenOptions::new().read(true).write(true).create(true);
        let file = share.open("moved", &new).wait()?;
        let bytes = vec![7; 3 << 20];
        file.write_all_at_blocking(&bytes, 0)?;
        let mut back = vec![0; bytes.len()];
        file.read_exact_at_blocking(&mut back, 0)?;
        ensure!(back == bytes, "it came back");
        let status = server_status(&rig.server)?;
        let path = &list(&status, "connections")?[0]["path"];
        if peer.transport != Transport::Quic {
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
    let plan = Plan::sharing(&scratch.open_directory("share")?);
    let server = Server::start_as(peer.subject, Some(&lab), None, plan)?;
    let mut smbclient = Smbclient::new(&lab, &server).user(BOB).stay()?;
    let users = || -> Result<Vec<String>> {
        let status = server_status(&server)?;
        let sessions = list(&status, "sessions")?;
        let users = sessions
            .iter()
            .filter_map(|session| session["user"].as_str());
        Ok(users.map(str::to_owned).collect())
    };
    let is_there = || users().is_ok_and(|users| users == [BOB.name]);
    let came = wait::until("smbclient to come", TIME_LIMIT, is_there);
    drop(smbclient.stdin.take());
    wait::for_end(&mut smbclient, TIME_LIMIT)?;
    came?;
    let is_gone = || users().is_ok_and(|users| users.is_empty());
    wait::until("smbclient to go", TIME_LIMIT, is_gone)
}

fn other_users_are_refused(peer: Peer) -> Result<()> {
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
    // The directories above are root's as well: it takes a socket that others can see.
    let scratch = Scratch::new("s")?;
    let directory = scratch.open_directory("seen")?;
    let (seen, program) = (directory.join("socket"), directory.join("smbeam"));
    fs::hard_link(&socket, &seen)?;
    fs::copy(subject::program()?, &program)?;
    let asked = Command::new(&program)
        .args(["status", "--socket"])
        .arg(&seen)
        .uid(OTHER_USER)
        .gid(OTHER_USER)
        .output()?;
    let errors = String::from_utf8_lossy(&asked.stderr);
    ensure!(asked.status.code() == Some(6), "{asked:?}");
    ensure!(errors.contains("another user"), "{errors}");
    Ok(())
}

fn there_may_be_no_server(peer: Peer) -> Result<()> {
    let scratch = Scratch::new("no-server")?;
    let socket = scratch.path().join("control");
    let output = run(&["--socket", &socket.display().to_string()])?;
    let is_reported = output.code == Some(3) && output.errors.contains("no server listens");
    ensure!(is_reported, "{output}");
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
    let is_there = || server_status(&rig.server).is_ok();
    wait::until("the server to answer", TIME_LIMIT, is_there)?;
    rig.server.stop()?;
    ensure!(!rig.server.control().exists(), "it stays");
    not_replaced(&rig.server.control(), &mut rig)
}

/// Only sockets are removed.
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
