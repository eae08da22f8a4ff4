//! Waiting requests, and their responses when a session, tree or connection ends. Rows 5, 20 and
//! 23 of the list of bad inputs.

use std::time::Duration;

use proto::effect::Outcome;
use wire::access::{CreateDisposition, CreateOptions};
use wire::dialect::Dialect;
use wire::header::Target;
use wire::{AsyncId, Command, FileId, Flags, SessionId, Status};

use crate::harness::{Answer, Client, Message, Options, Rig, bytes_of, data, file_id};

const HALF_A_SECOND: Duration = Duration::from_millis(500);

/// A rig, a client, and its open of a file that holds "words".
fn with_file() -> (Rig, Client, FileId) {
    let mut rig = Rig::new(|_| {});
    let mut client = Client::in_share(&mut rig, Options::default(), "alice", "files");
    let mut create = client.create_message("a");
    create.header.credits = 100;
    let file = file_id(&client.ask(&mut rig, create));
    let write = client.write_message(file, b"words");
    client.ask(&mut rig, write);
    (rig, client, file)
}

fn async_id(answer: &Answer) -> AsyncId {
    match answer.header.target {
        Target::Async(async_id) => async_id,
        Target::Sync { .. } => panic!("{answer:?}"),
    }
}

fn empty(client: &mut Client, command: Command) -> Message {
    let bytes = bytes_of(|bytes| wire::echo::Request.encode(bytes));
    client.message(command, bytes)
}

fn hear_one(client: &mut Client, rig: &mut Rig) -> Answer {
    let mut answers = client.hear(rig).expect("an answer");
    assert_eq!(answers.len(), 1);
    answers.remove(0)
}

#[test]
fn a_long_request_gets_one_interim_response() {
    for encrypts in [false, true] {
        let (mut rig, mut client, file) = with_file();
        client.encrypts = encrypts;
        rig.is_holding = true;
        let mut read = client.read_message(file, 100);
        read.header.credits = 7;
        client.say(&mut rig, vec![read]);
        rig.pass(HALF_A_SECOND - Duration::from_millis(1));
        assert!(client.hear(&mut rig).is_none());
        rig.pass(Duration::from_millis(1));
        let interim = hear_one(&mut client, &mut rig);
        assert_eq!(interim.status(), Status::PENDING);
        assert_eq!(interim.header.credits, 7);
        assert!(!interim.is_signed());
        assert_eq!(interim.was_encrypted, encrypts);
        rig.pass(Duration::from_secs(3600));
        assert!(client.hear(&mut rig).is_none());
        rig.release();
        let answer = hear_one(&mut client, &mut rig);
        assert_eq!(data(&answer), b"words");
        assert_eq!(async_id(&answer), async_id(&interim));
        assert_eq!(answer.header.credits, 0);
        assert_eq!(answer.header.message_id, interim.header.message_id);
        assert_eq!(answer.is_signed(), !encrypts);
    }
}

#[test]
fn a_quick_request_gets_no_interim_response() {
    let (mut rig, mut client, file) = with_file();
    rig.is_holding = true;
    let read = client.read_message(file, 100);
    client.say(&mut rig, vec![read]);
    assert!(rig.connection(client.id).next_timeout().is_some());
    rig.release();
    assert_eq!(data(&hear_one(&mut client, &mut rig)), b"words");
    assert_eq!(rig.connection(client.id).next_timeout(), None);
}

#[test]
fn only_the_last_member_of_a_compound_gets_an_interim_response() {
    let (mut rig, mut client, file) = with_file();
    rig.is_holding = true;
    let mut last = client.read_message(FileId::RELATED, 4);
    last.header.message_id.0 += 1;
    last.header.flags |= Flags::RELATED_OPERATIONS;
    client.next_message -= 1;
    let messages = vec![client.read_message(file, 2), last];
    client.next_message += 1;
    client.say(&mut rig, messages);
    rig.pass(HALF_A_SECOND);
    assert!(client.hear(&mut rig).is_none());
    rig.release_one();
    rig.pass(HALF_A_SECOND);
    // smb2.compound.interim3: finished members leave first, in a separate frame.
    assert_eq!(data(&hear_one(&mut client, &mut rig)), b"wo");
    assert_eq!(hear_one(&mut client, &mut rig).status(), Status::PENDING);
    rig.release();
    assert_eq!(data(&hear_one(&mut client, &mut rig)), b"word");
}

