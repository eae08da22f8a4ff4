//! A further connection is bound to the session of the first, and both serve it.

use proto::client::config::Protection;
use proto::client::replay::resend;
use proto::client::request::{FileRef, Reply, Step};
use proto::client::{Config, Failure, Fate, Request, Role, Violation};
use wire::dialect::Dialect;
use wire::{Flags, Status};

use crate::forge::headers;
use crate::harness::Rig;
use crate::link::{Link, close, config};

const DIALECTS: [Dialect; 3] = [Dialect::SMB_3_0, Dialect::SMB_3_0_2, Dialect::SMB_3_1_1];
const PROTECTIONS: [Protection; 3] = [Protection::AsAsked, Protection::Sign, Protection::Encrypt];

fn of(dialect: Dialect, protection: Protection) -> Config {
    Config {
        dialects: vec![dialect],
        protection,
        ..config()
    }
}

/// A further channel, as far as it comes.
fn channel(rig: &mut Rig, first: &Link, config: Config) -> Link {
    let session = first.session.clone().expect("the login is done");
    Link::new(rig, config, Role::Binding(session))
}

fn bound(rig: &mut Rig, first: &Link, config: Config) -> Link {
    let mut link = channel(rig, first, config);
    link.run(rig);
    assert_eq!(link.ended, None);
    assert!(link.session.is_some(), "it is bound");
    link
}

#[test]
fn a_file_of_one_channel_is_used_on_the_other() {
    for dialect in DIALECTS {
        for protection in PROTECTIONS {
            let mut rig = Rig::new(|_| {});
            let config = of(dialect, protection);
            let (mut first, tree) = Link::in_share(&mut rig, config.clone());
            let mut second = bound(&mut rig, &first, config);
            assert!(std::ptr::eq(
                &raw const **first.session.as_ref().unwrap(),
                &raw const **second.session.as_ref().unwrap()
            ));
            let file = first.open(&mut rig, tree, "a");
            // In turns: where both seal they count nonces together.
            for (index, link) in [&mut second, &mut first].into_iter().enumerate() {
                let data = [index as u8; 700];
                assert!(link.write(&mut rig, tree, file, 0, &data).is_ok());
                let read = link.read(&mut rig, tree, file, 0, 1000);
                assert_eq!(read.unwrap(), data, "{dialect:?}, {protection:?}");
            }
            let (one, other) = (first.ended, second.ended);
            assert_eq!((one, other), (None, None), "{dialect:?}, {protection:?}");
        }
    }
}

#[test]
fn a_binding_of_several_legs_is_one() {
    for dialect in DIALECTS {
        let mut rig = Rig::new(|_| {});
        let config = of(dialect, Protection::Sign);
        let (first, tree) = Link::in_share(&mut rig, config.clone());
        let mut second = channel(&mut rig, &first, config);
        second.tokens = ["more", "more", "user"].into();
        second.run(&mut rig);
        assert_eq!(second.ended, None, "{dialect:?}");
        second.open(&mut rig, tree, "a");
    }
}

#[test]
fn a_server_that_has_not_the_key_gets_no_channel() {
    for dialect in DIALECTS {
        let mut rig = Rig::new(|_| {});
        let config = of(dialect, Protection::AsAsked);
        let (first, _) = Link::in_share(&mut rig, config.clone());
        let mut second = channel(&mut rig, &first, config);
        second.session_key = b"another key, yes".to_vec();
        second.run(&mut rig);
        assert!(matches!(second.ended, Some(Violation::BadSignature(_))));
    }
}

#[test]
fn a_last_answer_without_a_signature_binds_nothing() {
    let mut rig = Rig::new(|_| {});
    let config = of(Dialect::SMB_3_1_1, Protection::AsAsked);
    let (first, _) = Link::in_share(&mut rig, config.clone());
    let mut second = channel(&mut rig, &first, config);
    for is_last in [false, true] {
        let frame = second.outbox.pop_front().unwrap();
        rig.deliver(second.id, &frame);
        let mut frame = rig.read(second.id).unwrap();
        if is_last {
            frame[16] &= !(Flags::SIGNED.0 as u8);
            frame[48..64].fill(0);
        }
        second.hear(frame);
    }
    assert!(matches!(second.ended, Some(Violation::BadSignature(_))));
}

