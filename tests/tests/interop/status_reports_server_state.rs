//! `smbeam status` tells who is connected, by what, and what is open; and says clearly why not
//! where it does not.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use crate::rig::{Peer, Rig, SHARE, for_each_transport};
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
    channels_files_and_locks_are_told,
    connections_of_quic_tell_their_path,
    what_is_agreed_on_is_told,
    sealing_that_the_server_wants_is_told,
    channels_of_several_transports_are_told,
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
    let session = rig.connect(Options::default().channels(Channels::Exactly(4)))?;
    let share = session.share(SHARE).wait()?;
    let new = OpenOptions::new().read(true).write(true).create(true);
    let file = share.open("open", &new).wait()?;
    file.lock(10..30, LockKind::Exclusive, false).wait()?;
    let status = ask(&rig.server)?;

    let connections = list(&status, "connections")?;
    ensure!(connections.len() == 4, "{status}");
    let mut ids = Vec::new();
    let port = format!(":{}", rig.endpoint().port);
    let channels = session.info().channels;
    for connection in connections {
        ensure!(connection["transport"] == peer.transport.name(), "{status}");
        ensure!(connection["dialect"] == "3.1.1", "{status}");
        ensure!(connection["cipher"] == "AES-128-GCM", "{status}");
        ensure!(connection["signing"] == "AES-GMAC", "{status}");
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
    let is_told = listening.iter().any(|place| {
        place["transport"] == peer.transport.name()
            && place["address"]
                .as_str()
                .is_some_and(|told| told.ends_with(&port))
    });
    ensure!(is_told, "{status}");
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
    ensure!(
        told["user"] == "alice" && told["oplock"].is_string(),
        "{told}"
    );
    let sharing = list(told, "sharing")?;
    ensure!(sharing.contains(&"read".into()), "{told}");
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
    wait::until("the session to be gone", crate::rig::PATIENCE, || {
        is_idle(&rig)
    })
}

/// A dialect, an algorithm for signatures, a cipher and a protection, and what they are called.
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

fn what_is_agreed_on_is_told(peer: Peer) -> Result<()> {
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
        let status = ask(&rig.server)?;
        let (dialect, signing, cipher) = names;
        let told = [
            &list(&status, "connections")?[0],
            &list(&status, "sessions")?[0],
        ];
        for told in told {
            ensure!(told["dialect"] == dialect, "{told}");
            ensure!(told["signing"] == signing, "{told}");
            ensure!(told["cipher"].as_str() == cipher, "{told}");
        }
        let [connection, login] = told;
        ensure!(connection["transport"] == peer.transport.name(), "{status}");
        // Who seals because it wants to could do without, as far as the server knows.
        let is_told = login["is_encrypted"] == false
            && login["is_signed"] == (protection != Protection::AsAsked);
        ensure!(is_told, "{status}");
        ensure!(connection["sessions"][0] == login["id"], "{status}");
        ensure!(login["channels"][0] == connection["id"], "{status}");
        session.close().wait()?;
        wait::until("the session to be gone", crate::rig::PATIENCE, || {
            is_idle(&rig)
        })?;
    }
    Ok(())
}

fn sealing_that_the_server_wants_is_told(peer: Peer) -> Result<()> {
    if is_samba(peer) {
        return Ok(());
    }
    let rig = Rig::with(peer, |plan| plan.encryption_required = true)?;
    let session = rig.session()?;
    session.echo().wait()?;
    let status = ask(&rig.server)?;
    let login = &list(&status, "sessions")?[0];
    ensure!(login["is_encrypted"] == true, "{status}");
    ensure!(login["cipher"] == "AES-128-GCM", "{status}");
    Ok(())
}

/// Nobody is connected.
fn is_idle(rig: &Rig) -> bool {
    ask(&rig.server).is_ok_and(|status| {
        list(&status, "connections").is_ok_and(Vec::is_empty)
            && list(&status, "sessions").is_ok_and(Vec::is_empty)
    })
}

fn channels_of_several_transports_are_told(peer: Peer) -> Result<()> {
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
    let status = ask(&rig.server)?;
    let channels = list(&list(&status, "sessions")?[0], "channels")?;
    let connections = list(&status, "connections")?;
    let of = |channel: &Value| connections.iter().find(|told| told["id"] == *channel);
    let transports: BTreeSet<_> = channels
        .iter()
        .filter_map(|channel| of(channel)?["transport"].as_str())
        .collect();
    ensure!(transports == all.map(Transport::name).into(), "{status}");
    ensure!(channels.len() == 3 && connections.len() == 3, "{status}");
    session.close().wait()?;
    Ok(())
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
        let status = ask(&rig.server)?;
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
        let status = ask(&server)?;
        let sessions = list(&status, "sessions")?;
        let users = sessions
            .iter()
            .filter_map(|session| session["user"].as_str());
        Ok(users.map(str::to_owned).collect())
    };
    let is_there = || users().is_ok_and(|users| users == [BOB.name]);
    let came = wait::until("smbclient to come", crate::rig::PATIENCE, is_there);
    drop(smbclient.stdin.take());
    wait::for_end(&mut smbclient, crate::rig::PATIENCE)?;
    came?;
    let is_gone = || users().is_ok_and(|users| users.is_empty());
    wait::until("smbclient to go", crate::rig::PATIENCE, is_gone)
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
    // The directories above are root's as well: it takes a socket that others can see.
    let scratch = Scratch::new("s")?;
    let directory = scratch.open_directory("seen")?;
    let (seen, program) = (directory.join("socket"), directory.join("smbeam"));
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
    ensure!(errors.contains("another user"), "{errors}");
    Ok(())
}

fn there_may_be_no_server(peer: Peer) -> Result<()> {
    let scratch = Scratch::new("nobody")?;
    let socket = scratch.path().join("control");
    let output = run(&["--socket", &socket.display().to_string()])?;
    let is_told = output.code == Some(3) && output.errors.contains("no server listens");
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
    wait::until("the server to answer", crate::rig::PATIENCE, is_there)?;
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
