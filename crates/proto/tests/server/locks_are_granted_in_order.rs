//! The server answers a waiting LOCK when it grants the lock, in order, or when it never can. Any
//! end of the holder frees the range. \[MS-SMB2\] 3.3.5.14, \[MS-FSA\] 2.1.5.8

use std::time::Duration;

use wire::header::Target;
use wire::{Command, FileId, Flags, Status, TreeId};

use crate::harness::{
    Answer, Client, EXCLUSIVE, EXCLUSIVE_NOW, Rig, SHARED, SHARED_NOW, UNLOCK, bytes_of,
};

const ALL: (u64, u64) = (0, 100);
/// Longer than the time after which a request gets an interim response.
const LONG: Duration = Duration::from_secs(2);

/// A client with an exclusive lock of `f`, and other clients with `f` open.
fn with_holder(others: usize) -> (Rig, (Client, FileId), Vec<(Client, FileId)>) {
    let mut rig = Rig::new(|_| {});
    let mut holder = enter(&mut rig);
    let others = (0..others).map(|_| enter(&mut rig)).collect();
    let status = holder.0.lock(&mut rig, holder.1, ALL, EXCLUSIVE_NOW);
    assert_eq!(status, Status::SUCCESS);
    (rig, holder, others)
}

fn enter(rig: &mut Rig) -> (Client, FileId) {
    let mut client = Client::with_credits(rig);
    let file = client.create(rig, "f");
    (client, file)
}

#[test]
fn a_waiting_lock_keeps_its_async_id() {
    let (mut rig, (mut holder, file), mut others) = with_holder(1);
    let (one, its) = &mut others[0];
    let id = one.lock_and_wait(&mut rig, *its, (0, 10), EXCLUSIVE);
    rig.pass(LONG);
    let interim = one.hear_answer(&mut rig);
    assert_eq!(interim.status(), Status::PENDING);
    assert!(interim.header.flags.contains(Flags::ASYNC_COMMAND));
    assert_eq!(holder.lock(&mut rig, file, ALL, UNLOCK), Status::SUCCESS);
    let answer = one.hear_answer(&mut rig);
    assert_eq!(answer.status(), Status::SUCCESS);
    assert_eq!(answer.header.message_id, id);
    assert_eq!(answer.header.target, interim.header.target);
    let refused = Status::LOCK_NOT_GRANTED;
    assert_eq!(holder.lock(&mut rig, file, ALL, SHARED_NOW), refused);
}

#[test]
fn the_oldest_is_granted_first_and_shared_locks_together() {
    let (mut rig, (mut holder, file), mut others) = with_holder(4);
    let mut ids = Vec::new();
    for ((client, its), flags) in others
        .iter_mut()
        .zip([SHARED, EXCLUSIVE, SHARED, EXCLUSIVE])
    {
        ids.push(client.lock_and_wait(&mut rig, *its, (0, 10), flags));
    }
    assert_eq!(holder.lock(&mut rig, file, ALL, UNLOCK), Status::SUCCESS);
    for (index, is_granted) in [(0, true), (1, false), (2, true), (3, false)] {
        let client = &mut others[index].0;
        if is_granted {
            assert_eq!(client.hear_lock(&mut rig, ids[index]), Status::SUCCESS);
        } else {
            assert!(client.hear(&mut rig).is_none());
        }
    }
    for (index, next) in [(0, None), (2, Some(1)), (1, Some(3))] {
        let (client, its) = &mut others[index];
        assert_eq!(
            client.lock(&mut rig, *its, (0, 10), UNLOCK),
            Status::SUCCESS
        );
        if let Some(next) = next {
            let status = others[next].0.hear_lock(&mut rig, ids[next]);
            assert_eq!(status, Status::SUCCESS);
        }
    }
}

/// smbtorture smb2.lock.cancel
#[test]
fn a_canceled_lock_is_not_granted_later() {
    let (mut rig, (mut holder, file), mut others) = with_holder(1);
    let (client, its) = &mut others[0];
    for is_async in [false, true] {
        let id = client.lock_and_wait(&mut rig, *its, (0, 10), EXCLUSIVE);
        let mut async_id = None;
        if is_async {
            rig.pass(LONG);
            match client.hear_answer(&mut rig).header.target {
                Target::Async(id) => async_id = Some(id),
                Target::Sync { .. } => panic!("an interim answer has an AsyncId"),
            }
        }
        // A waiting lock is not held and cannot be unlocked.
        let unlock = client.lock(&mut rig, *its, (0, 10), UNLOCK);
        assert_eq!(unlock, Status::RANGE_NOT_LOCKED);
        client.cancel(&mut rig, id, async_id);
        assert_eq!(client.hear_lock(&mut rig, id), Status::CANCELLED);
    }
    assert_eq!(holder.lock(&mut rig, file, ALL, UNLOCK), Status::SUCCESS);
    assert!(client.hear(&mut rig).is_none());
    let again = holder.lock(&mut rig, file, ALL, EXCLUSIVE_NOW);
    assert_eq!(again, Status::SUCCESS);
}

