//! An application that moves to another client takes its open files along. \[MS-SMB2\] 3.3.5.9.13

use wire::access::OplockLevel;
use wire::create_context::{AppInstanceId, AppInstanceVersion, name};
use wire::{FileId, Guid, Status};

use crate::harness::{Ask, Client, Message, Options, Rig, created};

const INSTANCE: Guid = Guid([7; 16]);

/// A client with this ClientGuid.
fn client(rig: &mut Rig, user: &str, guid: u8) -> Client {
    let options = Options {
        client_guid: Guid([guid; 16]),
        ..Options::default()
    };
    Client::in_share(rig, options, user, "files")
}

/// A durable open of `f` that shares nothing, by the instance in this version.
fn message(client: &mut Client, create_guid: u8, version: Option<u64>) -> Message {
    let ask = Ask::alone(OplockLevel::BATCH);
    let message = client.durable_v2_message(ask, 60_000, create_guid);
    let id = AppInstanceId { id: INSTANCE };
    let message = message.with_context(name::APP_INSTANCE_ID, &id.encode());
    let Some(low) = version else {
        return message;
    };
    let version = AppInstanceVersion { high: 0, low };
    message.with_context(name::APP_INSTANCE_VERSION, &version.encode())
}

fn open(client: &mut Client, rig: &mut Rig, create_guid: u8, version: Option<u64>) -> FileId {
    let message = message(client, create_guid, version);
    created(&client.ask(rig, message)).0
}

fn read(client: &mut Client, rig: &mut Rig, file: FileId) -> Status {
    let message = client.read_message(file, 100);
    client.ask(rig, message).status()
}

#[test]
fn the_open_on_the_first_client_ends() {
    let mut rig = Rig::new(|_| {});
    let mut first = client(&mut rig, "alice", 1);
    let mut second = client(&mut rig, "alice", 2);
    let old = open(&mut first, &mut rig, 1, None);
    let new = open(&mut second, &mut rig, 2, None);
    assert_eq!(read(&mut first, &mut rig, old), Status::FILE_CLOSED);
    assert_ne!(read(&mut second, &mut rig, new), Status::FILE_CLOSED);
    assert_eq!(rig.disk.opens.len(), 1);
}

#[test]
fn a_disconnected_open_of_the_instance_ends() {
    let mut rig = Rig::new(|_| {});
    let mut first = client(&mut rig, "alice", 1);
    let mut second = client(&mut rig, "alice", 2);
    open(&mut first, &mut rig, 1, None);
    rig.cut(first.id);
    assert_eq!(rig.disk.opens.len(), 1);
    let message = message(&mut second, 2, None);
    second.say(&mut rig, vec![message]);
    rig.pass(core::time::Duration::from_millis(1));
    let answer = second.hear_answer(&mut rig);
    assert_eq!(answer.status(), Status::SUCCESS);
    assert_eq!(rig.disk.opens.len(), 1);
}

#[test]
fn another_user_or_a_lower_version_ends_nothing() {
    let mut rig = Rig::new(|_| {});
    let mut first = client(&mut rig, "alice", 1);
    let old = open(&mut first, &mut rig, 1, Some(5));
    let mut stranger = client(&mut rig, "bob", 2);
    let request = message(&mut stranger, 2, Some(6));
    stranger.say(&mut rig, vec![request]);
    first.hear_break(&mut rig);
    let mut second = client(&mut rig, "alice", 3);
    for (create_guid, version) in [(3, 4), (4, 5)] {
        let request = message(&mut second, create_guid, Some(version));
        let refused = second.ask(&mut rig, request).status();
        assert_eq!(refused, Status::FILE_FORCED_CLOSED);
    }
    assert_ne!(read(&mut first, &mut rig, old), Status::FILE_CLOSED);
    open(&mut second, &mut rig, 5, Some(6));
    assert_eq!(read(&mut first, &mut rig, old), Status::FILE_CLOSED);
}

#[test]
fn a_malformed_context_is_refused() {
    let mut rig = Rig::new(|_| {});
    let mut first = client(&mut rig, "alice", 1);
    let ask = Ask::alone(OplockLevel::BATCH);
    let message = first.durable_v2_message(ask, 60_000, 1);
    let message = message.with_context(name::APP_INSTANCE_ID, &[20; 19]);
    let status = first.ask(&mut rig, message).status();
    assert_eq!(status, Status::INVALID_PARAMETER);
}
