//! Encryption: when it is allowed, when it is required, and the errors that end the connection.
//! Row 23 of the list of bad inputs.

use std::collections::BTreeSet;
use std::sync::Arc;

use crypto::Cipher;
use proto::effect::Access;
use proto::server::config::Share;
use proto::violation::Violation;
use wire::dialect::Dialect;
use wire::transform::{NONCE, TRANSFORM_LEN};
use wire::tree_connect::{Response, ShareFlags};
use wire::{Command, SessionId, Status};

use crate::harness::{Client, Options, Rig, Work, bytes_of, share};

#[test]
fn every_cipher_works_in_both_directions() {
    for dialect in [Dialect::SMB_3_0, Dialect::SMB_3_0_2, Dialect::SMB_3_1_1] {
        for cipher in [
            Cipher::Aes128Ccm,
            Cipher::Aes128Gcm,
            Cipher::Aes256Ccm,
            Cipher::Aes256Gcm,
        ] {
            let mut rig = Rig::new(|_| {});
            let options = Options {
                ciphers: vec![cipher],
                ..Options::only(dialect)
            };
            let mut client = Client::logged_in(&mut rig, options, "alice");
            client.encrypts = true;
            let answer = client.enter(&mut rig, "files");
            assert_eq!(answer.status(), Status::SUCCESS);
            assert!(answer.was_encrypted);
            client.encrypts = false;
            assert!(!client.echo(&mut rig).was_encrypted);
        }
    }
}

#[test]
fn a_nonce_is_used_once() {
    let mut rig = Rig::new(|_| {});
    let mut client = Client::logged_in(&mut rig, Options::default(), "alice");
    client.encrypts = true;
    let mut nonces = BTreeSet::new();
    for _ in 0..100 {
        let bytes = bytes_of(|bytes| wire::echo::Request.encode(bytes));
        let message = client.message(Command::ECHO, bytes);
        client.say(&mut rig, vec![message]);
        let frame = rig.read(client.id).unwrap();
        assert!(nonces.insert(frame[NONCE].to_vec()));
    }
}

#[test]
fn a_server_with_required_encryption_refuses_plaintext() {
    let mut rig = Rig::new(|config| config.encryption_required = true);
    let mut client = Client::in_share(&mut rig, Options::default(), "alice", "files");
    assert!(client.encrypts);
    client.encrypts = false;
    for command in [Command::ECHO, Command::TREE_DISCONNECT, Command::LOGOFF] {
        let bytes = bytes_of(|bytes| wire::echo::Request.encode(bytes));
        let answer = client.ask_body(&mut rig, command, bytes);
        assert_eq!(answer.status(), Status::ACCESS_DENIED);
        assert!(answer.was_encrypted);
    }
    client.encrypts = true;
    assert_eq!(client.echo(&mut rig).status(), Status::SUCCESS);
}

fn with_secret_share() -> Rig {
    Rig::new(|config| {
        config.shares.push(Arc::new(Share {
            encryption_required: true,
            guest: true,
            ..share("secret")
        }));
    })
}

#[test]
fn a_share_with_required_encryption_refuses_plaintext() {
    let mut rig = with_secret_share();
    let mut client = Client::logged_in(&mut rig, Options::default(), "alice");
    let answer = client.enter(&mut rig, "secret");
    let flags = Response::decode(&answer.message).unwrap().share_flags;
    assert!(flags.contains(ShareFlags::ENCRYPT_DATA));
    let disconnect = |client: &mut Client, rig: &mut Rig| {
        let bytes = bytes_of(|bytes| wire::tree_disconnect::Request.encode(bytes));
        client.ask_body(rig, Command::TREE_DISCONNECT, bytes)
    };
    let answer = disconnect(&mut client, &mut rig);
    assert_eq!(answer.status(), Status::ACCESS_DENIED);
    client.encrypts = true;
    assert_eq!(disconnect(&mut client, &mut rig).status(), Status::SUCCESS);
}

