//! A client that caches a file loses its oplock before another open sees the file. \[MS-SMB2\]
//! 3.3.5.9, 3.3.4.6, 3.3.5.22.1

use wire::access::{CreateDisposition, CreateOptions, OplockLevel};
use wire::{Command, Status};

use crate::harness::{Ask, Break, Client, Options, Rig, created, share};

const NONE: OplockLevel = OplockLevel::NONE;
const II: OplockLevel = OplockLevel::II;
const EXCLUSIVE: OplockLevel = OplockLevel::EXCLUSIVE;
const BATCH: OplockLevel = OplockLevel::BATCH;

/// A server and two of its clients.
fn two() -> (Rig, Client, Client) {
    let mut rig = Rig::new(|_| {});
    let one = Client::with_credits(&mut rig);
    let other = Client::with_credits(&mut rig);
    (rig, one, other)
}

#[test]
fn a_single_open_gets_the_requested_level() {
    for level in [NONE, II, EXCLUSIVE, BATCH] {
        let (mut rig, mut one, _) = two();
        assert_eq!(one.open(&mut rig, Ask::level(level)).1, level);
    }
    // Leases are not granted, and unknown levels count as no oplock.
    for level in [OplockLevel::LEASE, OplockLevel(5)] {
        let (mut rig, mut one, _) = two();
        assert_eq!(one.open(&mut rig, Ask::level(level)).1, NONE);
    }
}

#[test]
fn an_open_beside_others_gets_at_most_level_two() {
    for first in [NONE, II] {
        for (asked, granted) in [(NONE, NONE), (II, II), (EXCLUSIVE, II), (BATCH, II)] {
            let (mut rig, mut one, mut other) = two();
            one.open(&mut rig, Ask::level(first));
            assert_eq!(other.open(&mut rig, Ask::level(asked)).1, granted);
            assert!(one.hear(&mut rig).is_none());
        }
    }
}

#[test]
fn an_attribute_open_breaks_nothing() {
    let (mut rig, mut one, mut other) = two();
    let (file, _) = one.open(&mut rig, Ask::level(NONE));
    assert_eq!(one.close(&mut rig, file), Status::SUCCESS);
    // It gets no oplock on an open file, conflicts with no open, and breaks nothing.
    assert_eq!(other.open(&mut rig, Ask::stat(BATCH)).1, NONE);
    assert_eq!(one.open(&mut rig, Ask::level(BATCH)).1, BATCH);
    other.open(&mut rig, Ask::stat(NONE));
    assert!(one.hear(&mut rig).is_none());
    // A truncating open does break.
    let emptying = Ask {
        disposition: CreateDisposition::OVERWRITE,
        ..Ask::stat(NONE)
    };
    other.open_and_wait(&mut rig, emptying);
    assert_eq!(one.hear_break(&mut rig).level, NONE);
}

#[test]
fn directories_and_shares_without_oplocks_have_none() {
    let (mut rig, mut one, _) = two();
    let directory = Ask {
        options: CreateOptions::DIRECTORY_FILE,
        ..Ask::level(BATCH)
    };
    assert_eq!(one.open(&mut rig, directory).1, NONE);
    let mut rig = Rig::new(|config| {
        let mut plain = share("files");
        plain.oplocks = false;
        config.shares = vec![plain.into()];
    });
    let mut one = Client::in_share(&mut rig, Options::default(), "alice", "files");
    assert_eq!(one.open(&mut rig, Ask::level(BATCH)).1, NONE);
}

#[test]
fn a_create_waits_for_the_oplock_holder() {
    for level in [EXCLUSIVE, BATCH] {
        let (mut rig, mut one, mut other) = two();
        let (file_id, _) = one.open(&mut rig, Ask::level(level));
        let waiting = other.open_and_wait(&mut rig, Ask::level(BATCH));
        let level = II;
        assert_eq!(one.hear_break(&mut rig), Break { file_id, level });
        // The holder may write back during the break; that does not disturb it.
        let write = one.write_message(file_id, b"cached");
        assert_eq!(one.ask(&mut rig, write).status(), Status::SUCCESS);
        assert!(other.hear(&mut rig).is_none());
        assert_eq!(one.acknowledge(&mut rig, file_id, II.0), Status::SUCCESS);
        let answer = other.hear_answer(&mut rig);
        assert_eq!(answer.header.message_id, waiting);
        let (theirs, level) = created(&answer);
        assert_eq!(level, II);
        // Both hold level II now, and a write ends both oplocks.
        let write = other.write_message(theirs, b"new");
        assert_eq!(other.ask(&mut rig, write).status(), Status::SUCCESS);
        let level = NONE;
        assert_eq!(one.hear_break(&mut rig), Break { file_id, level });
        let file_id = theirs;
        assert_eq!(other.hear_break(&mut rig), Break { file_id, level });
        let write = other.write_message(theirs, b"newer");
        other.ask(&mut rig, write);
        assert!(one.hear(&mut rig).is_none() && other.hear(&mut rig).is_none());
    }
}

