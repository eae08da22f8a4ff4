//! The final response to a request carries the description of the request for the statistics of the
//! driver: once, with command, status, share, bytes and time.

use std::time::Duration;

use proto::effect::AnsweredRequest;
use proto::file::ShareId;
use proto::server::Counts;
use wire::{Command, Status};

use crate::harness::{Client, Options, RWH, Rig};

const FILES: Option<ShareId> = Some(ShareId(0));

fn answered(command: Command, status: Status, share: Option<ShareId>) -> AnsweredRequest {
    AnsweredRequest {
        command,
        status,
        share,
        bytes: 0,
        duration: Duration::ZERO,
    }
}

#[test]
fn each_response_is_described_once() {
    let mut rig = Rig::new(|_| {});
    let mut client = Client::in_share(&mut rig, Options::default(), "alice", "files");
    let file = client.create(&mut rig, "f");
    let message = client.write_message(file, b"four");
    assert_eq!(client.ask(&mut rig, message).status(), Status::SUCCESS);
    let message = client.read_message(file, 100);
    assert_eq!(client.ask(&mut rig, message).status(), Status::SUCCESS);
    assert_eq!(client.close(&mut rig, file), Status::SUCCESS);
    let message = client.read_message(file, 100);
    assert_eq!(client.ask(&mut rig, message).status(), Status::FILE_CLOSED);
    assert_eq!(client.echo(&mut rig).status(), Status::SUCCESS);
    let of = |command, share| answered(command, Status::SUCCESS, share);
    let with_bytes = |command| AnsweredRequest {
        bytes: 4,
        ..of(command, FILES)
    };
    let expected = [
        of(Command::NEGOTIATE, None),
        of(Command::SESSION_SETUP, None),
        of(Command::TREE_CONNECT, FILES),
        of(Command::CREATE, FILES),
        with_bytes(Command::WRITE),
        with_bytes(Command::READ),
        of(Command::CLOSE, FILES),
        answered(Command::READ, Status::FILE_CLOSED, FILES),
        of(Command::ECHO, None),
    ];
    assert_eq!(rig.answered, expected);
}

#[test]
fn the_time_of_a_waiting_request_has_no_interim_response() {
    let mut rig = Rig::new(|_| {});
    let mut client = Client::in_share(&mut rig, Options::default(), "alice", "files");
    let file = client.create(&mut rig, "f");
    rig.answered.clear();
    rig.is_holding = true;
    let message = client.read_message(file, 100);
    client.say(&mut rig, vec![message]);
    rig.pass(Duration::from_secs(30));
    let interim = client.hear(&mut rig).expect("an interim response");
    assert_eq!(interim[0].status(), Status::PENDING);
    assert!(rig.answered.is_empty());
    rig.release();
    let expected = AnsweredRequest {
        duration: Duration::from_secs(30),
        ..answered(Command::READ, Status::END_OF_FILE, FILES)
    };
    assert_eq!(rig.answered, [expected]);
}

#[test]
fn counts_agree_with_the_objects() {
    let mut rig = Rig::new(|_| {});
    assert_eq!(rig.server.counts(), Counts::default());
    let mut client = Client::in_share(&mut rig, Options::default(), "alice", "files");
    let (file, _) = client.open_leased(&mut rig, "f", 1, RWH);
    let expected = Counts {
        sessions: 1,
        leases: 1,
        ..Counts::default()
    };
    assert_eq!(rig.server.counts(), expected);
    let load = rig.connection(client.id).load();
    assert!(load.dialect.is_some());
    assert_eq!(load.requests, 0);
    assert_eq!(client.close(&mut rig, file), Status::SUCCESS);
    assert_eq!(rig.server.counts().leases, 0);
}