/// The server encrypts payloads in memory. A member's payload must be in memory if a later member
/// may fail because it is not encrypted.
#[test]
fn a_payload_is_read_into_memory_if_a_later_member_may_encrypt() {
    let mut rig = with_secret_share();
    let mut client = Client::in_share(&mut rig, Options::default(), "alice", "files");
    let bytes = bytes_of(|bytes| wire::echo::Request.encode(bytes));
    let mut echo = client.message(Command::ECHO, bytes);
    echo.header.credits = 100;
    client.ask(&mut rig, echo);
    let plain = client.tree;
    client.enter(&mut rig, "secret");
    let secret = std::mem::replace(&mut client.tree, plain);
    // Signing needs the payload in memory as well.
    client.signs = false;
    let file = client.create(&mut rig, "a");
    let write = client.write_message(file, b"words");
    client.ask(&mut rig, write);
    rig.is_slow = true;
    let read = client.read_message(file, 5);
    client.tree = secret;
    let bytes = bytes_of(|bytes| wire::tree_disconnect::Request.encode(bytes));
    let refused = client.message(Command::TREE_DISCONNECT, bytes);
    client.say(&mut rig, vec![read, refused]);
    let (_, Work::Read(plan)) = &rig.slow[0] else {
        panic!("the first member reads");
    };
    assert_eq!(plan.access, Access::InMemory);
    rig.work(0);
    let answers = client.hear(&mut rig).expect("an answer");
    assert!(answers.iter().all(|answer| answer.was_encrypted));
    assert_eq!(answers[1].status(), Status::ACCESS_DENIED);
    // Without a later member, the payload stays out of memory.
    client.tree = plain;
    let alone = client.read_message(file, 5);
    client.say(&mut rig, vec![alone]);
    assert!(matches!(&rig.slow[0], (_, Work::Read(plan)) if plan.access == Access::Opaque));
}

#[test]
fn a_share_with_required_encryption_refuses_clients_without_it() {
    let mut rig = with_secret_share();
    let mut guest = Client::logged_in(&mut rig, Options::default(), "guest");
    assert_eq!(
        guest.enter(&mut rig, "secret").status(),
        Status::ACCESS_DENIED
    );
    for dialect in [Dialect::SMB_2_0_2, Dialect::SMB_2_1] {
        let mut client = Client::logged_in(&mut rig, Options::only(dialect), "alice");
        let answer = client.enter(&mut rig, "secret");
        assert_eq!(answer.status(), Status::ACCESS_DENIED);
    }
}

/// An encrypted ECHO with a damaged byte.
fn spoilt(spoil: impl FnOnce(&mut Vec<u8>)) -> (Client, Violation) {
    let mut rig = Rig::new(|_| {});
    let mut client = Client::logged_in(&mut rig, Options::default(), "alice");
    client.encrypts = true;
    let bytes = bytes_of(|bytes| wire::echo::Request.encode(bytes));
    let message = client.message(Command::ECHO, bytes);
    let mut frame = client.frame(vec![message]);
    spoil(&mut frame);
    rig.deliver(client.id, &frame);
    assert!(client.hear(&mut rig).is_none());
    let violation = rig.violations[&client.id];
    (client, violation)
}

#[test]
fn a_frame_that_does_not_decrypt_ends_the_connection() {
    for position in [4, 20, 31, 44, TRANSFORM_LEN, TRANSFORM_LEN + 70 - 3] {
        let (_, violation) = spoilt(|frame| frame[position] ^= 1);
        assert!(
            matches!(violation, Violation::CannotDecrypt(_)),
            "{position}"
        );
    }
    for size in [0_u32, 1, 67, 69, u32::MAX] {
        let set_size = |frame: &mut Vec<u8>| frame[36..40].copy_from_slice(&size.to_le_bytes());
        let (_, violation) = spoilt(set_size);
        assert!(matches!(violation, Violation::Malformed(_)), "{size}");
    }
    for flags in [0_u16, 2, 3, 0xFFFF] {
        let set_flags = |frame: &mut Vec<u8>| frame[42..44].copy_from_slice(&flags.to_le_bytes());
        let (client, violation) = spoilt(set_flags);
        assert_eq!(violation, Violation::CannotDecrypt(client.session));
    }
    let (_, violation) = spoilt(|frame| frame.truncate(TRANSFORM_LEN + 10));
    assert!(matches!(violation, Violation::Malformed(_)));
    let (_, violation) = spoilt(|frame| frame.truncate(TRANSFORM_LEN - 1));
    assert!(matches!(violation, Violation::Malformed(_)));
}