#[test]
fn an_overwrite_breaks_to_none() {
    for level in [EXCLUSIVE, BATCH] {
        let (mut rig, mut one, mut other) = two();
        let (file_id, _) = one.open(&mut rig, Ask::level(level));
        other.open_and_wait(&mut rig, Ask::overwrite());
        let level = NONE;
        assert_eq!(one.hear_break(&mut rig), Break { file_id, level });
        // A holder that acknowledges level II receives a break to none.
        assert_eq!(one.acknowledge(&mut rig, file_id, II.0), Status::SUCCESS);
        let (theirs, _) = created(&other.hear_answer(&mut rig));
        let write = other.write_message(theirs, b"new");
        other.ask(&mut rig, write);
        assert!(one.hear(&mut rig).is_none());
    }
    let (mut rig, mut one, mut other) = two();
    one.open(&mut rig, Ask::level(II));
    other.open(&mut rig, Ask::overwrite());
    assert_eq!(one.hear_break(&mut rig).level, NONE);
}

#[test]
fn a_share_mode_counts_before_exclusive_and_after_batch() {
    let (mut rig, mut one, mut other) = two();
    one.open(&mut rig, Ask::alone(EXCLUSIVE));
    let message = other.open_message("f", Ask::level(NONE));
    let status = other.ask(&mut rig, message).status();
    assert_eq!(status, Status::SHARING_VIOLATION);
    assert!(one.hear(&mut rig).is_none());

    let (mut rig, mut one, mut other) = two();
    let (file_id, _) = one.open(&mut rig, Ask::alone(BATCH));
    other.open_and_wait(&mut rig, Ask::level(NONE));
    one.hear_break(&mut rig);
    assert_eq!(one.acknowledge(&mut rig, file_id, II.0), Status::SUCCESS);
    let status = other.hear_answer(&mut rig).status();
    assert_eq!(status, Status::SHARING_VIOLATION);

    let (mut rig, mut one, mut other) = two();
    let (file_id, _) = one.open(&mut rig, Ask::alone(BATCH));
    other.open_and_wait(&mut rig, Ask::alone(BATCH));
    one.hear_break(&mut rig);
    assert_eq!(one.close(&mut rig, file_id), Status::SUCCESS);
    assert_eq!(created(&other.hear_answer(&mut rig)).1, BATCH);
}

#[test]
fn only_a_pending_break_can_be_acknowledged() {
    let (mut rig, mut one, mut other) = two();
    let (file, _) = one.open(&mut rig, Ask::level(BATCH));
    let wrong = Status::INVALID_OPLOCK_PROTOCOL;
    for level in [NONE, II, EXCLUSIVE, BATCH] {
        assert_eq!(one.acknowledge(&mut rig, file, level.0), wrong);
    }
    other.open_and_wait(&mut rig, Ask::level(NONE));
    one.hear_break(&mut rig);
    // Only its holder can acknowledge it, and only with a known level.
    assert_eq!(other.acknowledge(&mut rig, file, II.0), Status::FILE_CLOSED);
    for level in [OplockLevel::LEASE.0, 0x77] {
        let status = one.acknowledge(&mut rig, file, level);
        assert_eq!(status, Status::INVALID_PARAMETER);
    }
    assert!(other.hear(&mut rig).is_none());
    assert_eq!(one.acknowledge(&mut rig, file, NONE.0), Status::SUCCESS);
    created(&other.hear_answer(&mut rig));
    assert_eq!(one.acknowledge(&mut rig, file, NONE.0), wrong);
}

#[test]
fn an_acknowledgment_that_keeps_the_level_loses_it() {
    for level in [EXCLUSIVE, BATCH] {
        let (mut rig, mut one, mut other) = two();
        let (file, _) = one.open(&mut rig, Ask::level(level));
        other.open_and_wait(&mut rig, Ask::level(NONE));
        one.hear_break(&mut rig);
        let status = one.acknowledge(&mut rig, file, level.0);
        assert_eq!(status, Status::INVALID_OPLOCK_PROTOCOL);
        let (theirs, _) = created(&other.hear_answer(&mut rig));
        let write = other.write_message(theirs, b"new");
        other.ask(&mut rig, write);
        assert!(one.hear(&mut rig).is_none());
    }
}

