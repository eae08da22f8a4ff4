//! A request that a client repeats after it lost a channel has the effect of one request.

use wire::access::OplockLevel;
use wire::create::CreateAction;
use wire::dialect::Dialect;
use wire::lock::{LockFlags, Request};
use wire::{Command, FileId, Status, create};

use crate::harness::{
    Answer, Ask, Client, EXCLUSIVE, EXCLUSIVE_NOW, Message, Rig, SHARED, UNLOCK, bytes_of, created,
    data, multichannel,
};

fn with_two_channels() -> (Rig, Client, Client) {
    let mut rig = Rig::new(|_| {});
    let options = multichannel(Dialect::SMB_3_1_1);
    let mut first = Client::in_share(&mut rig, options, "alice", "files");
    let bytes = bytes_of(|bytes| wire::echo::Request.encode(bytes));
    let mut echo = first.message(Command::ECHO, bytes);
    echo.header.credits = 64;
    first.ask(&mut rig, echo);
    let second = Client::channel_of(&mut rig, &first);
    (rig, first, second)
}

fn answer(rig: &mut Rig, client: &mut Client, message: Message) -> Answer {
    client.ask(rig, message)
}

fn content(rig: &mut Rig, client: &mut Client, file: FileId) -> Vec<u8> {
    let message = client.read_message(file, 100);
    data(&client.ask(rig, message))
}

#[test]
fn a_replayed_write_waits_for_the_first() {
    let (mut rig, mut first, mut second) = with_two_channels();
    let file = first.create(&mut rig, "a");
    rig.is_holding = true;
    let message = first.write_message(file, b"words");
    first.say(&mut rig, vec![message]);
    rig.is_holding = false;
    rig.cut(first.id);
    for _ in 0..2 {
        let message = second.write_message(file, b"words").replayed(1);
        let refused = second.ask(&mut rig, message);
        assert_eq!(refused.status(), Status::FILE_NOT_AVAILABLE);
    }
    // Other requests do not wait.
    let message = second.read_message(file, 100).replayed(1);
    assert_eq!(data(&second.ask(&mut rig, message)), b"words");
    rig.release();
    let message = second.write_message(file, b"words").replayed(1);
    assert_eq!(second.ask(&mut rig, message).status(), Status::SUCCESS);
}

#[test]
fn a_write_that_comes_after_its_replay_is_refused() {
    let (mut rig, mut first, mut second) = with_two_channels();
    let file = first.create(&mut rig, "a");
    // The write waits in a socket while the client abandons the channel and uses the other.
    let late = first.write_message(file, b"words");
    let late = first.frame(vec![late]);
    let message = second.write_message(file, b"words").replayed(1);
    assert_eq!(second.ask(&mut rig, message).status(), Status::SUCCESS);
    let message = second.write_message(file, b"later").numbered(1);
    assert_eq!(second.ask(&mut rig, message).status(), Status::SUCCESS);
    rig.deliver(first.id, &late);
    let refused = first.hear_answer(&mut rig);
    assert_eq!(refused.status(), Status::FILE_NOT_AVAILABLE);
    assert_eq!(content(&mut rig, &mut second, file), b"later");
}

#[test]
fn a_replayed_create_gets_the_open_of_the_first_try() {
    let (mut rig, mut first, mut second) = with_two_channels();
    let ask = Ask::alone(OplockLevel::BATCH);
    rig.is_holding = true;
    let message = first.named_open("f", ask, 1);
    first.say(&mut rig, vec![message]);
    rig.is_holding = false;
    rig.cut(first.id);
    let message = second.named_open("f", ask, 1).replayed(1);
    let early = second.ask(&mut rig, message);
    assert_eq!(early.status(), Status::FILE_NOT_AVAILABLE);
    rig.release();
    let message = second.named_open("f", ask, 1).replayed(1);
    let replayed = second.ask(&mut rig, message);
    assert_eq!(created(&replayed).1, OplockLevel::BATCH);
    let response = create::Response::decode(&replayed.message).expect("a response");
    assert_eq!(response.create_action, CreateAction::CREATED);
    assert_eq!(rig.disk.opens.len(), 1);
    // A second replay works too while the open is unused.
    let message = second.named_open("f", ask, 1).replayed(1);
    let (file, _) = created(&second.ask(&mut rig, message));
    assert_eq!(file, response.file_id);
    assert_eq!(second.close(&mut rig, file), Status::SUCCESS);
    assert_eq!(rig.disk.opens.len(), 0);
}

#[test]
fn a_late_first_try_opens_nothing() {
    let (mut rig, mut first, mut second) = with_two_channels();
    let ask = Ask::level(OplockLevel::NONE);
    let late = first.named_open("f", ask, 1);
    let message = second.named_open("f", ask, 1).replayed(1);
    let (file, _) = created(&second.ask(&mut rig, message));
    let message = second.write_message(file, b"words").numbered(1);
    assert_eq!(second.ask(&mut rig, message).status(), Status::SUCCESS);
    let refused = first.ask(&mut rig, late);
    assert_eq!(refused.status(), Status::DUPLICATE_OBJECTID);
    assert_eq!(rig.disk.opens.len(), 1);
}

#[test]
fn a_failed_or_closed_create_frees_its_create_guid() {
    let (mut rig, mut first, mut second) = with_two_channels();
    let mut other = Client::with_credits(&mut rig);
    let (held, _) = other.open(&mut rig, Ask::alone(OplockLevel::NONE));
    let ask = Ask::level(OplockLevel::NONE);
    for is_replay in [false, true, true] {
        let mut message = first.named_open("f", ask, 1);
        if is_replay {
            message = message.replayed(1);
        }
        let refused = answer(&mut rig, &mut first, message);
        assert_eq!(refused.status(), Status::SHARING_VIOLATION);
    }
    assert_eq!(other.close(&mut rig, held), Status::SUCCESS);
    for _ in 0..2 {
        let message = second.named_open("f", ask, 1);
        let (file, _) = created(&answer(&mut rig, &mut second, message));
        assert_eq!(second.close(&mut rig, file), Status::SUCCESS);
    }
}