#[test]
fn asynchronous_requests_are_limited() {
    let mut rig = Rig::new(|config| config.limits.async_requests = 2);
    let mut client = Client::in_share(&mut rig, Options::default(), "alice", "files");
    let mut create = client.create_message("a");
    create.header.credits = 100;
    let file = file_id(&client.ask(&mut rig, create));
    rig.is_holding = true;
    for _ in 0..5 {
        let read = client.read_message(file, 100);
        client.say(&mut rig, vec![read]);
    }
    rig.pass(HALF_A_SECOND);
    for _ in 0..2 {
        assert_eq!(hear_one(&mut client, &mut rig).status(), Status::PENDING);
    }
    assert!(client.hear(&mut rig).is_none());
    rig.release();
    for _ in 0..5 {
        let status = hear_one(&mut client, &mut rig).status();
        assert_eq!(status, Status::END_OF_FILE);
    }
    // Each response frees one entry.
    rig.is_holding = true;
    let read = client.read_message(file, 100);
    client.say(&mut rig, vec![read]);
    rig.pass(HALF_A_SECOND);
    assert_eq!(hear_one(&mut client, &mut rig).status(), Status::PENDING);
}

#[test]
fn a_canceled_request_is_answered_once() {
    for is_async in [false, true] {
        let (mut rig, mut client, file) = with_file();
        rig.is_holding = true;
        let read = client.read_message(file, 100);
        let id = read.header.message_id;
        client.say(&mut rig, vec![read]);
        let mut cancel = empty(&mut client, Command::CANCEL);
        if is_async {
            rig.pass(HALF_A_SECOND);
            let interim = hear_one(&mut client, &mut rig);
            cancel.header.flags |= Flags::ASYNC_COMMAND;
            cancel.header.target = Target::Async(async_id(&interim));
            cancel.header.message_id.0 = 0;
        } else {
            cancel.header.message_id = id;
        }
        client.say(&mut rig, vec![cancel.clone()]);
        client.say(&mut rig, vec![cancel.clone()]);
        assert!(client.hear(&mut rig).is_none());
        assert_eq!(rig.cancelled.first(), rig.held.front().map(|(_, op, _)| op));
        let payload = std::mem::replace(
            &mut rig.held.front_mut().unwrap().2,
            Outcome::Failed(Status::CANCELLED),
        );
        if let Outcome::Read(payload) = payload {
            rig.disk.release(payload.token);
        }
        rig.release();
        let answer = hear_one(&mut client, &mut rig);
        assert_eq!(answer.status(), Status::CANCELLED);
        assert_eq!(answer.header.message_id, id);
        // The request has ended: a late CANCEL finds nothing.
        let count = rig.cancelled.len();
        client.say(&mut rig, vec![cancel]);
        assert_eq!(rig.cancelled.len(), count);
        assert!(client.hear(&mut rig).is_none());
        assert!(rig.violations.is_empty());
    }
}

#[test]
fn a_session_cannot_cancel_requests_of_another() {
    let (mut rig, mut client, file) = with_file();
    client.signs = false;
    let mut bob = Client::on(client.id, Options::default());
    bob.next_message = client.next_message;
    let setup = bob.setup("bob", SessionId(0));
    let bobs = bob.ask(&mut rig, setup).header.session_id;
    client.next_message = bob.next_message;
    rig.is_holding = true;
    let read = client.read_message(file, 100);
    let mut cancel = empty(&mut client, Command::CANCEL);
    cancel.header.message_id = read.header.message_id;
    cancel.header.session_id = bobs;
    client.say(&mut rig, vec![read]);
    client.say(&mut rig, vec![cancel.clone()]);
    cancel.header.session_id = SessionId(0);
    client.say(&mut rig, vec![cancel]);
    assert!(rig.cancelled.is_empty());
}