#[test]
fn a_break_of_level_two_needs_no_acknowledgment() {
    let (mut rig, mut one, _) = two();
    let (file, level) = one.open(&mut rig, Ask::level(II));
    assert_eq!(level, II);
    // The holder's own write breaks it too, as with Windows and Samba.
    let write = one.write_message(file, b"own");
    assert_eq!(one.ask(&mut rig, write).status(), Status::SUCCESS);
    assert_eq!(one.hear_break(&mut rig).level, NONE);
    let status = one.acknowledge(&mut rig, file, NONE.0);
    assert_eq!(status, Status::INVALID_OPLOCK_PROTOCOL);
}

#[test]
fn a_break_is_encrypted_if_its_session_encrypts() {
    for encrypts in [false, true] {
        let (mut rig, mut one, mut other) = two();
        one.encrypts = encrypts;
        let (file, _) = one.open(&mut rig, Ask::level(BATCH));
        other.open_and_wait(&mut rig, Ask::level(NONE));
        one.hear_break(&mut rig);
        assert_eq!(one.acknowledge(&mut rig, file, II.0), Status::SUCCESS);
        created(&other.hear_answer(&mut rig));
    }
}

#[test]
fn a_connection_can_break_its_own_oplock() {
    let (mut rig, mut one, _) = two();
    let (file, _) = one.open(&mut rig, Ask::level(BATCH));
    let message = one.open_message("f", Ask::level(NONE));
    one.say(&mut rig, vec![message]);
    assert_eq!(one.hear_break(&mut rig).file_id, file);
    assert!(one.hear(&mut rig).is_none());
    let message = one.acknowledgement(file, II.0);
    one.say(&mut rig, vec![message]);
    let mut commands = Vec::new();
    while let Some(answers) = one.hear(&mut rig) {
        for answer in answers {
            assert_eq!(answer.status(), Status::SUCCESS);
            commands.push(answer.header.command);
        }
    }
    commands.sort();
    assert_eq!(commands, [Command::CREATE, Command::OPLOCK_BREAK]);
}

#[test]
fn a_member_waits_for_the_open_of_the_previous_member() {
    let (mut rig, mut one, _) = two();
    let first = one.open_message("f", Ask::level(BATCH));
    let second = one.open_message("f", Ask::level(NONE));
    one.say(&mut rig, vec![first, second]);
    let mut heard = Vec::new();
    while let Some(answers) = one.hear(&mut rig) {
        heard.extend(answers);
    }
    // The earlier member is answered first; without its answer the holder could not acknowledge.
    let answer = heard
        .iter()
        .find(|heard| heard.header.command == Command::CREATE);
    let (file, level) = created(answer.expect("an answer"));
    assert_eq!((heard.len(), level), (2, BATCH));
    assert_eq!(one.close(&mut rig, file), Status::SUCCESS);
    created(&one.hear_answer(&mut rig));
}

#[test]
fn a_replacing_rename_waits_for_the_holder_of_the_old_file() {
    for closes in [true, false] {
        let (mut rig, mut one, mut other) = two();
        let (file, _) = one.open(&mut rig, Ask::level(BATCH));
        let new = other.open_other(&mut rig, "new", Ask::level(NONE));
        let rename = other.rename_message(new, "f");
        other.say(&mut rig, vec![rename]);
        assert!(other.hear(&mut rig).is_none());
        assert_eq!(one.hear_break(&mut rig).level, II);
        let (done, expected) = if closes {
            (one.close(&mut rig, file), Status::SUCCESS)
        } else {
            // The target still has an open.
            let status = one.acknowledge(&mut rig, file, II.0);
            (status, Status::ACCESS_DENIED)
        };
        assert_eq!(done, Status::SUCCESS);
        assert_eq!(other.hear_answer(&mut rig).status(), expected);
        assert_eq!(rig.disk.has("new"), !closes);
    }
}

#[test]
fn a_directory_rename_waits_for_holders_within() {
    let (mut rig, mut one, mut other) = two();
    let directory = Ask {
        options: CreateOptions::DIRECTORY_FILE,
        ..Ask::level(NONE)
    };
    let directory = other.open_other(&mut rig, "d", directory);
    let files = ["d\\a", "d\\b"].map(|name| one.open_other(&mut rig, name, Ask::level(BATCH)));
    let rename = other.rename_message(directory, "e");
    other.say(&mut rig, vec![rename]);
    for file in files {
        assert!(other.hear(&mut rig).is_none());
        assert_eq!(one.hear_break(&mut rig).level, II);
        let close = one.close_message(file);
        one.say(&mut rig, vec![close]);
    }
    assert_eq!(other.hear_answer(&mut rig).status(), Status::SUCCESS);
    assert!(rig.disk.has("e"));
}