/// smbtorture smb2.lock.cancel, cancel-tdis and cancel-logoff
#[test]
fn the_end_of_the_open_ends_the_wait() {
    for command in [Command::CLOSE, Command::TREE_DISCONNECT, Command::LOGOFF] {
        let (mut rig, _holder, mut others) = with_holder(1);
        let (client, its) = &mut others[0];
        let id = client.lock_and_wait(&mut rig, *its, (0, 10), EXCLUSIVE);
        let end = match command {
            Command::CLOSE => client.close_message(*its),
            command => {
                let bytes = bytes_of(|out| wire::echo::Request.encode(out));
                client.message(command, bytes)
            }
        };
        client.say(&mut rig, vec![end]);
        let mut reported = [client.hear_answer(&mut rig), client.hear_answer(&mut rig)]
            .map(|answer| (answer.header.command, answer.status()));
        reported.sort_by_key(|(command, _)| *command == Command::LOCK);
        let ended = (Command::LOCK, Status::RANGE_NOT_LOCKED);
        assert_eq!(reported, [(command, Status::SUCCESS), ended]);
        rig.cut(client.id);
        assert!(rig.connection(client.id).is_idle(), "{id:?}");
    }
}

#[test]
fn any_end_of_the_holder_releases_its_lock() {
    let nothing = bytes_of(|out| wire::echo::Request.encode(out));
    for end in [
        Some(Command::CLOSE),
        Some(Command::TREE_DISCONNECT),
        Some(Command::LOGOFF),
        None,
    ] {
        let (mut rig, (mut holder, file), mut others) = with_holder(1);
        let (client, its) = &mut others[0];
        let id = client.lock_and_wait(&mut rig, *its, (0, 10), EXCLUSIVE);
        match end {
            Some(Command::CLOSE) => assert_eq!(holder.close(&mut rig, file), Status::SUCCESS),
            Some(command) => {
                let answer = holder.ask_body(&mut rig, command, nothing.clone());
                assert_eq!(answer.status(), Status::SUCCESS);
            }
            None => rig.cut(holder.id),
        }
        assert_eq!(client.hear_lock(&mut rig, id), Status::SUCCESS, "{end:?}");
    }
}

#[test]
fn a_waiting_client_that_disconnects_is_skipped() {
    let (mut rig, (mut holder, file), mut others) = with_holder(2);
    let mut ids = Vec::new();
    for (client, its) in &mut others {
        ids.push(client.lock_and_wait(&mut rig, *its, (0, 10), EXCLUSIVE));
    }
    rig.cut(others[0].0.id);
    assert!(rig.connection(others[0].0.id).is_idle());
    assert_eq!(holder.lock(&mut rig, file, ALL, UNLOCK), Status::SUCCESS);
    assert_eq!(others[1].0.hear_lock(&mut rig, ids[1]), Status::SUCCESS);
}

#[test]
fn an_open_waits_for_its_own_lock() {
    let (mut rig, (mut holder, file), _) = with_holder(0);
    let id = holder.lock_and_wait(&mut rig, file, (5, 1), EXCLUSIVE);
    let unlock = holder.lock_message(file, ALL, UNLOCK);
    holder.say(&mut rig, vec![unlock]);
    assert_eq!(holder.hear_answer(&mut rig).status(), Status::SUCCESS);
    assert_eq!(holder.hear_lock(&mut rig, id), Status::SUCCESS);
}

#[test]
fn a_late_cancel_finds_the_lock_granted() {
    let (mut rig, (mut holder, file), _) = with_holder(0);
    let other = holder.create(&mut rig, "f");
    let id = holder.lock_and_wait(&mut rig, other, (5, 1), EXCLUSIVE);
    let unlock = holder.lock_message(file, ALL, UNLOCK);
    // Before the notice of the grant arrives.
    let bytes = bytes_of(|out| wire::cancel::Request.encode(out));
    let mut cancel = holder.message(Command::CANCEL, bytes);
    cancel.header.message_id = id;
    holder.say(&mut rig, vec![unlock, cancel]);
    let mut answers = [holder.hear_answer(&mut rig), holder.hear_answer(&mut rig)];
    answers.sort_by_key(|answer| answer.header.message_id);
    assert_eq!(answers[0].header.message_id, id);
    assert!(answers.iter().all(|it| it.status() == Status::SUCCESS));
    assert!(holder.hear(&mut rig).is_none());
    let status = holder.lock(&mut rig, other, (5, 1), UNLOCK);
    assert_eq!(status, Status::SUCCESS);
}

#[test]
fn only_the_last_member_of_a_compound_waits() {
    let (mut rig, _holder, mut others) = with_holder(1);
    let (client, its) = &mut others[0];
    let waits = client.lock_message(*its, (0, 10), EXCLUSIVE);
    let mut close = client.close_message(FileId::RELATED);
    close.header.flags |= Flags::RELATED_OPERATIONS;
    let answers = client.ask_all(&mut rig, vec![waits, close]);
    let statuses: Vec<Status> = answers.iter().map(Answer::status).collect();
    assert_eq!(statuses, [Status::INTERNAL_ERROR, Status::SUCCESS]);
    // A lock that does not wait works in any member.
    let file = client.create(&mut rig, "other");
    let lock = client.lock_message(file, (0, 10), EXCLUSIVE);
    let read = client.read_message(file, 0);
    let answers = client.ask_all(&mut rig, vec![lock, read]);
    assert_eq!(answers[0].status(), Status::SUCCESS);
}

#[test]
fn a_lock_needs_the_tree_of_its_open() {
    let (mut rig, (mut holder, file), _) = with_holder(0);
    let mut elsewhere = holder.lock_message(file, ALL, UNLOCK);
    elsewhere.header.target = Target::Sync {
        process_id: 0,
        tree_id: TreeId(99),
    };
    let answer = holder.ask(&mut rig, elsewhere);
    assert_eq!(answer.status(), Status::NETWORK_NAME_DELETED);
}
