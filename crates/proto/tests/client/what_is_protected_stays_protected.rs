//! Signatures and seals: what must have one has the right one, in both directions.

use crypto::{CIPHER_PREFERENCE, SIGNING_PREFERENCE};
use proto::client::config::Protection;
use proto::client::request::{FileRef, Step};
use proto::client::{Config, Violation};
use wire::dialect::Dialect;
use wire::{FileId, Flags, Status, transform};

use crate::forge::{alone, alone_with, asked, asynchronous, error, header, message, plain_error};
use crate::harness::Rig;
use crate::link::{Link, close, config};

fn protected(protection: Protection) -> Config {
    Config {
        protection,
        ..config()
    }
}

fn of(dialect: Dialect, protection: Protection) -> Config {
    Config {
        dialects: vec![dialect],
        ..protected(protection)
    }
}

/// A file is written and read, and every frame after the login looks as it must.
fn use_a_file(rig: &mut Rig, config: Config, must: impl Fn(&[u8]) -> bool) {
    let mut link = Link::logged_in(rig, config);
    let step = Step::TreeConnect("files".into());
    let id = link.submit(proto::client::Request::new(None, vec![step]));
    let mut frames = Vec::new();
    while let Some(frame) = link.outbox.pop_front() {
        rig.deliver(link.id, &frame);
        frames.push(frame);
        while let Some(frame) = rig.read(link.id) {
            frames.push(frame.clone());
            link.hear(frame);
        }
    }
    assert!(link.answers.contains_key(&id), "{:?}", link.ended);
    assert!(frames.len() >= 2);
    assert!(frames.iter().all(|frame| must(frame)));
    let tree = link.enter(rig, "files");
    let file = link.open(rig, tree, "a");
    assert!(link.write(rig, tree, file, 0, &[5; 3000]).is_ok());
    let id = link.submit(proto::client::Request::new(
        Some(tree),
        vec![Step::Read {
            file: FileRef::Id(file),
            offset: 0,
            length: 4000,
            minimum: 0,
        }],
    ));
    let frame = link.outbox.pop_front().expect("a READ");
    assert!(must(&frame));
    rig.deliver(link.id, &frame);
    let frame = rig.read(link.id).expect("an answer");
    assert!(must(&frame));
    link.hear(frame);
    assert_eq!(link.destinations[&id], [5; 3000], "{:?}", link.ended);
    assert!(link.ask_one(rig, Some(tree), close(file)).is_ok());
}

fn is_signed(frame: &[u8]) -> bool {
    let header = wire::Header::decode(frame).expect("not sealed");
    header.flags.contains(Flags::SIGNED) && header.signature != [0; 16]
}

fn is_sealed(frame: &[u8]) -> bool {
    frame.starts_with(&transform::PROTOCOL_ID)
}

#[test]
fn everything_is_signed_with_every_algorithm() {
    for algorithm in SIGNING_PREFERENCE {
        let mut rig = Rig::new(|_| {});
        let config = Config {
            signing_algorithms: vec![algorithm],
            ..protected(Protection::Sign)
        };
        use_a_file(&mut rig, config, is_signed);
    }
    for dialect in config().dialects {
        let mut rig = Rig::new(|_| {});
        use_a_file(&mut rig, of(dialect, Protection::Sign), is_signed);
        let mut rig = Rig::new(|config| config.signing_required = true);
        use_a_file(&mut rig, of(dialect, Protection::AsAsked), is_signed);
    }
}

#[test]
fn everything_is_sealed_with_every_cipher() {
    for cipher in CIPHER_PREFERENCE {
        let mut rig = Rig::new(|_| {});
        let config = Config {
            ciphers: vec![cipher],
            ..protected(Protection::Encrypt)
        };
        use_a_file(&mut rig, config, is_sealed);
        let mut rig = Rig::new(|config| config.encryption_required = true);
        let config = Config {
            ciphers: vec![cipher],
            ..protected(Protection::AsAsked)
        };
        use_a_file(&mut rig, config, is_sealed);
    }
    for dialect in [Dialect::SMB_3_0, Dialect::SMB_3_0_2] {
        let mut rig = Rig::new(|_| {});
        use_a_file(&mut rig, of(dialect, Protection::Encrypt), is_sealed);
    }
}

