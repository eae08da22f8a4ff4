//! A client that logs off from all servers at once, as a program does before it ends.

use std::fs;

use crate::rig::{
    Peer, Rig, SHARE, TIME_LIMIT, assert_status, by, for_each_transport, log_in_by,
    loopback_client, within,
};
use anyhow::{Result, ensure};
use smbeam_client::{Client, Error, File, OpenOptions, Options, Session, Status, Wait};
use smbeam_tests::subject::ALICE;
use smbeam_tests::wait;

for_each_transport!(
    nothing_is_open_any_more,
    nothing_can_be_done_any_more,
    logging_off_does_not_wait_for_a_dead_server,
    sessions_that_went_before_are_no_matter,
);

/// Logins of one client.
const LOGINS: usize = 3;

/// A client with several sessions. Each of them has a file open without sharing.
struct Stage {
    client: Client,
    sessions: Vec<Session>,
    files: Vec<File>,
    rig: Rig,
}

impl Stage {
    fn new(peer: Peer) -> Result<Self> {
        let rig = Rig::new(peer)?;
        let client = loopback_client(by(rig.endpoint(), Options::default()))?;
        let mut sessions = Vec::new();
        let mut files = Vec::new();
        for index in 0..LOGINS {
            fs::write(rig.path(&name(index)), b"text")?;
            let session = log_in_by(&client, None, ALICE)?;
            files.push(open_alone(&session, index)?);
            sessions.push(session);
        }
        Ok(Self {
            client,
            sessions,
            files,
            rig,
        })
    }
}

fn name(index: usize) -> String {
    format!("file {index}")
}

fn open_alone(session: &Session, index: usize) -> Result<File, Error> {
    let alone = OpenOptions::new().read(true).share(false, false, false);
    let share = session.share(SHARE).wait()?;
    share.open(&name(index), &alone).wait()
}

/// Waits until the server has closed the files: the client does not wait long for the responses of
/// a busy server.
fn wait_until_closed(other: &Session) -> Result<()> {
    for index in 0..LOGINS {
        wait::until("the end of an open", TIME_LIMIT, || {
            open_alone(other, index).is_ok()
        })?;
    }
    Ok(())
}

fn nothing_is_open_any_more(peer: Peer) -> Result<()> {
    let stage = Stage::new(peer)?;
    let other = stage.rig.session()?;
    for index in 0..LOGINS {
        assert_status(open_alone(&other, index), Status::SHARING_VIOLATION)?;
    }
    stage.client.log_off().wait();
    // The client still holds its values: the server has closed the files.
    ensure!(stage.files.len() == LOGINS && stage.sessions.len() == LOGINS);
    wait_until_closed(&other)
}

fn nothing_can_be_done_any_more(peer: Peer) -> Result<()> {
    let stage = Stage::new(peer)?;
    stage.client.log_off().wait();
    for (session, file) in stage.sessions.iter().zip(&stage.files) {
        let (read, _) = file.read_at(vec![0; 4], 0).wait();
        ensure!(read.is_err_and(|error| error.is_lost()));
        ensure!(session.echo().wait().is_err_and(|error| error.is_lost()));
    }
    // Not even that once more. A new login is one.
    stage.client.log_off().wait();
    let again = log_in_by(&stage.client, None, ALICE)?;
    again.echo().wait()?;
    Ok(())
}

fn logging_off_does_not_wait_for_a_dead_server(peer: Peer) -> Result<()> {
    let mut stage = Stage::new(peer)?;
    stage.rig.server.kill()?;
    let done = within(TIME_LIMIT, stage.client.log_off());
    ensure!(done.is_some(), "it waits");
    Ok(())
}

fn sessions_that_went_before_are_no_matter(peer: Peer) -> Result<()> {
    let mut stage = Stage::new(peer)?;
    stage.files.clear();
    stage.sessions.truncate(1);
    stage.sessions[0].close().wait()?;
    stage.client.log_off().wait();
    let other = stage.rig.session()?;
    wait_until_closed(&other)
}
