//! A client may come again before the server has noticed the loss of its connection. Its reconnect
//! waits a short time for the end of that connection. \[MS-SMB2\] 3.3.5.9.7, 3.3.5.9.12

use std::time::Duration;

use wire::access::OplockLevel;
use wire::{FileId, Guid, MessageId, Status};

use crate::harness::{Ask, Client, Options, Rig, created};

const BATCH: OplockLevel = OplockLevel::BATCH;
const NOT_FOUND: Status = Status::OBJECT_NAME_NOT_FOUND;
/// The longest wait.
const LIMIT: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_millis(1);

/// Sends a reconnect, which must wait.
fn reconnect_and_wait(client: &mut Client, rig: &mut Rig, file: FileId) -> MessageId {
    let message = client.reconnect_message(file);
    let id = message.header.message_id;
    client.say(rig, vec![message]);
    assert!(client.hear(rig).is_none(), "it has to wait");
    id
}

#[test]
fn a_reconnect_succeeds_when_the_lost_connection_ends() {
    let mut rig = Rig::new(|_| {});
    let mut one = Client::with_credits(&mut rig);
    let file = one.open_durable(&mut rig);
    let mut two = Client::with_credits(&mut rig);
    let id = reconnect_and_wait(&mut two, &mut rig, file);
    rig.cut(one.id);
    let answer = two.hear_answer(&mut rig);
    assert_eq!(answer.header.message_id, id);
    assert_eq!(created(&answer), (file, BATCH));
    assert_eq!(two.close(&mut rig, file), Status::SUCCESS);
    assert!(rig.server.is_idle());
}

#[test]
fn a_resilient_open_of_a_lost_connection_is_found_too() {
    let mut rig = Rig::new(|_| {});
    let mut one = Client::with_credits(&mut rig);
    let (file, _) = one.open(&mut rig, Ask::alone(OplockLevel::NONE));
    assert_eq!(one.make_resilient(&mut rig, file, 1000), Status::SUCCESS);
    let mut two = Client::with_credits(&mut rig);
    reconnect_and_wait(&mut two, &mut rig, file);
    rig.cut(one.id);
    assert_eq!(created(&two.hear_answer(&mut rig)).0, file);
}

#[test]
fn a_connection_that_lives_ends_the_wait() {
    let mut rig = Rig::new(|_| {});
    let mut one = Client::with_credits(&mut rig);
    let file = one.open_durable(&mut rig);
    let mut two = Client::with_credits(&mut rig);
    reconnect_and_wait(&mut two, &mut rig, file);
    rig.pass(LIMIT - TICK);
    assert_eq!(two.hear_answer(&mut rig).status(), Status::PENDING);
    assert!(two.hear(&mut rig).is_none());
    rig.pass(TICK);
    assert_eq!(two.hear_answer(&mut rig).status(), NOT_FOUND);
    // The wait has left nothing: the end of the session wakes no request.
    rig.cut(one.id);
    assert!(two.hear(&mut rig).is_none());
    assert_eq!(two.reconnect(&mut rig, file), Status::SUCCESS);
}

#[test]
fn only_the_same_client_and_user_waits() {
    let mut rig = Rig::new(|_| {});
    let mut one = Client::with_credits(&mut rig);
    let file = one.open_durable(&mut rig);
    // The session of the open itself.
    assert_eq!(one.reconnect(&mut rig, file), NOT_FOUND);
    let mut bob = Client::in_share(&mut rig, Options::default(), "bob", "files");
    assert_eq!(bob.reconnect(&mut rig, file), NOT_FOUND);
    let elsewhere = Options {
        client_guid: Guid([6; 16]),
        ..Options::default()
    };
    let mut other = Client::in_share(&mut rig, elsewhere, "alice", "files");
    assert_eq!(other.reconnect(&mut rig, file), NOT_FOUND);
    // An open that does not outlive its session.
    let plain = one.open_other(&mut rig, "g", Ask::level(OplockLevel::NONE));
    let mut two = Client::with_credits(&mut rig);
    assert_eq!(two.reconnect(&mut rig, plain), NOT_FOUND);
}

#[test]
fn a_waiting_reconnect_can_be_canceled() {
    let mut rig = Rig::new(|_| {});
    let mut one = Client::with_credits(&mut rig);
    let file = one.open_durable(&mut rig);
    let mut two = Client::with_credits(&mut rig);
    let id = reconnect_and_wait(&mut two, &mut rig, file);
    two.cancel(&mut rig, id, None);
    assert_eq!(two.hear_answer(&mut rig).status(), Status::CANCELLED);
    rig.cut(one.id);
    assert!(two.hear(&mut rig).is_none());
    assert_eq!(two.reconnect(&mut rig, file), Status::SUCCESS);
}
