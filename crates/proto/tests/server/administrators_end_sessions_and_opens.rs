//! An administrator ends a session or closes an open: requests to it fail, its locks and caching
//! rights end, and other sessions and opens stay.

use std::time::Duration;

use wire::access::OplockLevel;
use wire::dialect::Dialect;
use wire::{FileId, SessionId, Status};

use crate::harness::{Ask, Client, EXCLUSIVE, EXCLUSIVE_NOW, Options, Rig, multichannel};

const NONE: OplockLevel = OplockLevel::NONE;

fn end_session(rig: &mut Rig, id: SessionId) -> bool {
    let notices = rig.server.end_session(id);
    let is_known = notices.is_some();
    rig.notices.extend(notices.unwrap_or_default());
    is_known
}

fn close_open(rig: &mut Rig, file: FileId) -> bool {
    let notices = rig.server.close_open(file.persistent);
    let is_known = notices.is_some();
    rig.notices.extend(notices.unwrap_or_default());
    is_known
}

#[test]
fn a_session_ends_on_all_channels_with_its_durable_opens() {
    let mut rig = Rig::new(|_| {});
    let options = multichannel(Dialect::SMB_3_1_1);
    let mut first = Client::in_share(&mut rig, options, "alice", "files");
    let mut second = Client::channel_of(&mut rig, &first);
    first.open_durable(&mut rig);
    let mut other = Client::in_share(&mut rig, Options::default(), "alice", "files");
    other.create(&mut rig, "b");
    assert_eq!(rig.disk.opens.len(), 2);
    let id = first.session;
    assert!(end_session(&mut rig, id));
    rig.deliver_notices();
    assert_eq!(rig.disk.opens.len(), 1);
    for client in [&mut first, &mut second] {
        let status = client.echo(&mut rig).status();
        assert_eq!(status, Status::USER_SESSION_DELETED);
    }
    assert_eq!(other.echo(&mut rig).status(), Status::SUCCESS);
    assert!(!end_session(&mut rig, id));
    // Nothing waits for the client.
    rig.pass(Duration::ZERO);
    assert_eq!(rig.server.counts().disconnected, 0);
}

#[test]
fn a_closed_open_is_gone_on_all_channels_and_others_stay() {
    let mut rig = Rig::new(|_| {});
    let options = multichannel(Dialect::SMB_3_1_1);
    let mut first = Client::in_share(&mut rig, options, "alice", "files");
    let mut second = Client::channel_of(&mut rig, &first);
    let (closed, kept) = (first.create(&mut rig, "a"), first.create(&mut rig, "b"));
    assert!(close_open(&mut rig, closed));
    rig.deliver_notices();
    assert_eq!(rig.disk.opens.len(), 1);
    assert!(!close_open(&mut rig, closed));
    for client in [&mut first, &mut second] {
        let message = client.write_message(closed, b"x");
        let status = client.ask(&mut rig, message).status();
        assert_eq!(status, Status::FILE_CLOSED);
        let message = client.write_message(kept, b"x");
        assert_eq!(client.ask(&mut rig, message).status(), Status::SUCCESS);
    }
    assert_eq!(first.close(&mut rig, closed), Status::FILE_CLOSED);
    assert_eq!(first.close(&mut rig, kept), Status::SUCCESS);
    assert!(rig.disk.opens.is_empty());
}

#[test]
fn the_locks_of_a_closed_open_go_to_those_that_wait() {
    let mut rig = Rig::new(|_| {});
    let mut holder = Client::in_share(&mut rig, Options::default(), "alice", "files");
    let mut waiter = Client::with_credits(&mut rig);
    let (held, _) = holder.open(&mut rig, Ask::level(NONE));
    holder.must_lock(&mut rig, held, (0, 10), EXCLUSIVE_NOW);
    let (file, _) = waiter.open(&mut rig, Ask::level(NONE));
    let waiting = waiter.lock_and_wait(&mut rig, file, (0, 10), EXCLUSIVE);
    assert!(close_open(&mut rig, held));
    rig.deliver_notices();
    assert_eq!(waiter.hear_lock(&mut rig, waiting), Status::SUCCESS);
    // The open of a waiting request can be closed as well.
    let (second, _) = holder.open(&mut rig, Ask::level(NONE));
    let mut third = Client::with_credits(&mut rig);
    let (last, _) = third.open(&mut rig, Ask::level(NONE));
    let waiting = third.lock_and_wait(&mut rig, last, (0, 10), EXCLUSIVE);
    assert!(close_open(&mut rig, last));
    rig.deliver_notices();
    assert_eq!(third.hear_lock(&mut rig, waiting), Status::RANGE_NOT_LOCKED);
    assert!(rig.connection(third.id).is_idle());
    assert_eq!(holder.close(&mut rig, second), Status::SUCCESS);
}

#[test]
fn an_open_without_a_session_is_closed() {
    let mut rig = Rig::new(|_| {});
    let mut client = Client::in_share(&mut rig, Options::default(), "alice", "files");
    let file = client.open_durable(&mut rig);
    rig.cut(client.id);
    assert_eq!(rig.disk.opens.len(), 1);
    assert!(close_open(&mut rig, file));
    rig.pass(Duration::ZERO);
    assert!(rig.server.is_idle() && rig.disk.opens.is_empty());
    assert!(!close_open(&mut rig, file));
}

#[test]
fn a_pipe_is_closed() {
    let mut rig = Rig::new(|_| {});
    let mut client = Client::in_share(&mut rig, Options::default(), "alice", "IPC$");
    let pipe = client.create(&mut rig, "srvsvc");
    assert!(close_open(&mut rig, pipe));
    rig.deliver_notices();
    let message = client.write_message(pipe, b"x");
    let status = client.ask(&mut rig, message).status();
    assert_eq!(status, Status::FILE_CLOSED);
    assert!(!close_open(&mut rig, pipe));
    assert!(rig.connection(client.id).is_idle());
}
