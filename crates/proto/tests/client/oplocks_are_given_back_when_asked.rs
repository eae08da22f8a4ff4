//! What the server takes away is told to the driver and acknowledged, by the core or the driver.

use proto::client::Effect;
use proto::client::request::{Create, LeaseRequest, Reply, Step};
use wire::access::OplockLevel;
use wire::create_context::LeaseState;
use wire::oplock_break::{
    LeaseBreakFlags, LeaseBreakNotification, Notification, OplockBreak, Request,
};
use wire::{Command, FileId, Flags, Guid, Header, MessageId, SessionId, Status, TreeId};

use crate::forge::{alone, headers, message};
use crate::harness::Rig;
use crate::link::{Link, close, config, create};

fn batch(name: &str) -> Create {
    Create {
        oplock: OplockLevel::BATCH,
        ..create(name)
    }
}

fn open(link: &mut Link, rig: &mut Rig, tree: TreeId, create: Create) -> (FileId, OplockLevel) {
    match link.ask_one(rig, Some(tree), Step::Create(create)) {
        Ok(Reply::Created(created)) => (created.file_id, created.oplock),
        other => panic!("{other:?}"),
    }
}

/// What the server says unasked.
fn unasked(notification: Notification) -> Vec<u8> {
    let header = Header {
        credit_charge: 0,
        status: Status::SUCCESS,
        command: Command::OPLOCK_BREAK,
        credits: 0,
        flags: Flags::SERVER_TO_REDIR,
        next_command: 0,
        message_id: MessageId::UNSOLICITED,
        target: wire::header::Target::Sync {
            process_id: 0,
            tree_id: TreeId(0),
        },
        session_id: SessionId(0),
        signature: [0; 16],
    };
    message(&header, |bytes| notification.encode(bytes))
}

#[test]
fn a_break_is_acknowledged_and_the_other_client_gets_in() {
    let mut rig = Rig::new(|_| {});
    let (mut first, tree) = Link::in_share(&mut rig, config());
    let (file, level) = open(&mut first, &mut rig, tree, batch("a"));
    assert_eq!(level, OplockLevel::BATCH);
    let (mut second, other_tree) = Link::in_share(&mut rig, config());
    let step = Step::Create(create("a"));
    let request = proto::client::Request::new(Some(other_tree), vec![step]);
    let id = second.submit(request);
    second.run(&mut rig);
    assert!(!second.answers.contains_key(&id), "it waits");
    first.run(&mut rig);
    let [Effect::OplockBreak { file_id, level }] = first.breaks[..] else {
        panic!("{:?}", first.breaks);
    };
    assert_eq!((file_id, level), (file, OplockLevel::II));
    second.run(&mut rig);
    assert!(matches!(second.answers[&id][0], Ok(Reply::Created(_))));
    assert_eq!((first.ended, second.ended), (None, None));
}

#[test]
fn the_driver_acknowledges_where_it_said_so() {
    let mut rig = Rig::new(|_| {});
    let (mut first, tree) = Link::in_share(&mut rig, config());
    let careful = Create {
        driver_acknowledges: true,
        ..batch("a")
    };
    let (file, _) = open(&mut first, &mut rig, tree, careful);
    let (mut second, other_tree) = Link::in_share(&mut rig, config());
    let step = Step::Create(create("a"));
    let request = proto::client::Request::new(Some(other_tree), vec![step]);
    let id = second.submit(request);
    second.run(&mut rig);
    first.run(&mut rig);
    assert_eq!(first.breaks.len(), 1);
    second.run(&mut rig);
    assert!(!second.answers.contains_key(&id), "the driver thinks");
    let acknowledge = Step::AcknowledgeOplock {
        file,
        level: OplockLevel::II,
    };
    let done = first.ask_one(&mut rig, Some(tree), acknowledge);
    assert!(matches!(done, Ok(Reply::Done)), "{done:?}");
    second.run(&mut rig);
    assert!(second.answers.contains_key(&id));
}