#[test]
fn a_logoff_is_answered_after_all_opens_are_closed() {
    for command in [Command::LOGOFF, Command::TREE_DISCONNECT] {
        let (mut rig, mut client, file) = with_file();
        rig.is_holding = true;
        let read = client.read_message(file, 100);
        let create = client.create_message("b");
        let leave = empty(&mut client, command);
        client.say(&mut rig, vec![read]);
        client.say(&mut rig, vec![create]);
        client.say(&mut rig, vec![leave]);
        rig.pass(Duration::from_millis(1));
        assert!(client.hear(&mut rig).is_none());
        rig.release_one();
        assert_eq!(data(&hear_one(&mut client, &mut rig)), b"words");
        // The CREATE came before the LOGOFF, so it is not refused, but its open is closed.
        rig.release_one();
        let _ = hear_one(&mut client, &mut rig);
        assert!(client.hear(&mut rig).is_none());
        rig.release();
        let answer = hear_one(&mut client, &mut rig);
        assert_eq!(answer.header.command, command);
        assert_eq!(answer.status(), Status::SUCCESS);
        assert!(answer.is_signed());
        assert!(rig.disk.opens.is_empty());
        assert_eq!(rig.disk.payloads(), 0);
    }
}

#[test]
fn an_ending_session_accepts_no_requests() {
    let (mut rig, mut client, file) = with_file();
    rig.is_holding = true;
    let read = client.read_message(file, 100);
    let leave = empty(&mut client, Command::LOGOFF);
    let late = client.read_message(file, 100);
    client.say(&mut rig, vec![read]);
    client.say(&mut rig, vec![leave]);
    client.signs = false;
    let answer = client.ask(&mut rig, late);
    assert_eq!(answer.status(), Status::USER_SESSION_DELETED);
    rig.release();
    assert_eq!(rig.held.len(), 0);
}

#[test]
fn a_lost_connection_closes_its_opens() {
    for holds in [false, true] {
        let (mut rig, mut client, file) = with_file();
        let gone = CreateOptions::DELETE_ON_CLOSE;
        let temporary = client.create_with("t", CreateDisposition::CREATE, gone);
        client.ask(&mut rig, temporary);
        rig.is_holding = holds;
        let messages = vec![
            client.read_message(file, 100),
            client.create_message("b"),
            client.read_message(file, 100),
        ];
        if holds {
            for message in messages {
                client.say(&mut rig, vec![message]);
            }
        }
        rig.cut(client.id);
        assert_eq!(rig.cancelled.len(), rig.held.len().min(3));
        rig.release();
        assert!(client.hear(&mut rig).is_none());
        assert!(rig.disk.opens.is_empty());
        assert_eq!(rig.disk.payloads(), 0);
        assert!(rig.connection(client.id).is_idle());
        assert_eq!(rig.connection(client.id).next_timeout(), None);
    }
}

#[test]
fn a_connection_lost_within_a_compound_releases_everything() {
    let (mut rig, mut client, file) = with_file();
    let messages = vec![
        client.read_message(file, 100),
        client.read_message(file, 100),
        client.create_message("b"),
    ];
    rig.is_holding = true;
    client.say(&mut rig, messages);
    rig.release_one();
    rig.cut(client.id);
    rig.release();
    assert!(client.hear(&mut rig).is_none());
    assert!(rig.disk.opens.is_empty());
    assert_eq!(rig.disk.payloads(), 0);
    assert!(rig.connection(client.id).is_idle());
}

#[test]
fn a_login_that_completes_after_its_connection_makes_no_session() {
    let mut rig = Rig::new(|_| {});
    let mut client = Client::new(&mut rig, Options::default());
    client.negotiate(&mut rig);
    rig.is_holding = true;
    let setup = client.setup("alice", SessionId(0));
    client.say(&mut rig, vec![setup]);
    rig.cut(client.id);
    rig.release();
    assert!(rig.connection(client.id).is_idle());
    assert!(rig.connection(client.id).summary().sessions.is_empty());
    assert_eq!(rig.ended_conversations, 1);
}

