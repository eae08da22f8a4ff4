//! The configuration of a server changes while clients read and write: no connection is lost, no
//! request fails, and the removal of a share ends its tree connects alone. A configuration with a
//! mistake changes nothing.

use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use smbeam_client::{OpenOptions, Options, Session, Share, Status, Wait};
use smbeam_tests::client::{Client, Output};
use smbeam_tests::ports::ReservedPort;
use smbeam_tests::scale;
use smbeam_tests::scratch;
use smbeam_tests::subject::{ALICE, BOB, Subject};
use smbeam_tests::wait;
use toml::Table;

use crate::rig::{
    Peer, Rig, SHARE, TIME_LIMIT, assert_status, for_each_transport, pattern, server_status,
};

for_each_transport!(
    no_request_fails_while_the_configuration_changes,
    a_removed_share_ends_alone,
    a_mistake_changes_nothing,
    addresses_come_and_go,
    a_signal_reads_the_configuration_again,
);

/// The share that comes and goes.
const EXTRA: &str = "extra";
/// Number of reloads with a login of the user that comes and goes. The server delays the logins of
/// a user after many failures.
const LOGINS: i64 = 4;
/// Bytes of each WRITE and READ.
const BYTES: usize = 64 << 10;

/// The configuration of a running server.
struct Configuration<'a> {
    rig: &'a Rig,
    table: Table,
    client: Client,
}

impl<'a> Configuration<'a> {
    fn of(rig: &'a Rig) -> Result<Self> {
        let text = fs::read_to_string(rig.server.configuration())?;
        Ok(Self {
            rig,
            table: toml::from_str(&text)?,
            client: Client::of("nowhere")?,
        })
    }

    fn set(&mut self, section: &str, key: &str, value: impl Into<toml::Value>) -> Result<()> {
        let section = self
            .table
            .entry(section)
            .or_insert_with(|| Table::new().into());
        let section = section.as_table_mut().context("a section")?;
        section.insert(key.to_owned(), value.into());
        Ok(())
    }

    /// Adds the share [`EXTRA`] with a directory beside that of the rig, or removes it.
    fn share_extra(&mut self, directory: Option<&str>, keys: Table) -> Result<()> {
        let shares = self.table["share"].as_array_mut().context("shares")?;
        shares.retain(|share| share["name"].as_str() != Some(EXTRA));
        if let Some(directory) = directory {
            let path = self.rig.beside(directory);
            if !path.exists() {
                scratch::open_directory(&path)?;
            }
            let mut share = keys;
            share.insert("name".to_owned(), EXTRA.into());
            share.insert("path".to_owned(), path.display().to_string().into());
            shares.push(share.into());
        }
        Ok(())
    }

    fn write(&self) -> Result<()> {
        let text = toml::to_string(&self.table)?;
        Ok(fs::write(self.rig.server.configuration(), text)?)
    }

    /// Runs `smbeam reload`.
    fn try_reload(&self) -> Result<Output> {
        let socket = self.rig.server.control().display().to_string();
        self.client
            .try_run(&["reload", "--json", "--socket", &socket])
    }

    /// Writes the file and makes the server read it. Returns the report.
    fn reload(&self) -> Result<Value> {
        self.write()?;
        let output = self.try_reload()?;
        ensure!(output.code == Some(0), "{output}");
        serde_json::from_str(&output.text).context("one object")
    }
}

/// smbd has another configuration.
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

fn ids_of_connections(rig: &Rig) -> Result<Vec<Value>> {
    let status = server_status(&rig.server)?;
    let connections = status["connections"].as_array().context("a list")?;
    Ok(connections
        .iter()
        .map(|connection| connection["id"].clone())
        .collect())
}

