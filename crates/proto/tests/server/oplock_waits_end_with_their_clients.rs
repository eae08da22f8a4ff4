//! However a holder or a waiting client ends, every other client is answered once. Rows 21, 23
//! and 29 of the list of bad inputs.

use std::time::Duration;

use proto::id::ConnectionId;
use wire::access::{CreateOptions, OplockLevel};
use wire::header::Target;
use wire::{Command, Status};

use crate::harness::{Ask, Client, Message, Rig, bytes_of, created};

const NONE: OplockLevel = OplockLevel::NONE;
const II: OplockLevel = OplockLevel::II;
const BATCH: OplockLevel = OplockLevel::BATCH;
const BREAK_TIMEOUT: Duration = Duration::from_secs(35);

fn clients(rig: &mut Rig, count: usize) -> Vec<Client> {
    (0..count).map(|_| Client::with_credits(rig)).collect()
}

/// A holder with a pending break, and a client that waits for it.
fn parted() -> (Rig, Client, wire::FileId, Client, wire::MessageId) {
    let mut rig = Rig::new(|_| {});
    let mut one = clients(&mut rig, 1).remove(0);
    let mut other = clients(&mut rig, 1).remove(0);
    let (file, level) = one.open(&mut rig, Ask::level(BATCH));
    assert_eq!(level, BATCH);
    let waiting = other.open_and_wait(&mut rig, Ask::level(NONE));
    one.hear_break(&mut rig);
    (rig, one, file, other, waiting)
}

fn empty(client: &mut Client, command: Command) -> Message {
    let bytes = bytes_of(|bytes| wire::echo::Request.encode(bytes));
    client.message(command, bytes)
}

/// All clients disconnect: nothing is left on the server or on the disk.
fn end(rig: &mut Rig, ids: &[ConnectionId]) {
    for id in ids {
        rig.cut(*id);
    }
    for id in ids {
        assert!(rig.connection(*id).is_idle());
        assert_eq!(rig.connection(*id).next_timeout(), None);
    }
    assert!(rig.disk.opens.is_empty());
}

#[test]
fn a_silent_holder_loses_its_oplock() {
    let (mut rig, mut one, file, mut other, waiting) = parted();
    rig.pass(Duration::from_secs(1));
    let interim = other.hear_answer(&mut rig);
    assert_eq!(interim.status(), Status::PENDING);
    rig.pass(BREAK_TIMEOUT - Duration::from_millis(1001));
    assert!(other.hear(&mut rig).is_none());
    rig.pass(Duration::from_millis(1));
    let answer = other.hear_answer(&mut rig);
    assert_eq!(answer.header.message_id, waiting);
    let (theirs, _) = created(&answer);
    let status = one.acknowledge(&mut rig, file, II.0);
    assert_eq!(status, Status::INVALID_OPLOCK_PROTOCOL);
    let write = other.write_message(theirs, b"new");
    other.ask(&mut rig, write);
    assert!(one.hear(&mut rig).is_none());
    end(&mut rig, &[one.id, other.id]);
}

#[test]
fn a_break_keeps_its_time_limit_after_its_waiter_ends() {
    let (mut rig, one, _, other, _) = parted();
    rig.cut(other.id);
    rig.pass(BREAK_TIMEOUT);
    let mut third = clients(&mut rig, 1).remove(0);
    // No request waits any more, and the break gets no new time limit.
    assert_eq!(third.open(&mut rig, Ask::level(BATCH)).1, II);
    end(&mut rig, &[one.id, other.id, third.id]);
}

#[test]
fn the_end_of_a_holder_ends_the_wait() {
    for command in [None, Some(Command::LOGOFF), Some(Command::TREE_DISCONNECT)] {
        let (mut rig, mut one, _, mut other, _) = parted();
        match command {
            Some(command) => {
                let message = empty(&mut one, command);
                assert_eq!(one.ask(&mut rig, message).status(), Status::SUCCESS);
            }
            None => rig.cut(one.id),
        }
        created(&other.hear_answer(&mut rig));
        assert!(one.hear(&mut rig).is_none());
        end(&mut rig, &[one.id, other.id]);
    }
}

#[test]
fn the_end_of_a_waiter_leaves_the_break_pending() {
    for command in [None, Some(Command::LOGOFF), Some(Command::TREE_DISCONNECT)] {
        let (mut rig, mut one, file, mut other, waiting) = parted();
        match command {
            Some(command) => {
                let message = empty(&mut other, command);
                other.say(&mut rig, vec![message]);
                let gone = other.hear_answer(&mut rig);
                assert_eq!(gone.header.message_id, waiting);
                assert_eq!(gone.status(), Status::CANCELLED);
                assert_eq!(other.hear_answer(&mut rig).status(), Status::SUCCESS);
            }
            None => rig.cut(other.id),
        }
        assert_eq!(one.acknowledge(&mut rig, file, II.0), Status::SUCCESS);
        assert!(other.hear(&mut rig).is_none());
        end(&mut rig, &[one.id, other.id]);
    }
}

