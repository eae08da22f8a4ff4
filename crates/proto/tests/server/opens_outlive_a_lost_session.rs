//! An open outlives a session that lost its last connection, until its time is up. Meanwhile its
//! share modes and locks hold. \[MS-SMB2\] 3.3.7.1

use std::time::Duration;

use wire::access::OplockLevel;
use wire::{Command, FileId, Status};

use crate::harness::{Ask, Client, EXCLUSIVE, EXCLUSIVE_NOW, Rig, bytes_of};

const NONE: OplockLevel = OplockLevel::NONE;
const BATCH: OplockLevel = OplockLevel::BATCH;
/// Time for which opens outlive their session.
const TIMEOUT: Duration = Duration::from_secs(60);
const TICK: Duration = Duration::from_millis(1);

fn rig() -> Rig {
    Rig::new(|config| config.limits.disconnected_open_timeout = TIMEOUT)
}

/// Two clients; the first has opened `f`.
fn with_open(rig: &mut Rig, ask: Ask) -> (Client, FileId, Client) {
    let mut one = Client::with_credits(rig);
    let other = Client::with_credits(rig);
    let (file, _) = one.open(rig, ask);
    (one, file, other)
}

fn try_open(client: &mut Client, rig: &mut Rig, ask: Ask) -> Status {
    let message = client.open_message("f", ask);
    client.ask(rig, message).status()
}

/// Nothing is open, neither here nor on the disk.
fn assert_idle(rig: &Rig) {
    assert!(rig.server.is_idle());
    assert_eq!(rig.server.next_timeout(), None);
    assert!(rig.disk.opens.is_empty());
}

#[test]
fn share_modes_hold_until_the_time_is_up() {
    let mut rig = rig();
    let (one, _, mut other) = with_open(&mut rig, Ask::alone(NONE));
    rig.cut(one.id);
    assert!(rig.connection(one.id).is_idle());
    assert!(!rig.server.is_idle());
    rig.pass(TIMEOUT - TICK);
    let violation = Status::SHARING_VIOLATION;
    assert_eq!(try_open(&mut other, &mut rig, Ask::level(NONE)), violation);
    rig.pass(TICK);
    assert!(rig.server.is_idle());
    other.open(&mut rig, Ask::alone(NONE));
}

#[test]
fn the_timer_runs_without_a_connection() {
    let mut rig = rig();
    let (one, _, other) = with_open(&mut rig, Ask::level(NONE));
    rig.cut(one.id);
    rig.cut(other.id);
    assert_eq!(rig.disk.opens.len(), 1);
    rig.pass(TIMEOUT);
    assert_idle(&rig);
}

#[test]
fn locks_hold_until_the_time_is_up_and_then_go_to_the_waiting_request() {
    let mut rig = rig();
    let (mut one, file, mut other) = with_open(&mut rig, Ask::level(NONE));
    one.must_lock(&mut rig, file, (0, 10), EXCLUSIVE_NOW);
    let (theirs, _) = other.open(&mut rig, Ask::level(NONE));
    rig.cut(one.id);
    let status = other.lock(&mut rig, theirs, (5, 1), EXCLUSIVE_NOW);
    assert_eq!(status, Status::LOCK_NOT_GRANTED);
    let waiting = other.lock_and_wait(&mut rig, theirs, (5, 1), EXCLUSIVE);
    rig.pass(TIMEOUT - TICK);
    assert_eq!(other.hear_answer(&mut rig).status(), Status::PENDING);
    assert!(other.hear(&mut rig).is_none());
    rig.pass(TICK);
    assert_eq!(other.hear_lock(&mut rig, waiting), Status::SUCCESS);
    rig.cut(other.id);
    rig.pass(TIMEOUT);
    assert_idle(&rig);
}

#[test]
fn a_disconnected_open_holds_no_oplock() {
    let mut rig = rig();
    let (one, _, mut other) = with_open(&mut rig, Ask::level(BATCH));
    rig.cut(one.id);
    // No client could acknowledge a break: the open waits for none.
    other.open(&mut rig, Ask::level(NONE));
    // The same for a break in progress.
    let third = other.open_other(&mut rig, "g", Ask::level(BATCH));
    let mut waiting = Client::with_credits(&mut rig);
    let message = waiting.open_message("g", Ask::level(NONE));
    waiting.say(&mut rig, vec![message]);
    assert_eq!(other.hear_break(&mut rig).file_id, third);
    rig.cut(other.id);
    assert_eq!(waiting.hear_answer(&mut rig).status(), Status::SUCCESS);
    rig.cut(waiting.id);
    rig.pass(TIMEOUT);
    assert_idle(&rig);
}

#[test]
fn opens_of_a_session_that_logs_off_are_closed_at_once() {
    let mut rig = rig();
    let (mut one, _, other) = with_open(&mut rig, Ask::level(NONE));
    let bytes = bytes_of(|bytes| wire::logoff::Request.encode(bytes));
    let logoff = one.message(Command::LOGOFF, bytes);
    assert_eq!(one.ask(&mut rig, logoff).status(), Status::SUCCESS);
    assert_idle(&rig);
    rig.cut(one.id);
    rig.cut(other.id);
    assert_idle(&rig);
}

#[test]
fn a_full_table_keeps_no_more_opens() {
    let mut rig = Rig::new(|config| {
        config.limits.disconnected_open_timeout = TIMEOUT;
        config.limits.disconnected_opens = 2;
    });
    let (mut one, _, other) = with_open(&mut rig, Ask::level(NONE));
    for name in ["g", "h", "i"] {
        one.open_other(&mut rig, name, Ask::level(NONE));
    }
    rig.cut(one.id);
    assert_eq!(rig.disk.opens.len(), 2);
    rig.cut(other.id);
    rig.pass(TIMEOUT);
    assert_idle(&rig);
}

#[test]
fn without_a_timeout_opens_end_with_their_session() {
    let mut rig = Rig::new(|_| {});
    let (one, _, _) = with_open(&mut rig, Ask::alone(NONE));
    rig.cut(one.id);
    assert_idle(&rig);
}

#[test]
fn the_halves_of_a_file_id_differ() {
    let mut rig = rig();
    let (mut one, file, _) = with_open(&mut rig, Ask::level(NONE));
    let second = one.open_other(&mut rig, "g", Ask::level(NONE));
    assert_ne!(file.persistent, file.volatile);
    assert_eq!(second.persistent, file.persistent + 1);
    // Another run of the server uses other numbers.
    let mut later = rig_at_later_time();
    let (_, file, _) = with_open(&mut later, Ask::level(NONE));
    assert!(file.persistent > second.persistent);
}

/// A server that starts one second later.
fn rig_at_later_time() -> Rig {
    let mut rig = rig();
    rig.now.wall.0 += 10_000_000;
    rig.server = proto::server::Server::new(rig.server.config().clone(), rig.now);
    rig
}