/// Writes and reads a file until the end.
fn work(share: &Share, number: u64, ends: &AtomicBool, done: &AtomicU64) -> Result<()> {
    let name = format!("file{number}");
    let mut round = 0;
    while !ends.load(Ordering::Relaxed) {
        let bytes = pattern(BYTES, number << 32 | round);
        let file = share.open(&name, &read_write()).wait()?;
        file.write_all_at_blocking(&bytes, 0)?;
        let mut found = vec![0; BYTES];
        file.read_exact_at_blocking(&mut found, 0)?;
        ensure!(found == bytes, "{name} has other bytes");
        file.close().wait()?;
        round += 1;
        done.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

fn no_request_fails_while_the_configuration_changes(peer: Peer) -> Result<()> {
    if is_samba(peer) {
        return Ok(());
    }
    let rig = Rig::new(peer)?;
    let clients: u64 = peer.amount(scale::choose(10, 50), scale::choose(4, 50));
    let reloads: i64 = peer.amount(scale::choose(20, 200), scale::choose(8, 200));
    let sessions = (0..clients).map(|_| rig.connect(once()));
    let sessions: Vec<Session> = sessions.collect::<Result<_, _>>()?;
    let shares = sessions.iter().map(|session| session.share(SHARE).wait());
    let shares: Vec<Share> = shares.collect::<Result<_, _>>()?;
    let connections = ids_of_connections(&rig)?;
    let (ends, done) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let workers = shares.iter().zip(0..);
        let (ends, done) = (&ends, &done);
        let workers: Vec<ScopedJoinHandle<'_, Result<()>>> = workers
            .map(|(share, number)| scope.spawn(move || work(share, number, ends, done)))
            .collect();
        let changed = change(&rig, &sessions, reloads);
        ends.store(true, Ordering::Relaxed);
        for worker in workers {
            worker.join().expect("no panic")?;
        }
        changed
    })?;
    ensure!(
        done.load(Ordering::Relaxed) >= clients,
        "the clients did nothing"
    );
    let later = ids_of_connections(&rig)?;
    let is_there = |id: &Value| later.contains(id);
    ensure!(
        connections.iter().all(is_there),
        "{later:?} lacks some of {connections:?}"
    );
    Ok(())
}

/// Changes everything that may change: shares, limits, users, certificates and the log.
fn change(rig: &Rig, sessions: &[Session], reloads: i64) -> Result<()> {
    let mut configuration = Configuration::of(rig)?;
    let users = rig.server.directory().join("users.toml");
    let both = fs::read_to_string(&users)?;
    let certificate = rig.server.directory().join("other.pem");
    fs::copy(rig.server.certificate(), &certificate)?;
    let certificate = certificate.display().to_string();
    for round in 0..reloads {
        let is_even = round % 2 == 0;
        let mut keys = Table::new();
        keys.insert("read_only".to_owned(), (round % 4 == 0).into());
        let directory = if round % 3 == 0 { "one" } else { "two" };
        configuration.share_extra(is_even.then_some(directory), keys)?;
        configuration.set("limits", "opens_per_user", 10_000 + round)?;
        configuration.set("limits", "break_timeout_ms", 30_000 + round)?;
        let level = if is_even { "debug" } else { "info" };
        configuration.set("log", "level", level)?;
        configuration.set("security", "lockout_threshold", 100 + round)?;
        if is_even {
            configuration.set("quic", "certificate", certificate.as_str())?;
        } else if let Some(quic) = configuration.table["quic"].as_table_mut() {
            quic.remove("certificate");
        }
        let shown = match is_even {
            true => without(&both, BOB.name)?,
            false => both.clone(),
        };
        replace(&users, &shown)?;
        let report = configuration.reload()?;
        let has = |list: &str, wanted: &str| {
            let list = report[list].as_array();
            list.is_some_and(|list| list.iter().any(|found| found == wanted))
        };
        ensure!(has("applied", "limits.opens_per_user"), "{report}");
        ensure!(
            report["restart"].as_array().is_some_and(Vec::is_empty),
            "{report}"
        );
        let session = &sessions[usize::try_from(round)? % sessions.len()];
        let entered = session.share(EXTRA).wait();
        match is_even {
            true => ensure!(entered.is_ok(), "{:?}", entered.err()),
            false => assert_status(entered, Status::BAD_NETWORK_NAME)?,
        }
        if round >= LOGINS {
            continue;
        }
        let login = rig.connect_as(once(), BOB);
        match is_even {
            true => {
                let refused = login.err().and_then(|error| error.status());
                ensure!(refused == Some(Status::LOGON_FAILURE), "{refused:?}");
            }
            false => login?.close().wait()?,
        }
    }
    Ok(())
}