#[test]
fn a_server_that_cannot_seal_is_left() {
    for dialect in [Dialect::SMB_2_0_2, Dialect::SMB_2_1] {
        let mut rig = Rig::new(|_| {});
        let role = proto::client::Role::First;
        let mut link = Link::new(&mut rig, of(dialect, Protection::Encrypt), role);
        link.run(&mut rig);
        assert!(matches!(link.ended, Some(Violation::LoginUntrusted(_))));
    }
}

fn read() -> Step {
    Step::Read {
        file: FileRef::Id(FileId::default()),
        offset: 0,
        length: 10,
        minimum: 0,
    }
}

#[test]
fn an_answer_without_a_signature_ends_a_connection_that_signs() {
    let (mut link, tree) = alone_with(protected(Protection::Sign));
    let (_, asked) = asked(&mut link, tree, read());
    link.hear(error(&asked, Status::END_OF_FILE));
    assert!(matches!(link.ended, Some(Violation::BadSignature(_))));
}

#[test]
fn a_wrong_signature_ends_any_connection() {
    for protection in [Protection::Sign, Protection::AsAsked] {
        let (mut link, tree) = alone_with(protected(protection));
        let (_, asked) = asked(&mut link, tree, read());
        let mut answer = header(&asked, Status::END_OF_FILE);
        answer.flags |= Flags::SIGNED;
        answer.signature = [7; 16];
        link.hear(message(&answer, plain_error));
        assert!(matches!(link.ended, Some(Violation::BadSignature(_))));
    }
}

#[test]
fn a_bit_that_flips_is_found_out_wherever_it_is() {
    for protection in [Protection::Sign, Protection::Encrypt] {
        for place in [0, 5, 17, 30, 60, 70, 100, 140, 170] {
            let mut rig = Rig::new(|_| {});
            let (mut link, tree) = Link::in_share(&mut rig, protected(protection));
            let file = link.open(&mut rig, tree, "a");
            assert!(link.write(&mut rig, tree, file, 0, &[5; 100]).is_ok());
            let step = Step::Read {
                file: FileRef::Id(file),
                offset: 0,
                length: 100,
                minimum: 0,
            };
            let id = link.submit(proto::client::Request::new(Some(tree), vec![step]));
            let frame = link.outbox.pop_front().expect("a READ");
            rig.deliver(link.id, &frame);
            let mut frame = rig.read(link.id).expect("an answer");
            frame[place] ^= 1;
            link.hear(frame);
            assert!(!link.answers.contains_key(&id), "{protection:?}, {place}");
            assert!(link.ended.is_some(), "{protection:?}, {place}");
        }
    }
}

#[test]
fn an_answer_in_the_clear_ends_a_connection_that_seals() {
    // The ids are no secret to who guesses well.
    let (mut other, tree) = alone_with(protected(Protection::Sign));
    let (_, asked) = asked(&mut other, tree, read());
    for answer in [
        asynchronous(&asked, Status::PENDING, 5),
        header(&asked, Status::END_OF_FILE),
    ] {
        let (mut link, tree) = alone_with(protected(Protection::Encrypt));
        link.submit(proto::client::Request::new(Some(tree), vec![read()]));
        assert!(is_sealed(&link.outbox[0]));
        let session_id = link.session.as_ref().unwrap().id;
        let answer = wire::Header {
            session_id,
            ..answer
        };
        link.hear(message(&answer, plain_error));
        assert!(matches!(link.ended, Some(Violation::NotEncrypted(_))));
    }
}

#[test]
fn a_seal_of_another_session_is_refused() {
    let mut rig = Rig::new(|_| {});
    let (mut link, tree) = Link::in_share(&mut rig, protected(Protection::Encrypt));
    link.submit(proto::client::Request::new(Some(tree), vec![read()]));
    let frame = link.outbox.pop_front().expect("a READ");
    rig.deliver(link.id, &frame);
    let mut frame = rig.read(link.id).expect("an answer");
    frame[44] ^= 0xFF;
    link.hear(frame);
    assert!(matches!(link.ended, Some(Violation::NotEncrypted(_))));
}

#[test]
fn what_was_signed_is_answered_signed() {
    // TREE_CONNECT is signed in 3.1.1 whatever the session asks for.
    let (mut link, _) = alone();
    let (_, asked) = asked(&mut link, wire::TreeId(0), Step::TreeConnect("x".into()));
    assert!(asked.flags.contains(Flags::SIGNED));
    link.hear(error(&asked, Status::BAD_NETWORK_NAME));
    assert!(matches!(link.ended, Some(Violation::BadSignature(_))));
}
