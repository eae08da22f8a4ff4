//! A request that is behind another one goes out when that is answered, and not before.

use std::time::Duration;

use proto::client::request::{FileRef, Reply, Step};
use proto::client::{Config, Connection, Failure, Request, RequestId};
use wire::{FileId, Header, TreeId};

use crate::forge::{alone, error, failure, headers};
use crate::harness::Rig;
use crate::link::{Link, config};

fn echo(link: &mut Link, behind: Option<RequestId>) -> RequestId {
    let mut request = Request::new(None, vec![Step::Echo]);
    request.behind = behind;
    link.submit(request)
}

/// What went out.
fn sent(link: &mut Link) -> Vec<Header> {
    let frames: Vec<_> = link.outbox.drain(..).collect();
    frames.iter().flat_map(|frame| headers(frame)).collect()
}

fn refuse(link: &mut Link, asked: &Header) {
    link.hear(error(asked, wire::Status::ACCESS_DENIED));
}

#[test]
fn one_goes_out_when_the_one_before_is_answered() {
    let (mut link, _) = alone();
    let first = echo(&mut link, None);
    let second = echo(&mut link, Some(first));
    let third = echo(&mut link, Some(second));
    let free = echo(&mut link, None);
    let out = sent(&mut link);
    assert_eq!(out.len(), 2, "the first one, and the one that is free");
    refuse(&mut link, &out[1]);
    failure(&mut link, free);
    assert!(sent(&mut link).is_empty());
    refuse(&mut link, &out[0]);
    failure(&mut link, first);
    let out = sent(&mut link);
    assert_eq!(out.len(), 1, "the second one");
    refuse(&mut link, &out[0]);
    failure(&mut link, second);
    let out = sent(&mut link);
    refuse(&mut link, &out[0]);
    failure(&mut link, third);
    assert_eq!(link.client.requests_queued(), 0);
}

#[test]
fn one_behind_what_is_not_here_goes_at_once() {
    let (mut link, _) = alone();
    let first = echo(&mut link, None);
    let out = sent(&mut link);
    refuse(&mut link, &out[0]);
    failure(&mut link, first);
    for behind in [first, RequestId(1 << 40)] {
        echo(&mut link, Some(behind));
        assert_eq!(sent(&mut link).len(), 1);
    }
}

#[test]
fn nothing_waits_behind_what_was_given_up_on() {
    let (mut link, _) = alone();
    let first = echo(&mut link, None);
    let second = echo(&mut link, Some(first));
    let third = echo(&mut link, Some(second));
    sent(&mut link);
    link.call(|client, now, effects| client.cancel(now, second, effects));
    assert_eq!(failure(&mut link, second), Failure::Cancelled);
    assert_eq!(sent(&mut link).len(), 1, "the one behind it goes");
    assert!(!link.answers.contains_key(&third));
    let last = echo(&mut link, Some(first));
    link.now.instant = link.now.instant.after(Duration::from_secs(60));
    link.call(Connection::timeout);
    assert_eq!(failure(&mut link, first), Failure::TimedOut);
    let ids = link.client.requests_queued() + link.answers.len();
    assert_eq!(ids, 1, "the other one's time is over as well");
    assert!(!link.answers.contains_key(&last), "it was sent just now");
}

/// The time of one that is behind another begins when its turn comes.
#[test]
fn who_waits_for_its_turn_is_not_late() {
    let (mut link, _) = alone();
    let mut patient = Request::new(None, vec![Step::Echo]);
    patient.timeout = Some(None);
    let first = link.submit(patient);
    let second = echo(&mut link, Some(first));
    let out = sent(&mut link);
    for _ in 0..3 {
        link.now.instant = link.now.instant.after(Duration::from_secs(59));
        link.call(Connection::timeout);
        for asked in sent(&mut link) {
            refuse(&mut link, &asked);
        }
    }
    assert!(!link.answers.contains_key(&second));
    refuse(&mut link, &out[0]);
    failure(&mut link, first);
    assert_eq!(sent(&mut link).len(), 1, "the second one");
}

/// However few the credits, and whoever overtakes whom: the server sees them in turn.
#[test]
fn turns_are_kept_where_credits_are_few() {
    for credits in [1, 2, 17, 512] {
        let mut rig = Rig::new(|_| {});
        let config = Config {
            credits,
            ..config()
        };
        let (mut link, tree) = Link::in_share(&mut rig, config);
        let file = link.open(&mut rig, tree, "a");
        assert!(link.write(&mut rig, tree, file, 0, &[7; 1000]).is_ok());
        let mut chain: Vec<RequestId> = Vec::new();
        for index in 0..100 {
            let length = if index % 3 == 0 { 500_000 } else { 700 };
            let mut request = read(tree, file, length);
            request.behind = chain.last().copied();
            chain.push(link.submit(request));
            link.submit(read(tree, file, length / 2));
        }
        link.run(&mut rig);
        assert!(rig.violations.is_empty(), "{:?}", rig.violations);
        for id in chain {
            let results = link.answers.remove(&id).expect("an answer");
            assert!(matches!(results[0], Ok(Reply::Read(_))), "{results:?}");
        }
        assert_eq!(link.client.requests_queued(), 0);
    }
}

fn read(tree: TreeId, file: FileId, length: u32) -> Request {
    let step = Step::Read {
        file: FileRef::Id(file),
        offset: 0,
        length,
        minimum: 0,
    };
    Request::new(Some(tree), vec![step])
}
