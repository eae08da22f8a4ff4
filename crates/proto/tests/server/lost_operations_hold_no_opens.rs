//! A driver with a bug may never complete an operation. It can still end the connection: the server
//! closes its opens, and other clients can open the files.

use proto::effect::Outcome;
use proto::id::OpId;
use wire::Status;

use crate::harness::{Client, Options, Rig, file_id};

/// Cuts the connection and fails all incomplete operations, as a driver without pending operations
/// does.
fn end(rig: &mut Rig, client: &Client) {
    rig.slow.clear();
    rig.is_slow = false;
    rig.cut(client.id);
    while let Some(op) = rig.connection(client.id).unfinished() {
        rig.complete(client.id, op, Outcome::Failed(Status::INTERNAL_ERROR));
    }
    assert!(rig.connection(client.id).is_idle());
}

#[test]
fn every_kind_of_lost_operation_releases_its_file() {
    for what in ["create", "read", "close"] {
        let mut rig = Rig::new(|_| {});
        let mut client = Client::in_share(&mut rig, Options::default(), "alice", "files");
        let file = client.create(&mut rig, "a");
        rig.is_slow = true;
        let message = match what {
            "create" => client.create_message("b"),
            "read" => client.read_message(file, 5),
            _ => client.close_message(file),
        };
        client.say(&mut rig, vec![message]);
        assert_eq!(rig.slow.len(), 1, "{what}");
        end(&mut rig, &client);
        let mut other = Client::in_share(&mut rig, Options::default(), "bob", "files");
        let mut alone = other.create_message("a");
        // ShareAccess. [MS-SMB2] 2.2.13
        alone.bytes[64 + 32..64 + 36].fill(0);
        let answer = other.ask(&mut rig, alone);
        assert_eq!(answer.status(), Status::SUCCESS, "{what}");
        assert_ne!(file_id(&answer), file);
    }
}

#[test]
fn a_connection_without_lost_operations_has_none_unfinished() {
    let mut rig = Rig::new(|_| {});
    let mut client = Client::in_share(&mut rig, Options::default(), "alice", "files");
    client.create(&mut rig, "a");
    assert_eq!(rig.connection(client.id).unfinished(), None::<OpId>);
}