#[test]
fn an_encrypted_frame_without_a_login_ends_the_connection() {
    let mut rig = Rig::new(|_| {});
    let mut alice = Client::logged_in(&mut rig, Options::default(), "alice");
    alice.encrypts = true;
    let bytes = bytes_of(|bytes| wire::echo::Request.encode(bytes));
    let message = alice.message(Command::ECHO, bytes);
    alice.next_message -= 1;
    let frame = alice.frame(vec![message]);
    // Before NEGOTIATE, before and during a login, and by a guest without a key.
    for step in 0..4 {
        let mut other = Client::new(&mut rig, Options::default());
        if step >= 1 {
            other.negotiate(&mut rig);
        }
        if step == 2 {
            other.log_in(&mut rig, "more");
        }
        if step == 3 {
            other.log_in(&mut rig, "guest");
        }
        let mut frame = frame.clone();
        if step >= 2 {
            frame[44..52].copy_from_slice(&other.session.0.to_le_bytes());
        }
        rig.deliver(other.id, &frame);
        let violation = rig.violations[&other.id];
        assert!(matches!(violation, Violation::CannotDecrypt(_)), "{step}");
    }
    assert_eq!(alice.echo(&mut rig).status(), Status::SUCCESS);
}

#[test]
fn a_doubly_encrypted_frame_ends_the_connection() {
    let mut rig = Rig::new(|_| {});
    let mut client = Client::logged_in(&mut rig, Options::default(), "alice");
    client.encrypts = true;
    let bytes = bytes_of(|bytes| wire::echo::Request.encode(bytes));
    let message = client.message(Command::ECHO, bytes);
    let frame = client.frame(vec![message]);
    let frame = client.encrypt(&frame);
    rig.deliver(client.id, &frame);
    assert!(matches!(
        rig.violations[&client.id],
        Violation::Malformed(_)
    ));
}

#[test]
fn a_frame_encrypted_for_one_session_cannot_carry_another() {
    let mut rig = Rig::new(|_| {});
    let mut alice = Client::logged_in(&mut rig, Options::default(), "alice");
    let mut bob = Client::on(alice.id, Options::default());
    bob.next_message = alice.next_message;
    let setup = bob.setup("bob", SessionId(0));
    let bobs = bob.ask(&mut rig, setup);
    alice.next_message = bob.next_message;
    alice.encrypts = true;
    let mut message = alice.connect_message("files");
    message.header.session_id = bobs.header.session_id;
    assert_eq!(alice.ask(&mut rig, message).status(), Status::ACCESS_DENIED);
}

#[test]
fn a_compound_is_encrypted_as_a_whole() {
    let mut rig = Rig::new(|_| {});
    let mut client = Client::logged_in(&mut rig, Options::default(), "alice");
    let bytes = bytes_of(|bytes| wire::echo::Request.encode(bytes));
    let mut first = client.message(Command::ECHO, bytes.clone());
    first.header.credits = 8;
    client.ask(&mut rig, first);
    client.encrypts = true;
    let messages = (0..3).map(|_| client.message(Command::ECHO, bytes.clone()));
    let messages = messages.collect();
    let answers = client.ask_all(&mut rig, messages);
    assert_eq!(answers.len(), 3);
    assert!(
        answers
            .iter()
            .all(|answer| answer.was_encrypted && !answer.is_signed())
    );
}