/// The file of users without one of them.
fn without(users: &str, name: &str) -> Result<String> {
    let mut table: Table = toml::from_str(users)?;
    let (_, list) = table
        .iter_mut()
        .find(|(_, value)| value.is_array())
        .context("users")?;
    let list = list.as_array_mut().context("a list")?;
    list.retain(|user| user["name"].as_str() != Some(name));
    Ok(toml::to_string(&table)?)
}

/// Replaces a file as a whole, with its permissions.
fn replace(path: &std::path::Path, text: &str) -> Result<()> {
    let new = path.with_extension("new");
    fs::write(&new, text)?;
    fs::set_permissions(&new, fs::metadata(path)?.permissions())?;
    Ok(fs::rename(&new, path)?)
}

fn a_removed_share_ends_alone(peer: Peer) -> Result<()> {
    if is_samba(peer) {
        return Ok(());
    }
    let rig = Rig::new(peer)?;
    let mut configuration = Configuration::of(&rig)?;
    configuration.share_extra(Some("one"), Table::new())?;
    configuration.reload()?;
    let session = rig.connect(once())?;
    let kept = session
        .share(SHARE)
        .wait()?
        .open("kept", &read_write())
        .wait()?;
    let extra = session.share(EXTRA).wait()?;
    let removed = extra.open("removed", &read_write()).wait()?;
    removed.write_all_at_blocking(b"removed", 0)?;
    // Another directory and other rights: present tree connects keep theirs.
    let mut keys = Table::new();
    keys.insert("read_only".to_owned(), true.into());
    configuration.share_extra(Some("two"), keys)?;
    let report = configuration.reload()?;
    ensure!(
        report["applied"][0] == "share \"extra\" (changed)",
        "{report}"
    );
    extra.open("more", &read_write()).wait()?.close().wait()?;
    ensure!(
        rig.beside("one").join("more").exists(),
        "the old directory is in use"
    );
    let later = rig.connect(once())?.share(EXTRA).wait()?;
    assert_status(
        later.open("later", &read_write()).wait(),
        Status::ACCESS_DENIED,
    )?;

    configuration.share_extra(None, Table::new())?;
    configuration.reload()?;
    let mut bytes = [0; 7];
    let read = removed.read_exact_at_blocking(&mut bytes, 0);
    assert_status(read, Status::NETWORK_NAME_DELETED)?;
    let opened = extra.open("removed", &read_write()).wait();
    assert_status(opened, Status::NETWORK_NAME_DELETED)?;
    kept.write_all_at_blocking(b"kept", 0)?;
    rig.assert_holds("kept", b"kept")?;
    ensure!(
        fs::read(rig.beside("one").join("removed"))? == b"removed",
        "the data are there"
    );
    // The server has no descriptor of the directory any more, as an unmount needs it.
    let wanted = rig.beside("one").canonicalize()?;
    let pid = rig.server.pid();
    wait::until("the directory to be released", TIME_LIMIT, || {
        !holds(pid, &wanted)
    })
}

/// Whether a process has a descriptor in a directory. A process that cannot be read has none.
fn holds(pid: u32, directory: &std::path::Path) -> bool {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd"));
    let targets = descriptors.into_iter().flatten().flatten();
    let mut targets = targets.filter_map(|entry| fs::read_link(entry.path()).ok());
    targets.any(|target| target.starts_with(directory))
}

fn a_mistake_changes_nothing(peer: Peer) -> Result<()> {
    if is_samba(peer) {
        return Ok(());
    }
    let rig = Rig::new(peer)?;
    let mut good = Configuration::of(&rig)?;
    good.share_extra(Some("one"), Table::new())?;
    good.reload()?;
    let session = rig.connect(once())?;
    let share = session.share(EXTRA).wait()?;
    let taken = std::net::TcpListener::bind("127.0.0.1:0")?;
    let port = taken.local_addr()?.port();
    let transports = good.table["server"]["transports"]
        .as_array()
        .context("a list")?
        .clone();
    let with_taken = transports.into_iter().chain([format!("tcp:{port}").into()]);
    let with_taken: Vec<toml::Value> = with_taken.collect();
    let mistakes: [(&str, &str, toml::Value, &str); 5] = [
        (
            "log",
            "level",
            "loud".into(),
            "log.level: unknown level `loud`",
        ),
        ("log", "levle", "info".into(), "did you mean `level`?"),
        (
            "server",
            "users",
            "/nosuch/users.toml".into(),
            "server.users",
        ),
        (
            "quic",
            "certificate",
            "/nosuch.pem".into(),
            "quic.certificate: /nosuch.pem",
        ),
        (
            "server",
            "transports",
            with_taken.into(),
            "cannot listen on 127.0.0.1",
        ),
    ];
    for (section, key, value, expected) in mistakes {
        let mut bad = Configuration::of(&rig)?;
        bad.share_extra(None, Table::new())?;
        bad.set(section, key, value)?;
        refused(&bad, expected)?;
    }
    let mut missing = Configuration::of(&rig)?;
    missing.share_extra(Some("three"), Table::new())?;
    fs::remove_dir(rig.beside("three"))?;
    refused(&missing, "cannot open share \"extra\"")?;
    share.open("file", &read_write()).wait()?.close().wait()?;
    rig.connect(once())?.share(EXTRA).wait()?;
    Ok(())
}

