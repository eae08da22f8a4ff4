//! The opens of a session belong to all its channels. They end with the last channel, or when the
//! session ends on any of them.

use std::time::Duration;

use wire::access::OplockLevel;
use wire::dialect::Dialect;
use wire::{Command, FileId, SessionId, Status};

use crate::harness::{Answer, Ask, Break, Client, Rig, bytes_of, created, data, multichannel};

/// A session with two channels, both with credits.
fn with_two_channels() -> (Rig, Client, Client) {
    let mut rig = Rig::new(|_| {});
    let options = multichannel(Dialect::SMB_3_1_1);
    let mut first = Client::in_share(&mut rig, options, "alice", "files");
    let mut echo = echo(&mut first);
    echo.header.credits = 64;
    first.ask(&mut rig, echo);
    let second = Client::channel_of(&mut rig, &first);
    (rig, first, second)
}

fn echo(client: &mut Client) -> crate::harness::Message {
    let bytes = bytes_of(|bytes| wire::echo::Request.encode(bytes));
    client.message(Command::ECHO, bytes)
}

/// LOGOFF and TREE_DISCONNECT have the body of an ECHO.
fn ended(client: &mut Client, command: Command) -> crate::harness::Message {
    let mut message = echo(client);
    message.header.command = command;
    message
}

fn with_words(rig: &mut Rig, client: &mut Client, name: &str) -> FileId {
    let file = client.create(rig, name);
    let write = client.write_message(file, b"words");
    assert_eq!(client.ask(rig, write).status(), Status::SUCCESS);
    file
}

fn read(rig: &mut Rig, client: &mut Client, file: FileId) -> Answer {
    let message = client.read_message(file, 100);
    client.ask(rig, message)
}

#[test]
fn all_channels_share_opens_and_trees() {
    let (mut rig, mut first, mut second) = with_two_channels();
    let file = with_words(&mut rig, &mut first, "a");
    assert_eq!(data(&read(&mut rig, &mut second, file)), b"words");
    // Tree connects are shared as well.
    let third = second.enter(&mut rig, "files");
    assert_eq!(third.status(), Status::SUCCESS);
    first.tree = second.tree;
    let other = with_words(&mut rig, &mut first, "b");
    assert_eq!(second.close(&mut rig, other), Status::SUCCESS);
    assert_eq!(first.close(&mut rig, other), Status::FILE_CLOSED);
}

#[test]
fn only_the_last_lost_channel_ends_the_session() {
    for first_goes in [false, true] {
        let (mut rig, mut first, mut second) = with_two_channels();
        let file = with_words(&mut rig, &mut first, "a");
        let (lost, mut left) = match first_goes {
            true => (first, second),
            false => (second, first),
        };
        rig.cut(lost.id);
        assert!(rig.connection(lost.id).is_idle());
        assert_eq!(data(&read(&mut rig, &mut left, file)), b"words");
        assert_eq!(rig.disk.opens.len(), 1);
        // A further connection can bind after the channel that made the session ended.
        second = Client::beside(&mut rig, &left);
        if !first_goes {
            assert_eq!(
                second.log_in_bound(&mut rig, &left, "alice").status(),
                Status::SUCCESS
            );
            rig.cut(second.id);
        }
        rig.cut(left.id);
        assert_eq!(rig.disk.opens.len(), 0);
        assert!(rig.connection(left.id).is_idle());
    }
}

#[test]
fn operations_of_a_lost_channel_end_before_its_session() {
    let (mut rig, mut first, mut second) = with_two_channels();
    let file = with_words(&mut rig, &mut first, "a");
    rig.is_holding = true;
    let message = second.write_message(file, b"WORDS");
    second.say(&mut rig, vec![message]);
    rig.cut(second.id);
    rig.cut(first.id);
    // The first channel has no pending operation, but a write to the open still runs.
    assert!(rig.connection(first.id).is_idle());
    assert_eq!(rig.disk.opens.len(), 1);
    rig.release();
    assert_eq!(rig.disk.opens.len(), 0);
    assert!(rig.connection(second.id).is_idle());
    let mut later = Client::in_share(&mut rig, first.options, "alice", "files");
    let (file, _) = later.open(&mut rig, Ask::alone(OplockLevel::NONE));
    assert_eq!(later.close(&mut rig, file), Status::SUCCESS);
}