#[test]
fn what_goes_without_a_word_is_not_acknowledged() {
    let mut rig = Rig::new(|_| {});
    let (mut link, tree) = Link::in_share(&mut rig, config());
    let (file_id, _) = open(&mut link, &mut rig, tree, batch("a"));
    let told = |oplock_level| {
        unasked(Notification::Oplock(OplockBreak {
            oplock_level,
            file_id,
        }))
    };
    link.hear(told(OplockLevel::II));
    assert_eq!(link.outbox.drain(..).count(), 1);
    link.hear(told(OplockLevel::NONE));
    assert!(link.outbox.is_empty());
    assert_eq!(link.breaks.len(), 2);
}

#[test]
fn a_break_of_what_is_closed_is_told_and_no_more() {
    let mut rig = Rig::new(|_| {});
    let (mut link, tree) = Link::in_share(&mut rig, config());
    let (file_id, _) = open(&mut link, &mut rig, tree, batch("a"));
    assert!(link.ask_one(&mut rig, Some(tree), close(file_id)).is_ok());
    let oplock_level = OplockLevel::II;
    for _ in 0..100 {
        link.hear(unasked(Notification::Oplock(OplockBreak {
            oplock_level,
            file_id,
        })));
    }
    assert!(link.outbox.is_empty());
    assert_eq!(link.ended, None);
}

#[test]
fn a_break_that_comes_before_the_answer_to_its_create_is_acknowledged() {
    let mut rig = Rig::new(|_| {});
    let (mut link, tree) = Link::in_share(&mut rig, config());
    let request = proto::client::Request::new(Some(tree), vec![Step::Create(batch("a"))]);
    link.submit(request);
    let frame = link.outbox.pop_front().unwrap();
    rig.deliver(link.id, &frame);
    let answer = rig.read(link.id).unwrap();
    let file_id = wire::create::Response::decode(&answer).unwrap().file_id;
    link.hear(unasked(Notification::Oplock(OplockBreak {
        oplock_level: OplockLevel::II,
        file_id,
    })));
    assert!(link.outbox.is_empty());
    link.hear(answer);
    let frame = link.outbox.pop_front().expect("the acknowledgement");
    let Ok(Request::Oplock(acknowledged)) = Request::decode(&frame) else {
        panic!("{frame:?}");
    };
    assert_eq!(acknowledged.file_id, file_id);
    assert_eq!(headers(&frame)[0].tree_id(), Some(tree));
}

#[test]
fn a_lease_is_acknowledged_where_that_is_asked_for() {
    for is_asked in [true, false] {
        let (mut link, tree) = alone();
        let key = Guid([3; 16]);
        let leased = Create {
            oplock: OplockLevel::LEASE,
            lease: Some(LeaseRequest::new(key, 7)),
            ..create("a")
        };
        let steps = vec![Step::Create(leased)];
        let (_, asked) = crate::forge::asked_all(&mut link, tree, steps);
        let lease = wire::create_context::Lease {
            lease_key: key,
            lease_state: LeaseState(7),
            lease_flags: wire::create_context::LeaseFlags::NONE,
            v2: None,
        };
        let data = lease.encode();
        let contexts = vec![wire::create_context::RawContext {
            name: wire::create_context::name::LEASE,
            data: &data,
        }];
        let response = wire::create::Response {
            oplock_level: OplockLevel::LEASE,
            ..crate::forge::created(contexts)
        };
        let answer = crate::forge::header(&asked[0], Status::SUCCESS);
        link.hear(message(&answer, |bytes| response.encode(bytes)));
        let flags = match is_asked {
            true => LeaseBreakFlags::ACK_REQUIRED,
            false => LeaseBreakFlags::NONE,
        };
        link.hear(unasked(Notification::Lease(LeaseBreakNotification {
            new_epoch: 1,
            flags,
            lease_key: key,
            current_lease_state: LeaseState(7),
            new_lease_state: LeaseState(1),
        })));
        assert!(matches!(
            link.breaks[..],
            [Effect::LeaseBreak(seen)] if (seen.key, seen.state) == (key, 1)
        ));
        assert_eq!(link.outbox.len(), usize::from(is_asked));
        if let Some(frame) = link.outbox.pop_front() {
            let Ok(Request::Lease(acknowledged)) = Request::decode(&frame) else {
                panic!("{frame:?}");
            };
            assert_eq!(acknowledged.lease_key, key);
            assert_eq!(acknowledged.lease_state, LeaseState(1));
        }
    }
}
