//! Bytes that are not a message, and messages with invalid bodies: rows 4, 9, 10 and 15 of the
//! list of bad inputs.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proto::violation::Violation;
use wire::dialect::Dialect;
use wire::{Command, FileId, Flags, MessageId, Status};

use crate::harness::{Client, Options, Rig, bytes_of, file_id};

#[test]
fn bytes_other_than_smb_end_the_connection() {
    let frames: [&[u8]; 9] = [
        b"",
        b"\xFE",
        b"\xFESM",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xFESMB",
        b"\xFDSMB",
        b"\xFCSMB\0\0\0\0\0\0\0\0\0\0\0\0",
        b"\xFFSMB",
        &[0; 4096],
    ];
    for logs_in in [false, true] {
        for frame in frames {
            let mut rig = Rig::new(|_| {});
            let mut client = Client::new(&mut rig, Options::default());
            if logs_in {
                client.negotiate(&mut rig);
                client.log_in(&mut rig, "alice");
            }
            rig.deliver(client.id, frame);
            let violation = rig.violations[&client.id];
            let is_about_bytes = matches!(
                violation,
                Violation::Malformed(_) | Violation::CannotDecrypt(_)
            );
            assert!(is_about_bytes, "{frame:x?}: {violation}");
            assert!(client.hear(&mut rig).is_none());
        }
    }
}

#[test]
fn a_long_frame_before_a_login_ends_the_connection() {
    let mut rig = Rig::new(|_| {});
    let mut client = Client::new(&mut rig, Options::default());
    let before = rig.connection(client.id).max_frame();
    assert_eq!(before, 256 << 10);
    client.negotiate(&mut rig);
    rig.deliver(client.id, &vec![0xFE; before + 1]);
    let violation = Violation::FrameTooLong(before as u64 + 1);
    assert_eq!(rig.violations[&client.id], violation);

    let client = Client::logged_in(&mut rig, Options::default(), "alice");
    assert!(rig.connection(client.id).max_frame() >= (8 << 20) + 1024);
}

#[test]
fn the_time_for_a_login_is_limited() {
    let mut rig = Rig::new(|_| {});
    let mut slow = Client::new(&mut rig, Options::default());
    let quick = Client::logged_in(&mut rig, Options::default(), "alice");
    slow.negotiate(&mut rig);
    rig.pass(Duration::from_secs(29));
    assert!(rig.violations.is_empty());
    rig.pass(Duration::from_secs(1));
    assert_eq!(rig.violations[&slow.id], Violation::LoginTimeout);
    assert!(!rig.violations.contains_key(&quick.id));
    assert_eq!(rig.connection(quick.id).next_timeout(), None);
}

#[test]
fn an_invalid_compound_ends_the_connection() {
    // Unaligned, into the header, past the end, with no space for a header.
    for next_command in [4_u32, 68, 71, 8, 56, 80, 1 << 20, u32::MAX] {
        let mut rig = Rig::new(|_| {});
        let mut client = Client::logged_in(&mut rig, Options::default(), "alice");
        let bytes = bytes_of(|bytes| wire::echo::Request.encode(bytes));
        let mut message = client.message(Command::ECHO, bytes);
        message.header.next_command = next_command;
        client.say(&mut rig, vec![message]);
        let violation = rig.violations[&client.id];
        assert!(
            matches!(violation, Violation::Malformed(_)),
            "{next_command}"
        );
    }
}

#[test]
fn a_long_compound_ends_the_connection() {
    let mut rig = Rig::new(|config| config.limits.compound_messages = 4);
    for (count, is_allowed) in [(4, true), (5, false)] {
        let mut client = Client::new(&mut rig, Options::default());
        client.negotiate(&mut rig);
        let mut message = client.setup("alice", wire::SessionId(0));
        message.header.credits = 100;
        let answer = client.ask(&mut rig, message);
        assert_eq!(answer.header.credits, 100);
        let bytes = bytes_of(|bytes| wire::echo::Request.encode(bytes));
        let echoes = (0..count).map(|_| client.message(Command::ECHO, bytes.clone()));
        let echoes = echoes.collect();
        client.say(&mut rig, echoes);
        let answers = client.hear(&mut rig).map(|answers| answers.len());
        assert_eq!(answers, is_allowed.then_some(4));
    }
}

#[test]
fn a_response_from_a_client_ends_the_connection() {
    let mut rig = Rig::new(|_| {});
    let mut client = Client::logged_in(&mut rig, Options::default(), "alice");
    let bytes = bytes_of(|bytes| wire::echo::Request.encode(bytes));
    let mut message = client.message(Command::ECHO, bytes);
    message.header.flags |= Flags::SERVER_TO_REDIR;
    client.say(&mut rig, vec![message]);
    let violation = Violation::UnexpectedMessage(Command::ECHO);
    assert_eq!(rig.violations[&client.id], violation);
}