#[test]
fn a_create_after_the_end_of_its_replay_is_refused() {
    let (mut rig, mut first, mut second) = with_two_channels();
    let ask = Ask::level(OplockLevel::NONE);
    // The requests wait in sockets while the client continues with the other channel.
    let late = first.named_open("f", ask, 1);
    let late = first.frame(vec![late]);
    let later = first.named_open("f", ask, 1).replayed(1);
    let later = first.frame(vec![later]);
    let last = first.named_open("f", ask, 1).replayed(1);
    let last = first.frame(vec![last]);
    let message = second.named_open("f", ask, 1).replayed(2);
    let (file, _) = created(&second.ask(&mut rig, message));
    let words = second.write_message(file, b"words");
    assert_eq!(second.ask(&mut rig, words).status(), Status::SUCCESS);
    rig.deliver(first.id, &last);
    let refused = first.hear_answer(&mut rig);
    assert_eq!(refused.status(), Status::DUPLICATE_OBJECTID);
    assert_eq!(second.close(&mut rig, file), Status::SUCCESS);
    for frame in [late, later] {
        rig.deliver(first.id, &frame);
        let refused = first.hear_answer(&mut rig);
        assert_eq!(refused.status(), Status::DUPLICATE_OBJECTID);
    }
}

#[test]
fn create_guids_belong_to_a_client_and_session() {
    let (mut rig, mut first, mut second) = with_two_channels();
    let ask = Ask::level(OplockLevel::NONE);
    let message = first.named_open("f", ask, 1);
    created(&first.ask(&mut rig, message));
    let twice = second.named_open("f", ask, 1);
    let refused = second.ask(&mut rig, twice);
    assert_eq!(refused.status(), Status::DUPLICATE_OBJECTID);
    // Another session of the same client: the harness has one ClientGuid.
    let options = multichannel(Dialect::SMB_3_1_1);
    let mut other = Client::in_share(&mut rig, options, "alice", "files");
    let stolen = other.named_open("f", ask, 1).replayed(1);
    let refused = other.ask(&mut rig, stolen);
    assert_eq!(refused.status(), Status::DUPLICATE_OBJECTID);
}

#[test]
fn a_replay_reports_an_oplock_broken_since() {
    let (mut rig, mut first, mut second) = with_two_channels();
    let ask = Ask::level(OplockLevel::BATCH);
    let message = first.named_open("f", ask, 1);
    let (file, _) = created(&first.ask(&mut rig, message));
    // The client lost the response and with it the break: it does not know the open.
    let mut other = Client::with_credits(&mut rig);
    other.open_and_wait(&mut rig, Ask::level(OplockLevel::NONE));
    rig.cut(first.id);
    second.hear_break(&mut rig);
    let message = second.named_open("f", ask, 1).replayed(1);
    let replayed = created(&second.ask(&mut rig, message));
    assert_eq!(replayed, (file, OplockLevel::II));
    assert_eq!(other.hear_answer(&mut rig).status(), Status::SUCCESS);
}

/// A lock of ten bytes with a lock sequence number, which identifies a replay.
fn numbered_lock(client: &mut Client, file: FileId, flags: LockFlags) -> Message {
    let message = client.lock_message(file, (0, 10), flags);
    let mut request = Request::decode(&message.bytes).expect("it was just made");
    request.lock_sequence = 0x15;
    let bytes = bytes_of(|bytes| request.encode(bytes));
    Message { bytes, ..message }
}

#[test]
fn a_replayed_waiting_lock_waits_once() {
    for flags in [EXCLUSIVE, SHARED] {
        let (mut rig, mut first, mut second) = with_two_channels();
        let file = first.create(&mut rig, "a");
        let other = first.create(&mut rig, "a");
        first.must_lock(&mut rig, other, (0, 10), EXCLUSIVE_NOW);
        let message = numbered_lock(&mut first, file, flags);
        first.say(&mut rig, vec![message]);
        // The server has not yet noticed the loss of the channel.
        let message = numbered_lock(&mut second, file, flags).replayed(1);
        let id = message.header.message_id;
        second.say(&mut rig, vec![message]);
        assert_eq!(first.hear_answer(&mut rig).status(), Status::CANCELLED);
        assert!(second.hear(&mut rig).is_none(), "it waits");
        first.must_lock(&mut rig, other, (0, 10), UNLOCK);
        assert_eq!(second.hear_lock(&mut rig, id), Status::SUCCESS);
        // The lock is held once.
        second.must_lock(&mut rig, file, (0, 10), UNLOCK);
        second.must_lock(&mut rig, other, (0, 10), EXCLUSIVE_NOW);
    }
}

#[test]
fn a_replayed_granted_lock_does_not_wait() {
    let (mut rig, mut first, mut second) = with_two_channels();
    let file = first.create(&mut rig, "a");
    let other = first.create(&mut rig, "a");
    first.must_lock(&mut rig, other, (0, 10), EXCLUSIVE_NOW);
    let message = numbered_lock(&mut first, file, EXCLUSIVE);
    first.say(&mut rig, vec![message]);
    rig.cut(first.id);
    second.must_lock(&mut rig, other, (0, 10), UNLOCK);
    for _ in 0..2 {
        let message = numbered_lock(&mut second, file, EXCLUSIVE).replayed(1);
        assert_eq!(second.ask(&mut rig, message).status(), Status::SUCCESS);
    }
}
