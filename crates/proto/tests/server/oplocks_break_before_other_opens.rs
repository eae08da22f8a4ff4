//! Who caches a file gives way before another sees it. \[MS-SMB2\] 3.3.5.9, 3.3.4.6, 3.3.5.22.1

use wire::access::{CreateDisposition, CreateOptions, OplockLevel};
use wire::{Command, Status};

use crate::harness::{Ask, Break, Client, Options, Rig, created, share};

const NONE: OplockLevel = OplockLevel::NONE;
const II: OplockLevel = OplockLevel::II;
const EXCLUSIVE: OplockLevel = OplockLevel::EXCLUSIVE;
const BATCH: OplockLevel = OplockLevel::BATCH;

/// A server and two clients of it.
fn two() -> (Rig, Client, Client) {
    let mut rig = Rig::new(|_| {});
    let one = Client::with_credits(&mut rig);
    let other = Client::with_credits(&mut rig);
    (rig, one, other)
}

#[test]
fn who_is_alone_gets_what_it_asks_for() {
    for level in [NONE, II, EXCLUSIVE, BATCH] {
        let (mut rig, mut one, _) = two();
        assert_eq!(one.open(&mut rig, Ask::level(level)).1, level);
    }
    // Leases are not granted, and other numbers are no oplocks.
    for level in [OplockLevel::LEASE, OplockLevel(5)] {
        let (mut rig, mut one, _) = two();
        assert_eq!(one.open(&mut rig, Ask::level(level)).1, NONE);
    }
}

