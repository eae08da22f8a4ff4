//! What becomes of the requests of a channel that was lost. The table of all kinds is next to
//! `replay::plan`.

use proto::client::replay::{RESENDS_MAX, resend};
use proto::client::request::{FileRef, Step};
use proto::client::{Fate, Request};
use wire::{FileId, Flags};

use crate::forge::{alone, asked, headers};
use crate::link::create;

const FILE: FileRef = FileRef::Id(FileId {
    persistent: 1,
    volatile: 2,
});

fn read() -> Step {
    Step::Read {
        file: FILE,
        offset: 0,
        length: 10,
        minimum: 0,
    }
}

fn set_end() -> Step {
    Step::SetInfo {
        file: FILE,
        info_type: wire::query_info::InfoType::FILE,
        class: 20,
        additional: 0,
        buffer: vec![0; 8],
    }
}

#[test]
fn a_replay_says_so_and_everything_carries_the_new_sequence() {
    let (mut link, tree) = alone();
    let session = link.session.clone().unwrap();
    let (_, before) = asked(&mut link, tree, read());
    assert_eq!(before.status.0, 0);
    session.channel_lost();
    let mut request = Request::new(Some(tree), vec![set_end()]);
    assert!(resend(&mut request, Fate::Sent, &session));
    link.submit(request);
    let replay = headers(&link.outbox.pop_front().unwrap())[0];
    assert!(replay.flags.contains(Flags::REPLAY_OPERATION));
    assert_eq!(replay.status.0, 1);
    let (_, other) = asked(&mut link, tree, read());
    assert!(!other.flags.contains(Flags::REPLAY_OPERATION));
    assert_eq!(other.status.0, 1);
}

#[test]
fn a_connection_that_ends_counts_as_a_channel_that_is_lost() {
    let (mut link, tree) = alone();
    let session = link.session.clone().unwrap();
    asked(&mut link, tree, read());
    link.call(proto::client::Connection::closed);
    assert_eq!(session.channel_sequence(), 1);
    link.call(proto::client::Connection::close);
    assert_eq!(session.channel_sequence(), 1);
}

#[test]
fn a_replay_that_never_left_stays_one() {
    let (link, tree) = alone();
    let session = link.session.unwrap();
    let mut request = Request::new(Some(tree), vec![set_end()]);
    assert!(resend(&mut request, Fate::Sent, &session));
    assert!(resend(&mut request, Fate::Unsent, &session));
    assert!(request.is_replay);
}

#[test]
fn what_is_not_safe_is_given_up_on_unless_it_never_left() {
    let (link, tree) = alone();
    let session = link.session.unwrap();
    let mut request = Request::new(Some(tree), vec![Step::Create(create("a"))]);
    assert!(!resend(&mut request, Fate::Sent, &session));
    assert!(resend(&mut request, Fate::Unsent, &session));
    assert!(!request.is_replay);
}

#[test]
fn a_request_is_sent_again_a_few_times() {
    let (link, tree) = alone();
    let session = link.session.unwrap();
    let mut request = Request::new(Some(tree), vec![read()]);
    for _ in 0..RESENDS_MAX {
        assert!(resend(&mut request, Fate::Sent, &session));
    }
    assert!(!resend(&mut request, Fate::Sent, &session));
}
