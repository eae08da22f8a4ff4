//! What a server may say in NEGOTIATE and SESSION_SETUP, and what it may not.

use proto::client::config::Protection;
use proto::client::{Config, Role, Violation};
use wire::dialect::{Capabilities, Dialect};
use wire::negotiate::Response;
use wire::negotiate_context::{Cipher, ContextType, Encryption, RawContext};
use wire::session_setup::SessionFlags;
use wire::{Command, Flags, Header, Status, ioctl};

use crate::forge::{error, headers, message};
use crate::harness::Rig;
use crate::link::{Link, config};

/// A client whose NEGOTIATE was answered with what the server says, after `change` had its say.
fn negotiated(config: Config, change: impl FnOnce(&mut Response<'_>)) -> Link {
    let mut rig = Rig::new(|_| {});
    let mut link = Link::new(&mut rig, config, Role::First);
    let frame = link.outbox.pop_front().expect("a first word");
    rig.deliver(link.id, &frame);
    let answer = rig.read(link.id).expect("an answer");
    let header = Header::decode(&answer).unwrap();
    let mut response = Response::decode(&answer).unwrap();
    change(&mut response);
    link.hear(message(&header, |bytes| response.encode(bytes)));
    link
}

#[test]
fn what_the_server_says_is_taken() {
    let link = negotiated(config(), |_| {});
    assert_eq!(link.ended, None);
    assert_eq!(link.outbox.len(), 1, "the login goes on");
}

#[test]
fn only_what_was_offered_may_be_chosen() {
    let lies: [fn(&mut Response<'_>); 7] = [
        |response| response.dialect = Dialect(0x0399),
        |response| response.dialect = Dialect::WILDCARD,
        |response| response.contexts.clear(),
        |response| {
            let twice = response.contexts[0];
            response.contexts.push(twice);
        },
        |response| response.max_read_size = 65_535,
        |response| response.max_write_size = 0,
        |response| response.max_transact_size = 1,
    ];
    for (index, lie) in lies.into_iter().enumerate() {
        let link = negotiated(config(), lie);
        let is_found_out = matches!(
            link.ended,
            Some(Violation::NegotiateTampered(_) | Violation::Malformed(_))
        );
        assert!(is_found_out, "{index}: {:?}", link.ended);
    }
}

#[test]
fn ciphers_are_of_those_offered_and_one() {
    for ciphers in [
        vec![Cipher::AES_256_GCM],
        vec![Cipher(77)],
        vec![],
        vec![Cipher::AES_128_GCM, Cipher::AES_128_GCM],
    ] {
        let config = Config {
            ciphers: vec![crypto::Cipher::Aes128Gcm],
            ..config()
        };
        let data = Encryption { ciphers }.encode();
        let link = {
            let mut rig = Rig::new(|_| {});
            let mut link = Link::new(&mut rig, config, Role::First);
            let frame = link.outbox.pop_front().unwrap();
            rig.deliver(link.id, &frame);
            let answer = rig.read(link.id).unwrap();
            let header = Header::decode(&answer).unwrap();
            let mut response = Response::decode(&answer).unwrap();
            let context_type = ContextType::ENCRYPTION_CAPABILITIES;
            for context in &mut response.contexts {
                if context.context_type == context_type {
                    *context = RawContext {
                        context_type,
                        data: &data,
                    };
                }
            }
            link.hear(message(&header, |bytes| response.encode(bytes)));
            link
        };
        let is_found_out = matches!(link.ended, Some(Violation::NegotiateTampered(_)));
        assert!(is_found_out, "{:?}", link.ended);
    }
}

#[test]
fn whoever_offers_a_cipher_says_that_it_can_seal() {
    // Samba does not look at the context of 3.1.1 without the capability.
    let offers = |dialects: Vec<Dialect>, ciphers| {
        let mut rig = Rig::new(|_| {});
        let config = Config {
            dialects,
            ciphers,
            ..config()
        };
        let link = Link::new(&mut rig, config, Role::First);
        let request = wire::negotiate::Request::decode(&link.outbox[0]).unwrap();
        request.capabilities.contains(Capabilities::ENCRYPTION)
    };
    let (gcm, ccm) = (crypto::Cipher::Aes128Gcm, crypto::Cipher::Aes128Ccm);
    assert!(offers(vec![Dialect::SMB_3_1_1], vec![gcm]));
    assert!(!offers(vec![Dialect::SMB_3_1_1], vec![]));
    assert!(!offers(vec![Dialect::SMB_3_0], vec![gcm]));
    assert!(offers(vec![Dialect::SMB_3_0], vec![gcm, ccm]));
    assert!(!offers(vec![Dialect::SMB_2_1], vec![gcm, ccm]));
}

#[test]
fn a_refusal_is_told() {
    let mut rig = Rig::new(|_| {});
    let mut link = Link::new(&mut rig, config(), Role::First);
    let frame = link.outbox.pop_front().unwrap();
    link.hear(error(&headers(&frame)[0], Status::NOT_SUPPORTED));
    assert_eq!(link.ended, Some(Violation::Refused(Status::NOT_SUPPORTED)));

    let mut link = Link::new(&mut rig, config(), Role::First);
    link.tokens = ["refuse"].into();
    link.run(&mut rig);
    let refused = Violation::LoginRefused(Status::LOGON_FAILURE);
    assert_eq!(link.ended, Some(refused));
}

#[test]
fn a_login_of_several_legs_is_one() {
    for dialect in config().dialects {
        let mut rig = Rig::new(|_| {});
        let config = Config {
            dialects: vec![dialect],
            protection: Protection::Sign,
            ..config()
        };
        let mut link = Link::new(&mut rig, config, Role::First);
        link.tokens = ["more", "more", "user"].into();
        link.run(&mut rig);
        assert_eq!(link.ended, None, "{dialect:?}");
        link.enter(&mut rig, "files");
    }
}

#[test]
fn a_server_that_lets_us_say_nothing_more_is_left() {
    for spoiled in 0..2 {
        let mut rig = Rig::new(|_| {});
        let mut link = Link::new(&mut rig, config(), Role::First);
        link.tokens = ["more", "user"].into();
        for leg in 0..=spoiled {
            let frame = link.outbox.pop_front().expect("the login goes on");
            rig.deliver(link.id, &frame);
            let mut answer = rig.read(link.id).expect("an answer");
            if leg == spoiled {
                // What it grants.
                answer[14..16].fill(0);
            }
            link.hear(answer);
        }
        let gone = Violation::LimitReached("no credits are left");
        assert_eq!(link.ended, Some(gone), "leg {spoiled}");
    }
}

/// A client whose login is let in with `flags`, as `user` says.
fn let_in(config: Config, user: &'static str, has_key: bool) -> Link {
    let mut rig = Rig::new(|_| {});
    let mut link = Link::new(&mut rig, config, Role::First);
    link.tokens = [user].into();
    if !has_key {
        link.session_key = Vec::new();
    }
    link.run(&mut rig);
    link
}

#[test]
fn a_guest_is_good_enough_only_where_that_is_wanted() {
    let allowed = Config {
        allow_guest: true,
        ..config()
    };
    let link = let_in(config(), "guest", true);
    assert!(matches!(link.ended, Some(Violation::LoginUntrusted(_))));
    let link = let_in(allowed.clone(), "guest", true);
    assert_eq!(link.ended, None);
    assert!(link.session.unwrap().is_guest);
    for protection in [Protection::Sign, Protection::Encrypt] {
        let config = Config {
            protection,
            ..allowed.clone()
        };
        let link = let_in(config, "guest", true);
        assert!(matches!(link.ended, Some(Violation::LoginUntrusted(_))));
    }
}

/// Who is nobody has no key, and protects nothing with it; whether the server says so or not.
#[test]
fn nobody_protects_anything() {
    for user in ["anonymous", "user"] {
        let link = let_in(config(), user, false);
        assert_eq!(link.ended, None, "{user}");
        assert!(link.session.unwrap().is_guest, "{user}");
        for protection in [Protection::Sign, Protection::Encrypt] {
            let config = Config {
                protection,
                allow_guest: true,
                ..config()
            };
            let ended = let_in(config, user, false).ended;
            let is_refused = matches!(ended, Some(Violation::LoginUntrusted(_)));
            assert!(is_refused, "{user}: {ended:?}");
        }
    }
}

#[test]
fn a_server_that_has_not_the_key_is_not_believed() {
    for dialect in [Dialect::SMB_3_0, Dialect::SMB_3_1_1] {
        let mut rig = Rig::new(|_| {});
        let config = Config {
            dialects: vec![dialect],
            ..config()
        };
        let mut link = Link::new(&mut rig, config, Role::First);
        link.session_key = b"another key, yes".to_vec();
        link.run(&mut rig);
        assert!(matches!(link.ended, Some(Violation::BadSignature(_))));
    }
}

#[test]
fn a_last_answer_that_is_not_signed_is_not_believed() {
    let mut rig = Rig::new(|_| {});
    let mut link = Link::new(&mut rig, config(), Role::First);
    for is_last in [false, true] {
        let frame = link.outbox.pop_front().unwrap();
        rig.deliver(link.id, &frame);
        let mut frame = rig.read(link.id).unwrap();
        if is_last {
            frame[16] &= !(Flags::SIGNED.0 as u8);
            frame[48..64].fill(0);
        }
        link.hear(frame);
    }
    assert!(matches!(link.ended, Some(Violation::BadSignature(_))));
}

#[test]
fn a_flag_that_was_taken_out_is_found_out() {
    // Nobody in between can take the seal off a session: the last answer is signed.
    let mut rig = Rig::new(|config| config.encryption_required = true);
    let mut link = Link::new(&mut rig, config(), Role::First);
    for is_last in [false, true] {
        let frame = link.outbox.pop_front().unwrap();
        rig.deliver(link.id, &frame);
        let mut frame = rig.read(link.id).unwrap();
        if is_last {
            assert_eq!(u16::from(frame[66]), SessionFlags::ENCRYPT_DATA.0);
            frame[66] = 0;
        }
        link.hear(frame);
    }
    assert!(matches!(link.ended, Some(Violation::BadSignature(_))));
}

#[test]
fn a_dialect_that_was_taken_out_of_the_offer_is_found_out() {
    // Before 3.1.1 the server is asked what it saw; in 3.1.1 no key would fit.
    for best in [Dialect::SMB_2_0_2, Dialect::SMB_2_1, Dialect::SMB_3_0] {
        let mut rig = Rig::new(|_| {});
        let mut link = Link::new(&mut rig, config(), Role::First);
        let mut frame = link.outbox.pop_front().unwrap();
        // Every dialect above it becomes the same once more.
        for place in 0..config().dialects.len() {
            let at = 100 + 2 * place;
            let offered = u16::from_le_bytes([frame[at], frame[at + 1]]);
            let left = offered.min(best.0);
            frame[at..at + 2].copy_from_slice(&left.to_le_bytes());
        }
        rig.deliver(link.id, &frame);
        link.run(&mut rig);
        assert_eq!(link.ended, None, "{best:?}");
        let share = proto::client::Step::TreeConnect("files".into());
        link.submit(proto::client::Request::new(None, vec![share]));
        link.run(&mut rig);
        // A server that sees it hangs up.
        let is_found_out = !rig.violations.is_empty()
            || matches!(link.ended, Some(Violation::NegotiateTampered(_)));
        assert!(is_found_out, "{best:?}: {:?}", link.ended);
        assert!(link.answers.is_empty(), "the tree waits for the proof");
    }
}

#[test]
fn a_proof_that_says_otherwise_ends_the_connection() {
    for byte in [0, 4, 20, 22] {
        let mut rig = Rig::new(|_| {});
        let config = Config {
            dialects: vec![Dialect::SMB_3_0, Dialect::SMB_3_0_2],
            protection: Protection::AsAsked,
            ..config()
        };
        let mut link = Link::logged_in(&mut rig, config);
        // As if another NEGOTIATE had been answered than the server means.
        let share = proto::client::Step::TreeConnect("files".into());
        link.submit(proto::client::Request::new(None, vec![share]));
        let frame = link.outbox.pop_front().unwrap();
        rig.deliver(link.id, &frame);
        link.hear(rig.read(link.id).unwrap());
        let frame = link.outbox.pop_front().expect("the question");
        assert_eq!(headers(&frame)[0].command, Command::IOCTL);
        assert!(headers(&frame)[0].flags.contains(Flags::SIGNED));
        rig.deliver(link.id, &frame);
        let mut answer = rig.read(link.id).unwrap();
        let start = {
            let response = ioctl::Response::decode(&answer).unwrap();
            assert_eq!(response.output.len(), 24);
            answer.len() - 24
        };
        answer[start + byte] ^= 1;
        link.hear(answer);
        assert!(matches!(link.ended, Some(Violation::BadSignature(_))));
        assert!(link.answers.is_empty());
    }
}

#[test]
fn a_proof_that_never_comes_is_none() {
    let mut rig = Rig::new(|_| {});
    let config = Config {
        dialects: vec![Dialect::SMB_3_0],
        ..config()
    };
    let mut link = Link::logged_in(&mut rig, config);
    let share = proto::client::Step::TreeConnect("files".into());
    link.submit(proto::client::Request::new(None, vec![share]));
    let frame = link.outbox.pop_front().unwrap();
    rig.deliver(link.id, &frame);
    link.hear(rig.read(link.id).unwrap());
    assert_eq!(link.outbox.len(), 1, "the question");
    link.now.instant = link
        .client
        .next_timeout()
        .expect("it will not wait for ever");
    link.call(proto::client::Connection::timeout);
    assert!(link.answers.is_empty());
    assert!(matches!(link.ended, Some(Violation::NegotiateTampered(_))));
    assert_eq!(link.lost.len(), 1);
}

#[test]
fn capabilities_that_were_added_to_the_answer_are_found_out() {
    let mut rig = Rig::new(|_| {});
    let config = Config {
        dialects: vec![Dialect::SMB_3_0],
        ..config()
    };
    let mut link = Link::new(&mut rig, config, Role::First);
    let frame = link.outbox.pop_front().unwrap();
    rig.deliver(link.id, &frame);
    let mut answer = rig.read(link.id).unwrap();
    let capabilities = 64 + 24;
    answer[capabilities] ^= Capabilities::DFS.0 as u8;
    link.hear(answer);
    link.run(&mut rig);
    assert!(link.session.is_some(), "{:?}", link.ended);
    let share = proto::client::Step::TreeConnect("files".into());
    link.submit(proto::client::Request::new(None, vec![share]));
    link.run(&mut rig);
    assert!(matches!(link.ended, Some(Violation::NegotiateTampered(_))));
    assert_eq!(link.lost.len(), 1);
    assert!(link.answers.is_empty());
}