/// Fails unless the server refuses a configuration, with a line number.
fn refused(bad: &Configuration<'_>, expected: &str) -> Result<()> {
    let before = fs::read_to_string(bad.rig.server.configuration())?;
    bad.write()?;
    let output = bad.try_reload()?;
    fs::write(bad.rig.server.configuration(), before)?;
    let object: Value = serde_json::from_str(&output.text).with_context(|| output.to_string())?;
    let message = object["message"].as_str().context("a message")?;
    ensure!(output.code == Some(2), "{output}");
    ensure!(object["kind"] == "refused", "{object}");
    ensure!(message.contains(expected), "{message}");
    ensure!(message.contains("smbeam.toml, line "), "{message}");
    Ok(())
}

fn addresses_come_and_go(peer: Peer) -> Result<()> {
    if is_samba(peer) {
        return Ok(());
    }
    let rig = Rig::new(peer)?;
    let mut configuration = Configuration::of(&rig)?;
    let transport = peer.transport.name();
    let transports = configuration.table["server"]["transports"].clone();
    let all = transports.as_array().context("a list")?;
    let is_other = |entry: &&toml::Value| {
        !entry
            .as_str()
            .is_some_and(|entry| entry.starts_with(&format!("{transport}:")))
    };
    let port = ReservedPort::new()?;
    let moved = format!("{transport}:{}", port.number);
    let others = all.iter().filter(is_other).cloned();
    let others: Vec<toml::Value> = others.chain([moved.into()]).collect();
    let session = rig.connect(once())?;
    let file = session
        .share(SHARE)
        .wait()?
        .open("file", &read_write())
        .wait()?;
    for round in 0..2 {
        configuration.set("server", "transports", others.clone())?;
        configuration.reload()?;
        // The connection stays, and the new address serves.
        file.write_all_at_blocking(format!("round {round}").as_bytes(), 0)?;
        let endpoint = smbeam_client::Endpoint {
            transport: peer.transport,
            port: port.number,
        };
        let login = crate::rig::log_in(crate::rig::by(endpoint, once()), None, ALICE)?;
        login.close().wait()?;
        wait::until("the old address to be closed", TIME_LIMIT, || {
            rig.connect(once()).is_err()
        })?;
        configuration.set("server", "transports", transports.clone())?;
        configuration.reload()?;
        rig.connect(once())?.close().wait()?;
    }
    file.close().wait()?;
    Ok(())
}

fn a_signal_reads_the_configuration_again(peer: Peer) -> Result<()> {
    if is_samba(peer) {
        return Ok(());
    }
    let rig = Rig::new(peer)?;
    let mut configuration = Configuration::of(&rig)?;
    configuration.share_extra(Some("one"), Table::new())?;
    configuration.set("server", "workers", 3)?;
    configuration.set("log", "format", "json")?;
    configuration.write()?;
    let pid = rig.server.pid();
    let sent = Command::new("kill")
        .args(["-s", "HUP", &pid.to_string()])
        .status()?;
    ensure!(sent.success(), "no signal");
    let session = rig.connect(once())?;
    wait::until("the share", TIME_LIMIT, || {
        session.share(EXTRA).wait().is_ok()
    })?;
    wait::until("a line in JSON", TIME_LIMIT, || {
        let log = rig.server.log();
        log.contains("restart needed for server.workers") && log.contains("{\"timestamp\"")
    })
}