#[test]
fn a_waiting_create_can_be_canceled() {
    for is_async in [false, true] {
        let (mut rig, mut one, file, mut other, waiting) = parted();
        let mut async_id = None;
        if is_async {
            rig.pass(Duration::from_millis(500));
            match other.hear_answer(&mut rig).header.target {
                Target::Async(id) => async_id = Some(id),
                Target::Sync { .. } => panic!("an interim answer has an id of its own"),
            }
        }
        other.cancel(&mut rig, waiting, async_id);
        let answer = other.hear_answer(&mut rig);
        assert_eq!(answer.header.message_id, waiting);
        assert_eq!(answer.status(), Status::CANCELLED);
        // The driver receives no cancel: it runs no operation for this request.
        assert!(rig.cancelled.is_empty());
        assert_eq!(one.acknowledge(&mut rig, file, II.0), Status::SUCCESS);
        rig.pass(BREAK_TIMEOUT);
        assert!(other.hear(&mut rig).is_none());
        end(&mut rig, &[one.id, other.id]);
    }
}

#[test]
fn a_waiting_create_sees_the_final_state() {
    let mut rig = Rig::new(|_| {});
    let mut both = clients(&mut rig, 2);
    let (mut other, mut one) = (both.remove(1), both.remove(0));
    let fleeting = Ask {
        options: CreateOptions::DELETE_ON_CLOSE,
        ..Ask::level(BATCH)
    };
    let (file, _) = one.open(&mut rig, fleeting);
    let there = Ask {
        disposition: wire::access::CreateDisposition::OPEN,
        ..Ask::level(NONE)
    };
    other.open_and_wait(&mut rig, there);
    one.hear_break(&mut rig);
    assert_eq!(one.close(&mut rig, file), Status::SUCCESS);
    let status = other.hear_answer(&mut rig).status();
    assert_eq!(status, Status::OBJECT_NAME_NOT_FOUND);
    assert!(!rig.disk.has("f"));
    end(&mut rig, &[one.id, other.id]);
}

#[test]
fn many_waiters_continue_together() {
    let mut rig = Rig::new(|_| {});
    let mut all = clients(&mut rig, 20);
    let ids: Vec<ConnectionId> = all.iter().map(|client| client.id).collect();
    let (file, _) = all[0].open(&mut rig, Ask::level(BATCH));
    for client in &mut all[1..] {
        for _ in 0..3 {
            client.open_and_wait(&mut rig, Ask::level(BATCH));
        }
    }
    all[0].hear_break(&mut rig);
    assert_eq!(all[0].acknowledge(&mut rig, file, II.0), Status::SUCCESS);
    for client in &mut all[1..] {
        for _ in 0..3 {
            assert_eq!(created(&client.hear_answer(&mut rig)).1, II);
        }
        assert!(client.hear(&mut rig).is_none());
    }
    end(&mut rig, &ids);
}

#[test]
fn an_unshared_file_passes_from_one_waiter_to_the_next() {
    let mut rig = Rig::new(|_| {});
    let mut all = clients(&mut rig, 8);
    let ids: Vec<ConnectionId> = all.iter().map(|client| client.id).collect();
    let (mut file, _) = all[0].open(&mut rig, Ask::alone(BATCH));
    for client in &mut all[1..] {
        client.open_and_wait(&mut rig, Ask::alone(BATCH));
    }
    let mut holder = 0;
    for _ in 1..ids.len() {
        assert_eq!(all[holder].hear_break(&mut rig).file_id, file);
        let close = all[holder].close_message(file);
        all[holder].say(&mut rig, vec![close]);
        while all[holder].hear(&mut rig).is_some() {}
        let mut next = None;
        for (index, client) in all.iter_mut().enumerate() {
            if let Some(answers) = client.hear(&mut rig) {
                assert!(next.is_none(), "one at a time");
                next = Some((index, created(&answers[0]).0));
            }
            if next.is_some_and(|(found, _)| found == index) {
                // The new holder gets the next break while requests wait.
                continue;
            }
        }
        (holder, file) = next.expect("the next one");
    }
    assert_eq!(all[holder].close(&mut rig, file), Status::SUCCESS);
    end(&mut rig, &ids);
}
