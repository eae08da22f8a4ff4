//! What the channels of a session share: who takes the next request, and what becomes of those of
//! a channel that is lost.

use proto::client::channels::{CHANNELS_MAX, Dispatch, RESENDS_MAX, Verdict, cost};
use proto::client::request::{FileRef, Step};
use proto::client::{Fate, Request};
use wire::FileId;

use crate::harness::Rig;
use crate::link::{Link, config, create};

const FILE: FileRef = FileRef::Id(FileId {
    persistent: 1,
    volatile: 2,
});

fn dispatch() -> Dispatch {
    let mut rig = Rig::new(|_| {});
    let link = Link::logged_in(&mut rig, config());
    Dispatch::new(link.session.unwrap())
}

fn read(length: u32) -> Request {
    let step = Step::Read {
        file: FILE,
        offset: 0,
        length,
        minimum: 0,
    };
    Request::new(None, vec![step])
}

fn write(offset: u64) -> Request {
    let step = Step::Write {
        file: FILE,
        offset,
        length: 10,
        through: false,
    };
    Request::new(None, vec![step])
}

#[test]
fn the_one_with_the_fewest_bytes() {
    let dispatch = dispatch();
    assert!(dispatch.is_empty());
    assert_eq!(dispatch.pick(&read(1)), None);
    let (first, second) = (dispatch.join().unwrap(), dispatch.join().unwrap());
    assert_eq!(dispatch.len(), 2);
    assert_eq!(dispatch.pick(&read(1 << 20)), Some(first));
    for _ in 0..10 {
        assert_eq!(dispatch.pick(&read(1000)), Some(second));
    }
    dispatch.done(first, cost(&read(1 << 20)));
    assert_eq!(dispatch.pick(&read(1)), Some(first));
}

#[test]
fn small_requests_are_spread_as_well() {
    let dispatch = dispatch();
    let channels = [0; 3].map(|_| dispatch.join().unwrap());
    let mut counts = [0; 3];
    for _ in 0..30 {
        let picked = dispatch.pick(&read(0)).unwrap();
        counts[channels.iter().position(|c| *c == picked).unwrap()] += 1;
    }
    assert_eq!(counts, [10, 10, 10]);
}

#[test]
fn a_lost_channel_hands_on_what_may_be_sent_again() {
    let dispatch = dispatch();
    let (first, second) = (dispatch.join().unwrap(), dispatch.join().unwrap());
    assert_eq!(dispatch.session().channel_sequence(), 0);
    dispatch.close(first);
    dispatch.close(first);
    assert_eq!(dispatch.session().channel_sequence(), 1, "counted once");
    match dispatch.lost(read(10), Fate::Sent) {
        Verdict::Send(channel, request) => {
            assert_eq!(channel, second);
            assert!(!request.is_replay);
        }
        other => panic!("{other:?}"),
    }
    match dispatch.lost(write(5), Fate::Sent) {
        Verdict::Send(channel, request) => {
            assert_eq!(channel, second);
            assert!(request.is_replay);
        }
        other => panic!("{other:?}"),
    }
    let append = dispatch.lost(write(u64::MAX), Fate::Sent);
    assert!(matches!(append, Verdict::GiveUp(_)));
    let unsent = dispatch.lost(write(u64::MAX), Fate::Unsent);
    assert!(matches!(unsent, Verdict::Send(..)));
    let open = Request::new(None, vec![Step::Create(create("a"))]);
    assert!(matches!(
        dispatch.lost(open, Fate::Sent),
        Verdict::GiveUp(_)
    ));
}

#[test]
fn a_replay_that_never_left_stays_one() {
    let dispatch = dispatch();
    dispatch.join().unwrap();
    let mut request = write(5);
    request.is_replay = true;
    match dispatch.lost(request, Fate::Unsent) {
        Verdict::Send(_, request) => assert!(request.is_replay),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_request_is_sent_again_a_few_times_and_not_without_channels() {
    let dispatch = dispatch();
    let channel = dispatch.join().unwrap();
    let mut request = read(10);
    for _ in 0..RESENDS_MAX {
        request = match dispatch.lost(request, Fate::Sent) {
            Verdict::Send(_, request) => request,
            other => panic!("{other:?}"),
        };
    }
    let last = dispatch.lost(request, Fate::Sent);
    assert!(matches!(last, Verdict::GiveUp(_)));
    dispatch.close(channel);
    assert!(matches!(
        dispatch.lost(read(10), Fate::Sent),
        Verdict::Over(_)
    ));
}

#[test]
fn places_are_few_and_taken_again() {
    let dispatch = dispatch();
    let all: Vec<_> = (0..CHANNELS_MAX)
        .map(|_| dispatch.join().unwrap())
        .collect();
    assert_eq!(dispatch.join(), None);
    dispatch.close(all[3]);
    assert_eq!(dispatch.join(), None, "it is not dealt with yet");
    dispatch.done(all[3], 1 << 40);
    dispatch.leave(all[3]);
    assert_eq!(dispatch.join(), Some(all[3]));
}