#[test]
fn who_is_beside_others_gets_level_two_at_most() {
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
fn who_only_looks_at_attributes_does_not_count() {
    let (mut rig, mut one, mut other) = two();
    let (file, _) = one.open(&mut rig, Ask::level(NONE));
    assert_eq!(one.close(&mut rig, file), Status::SUCCESS);
    // It gets nothing of a file that is there, is in nobody's way, and breaks nothing.
    assert_eq!(other.open(&mut rig, Ask::stat(BATCH)).1, NONE);
    assert_eq!(one.open(&mut rig, Ask::level(BATCH)).1, BATCH);
    other.open(&mut rig, Ask::stat(NONE));
    assert!(one.hear(&mut rig).is_none());
    // Unless it empties the file.
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
fn who_opens_waits_for_who_caches() {
    for level in [EXCLUSIVE, BATCH] {
        let (mut rig, mut one, mut other) = two();
        let (file_id, _) = one.open(&mut rig, Ask::level(level));
        let waiting = other.open_and_wait(&mut rig, Ask::level(BATCH));
        let level = II;
        assert_eq!(one.hear_break(&mut rig), Break { file_id, level });
        // It may write back meanwhile, and is not disturbed by that.
        let write = one.write_message(file_id, b"cached");
        assert_eq!(one.ask(&mut rig, write).status(), Status::SUCCESS);
        assert!(other.hear(&mut rig).is_none());
        assert_eq!(one.acknowledge(&mut rig, file_id, II.0), Status::SUCCESS);
        let answer = other.hear_answer(&mut rig);
        assert_eq!(answer.header.message_id, waiting);
        let (theirs, level) = created(&answer);
        assert_eq!(level, II);
        // Both hold level II now, and a write ends it for both.
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
fn who_overwrites_leaves_nothing_to_cache() {
    for level in [EXCLUSIVE, BATCH] {
        let (mut rig, mut one, mut other) = two();
        let (file_id, _) = one.open(&mut rig, Ask::level(level));
        other.open_and_wait(&mut rig, Ask::overwrite());
        let level = NONE;
        assert_eq!(one.hear_break(&mut rig), Break { file_id, level });
        // Who keeps level II all the same is told that it has nothing.
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
fn only_a_break_under_way_is_acknowledged() {
    let (mut rig, mut one, mut other) = two();
    let (file, _) = one.open(&mut rig, Ask::level(BATCH));
    let wrong = Status::INVALID_OPLOCK_PROTOCOL;
    for level in [NONE, II, EXCLUSIVE, BATCH] {
        assert_eq!(one.acknowledge(&mut rig, file, level.0), wrong);
    }
    other.open_and_wait(&mut rig, Ask::level(NONE));
    one.hear_break(&mut rig);
    // By nobody else, and with a level that there is.
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
fn who_acknowledges_by_keeping_all_loses_all() {
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
fn the_end_of_level_two_is_not_acknowledged() {
    let (mut rig, mut one, _) = two();
    let (file, level) = one.open(&mut rig, Ask::level(II));
    assert_eq!(level, II);
    // As Windows and Samba have it, also by the holder's own write.
    let write = one.write_message(file, b"own");
    assert_eq!(one.ask(&mut rig, write).status(), Status::SUCCESS);
    assert_eq!(one.hear_break(&mut rig).level, NONE);
    let status = one.acknowledge(&mut rig, file, NONE.0);
    assert_eq!(status, Status::INVALID_OPLOCK_PROTOCOL);
}

#[test]
fn a_break_is_sealed_where_the_open_was() {
    for seals in [false, true] {
        let (mut rig, mut one, mut other) = two();
        one.seals = seals;
        let (file, _) = one.open(&mut rig, Ask::level(BATCH));
        other.open_and_wait(&mut rig, Ask::level(NONE));
        one.hear_break(&mut rig);
        assert_eq!(one.acknowledge(&mut rig, file, II.0), Status::SUCCESS);
        created(&other.hear_answer(&mut rig));
    }
}

#[test]
fn one_connection_breaks_its_own_oplock() {
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
fn a_member_of_a_compound_waits_for_the_open_of_the_one_before() {
    let (mut rig, mut one, _) = two();
    let first = one.open_message("f", Ask::level(BATCH));
    let second = one.open_message("f", Ask::level(NONE));
    one.say(&mut rig, vec![first, second]);
    let mut heard = Vec::new();
    while let Some(answers) = one.hear(&mut rig) {
        heard.extend(answers);
    }
    // The one before is answered, else nobody could give way.
    let answer = heard
        .iter()
        .find(|heard| heard.header.command == Command::CREATE);
    let (file, level) = created(answer.expect("an answer"));
    assert_eq!((heard.len(), level), (2, BATCH));
    assert_eq!(one.close(&mut rig, file), Status::SUCCESS);
    created(&one.hear_answer(&mut rig));
}

#[test]
fn who_saves_by_renaming_waits_for_who_keeps_the_old_file() {
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
            // It is open for somebody after all.
            let status = one.acknowledge(&mut rig, file, II.0);
            (status, Status::ACCESS_DENIED)
        };
        assert_eq!(done, Status::SUCCESS);
        assert_eq!(other.hear_answer(&mut rig).status(), expected);
        assert_eq!(rig.disk.has("new"), !closes);
    }
}

#[test]
fn who_renames_a_directory_waits_for_who_keeps_a_file_in_it() {
    let (mut rig, mut one, mut other) = two();
    let directory = Ask {
        options: CreateOptions::DIRECTORY_FILE,
        ..Ask::level(NONE)
    };
    let folder = other.open_other(&mut rig, "d", directory);
    let kept = ["d\\a", "d\\b"].map(|name| one.open_other(&mut rig, name, Ask::level(BATCH)));
    let rename = other.rename_message(folder, "e");
    other.say(&mut rig, vec![rename]);
    for file in kept {
        assert!(other.hear(&mut rig).is_none());
        assert_eq!(one.hear_break(&mut rig).level, II);
        let close = one.close_message(file);
        one.say(&mut rig, vec![close]);
    }
    assert_eq!(other.hear_answer(&mut rig).status(), Status::SUCCESS);
    assert!(rig.disk.has("e"));
}
