//! A durable open outlives its session until its time is up, and its client reconnects to it.
//! Meanwhile its share modes and locks hold. \[MS-SMB2\] 3.3.5.9.7, 3.3.5.9.12, 3.3.7.1

use std::time::Duration;

use wire::access::{CreateOptions, OplockLevel};
use wire::{Command, FileId, Status};

use crate::harness::{
    Ask, Client, EXCLUSIVE, EXCLUSIVE_NOW, Options, Rig, UNLOCK, bytes_of, created, data,
    durable_timeout, is_durable,
};

const NONE: OplockLevel = OplockLevel::NONE;
const BATCH: OplockLevel = OplockLevel::BATCH;
/// Time for which opens of version 1 outlive their session.
const TIMEOUT: Duration = Duration::from_secs(300);
const TICK: Duration = Duration::from_millis(1);
const NOT_FOUND: Status = Status::OBJECT_NAME_NOT_FOUND;

/// Two clients; the first has opened `f` durably.
fn with_open(rig: &mut Rig) -> (Client, FileId, Client) {
    let mut one = Client::with_credits(rig);
    let other = Client::with_credits(rig);
    let file = one.open_durable(rig);
    (one, file, other)
}

/// The client is connected again, with a new session.
fn again(rig: &mut Rig) -> Client {
    Client::with_credits(rig)
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
fn a_client_reconnects_and_goes_on() {
    let mut rig = Rig::new(|_| {});
    let (mut one, file, _) = with_open(&mut rig);
    let words = one.write_message(file, b"words");
    assert_eq!(one.ask(&mut rig, words).status(), Status::SUCCESS);
    for _ in 0..3 {
        rig.cut(one.id);
        assert!(rig.connection(one.id).is_idle() && !rig.server.is_idle());
        rig.pass(TIMEOUT - TICK);
        one = again(&mut rig);
        // Before the reconnect, the new session does not know the open.
        let read = one.read_message(file, 100);
        assert_eq!(one.ask(&mut rig, read).status(), Status::FILE_CLOSED);
        let message = one.reconnect_message(file);
        let answer = one.ask(&mut rig, message);
        assert_eq!(created(&answer), (file, BATCH));
        assert!(
            !is_durable(&answer),
            "[MS-SMB2] 3.3.5.9.7: without the context"
        );
        let read = one.read_message(file, 100);
        assert_eq!(data(&one.ask(&mut rig, read)), b"words");
    }
    assert_eq!(one.close(&mut rig, file), Status::SUCCESS);
    assert_idle(&rig);
}

#[test]
fn the_time_runs_out_without_a_connection() {
    let mut rig = Rig::new(|_| {});
    let (one, file, other) = with_open(&mut rig);
    rig.cut(one.id);
    rig.cut(other.id);
    rig.pass(TIMEOUT - TICK);
    assert_eq!(rig.disk.opens.len(), 1);
    rig.pass(TICK);
    assert_idle(&rig);
    assert_eq!(again(&mut rig).reconnect(&mut rig, file), NOT_FOUND);
}

#[test]
fn only_opens_with_a_batch_oplock_are_durable() {
    let mut rig = Rig::new(|_| {});
    let mut one = Client::with_credits(&mut rig);
    for level in [NONE, OplockLevel::II, OplockLevel::EXCLUSIVE] {
        let message = one.durable_message(Ask::level(level));
        let answer = one.ask(&mut rig, message);
        assert!(!is_durable(&answer), "{level:?}");
        let (file, _) = created(&answer);
        assert_eq!(one.close(&mut rig, file), Status::SUCCESS);
    }
    // Without a request it is not durable either.
    one.open(&mut rig, Ask::level(BATCH));
    rig.cut(one.id);
    assert_idle(&rig);
}

#[test]
fn shares_and_servers_without_durable_opens_grant_none() {
    let off = |change: fn(&mut proto::server::config::Config)| {
        let mut rig = Rig::new(change);
        let mut one = Client::with_credits(&mut rig);
        let message = one.durable_message(Ask::level(BATCH));
        let answer = one.ask(&mut rig, message);
        assert!(!is_durable(&answer));
        let file = created(&answer).0;
        let status = one.make_resilient(&mut rig, file, 1000);
        assert_eq!(status, Status::INVALID_DEVICE_REQUEST);
        rig.cut(one.id);
        assert_idle(&rig);
    };
    off(|config| config.limits.durable_timeout_max = Duration::ZERO);
    off(|config| {
        let mut share = crate::harness::share("files");
        share.durable_handles = false;
        config.shares[0] = share.into();
    });
}

#[test]
fn version_2_has_a_timeout_and_a_create_guid() {
    let mut rig = Rig::new(|config| config.limits.durable_timeout_max = Duration::from_secs(100));
    let mut one = Client::with_credits(&mut rig);
    for (requested, granted) in [(0, 60_000), (5, 5), (u32::MAX, 100_000)] {
        let message = one.durable_v2_message(Ask::alone(BATCH), requested, 7);
        let answer = one.ask(&mut rig, message);
        assert_eq!(durable_timeout(&answer), Some(granted));
        let (file, _) = created(&answer);
        rig.cut(one.id);
        rig.pass(Duration::from_millis(u64::from(granted)) - TICK);
        one = again(&mut rig);
        assert_eq!(one.reconnect_v2(&mut rig, file, 8), NOT_FOUND);
        assert_eq!(one.reconnect_v2(&mut rig, file, 7), Status::SUCCESS);
        assert_eq!(one.close(&mut rig, file), Status::SUCCESS);
    }
    assert_idle(&rig);
}

#[test]
fn an_open_with_a_session_is_not_found() {
    let mut rig = Rig::new(|_| {});
    let (mut one, file, _) = with_open(&mut rig);
    assert_eq!(one.reconnect(&mut rig, file), NOT_FOUND);
    assert_eq!(one.close(&mut rig, file), Status::SUCCESS);
}

#[test]
fn another_user_cannot_reconnect() {
    let mut rig = Rig::new(|_| {});
    let (one, file, _) = with_open(&mut rig);
    rig.cut(one.id);
    let mut bob = Client::in_share(&mut rig, Options::default(), "bob", "files");
    assert_eq!(bob.reconnect(&mut rig, file), Status::ACCESS_DENIED);
    assert_eq!(again(&mut rig).reconnect(&mut rig, file), Status::SUCCESS);
}

#[test]
fn a_session_that_is_replaced_or_logs_off_leaves_its_durable_opens() {
    let mut rig = Rig::new(|_| {});
    let (one, file, _) = with_open(&mut rig);
    // smbtorture smb2.durable-open.reopen1a
    let mut two = Client::new(&mut rig, Options::default());
    two.negotiate(&mut rig);
    let answer = two.log_in_replacing(&mut rig, "alice", one.session);
    assert_eq!(answer.status(), Status::SUCCESS);
    two.enter(&mut rig, "files");
    assert_eq!(two.reconnect(&mut rig, file), Status::SUCCESS);
    // smbtorture smb2.durable-open.reopen4
    let bytes = bytes_of(|bytes| wire::logoff::Request.encode(bytes));
    let logoff = two.message(Command::LOGOFF, bytes);
    assert_eq!(two.ask(&mut rig, logoff).status(), Status::SUCCESS);
    let mut three = again(&mut rig);
    assert_eq!(three.reconnect(&mut rig, file), Status::SUCCESS);
    // smbtorture smb2.durable-open.reopen3
    let bytes = bytes_of(|bytes| wire::tree_disconnect::Request.encode(bytes));
    let leave = three.message(Command::TREE_DISCONNECT, bytes);
    assert_eq!(three.ask(&mut rig, leave).status(), Status::SUCCESS);
    three.enter(&mut rig, "files");
    assert_eq!(three.reconnect(&mut rig, file), NOT_FOUND);
    assert_idle(&rig);
}

#[test]
fn a_conflicting_open_ends_a_disconnected_one() {
    let mut rig = Rig::new(|_| {});
    let (one, file, mut other) = with_open(&mut rig);
    rig.cut(one.id);
    // Attributes alone conflict with nothing.
    let stat = other.open_other(&mut rig, "f", Ask::stat(NONE));
    assert_eq!(other.close(&mut rig, stat), Status::SUCCESS);
    let waiting = other.open_and_wait(&mut rig, Ask::alone(BATCH));
    // It is lost for its client from now on.
    assert_eq!(again(&mut rig).reconnect(&mut rig, file), NOT_FOUND);
    rig.pass(Duration::ZERO);
    let answer = other.hear_answer(&mut rig);
    assert_eq!(answer.header.message_id, waiting);
    assert_eq!(created(&answer).1, BATCH);
    assert_eq!(rig.disk.opens.len(), 1);
    rig.cut(other.id);
    assert_idle(&rig);
}

#[test]
fn an_open_whose_oplock_breaks_does_not_outlive_its_session() {
    let mut rig = Rig::new(|_| {});
    let mut one = Client::with_credits(&mut rig);
    let mut other = Client::with_credits(&mut rig);
    let message = one.durable_message(Ask::level(BATCH));
    created(&one.ask(&mut rig, message));
    let waiting = other.open_and_wait(&mut rig, Ask::level(NONE));
    rig.cut(one.id);
    let answer = other.hear_answer(&mut rig);
    assert_eq!(answer.header.message_id, waiting);
    assert_eq!(answer.status(), Status::SUCCESS);
    rig.cut(other.id);
    assert_idle(&rig);
}

#[test]
fn locks_hold_and_survive_a_reconnect() {
    let mut rig = Rig::new(|_| {});
    let (mut one, file, mut other) = with_open(&mut rig);
    one.must_lock(&mut rig, file, (0, 10), EXCLUSIVE_NOW);
    rig.cut(one.id);
    one = again(&mut rig);
    assert_eq!(one.reconnect(&mut rig, file), Status::SUCCESS);
    assert_eq!(one.lock(&mut rig, file, (0, 10), UNLOCK), Status::SUCCESS);
    one.must_lock(&mut rig, file, (0, 10), EXCLUSIVE_NOW);
    rig.cut(one.id);
    rig.pass(TIMEOUT);
    let (theirs, _) = other.open(&mut rig, Ask::level(NONE));
    other.must_lock(&mut rig, theirs, (0, 10), EXCLUSIVE);
}

#[test]
fn delete_on_close_outlives_the_session() {
    let mut rig = Rig::new(|_| {});
    let mut one = Client::with_credits(&mut rig);
    let ask = Ask {
        options: CreateOptions::DELETE_ON_CLOSE,
        ..Ask::alone(BATCH)
    };
    let message = one.durable_message(ask);
    let (file, _) = created(&one.ask(&mut rig, message));
    rig.cut(one.id);
    assert!(rig.disk.has("f"));
    one = again(&mut rig);
    assert_eq!(one.reconnect(&mut rig, file), Status::SUCCESS);
    rig.cut(one.id);
    // The conflicting open finds no file: the deletion comes first.
    let mut other = Client::with_credits(&mut rig);
    let message = other.open_message("f", Ask::level(NONE));
    other.say(&mut rig, vec![message]);
    assert!(other.hear(&mut rig).is_none());
    rig.pass(Duration::ZERO);
    let answer = other.hear_answer(&mut rig);
    let response = wire::create::Response::decode(&answer.message).expect("a response");
    assert_eq!(response.create_action, wire::create::CreateAction::CREATED);
    rig.cut(other.id);
    assert_idle(&rig);
}

#[test]
fn a_replay_reconnects_to_the_open_of_its_first_try() {
    let mut rig = Rig::new(|_| {});
    let mut one = Client::with_credits(&mut rig);
    let message = one.durable_v2_message(Ask::alone(BATCH), 0, 1);
    let (file, _) = created(&one.ask(&mut rig, message));
    rig.cut(one.id);
    one = again(&mut rig);
    let message = one.durable_v2_message(Ask::alone(BATCH), 0, 1).replayed(1);
    let answer = one.ask(&mut rig, message);
    assert_eq!(created(&answer), (file, BATCH));
    assert_eq!(durable_timeout(&answer), Some(60_000));
    // The ChannelSequence of the new session counts.
    let words = one.write_message(file, b"words").numbered(1);
    assert_eq!(one.ask(&mut rig, words).status(), Status::SUCCESS);
    assert_eq!(one.close(&mut rig, file), Status::SUCCESS);
    assert_idle(&rig);
}

#[test]
fn a_resilient_open_outlives_its_session_without_an_oplock() {
    let mut rig = Rig::new(|_| {});
    let mut one = Client::with_credits(&mut rig);
    let mut other = Client::with_credits(&mut rig);
    let (file, _) = one.open(&mut rig, Ask::alone(NONE));
    let too_long = one.make_resilient(&mut rig, file, 300_001);
    assert_eq!(too_long, Status::INVALID_PARAMETER);
    assert_eq!(one.make_resilient(&mut rig, file, 1000), Status::SUCCESS);
    rig.cut(one.id);
    let violation = Status::SHARING_VIOLATION;
    assert_eq!(try_open(&mut other, &mut rig, Ask::level(NONE)), violation);
    one = again(&mut rig);
    assert_eq!(one.reconnect(&mut rig, file), Status::SUCCESS);
    rig.cut(one.id);
    rig.pass(Duration::from_secs(1));
    assert_idle(&rig);
}

#[test]
fn a_resilient_open_loses_its_oplock_to_a_conflicting_open() {
    let mut rig = Rig::new(|_| {});
    let mut one = Client::with_credits(&mut rig);
    let mut other = Client::with_credits(&mut rig);
    let (file, _) = one.open(&mut rig, Ask::level(BATCH));
    assert_eq!(one.make_resilient(&mut rig, file, 0), Status::SUCCESS);
    rig.cut(one.id);
    other.open(&mut rig, Ask::level(NONE));
    one = again(&mut rig);
    let message = one.reconnect_message(file);
    assert_eq!(created(&one.ask(&mut rig, message)), (file, NONE));
}

#[test]
fn limits_bound_the_disconnected_opens_of_all_and_of_a_user() {
    for (all, of_user) in [(2, 10), (10, 2)] {
        let mut rig = Rig::new(|config| {
            config.limits.disconnected_opens = all;
            config.limits.disconnected_opens_per_user = of_user;
        });
        let mut one = Client::with_credits(&mut rig);
        for name in ["g", "h", "i"] {
            let data = wire::create_context::DURABLE_REQUEST_DATA;
            let message = one.open_message(name, Ask::level(BATCH));
            let name = wire::create_context::name::DURABLE_REQUEST;
            one.ask(&mut rig, message.with_context(name, &data));
        }
        rig.cut(one.id);
        assert_eq!(rig.disk.opens.len(), 2);
        rig.pass(TIMEOUT);
        assert_idle(&rig);
    }
}

#[test]
fn the_halves_of_a_file_id_differ() {
    let mut rig = Rig::new(|_| {});
    let (mut one, file, _) = with_open(&mut rig);
    let second = one.open_other(&mut rig, "g", Ask::level(NONE));
    assert_ne!(file.persistent, file.volatile);
    assert_eq!(second.persistent, file.persistent + 1);
    // Another run of the server uses other numbers.
    let mut later = rig_at_later_time();
    let (_, file, _) = with_open(&mut later);
    assert!(file.persistent > second.persistent);
}

/// A server that starts one second later.
fn rig_at_later_time() -> Rig {
    let mut rig = Rig::new(|_| {});
    rig.now.wall.0 += 10_000_000;
    rig.server = proto::server::Server::new(rig.server.config(), rig.now);
    rig
}