#[test]
fn an_invalid_body_fails_only_its_request() {
    // Each command gets an empty body, one byte, and a StructureSize of 1. All are too short.
    for dialect in [Dialect::SMB_2_1, Dialect::SMB_3_1_1] {
        let mut rig = Rig::new(|_| {});
        let mut client = Client::in_share(&mut rig, Options::only(dialect), "alice", "files");
        for command in (1..=0x12).filter(|command| *command != Command::CANCEL.0) {
            for body in [&[][..], &[4], &[1, 0], &[1, 0, 0, 0, 0, 0, 0, 0]] {
                let bytes = bytes_of(|bytes| bytes.extend_from_slice(body));
                let answer = client.ask_body(&mut rig, Command(command), bytes);
                let is_built = answer.status() != Status::NOT_IMPLEMENTED;
                let expected = Status::INVALID_PARAMETER;
                assert!(!is_built || answer.status() == expected, "{answer:?}");
            }
        }
        assert_eq!(client.echo(&mut rig).status(), Status::SUCCESS);
    }
}

#[test]
fn every_truncated_request_is_answered_or_ends_the_connection() {
    let whole = {
        let mut rig = Rig::new(|_| {});
        let mut client = Client::logged_in(&mut rig, Options::default(), "alice");
        client.signs = false;
        let connect = client.connect_message("files");
        client.frame(vec![connect])
    };
    for len in 0..whole.len() {
        let mut rig = Rig::new(|_| {});
        let mut client = Client::logged_in(&mut rig, Options::default(), "guest");
        let mut frame = whole[..len].to_vec();
        if len >= 48 {
            frame[40..48].copy_from_slice(&client.session.0.to_le_bytes());
        }
        rig.deliver(client.id, &frame);
        match client.hear(&mut rig) {
            Some(answers) => assert_ne!(answers[0].status(), Status::SUCCESS),
            None => assert!(rig.violations.contains_key(&client.id)),
        }
    }
}

#[test]
fn unknown_commands_and_flags_are_answered() {
    let mut rig = Rig::new(|_| {});
    let mut client = Client::in_share(&mut rig, Options::default(), "alice", "files");
    for command in [0x13, 0x14, 0xFF, 0xFFFF] {
        let bytes = bytes_of(|bytes| wire::echo::Request.encode(bytes));
        let answer = client.ask_body(&mut rig, Command(command), bytes);
        assert_eq!(answer.status(), Status::INVALID_PARAMETER);
    }
    for flags in [Flags(0x0000_0100), Flags::ASYNC_COMMAND] {
        let bytes = bytes_of(|bytes| wire::echo::Request.encode(bytes));
        let mut message = client.message(Command::ECHO, bytes);
        message.header.flags |= flags;
        if flags == Flags::ASYNC_COMMAND {
            message.header.target = wire::header::Target::Async(wire::AsyncId(1));
        }
        let answer = client.ask(&mut rig, message);
        assert_eq!(answer.status(), Status::INVALID_PARAMETER);
    }
}

#[test]
fn an_answer_echoes_its_request() {
    let mut rig = Rig::new(|_| {});
    let mut client = Client::logged_in(&mut rig, Options::default(), "alice");
    let id = client.next_message;
    let answer = client.echo(&mut rig);
    assert_eq!(answer.header.message_id, MessageId(id));
    assert_eq!(answer.header.session_id, client.session);
    assert_eq!(answer.header.command, Command::ECHO);
    assert_eq!(answer.header.credit_charge, 1);
}

/// The damage, per frame: new bytes at offsets, and the length.
type Damage = Vec<(usize, Vec<(usize, u8)>, usize)>;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn nothing_that_is_spoilt_stops_the_server(
        holds in any::<bool>(),
        damage in vec((0_usize..9, vec((0_usize..400, any::<u8>()), 0..6), 0_usize..500), 1..20),
    ) {
        spoil(holds, damage);
    }
}

/// Sends a damaged request of every command on a session that does not sign, and closes.
fn spoil(holds: bool, damage: Damage) {
    let mut rig = Rig::new(|_| {});
    let mut client = Client::in_share(&mut rig, Options::only(Dialect::SMB_2_1), "alice", "files");
    let mut create = client.create_message("a");
    create.header.credits = 1000;
    let file = file_id(&client.ask(&mut rig, create));
    rig.is_holding = holds;
    for (kind, bytes, cut) in damage {
        let messages = match kind {
            0 => vec![
                client.create_message("b"),
                client.close_message(FileId::RELATED),
            ],
            1 => vec![client.read_message(file, 10)],
            2 => vec![client.write_message(file, b"words")],
            3 => vec![client.connect_message("files"), client.create_message("c")],
            4 => vec![client.setup("more", wire::SessionId(0))],
            5 => vec![client.close_message(file), client.read_message(file, 1)],
            kind => {
                let commands = [Command::LOGOFF, Command::TREE_DISCONNECT, Command::CANCEL];
                let body = bytes_of(|bytes| wire::echo::Request.encode(bytes));
                vec![client.message(commands[kind - 6], body)]
            }
        };
        let mut frame = client.frame(messages);
        let len = frame.len();
        for (place, byte) in bytes {
            frame[place % len] ^= byte;
        }
        frame.truncate(cut.max(len / 2));
        rig.deliver(client.id, &frame);
        while rig.read(client.id).is_some() {}
    }
    rig.pass(Duration::from_secs(60));
    rig.cut(client.id);
    rig.release();
    assert!(rig.disk.opens.is_empty());
    assert_eq!(rig.disk.payloads(), 0);
    assert!(rig.connection(client.id).is_idle());
}
