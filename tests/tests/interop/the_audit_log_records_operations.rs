//! The audit log has a record for each operation of smbclient and of our client: user,
//! share, file, both names of a rename, and refusals with their status. A reload changes what
//! the log has of a share, also for connected clients. A stopped server has written all records.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use smbeam_client::{OpenOptions, Wait};
use smbeam_tests::client::Client;
use smbeam_tests::lab::{Lab, Missing};
use smbeam_tests::scratch::Scratch;
use smbeam_tests::smbclient::Smbclient;
use smbeam_tests::subject::{ALICE, Plan, Server, Subject};
use smbeam_tests::wait;
use toml::Table;

use crate::rig::{Peer, Rig, SHARE, for_each_transport, server_status};

for_each_transport!(records_follow_the_configuration, smbclient_is_recorded);

/// Time in which a record appears.
const TIME_LIMIT: Duration = Duration::from_secs(20);

fn is_samba(peer: Peer) -> bool {
    peer.subject == Subject::Samba
}

/// The audit log of a server, and the part of it that was read.
struct Log<'a> {
    server: &'a Server,
    path: PathBuf,
    read: usize,
}

impl<'a> Log<'a> {
    fn new(server: &'a Server, directory: &Path) -> Self {
        Self {
            server,
            path: directory.join("audit.jsonl"),
            read: 0,
        }
    }

    /// Makes the server record these operations of the first share.
    fn select(&self, operations: &[&str]) -> Result<()> {
        let text = fs::read_to_string(self.server.configuration())?;
        let mut table: Table = toml::from_str(&text)?;
        let mut audit = Table::new();
        audit.insert("target".into(), self.path.display().to_string().into());
        table.insert("audit".into(), audit.into());
        let shares = table["share"].as_array_mut().context("shares")?;
        let share = shares[0].as_table_mut().context("a share")?;
        share.insert("audit".into(), operations.to_vec().into());
        fs::write(self.server.configuration(), toml::to_string(&table)?)?;
        let socket = self.server.control().display().to_string();
        let output = Client::of("nowhere")?.try_run(&["reload", "--socket", &socket])?;
        ensure!(output.code == Some(0), "{output}");
        Ok(())
    }

    fn all(&self) -> Result<Vec<Value>> {
        let text = fs::read_to_string(&self.path)?;
        text.lines()
            .map(|line| Ok(serde_json::from_str(line)?))
            .collect()
    }

    /// Waits until the new records have one of this event, and returns all of them.
    fn until(&mut self, event: &str) -> Result<Vec<Value>> {
        let mut new = Vec::new();
        wait::until("a record", TIME_LIMIT, || {
            new = self.all().unwrap_or_default().split_off(self.read);
            new.iter().any(|record| record["event"] == event)
        })
        .with_context(|| format!("no {event} in {new:?}"))?;
        self.read += new.len();
        Ok(new)
    }
}

/// The event, the paths and the status of each record.
fn words(records: &[Value]) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let word = |record: &Value| {
        let fields = ["event", "path", "new_path", "status"];
        fields.map(|field| text(&record[field])).join(" ")
    };
    records.iter().map(word).collect()
}

fn records_follow_the_configuration(peer: Peer) -> Result<()> {
    if is_samba(peer) {
        return Ok(());
    }
    let rig = Rig::new(peer)?;
    let session = rig.session()?;
    let share = session.share(SHARE).wait()?;
    let options = OpenOptions::new().read(true).write(true).create(true);
    let mut log = Log::new(&rig.server, rig.server.directory());
    log.select(&["create", "write", "delete"])?;
    let file = share.open("one", &options).wait()?;
    file.write_all_at_blocking(b"12345", 0)?;
    file.close().wait()?;
    share.remove_file("one").wait()?;
    let records = log.until("delete")?;
    let expected = [
        "create one - SUCCESS",
        "close one - SUCCESS",
        "delete one - SUCCESS",
    ];
    ensure!(words(&records) == expected, "{records:#?}");
    ensure!(records[1]["bytes_written"] == 5, "{records:#?}");
    ensure!(records[0]["open"] == records[1]["open"], "{records:#?}");
    for record in &records {
        ensure!(record["user"] == ALICE.name, "{record:#}");
        ensure!(record["share"] == SHARE, "{record:#}");
        ensure!(record["client"] == "127.0.0.1", "{record:#}");
        let transport = peer.transport.to_string();
        ensure!(record["transport"] == transport.as_str(), "{record:#}");
    }
    log.select(&[])?;
    share.open("two", &options).wait()?.close().wait()?;
    log.select(&["rename"])?;
    share.rename("two", "three", false).wait()?;
    let records = log.until("rename")?;
    ensure!(
        words(&records) == ["rename two three SUCCESS"],
        "{records:#?}"
    );
    let mut audit = Value::Null;
    // The thread counts a record after it has written it.
    wait::until("the count of the records", TIME_LIMIT, || {
        let status = server_status(&rig.server).unwrap_or_default();
        audit = status["server"]["audit"].clone();
        audit["written"] == 4
    })
    .with_context(|| audit.to_string())?;
    ensure!(audit["lost"] == 0, "{audit}");
    Ok(())
}

fn smbclient_is_recorded(peer: Peer) -> Result<()> {
    if is_samba(peer) || peer.transport.to_string() != "tcp" {
        return Ok(());
    }
    let lab = Lab::find()?;
    if Subject::chosen() == Subject::Samba {
        return Err(Missing("the audit log of smbd has another form".into()).into());
    }
    let scratch = Scratch::new("audit")?;
    let directory = scratch.open_directory("share")?;
    fs::write(directory.join("private"), "text")?;
    fs::set_permissions(directory.join("private"), Permissions::from_mode(0o600))?;
    fs::write(scratch.path().join("local"), "1234567")?;
    let mut server = Server::start(&lab, Plan::sharing(&directory))?;
    let path = scratch.path().to_owned();
    Log::new(&server, &path).select(&["all"])?;
    let client = Smbclient::new(&lab, &server).directory(scratch.path());
    let wrong = client.clone().login("alice%wrong").try_run("ls")?;
    ensure!(wrong.code != Some(0), "{wrong}");
    let client = client.user(ALICE);
    client.run("put local a; rename a b; mkdir d; rmdir d; del b")?;
    let denied = client.try_run("get private got")?;
    ensure!(denied.text.contains("ACCESS_DENIED"), "{denied}");
    let unknown = client.clone().share("none").try_run("ls")?;
    ensure!(unknown.code != Some(0), "{unknown}");
    server.stop()?;
    // A stopped server has written all records.
    let records = Log::new(&server, &path).all()?;
    let words = words(&records);
    for expected in [
        "login - - -",
        "login - - SUCCESS",
        "connect - - SUCCESS",
        "create a - SUCCESS",
        "close a - SUCCESS",
        "rename a b SUCCESS",
        "create d - SUCCESS",
        "delete d - SUCCESS",
        "delete b - SUCCESS",
        "open private - ACCESS_DENIED",
        "connect - - BAD_NETWORK_NAME",
        "logoff - - SUCCESS",
    ] {
        ensure!(
            words.iter().any(|word| word == expected),
            "no {expected}: {words:#?}"
        );
    }
    let refused = records.iter().find(|record| record["outcome"] == "denied");
    let refused = refused.context("a refusal")?;
    ensure!(
        refused["user"] == "alice" && refused["reason"].is_string(),
        "{refused:#}"
    );
    let written = records.iter().find(|record| record["bytes_written"] == 7);
    ensure!(
        written.is_some_and(|record| record["event"] == "close"),
        "{words:#?}"
    );
    Ok(())
}
