//! An administrator ends sessions, closes open files and disables shares of a running server, and
//! sees its activity. Everything else stays as it is.

use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use smbeam_client::{OpenOptions, Options, Status, Wait};
use smbeam_tests::client::{Client, Output};
use smbeam_tests::lab::Lab;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::smbclient::Smbclient;
use smbeam_tests::subject::{ALICE, BOB, Plan, Server, Subject};
use smbeam_tests::wait;

use crate::rig::{Peer, Rig, SHARE, TIME_LIMIT, assert_status, for_each_transport};

for_each_transport!(
    an_ended_session_ends_alone,
    a_closed_open_is_gone,
    a_disabled_share_is_gone_until_it_is_enabled,
    smbclient_is_ended,
    the_activity_has_commands_shares_and_clients,
    mistakes_have_reasons,
    other_users_change_nothing,
);

/// A user that does not own the server.
const OTHER_USER: u32 = 65_534;

/// Runs commands on the machine of a server.
struct Control {
    client: Client,
    socket: String,
}

impl Control {
    fn of(server: &Server) -> Result<Self> {
        Ok(Self {
            client: Client::of("nowhere")?,
            socket: server.control().display().to_string(),
        })
    }

    fn arguments<'a>(&'a self, arguments: &[&'a str]) -> Vec<&'a str> {
        [arguments, &["--socket", &self.socket]].concat()
    }

    fn run(&self, arguments: &[&str]) -> Result<Output> {
        self.client.run(&self.arguments(arguments))
    }

    fn fail(&self, arguments: &[&str], code: i32, words: &[&str]) -> Result<Output> {
        self.client.fail(&self.arguments(arguments), code, words)
    }

    fn lines(&self, arguments: &[&str]) -> Result<Vec<Value>> {
        self.run(&[arguments, &["--json"]].concat())?.lines()
    }

    fn status(&self) -> Result<Value> {
        serde_json::from_str(&self.run(&["status", "--json"])?.text).context("one object")
    }
}

/// smbd has no control socket.
fn is_samba(peer: Peer) -> bool {
    peer.subject == Subject::Samba
}

/// Options of a client that reports a lost connection at once.
fn once() -> Options {
    Options::default().reconnect_timeout(Duration::ZERO)
}

fn read_write() -> OpenOptions {
    OpenOptions::new().read(true).write(true).create(true)
}

fn text(value: &Value) -> Result<&str> {
    value.as_str().context("a text")
}

fn an_ended_session_ends_alone(peer: Peer) -> Result<()> {
    if is_samba(peer) {
        return Ok(());
    }
    let rig = Rig::new(peer)?;
    let control = Control::of(&rig.server)?;
    let alice = rig.connect_as(once(), ALICE)?;
    let bob = rig.connect_as(once(), BOB)?;
    let of_alice = alice.share(SHARE).wait()?;
    let of_bob = bob.share(SHARE).wait()?;
    let ended = of_alice.open("of alice", &read_write()).wait()?;
    let kept = of_bob.open("of bob", &read_write()).wait()?;
    let sessions = control.lines(&["session", "list", "--user", "ALICE"])?;
    ensure!(sessions.len() == 1, "{sessions:?}");
    let id = text(&sessions[0]["id"])?;
    let output = control.run(&["session", "end", id])?;
    ensure!(
        output
            .text
            .contains(&format!("ended session {id} of alice")),
        "{output}"
    );
    let (written, _) = ended.write_at(vec![1], 0).wait();
    ensure!(written.is_err(), "the session has not ended");
    let (written, _) = kept.write_at(vec![1], 0).wait();
    ensure!(written? == 1, "the other session");
    wait::until("the end of the open", TIME_LIMIT, || {
        let files = control.lines(&["open", "list"]);
        files.is_ok_and(|files| files.len() == 1 && files[0]["user"] == "bob")
    })?;
    let sessions = control.lines(&["session", "list"])?;
    ensure!(
        sessions.len() == 1 && sessions[0]["user"] == "bob",
        "{sessions:?}"
    );
    control.fail(&["session", "end", id], 5, &["no session", id])?;
    // The user may come again.
    let again = rig.connect_as(once(), ALICE)?;
    again
        .share(SHARE)
        .wait()?
        .open("of alice", &read_write())
        .wait()?;
    // A worker of a busy machine may report its clients late.
    let mut ended = Ok(());
    wait::until("the end of the session", TIME_LIMIT, || {
        ended = control
            .run(&["session", "end", "--client", "127.0.0.1"])
            .map(drop);
        ended.is_ok()
    })
    .and(ended)?;
    let left = control.lines(&["session", "list"])?;
    ensure!(left.is_empty(), "{left:?}");
    Ok(())
}

fn a_closed_open_is_gone(peer: Peer) -> Result<()> {
    if is_samba(peer) {
        return Ok(());
    }
    let rig = Rig::new(peer)?;
    let control = Control::of(&rig.server)?;
    let session = rig.connect(once())?;
    let share = session.share(SHARE).wait()?;
    share.create_dir("directory").wait()?;
    let closed = share.open("directory/closed", &read_write()).wait()?;
    let kept = share.open("kept", &read_write()).wait()?;
    let path = ["--share", SHARE, "--path", "directory/*"];
    let found = control.lines(&[&["open", "list"], &path[..]].concat())?;
    ensure!(
        found.len() == 1 && found[0]["path"] == "directory/closed",
        "{found:?}"
    );
    let output = control.run(&[&["open", "close"], &path[..]].concat())?;
    ensure!(output.text.contains("data/directory/closed"), "{output}");
    let (read, _) = closed.read_at(vec![0; 1], 0).wait();
    assert_status(read.map(drop), Status::FILE_CLOSED)?;
    let (written, _) = kept.write_at(vec![1], 0).wait();
    ensure!(written? == 1, "the other file");
    let id = text(&found[0]["id"])?;
    control.fail(&["open", "close", id], 5, &["no open", id])?;
    // By its identifier.
    let left = control.lines(&["open", "list"])?;
    control.run(&["open", "close", text(&left[0]["id"])?])?;
    let (written, _) = kept.write_at(vec![1], 0).wait();
    assert_status(written.map(drop), Status::FILE_CLOSED)
}

fn a_disabled_share_is_gone_until_it_is_enabled(peer: Peer) -> Result<()> {
    if is_samba(peer) {
        return Ok(());
    }
    let rig = Rig::new(peer)?;
    let control = Control::of(&rig.server)?;
    let session = rig.connect(once())?;
    let share = session.share(SHARE).wait()?;
    let file = share.open("file", &read_write()).wait()?;
    control.run(&["share", "disable", "DATA"])?;
    let (read, _) = file.read_at(vec![0; 1], 0).wait();
    ensure!(read.is_err(), "the share is still in use");
    let entered = session.share(SHARE).wait();
    assert_status(entered.map(drop), Status::BAD_NETWORK_NAME)?;
    let output = control.run(&["share", "disable", SHARE])?;
    ensure!(output.text.contains("already disabled"), "{output}");
    // A reload keeps it disabled.
    control.run(&["reload"])?;
    let entered = session.share(SHARE).wait();
    assert_status(entered.map(drop), Status::BAD_NETWORK_NAME)?;
    let shares = control.lines(&["share", "list"])?;
    let is_disabled = |share: &Value| share["name"] == SHARE && share["is_enabled"] == false;
    ensure!(shares.iter().any(is_disabled), "{shares:?}");
    let output = control.run(&["status"])?;
    ensure!(output.text.contains("share disabled: data"), "{output}");
    control.run(&["share", "enable", SHARE])?;
    let share = session.share(SHARE).wait()?;
    share.open("file", &read_write()).wait()?;
    let output = control.run(&["share", "enable", SHARE])?;
    ensure!(output.text.contains("already enabled"), "{output}");
    Ok(())
}

/// A client of another project sees the end of its session, of its share and of its file.
fn smbclient_is_ended(peer: Peer) -> Result<()> {
    if is_samba(peer) || peer.transport != smbeam_client::Transport::Tcp {
        return Ok(());
    }
    let (lab, scratch) = (Lab::find()?, Scratch::new("control")?);
    let share = scratch.open_directory("share")?;
    let server = Server::start(&lab, Plan::sharing(&share))?;
    let control = Control::of(&server)?;
    let mut client = Smbclient::new(&lab, &server).user(ALICE).stay()?;
    wait::until("the session of smbclient", TIME_LIMIT, || {
        let sessions = control.lines(&["session", "list", "--user", "alice"]);
        sessions.is_ok_and(|sessions| sessions.len() == 1)
    })?;
    control.run(&["session", "end", "--user", "alice"])?;
    let left = control.lines(&["session", "list"])?;
    ensure!(left.is_empty(), "{left:?}");
    client.kill()?;
    client.wait()?;
    control.run(&["share", "disable", SHARE])?;
    let refused = Smbclient::new(&lab, &server).user(ALICE).try_run("ls")?;
    ensure!(
        refused.failed_with("NT_STATUS_BAD_NETWORK_NAME"),
        "{refused}"
    );
    control.run(&["share", "enable", SHARE])?;
    Smbclient::new(&lab, &server).user(ALICE).run("ls")?;
    Ok(())
}

fn the_activity_has_commands_shares_and_clients(peer: Peer) -> Result<()> {
    if is_samba(peer) {
        return Ok(());
    }
    let rig = Rig::new(peer)?;
    let control = Control::of(&rig.server)?;
    let share = rig.share()?;
    let file = share.open("file", &read_write()).wait()?;
    let socket = control.socket.clone();
    let mut top =
        control
            .client
            .spawn(&["top", "--json", "--interval", "2", "--socket", &socket])?;
    while top.try_wait()?.is_none() {
        let (written, _) = file.write_at(vec![1; 4096], 0).wait();
        ensure!(written? == 4096, "a whole write");
    }
    let output = control.client.spawned(top.wait()?.code())?;
    let rates: Value = serde_json::from_str(&output.text).context("one object")?;
    let row = |list: &str, key: &str, name: &str| {
        let rows = rates[list].as_array().context("a list")?;
        let found = rows.iter().find(|row| row[key] == name);
        found.with_context(|| format!("{name} in {rates}"))
    };
    let writes = row("commands", "command", "WRITE")?;
    ensure!(writes["answered"].as_f64() > Some(0.0), "{rates}");
    ensure!(writes["mean"].as_f64() > Some(0.0), "{rates}");
    let share = row("shares", "share", SHARE)?;
    ensure!(share["written"].as_f64() > Some(4096.0), "{rates}");
    let clients = rates["clients"].as_array().context("a list")?;
    ensure!(clients.len() == 1, "{rates}");
    ensure!(clients[0]["users"][0] == "alice", "{rates}");
    ensure!(clients[0]["transport"] == peer.transport.name(), "{rates}");
    ensure!(clients[0]["received"].as_f64() > Some(4096.0), "{rates}");
    ensure!(rates["now"]["opens"].as_u64() == Some(1), "{rates}");
    Ok(())
}

fn mistakes_have_reasons(peer: Peer) -> Result<()> {
    if is_samba(peer) || peer.transport != smbeam_client::Transport::Tcp {
        return Ok(());
    }
    let rig = Rig::new(peer)?;
    let control = Control::of(&rig.server)?;
    control.fail(&["session", "end"], 2, &["--user"])?;
    control.fail(&["session", "end", "--user", "carol"], 5, &["no session"])?;
    control.fail(&["session", "end", "00ff"], 5, &["no session 00ff"])?;
    control.fail(&["session", "end", "all"], 2, &["not the identifier"])?;
    control.fail(&["open", "close"], 2, &["--path"])?;
    control.fail(&["open", "close", "--path", "x"], 5, &["no open file"])?;
    control.fail(&["open", "close", "--path", "["], 2, &["[", "path"])?;
    control.fail(&["share", "disable", "x"], 5, &["no share `x`"])?;
    control.fail(&["top"], 2, &["terminal"])?;
    // A share without its directory cannot be enabled.
    control.run(&["share", "disable", SHARE])?;
    let (path, moved) = (rig.path(""), rig.beside("moved"));
    std::fs::rename(&path, &moved)?;
    control.fail(&["share", "enable", SHARE], 2, &["No such file"])?;
    std::fs::rename(&moved, &path)?;
    control.run(&["share", "enable", SHARE])?;
    Ok(())
}

/// The members of `server.control_group` read the status, and change nothing.
fn other_users_change_nothing(peer: Peer) -> Result<()> {
    if is_samba(peer) || peer.transport != smbeam_client::Transport::Tcp {
        return Ok(());
    }
    for group in [None, Some("nogroup")] {
        let rig = Rig::with(peer, |plan| {
            if let Some(group) = group {
                plan.server.insert("control_group".to_owned(), group.into());
            }
        })?;
        let control = Control::of(&rig.server)?;
        let _session = rig.session()?;
        let run = |arguments: &[&str]| {
            let mut command: Command = control.client.command(&control.arguments(arguments));
            command.uid(OTHER_USER).gid(OTHER_USER);
            command.output().context("cannot run smbeam")
        };
        let read = run(&["session", "list"])?;
        ensure!(read.status.success() == group.is_some(), "{read:?}");
        for change in [
            &["session", "end", "--user", "alice"][..],
            &["share", "disable", SHARE],
            &["reload"],
        ] {
            let refused = run(change)?;
            ensure!(refused.status.code() == Some(6), "{change:?}: {refused:?}");
        }
        let status = control.status()?;
        ensure!(
            status["sessions"].as_array().map(Vec::len) == Some(1),
            "{status}"
        );
    }
    Ok(())
}