#[test]
fn concurrent_legs_of_a_login_are_refused() {
    let mut rig = Rig::new(|_| {});
    let mut client = Client::new(&mut rig, Options::default());
    client.negotiate(&mut rig);
    client.log_in(&mut rig, "more");
    let mut first = client.setup("alice", SessionId(0));
    first.header.credits = 8;
    rig.is_holding = true;
    client.say(&mut rig, vec![first]);
    assert!(client.hear(&mut rig).is_none());
    // The client has no credit for another until the first is answered.
    let second = client.setup("bob", SessionId(0));
    client.say(&mut rig, vec![second]);
    assert!(rig.violations.contains_key(&client.id));
}

#[test]
fn a_replaced_session_ends_before_the_login_is_answered() {
    // smb2.session.reconnect1, with operations still pending on the old connection.
    for holds in [false, true] {
        let (mut rig, mut old, file) = with_file();
        rig.is_holding = holds;
        if holds {
            let read = old.read_message(file, 100);
            old.say(&mut rig, vec![read]);
        }
        let mut new = Client::new(&mut rig, Options::default());
        new.negotiate(&mut rig);
        let setup = new.setup("alice", old.session);
        new.say(&mut rig, vec![setup]);
        if holds {
            // The read completes, then the login, then the close.
            assert_eq!(rig.held.len(), 2);
            rig.held.swap(0, 1);
            rig.release_one();
            assert!(new.hear(&mut rig).is_none());
        }
        rig.release();
        let answer = hear_one(&mut new, &mut rig);
        assert_eq!(answer.status(), Status::SUCCESS);
        assert!(rig.disk.opens.is_empty());
    }
}

#[test]
fn a_login_waits_a_limited_time_for_the_session_that_it_replaces() {
    let (mut rig, mut old, file) = with_file();
    rig.is_holding = true;
    let read = old.read_message(file, 100);
    old.say(&mut rig, vec![read]);
    let mut new = Client::new(&mut rig, Options::default());
    new.negotiate(&mut rig);
    let setup = new.setup("alice", old.session);
    new.say(&mut rig, vec![setup]);
    rig.held.swap(0, 1);
    rig.release_one();
    rig.is_holding = true;
    rig.pass(Duration::from_secs(4));
    assert!(new.hear(&mut rig).is_none());
    rig.pass(Duration::from_secs(1));
    assert_eq!(hear_one(&mut new, &mut rig).status(), Status::SUCCESS);
    // Later completions change nothing.
    rig.release();
    assert!(new.hear(&mut rig).is_none());
    assert!(rig.disk.opens.is_empty());
}

#[test]
fn opens_end_with_their_tree_and_session() {
    for dialect in [Dialect::SMB_2_0_2, Dialect::SMB_3_1_1] {
        let mut rig = Rig::new(|_| {});
        let mut client = Client::in_share(&mut rig, Options::only(dialect), "alice", "files");
        let file = client.create(&mut rig, "a");
        let first_tree = client.tree;
        assert_eq!(client.enter(&mut rig, "files").status(), Status::SUCCESS);
        // An open belongs to its tree.
        assert_eq!(client.close(&mut rig, file), Status::FILE_CLOSED);
        let second_tree = std::mem::replace(&mut client.tree, first_tree);
        let leave = empty(&mut client, Command::TREE_DISCONNECT);
        assert_eq!(client.ask(&mut rig, leave).status(), Status::SUCCESS);
        assert!(rig.disk.opens.is_empty());
        client.tree = second_tree;
        assert_eq!(client.close(&mut rig, file), Status::FILE_CLOSED);
        assert!(rig.disk.has("a"));
    }
}

#[test]
fn a_login_that_waits_for_another_connection_ends_with_its_connection() {
    let (mut rig, mut old, file) = with_file();
    rig.is_holding = true;
    let read = old.read_message(file, 100);
    old.say(&mut rig, vec![read]);
    let mut new = Client::new(&mut rig, Options::default());
    new.negotiate(&mut rig);
    let setup = new.setup("alice", old.session);
    new.say(&mut rig, vec![setup]);
    rig.held.swap(0, 1);
    rig.release_one();
    rig.cut(new.id);
    assert!(rig.connection(new.id).is_idle());
    assert!(rig.connection(new.id).summary().sessions.is_empty());
    rig.release();
    assert!(rig.disk.opens.is_empty());
}