#[test]
fn a_logoff_ends_the_session_on_every_channel() {
    let (mut rig, mut first, mut second) = with_two_channels();
    let file = with_words(&mut rig, &mut first, "a");
    rig.is_holding = true;
    let message = first.read_message(file, 100);
    first.say(&mut rig, vec![message]);
    let logoff = ended(&mut second, Command::LOGOFF);
    second.say(&mut rig, vec![logoff]);
    assert!(second.hear(&mut rig).is_none(), "the other channel reads");
    assert_eq!(first.echo(&mut rig).status(), Status::USER_SESSION_DELETED);
    assert_eq!(rig.disk.opens.len(), 1);
    rig.release();
    assert_eq!(data(&first.hear_answer(&mut rig)), b"words");
    assert_eq!(second.hear_answer(&mut rig).status(), Status::SUCCESS);
    assert_eq!(rig.disk.opens.len(), 0);
    for client in [&mut first, &mut second] {
        assert_eq!(client.echo(&mut rig).status(), Status::USER_SESSION_DELETED);
        assert_eq!(rig.connection(client.id).summary().sessions, []);
        assert!(rig.connection(client.id).is_idle());
    }
}

#[test]
fn two_channels_can_log_off_at_once() {
    let (mut rig, mut first, mut second) = with_two_channels();
    let file = with_words(&mut rig, &mut first, "a");
    rig.is_holding = true;
    let message = first.read_message(file, 100);
    first.say(&mut rig, vec![message]);
    for client in [&mut first, &mut second] {
        let logoff = ended(client, Command::LOGOFF);
        client.say(&mut rig, vec![logoff]);
    }
    let answer = second.hear_answer(&mut rig);
    assert_eq!(answer.status(), Status::USER_SESSION_DELETED);
    rig.release();
    assert_eq!(data(&first.hear_answer(&mut rig)), b"words");
    assert_eq!(first.hear_answer(&mut rig).status(), Status::SUCCESS);
}

#[test]
fn a_request_that_waits_on_another_channel_ends_with_the_session() {
    let (mut rig, mut first, mut second) = with_two_channels();
    let mut other = Client::with_credits(&mut rig);
    other.open(&mut rig, Ask::level(OplockLevel::BATCH));
    let id = first.open_and_wait(&mut rig, Ask::level(OplockLevel::NONE));
    let logoff = ended(&mut second, Command::LOGOFF);
    assert_eq!(second.ask(&mut rig, logoff).status(), Status::SUCCESS);
    let answer = first.hear_answer(&mut rig);
    assert_eq!(answer.header.message_id, id);
    assert_eq!(answer.status(), Status::CANCELLED);
}

#[test]
fn a_login_that_replaces_the_session_waits_for_all_its_channels() {
    let (mut rig, mut first, mut second) = with_two_channels();
    let file = with_words(&mut rig, &mut first, "a");
    let mut new = Client::beside(&mut rig, &first);
    (new.session, new.signing, new.signs) = (SessionId(0), None, false);
    rig.is_holding = true;
    for client in [&mut first, &mut second] {
        let message = client.read_message(file, 100);
        client.say(&mut rig, vec![message]);
    }
    rig.is_holding = false;
    let setup = new.setup("alice", first.session);
    new.say(&mut rig, vec![setup]);
    assert!(new.hear(&mut rig).is_none());
    rig.release_one();
    assert!(new.hear(&mut rig).is_none());
    rig.release_one();
    assert_eq!(new.hear_answer(&mut rig).status(), Status::SUCCESS);
    assert_eq!(rig.disk.opens.len(), 0);
}

#[test]
fn a_reauthentication_or_its_failure_applies_to_all_channels() {
    let (mut rig, mut first, mut second) = with_two_channels();
    let again = second.setup("bob", SessionId(0));
    assert_eq!(second.ask(&mut rig, again).status(), Status::SUCCESS);
    let account = &rig.connection(first.id).summary().sessions[0].1;
    assert_eq!(account.name, "bob");
    assert_eq!(first.echo(&mut rig).status(), Status::SUCCESS);
    let again = second.setup("refuse", SessionId(0));
    assert_eq!(second.ask(&mut rig, again).status(), Status::LOGON_FAILURE);
    assert_eq!(first.echo(&mut rig).status(), Status::USER_SESSION_DELETED);
}