#[test]
fn a_channel_agrees_with_its_session_on_everything() {
    let mut rig = Rig::new(|_| {});
    let (first, _) = Link::in_share(&mut rig, of(Dialect::SMB_3_1_1, Protection::AsAsked));
    let unlike = [
        of(Dialect::SMB_3_0, Protection::AsAsked),
        Config {
            ciphers: vec![crypto::Cipher::Aes256Ccm],
            ..config()
        },
        Config {
            signing_algorithms: vec![crypto::SigningAlgorithm::HmacSha256],
            ..config()
        },
        Config {
            max_io: 65_536,
            ..config()
        },
    ];
    for config in unlike {
        let mut second = channel(&mut rig, &first, config);
        second.run(&mut rig);
        let is_found_out = matches!(second.ended, Some(Violation::NegotiateTampered(_)));
        assert!(is_found_out, "{:?}", second.ended);
    }
}

#[test]
fn who_has_no_key_binds_nothing() {
    let mut rig = Rig::new(|_| {});
    let guest = Config {
        allow_guest: true,
        ..config()
    };
    let mut first = Link::new(&mut rig, guest.clone(), Role::First);
    first.tokens = ["guest"].into();
    first.run(&mut rig);
    let mut second = channel(&mut rig, &first, guest);
    second.run(&mut rig);
    assert!(matches!(second.ended, Some(Violation::LoginUntrusted(_))));
    // Nor do dialects that have no channels.
    let old = of(Dialect::SMB_2_1, Protection::AsAsked);
    let first = Link::logged_in(&mut rig, old.clone());
    let mut second = channel(&mut rig, &first, old);
    second.run(&mut rig);
    assert!(matches!(second.ended, Some(Violation::LoginUntrusted(_))));
}

#[test]
fn what_was_lost_with_a_channel_goes_on_another() {
    for is_done in [false, true] {
        let mut rig = Rig::new(|_| {});
        let config = of(Dialect::SMB_3_1_1, Protection::Sign);
        let (mut first, tree) = Link::in_share(&mut rig, config.clone());
        let mut second = bound(&mut rig, &first, config);
        let file = first.open(&mut rig, tree, "a");
        let id = first.next_id();
        first.sources.insert(id, vec![9; 500]);
        let write = Step::Write {
            file: FileRef::Id(file),
            offset: 0,
            length: 500,
            through: false,
        };
        let request = Request::new(Some(tree), vec![write]);
        first.call(|client, now, effects| client.request(now, id, request, effects));
        let frame = first.outbox.pop_front().unwrap();
        if is_done {
            rig.deliver(first.id, &frame);
        }
        first.call(proto::client::Connection::closed);
        let (_, mut request, fate) = first.lost.remove(0);
        assert_eq!(fate, Fate::Sent);
        let session = second.session.clone().unwrap();
        assert!(resend(&mut request, fate, &session));
        second.sources.insert(id, vec![9; 500]);
        second.call(|client, now, effects| client.request(now, id, request, effects));
        let replay = second.outbox[0].clone();
        assert!(headers(&replay)[0].flags.contains(Flags::REPLAY_OPERATION));
        second.run(&mut rig);
        let written = second.answers.remove(&id).unwrap().remove(0);
        assert!(matches!(written, Ok(Reply::Written(500))), "{written:?}");
        // The old one, had it been on its way for long, is refused now.
        if !is_done {
            rig.deliver(first.id, &frame);
            let late = rig.read(first.id).expect("an answer");
            assert_eq!(headers(&late)[0].status, Status::FILE_NOT_AVAILABLE);
        }
        let read = second.read(&mut rig, tree, file, 0, 1000);
        assert_eq!(read.unwrap(), [9; 500]);
    }
}

/// FILE_CLOSED says of a CLOSE that is sent again that the first one was served; of the only one
/// it says that somebody was wrong.
#[test]
fn a_close_that_was_served_before_its_channel_was_lost_has_closed() {
    let mut rig = Rig::new(|_| {});
    let config = of(Dialect::SMB_3_1_1, Protection::Sign);
    let (mut first, tree) = Link::in_share(&mut rig, config.clone());
    let mut second = bound(&mut rig, &first, config);
    let file = first.open(&mut rig, tree, "a");
    let id = first.submit(Request::new(Some(tree), vec![close(file)]));
    let frame = first.outbox.pop_front().unwrap();
    rig.deliver(first.id, &frame);
    first.call(proto::client::Connection::closed);
    let (_, mut request, fate) = first.lost.remove(0);
    assert!(resend(&mut request, fate, second.session.as_ref().unwrap()));
    second.call(|client, now, effects| client.request(now, id, request, effects));
    second.run(&mut rig);
    let closed = second.answers.remove(&id).unwrap().remove(0);
    assert!(matches!(closed, Ok(Reply::Closed(None))), "{closed:?}");
    let again = second
        .ask(&mut rig, Some(tree), vec![close(file)])
        .remove(0);
    let refused = Failure::Status(Status::FILE_CLOSED);
    assert_eq!(again.unwrap_err(), refused);
}