#[test]
fn a_cancel_applies_to_its_own_channel() {
    let (mut rig, mut first, mut second) = with_two_channels();
    let mut other = Client::with_credits(&mut rig);
    other.open(&mut rig, Ask::level(OplockLevel::BATCH));
    let id = first.open_and_wait(&mut rig, Ask::level(OplockLevel::NONE));
    second.cancel(&mut rig, id, None);
    assert!(first.hear(&mut rig).is_none());
    first.cancel(&mut rig, id, None);
    assert_eq!(first.hear_answer(&mut rig).status(), Status::CANCELLED);
}

#[test]
fn a_break_notification_uses_a_live_channel() {
    let (mut rig, mut first, mut second) = with_two_channels();
    let (held, _) = first.open(&mut rig, Ask::level(OplockLevel::BATCH));
    let mut other = Client::with_credits(&mut rig);
    rig.cut(first.id);
    other.open_and_wait(&mut rig, Ask::level(OplockLevel::NONE));
    let expected = Break {
        file_id: held,
        level: OplockLevel::II,
    };
    assert_eq!(second.hear_break(&mut rig), expected);
    assert_eq!(second.acknowledge(&mut rig, held, 1), Status::SUCCESS);
    assert_eq!(created(&other.hear_answer(&mut rig)).1, OplockLevel::NONE);
}

#[test]
fn a_break_lost_with_a_channel_is_sent_again() {
    for level in [OplockLevel::BATCH, OplockLevel::II] {
        let (mut rig, mut first, mut second) = with_two_channels();
        let (held, _) = first.open(&mut rig, Ask::level(level));
        let mut other = Client::with_credits(&mut rig);
        let expected = Break {
            file_id: held,
            level: OplockLevel::NONE,
        };
        if level == OplockLevel::II {
            let (file, _) = other.open(&mut rig, Ask::level(OplockLevel::NONE));
            let write = other.write_message(file, b"new");
            other.say(&mut rig, vec![write]);
        } else {
            let message = other.open_message("f", Ask::overwrite());
            other.say(&mut rig, vec![message]);
        }
        assert_eq!(first.hear_break(&mut rig), expected);
        // The server cannot know whether the client received the notification.
        rig.cut(first.id);
        assert_eq!(second.hear_break(&mut rig), expected);
        if level == OplockLevel::BATCH {
            assert_eq!(second.acknowledge(&mut rig, held, 0), Status::SUCCESS);
        }
        assert_eq!(other.hear_answer(&mut rig).status(), Status::SUCCESS);
        // An acknowledged break is not sent again.
        let third = Client::channel_of(&mut rig, &first);
        rig.cut(third.id);
        assert!(second.hear(&mut rig).is_none());
    }
}

#[test]
fn an_open_with_a_lost_response_is_closed() {
    let (mut rig, mut first, mut second) = with_two_channels();
    rig.is_holding = true;
    let message = first.open_message("f", Ask::alone(OplockLevel::BATCH));
    first.say(&mut rig, vec![message]);
    rig.cut(first.id);
    rig.release();
    let (file, level) = second.open(&mut rig, Ask::alone(OplockLevel::BATCH));
    assert_eq!(level, OplockLevel::BATCH);
    assert_eq!(second.close(&mut rig, file), Status::SUCCESS);
    assert_eq!(rig.disk.opens.len(), 0);
}

#[test]
fn a_violation_ends_only_its_channel() {
    let (mut rig, mut first, mut second) = with_two_channels();
    let file = with_words(&mut rig, &mut first, "a");
    let mut echo = echo(&mut second);
    echo.header.message_id.0 += 100_000;
    second.say(&mut rig, vec![echo]);
    assert!(rig.violations.contains_key(&second.id));
    rig.cut(second.id);
    assert_eq!(data(&read(&mut rig, &mut first, file)), b"words");
    rig.pass(Duration::from_secs(3600));
    assert_eq!(data(&read(&mut rig, &mut first, file)), b"words");
}
