use alloc::vec;

use wire::FileId;
use wire::access::FileAttributes;

use super::*;
use crate::notice::Notice;
use crate::server::config::Limits;
use crate::server::scripted::{ALL, World, disk_share};

fn element(offset: u64, length: u64, flags: LockFlags) -> LockElement {
    LockElement {
        offset,
        length,
        flags,
    }
}

fn world() -> World {
    let mut world = World::new();
    world.disk.add_file("a", FileAttributes::NONE);
    world
}

fn ask(world: &mut World, file_id: FileId, sequence: u32, locks: Vec<LockElement>) -> Status {
    let request = Request {
        lock_sequence: sequence,
        file_id,
        locks,
    };
    match world.run(start, |out| request.encode(out)) {
        Ok(reply) => reply.status,
        Err(status) => status,
    }
}

fn one(world: &mut World, file_id: FileId, flags: LockFlags) -> Status {
    ask(world, file_id, 0, vec![element(0, 10, flags)])
}

/// smbtorture smb2.lock.valid-request
#[test]
fn flags_say_one_thing_only() {
    let mut world = world();
    let file = world.open("a", ALL);
    let bad = Status::INVALID_PARAMETER;
    let (now, unlock) = (LockFlags::FAIL_IMMEDIATELY, LockFlags::UNLOCK);
    let both = LockFlags::SHARED_LOCK | LockFlags::EXCLUSIVE_LOCK;
    for flags in [
        LockFlags::NONE,
        now,
        both,
        both | now,
        unlock | LockFlags::SHARED_LOCK,
        unlock | LockFlags::EXCLUSIVE_LOCK,
        unlock | now,
        LockFlags(!0x17),
    ] {
        assert_eq!(one(&mut world, file, flags), bad, "{flags:?}");
    }
    let elements = |first, second| vec![element(5, 1, first), element(5, 1, second)];
    for (first, second) in [
        (LockFlags::SHARED_LOCK, LockFlags::SHARED_LOCK),
        (SHARED_NOW, LockFlags::SHARED_LOCK),
        (LockFlags::SHARED_LOCK, SHARED_NOW),
        (SHARED_NOW, unlock),
        (SHARED_NOW, LockFlags::NONE),
    ] {
        let status = ask(&mut world, file, 0, elements(first, second));
        assert_eq!(status, bad, "{first:?} {second:?}");
    }
    // The elements of an unlock are processed one after the other.
    let status = ask(&mut world, file, 0, elements(unlock, LockFlags::NONE));
    assert_eq!(status, Status::RANGE_NOT_LOCKED);
    assert_eq!(ask(&mut world, file, 0, vec![]), bad);
}

#[test]
fn what_is_unlocked_before_an_element_fails_stays_so() {
    let mut world = world();
    let (file, other) = (world.open("a", ALL), world.open("a", ALL));
    let lock = vec![element(0, 1, EXCLUSIVE_NOW), element(1, 1, EXCLUSIVE_NOW)];
    assert_eq!(ask(&mut world, file, 0, lock.clone()), Status::SUCCESS);
    let unlock = vec![
        element(0, 1, LockFlags::UNLOCK),
        element(1, 1, EXCLUSIVE_NOW),
    ];
    let status = ask(&mut world, file, 0, unlock);
    assert_eq!(status, Status::INVALID_PARAMETER);
    assert_eq!(
        ask(&mut world, other, 0, lock[..1].to_vec()),
        Status::SUCCESS
    );
    let status = ask(&mut world, other, 0, lock[1..].to_vec());
    assert_eq!(status, Status::LOCK_NOT_GRANTED);
}

#[test]
fn a_range_beyond_the_last_offset_is_none() {
    let mut world = world();
    let file = world.open("a", ALL);
    for flags in [EXCLUSIVE_NOW, LockFlags::SHARED_LOCK, LockFlags::UNLOCK] {
        let status = ask(&mut world, file, 0, vec![element(u64::MAX, 2, flags)]);
        assert_eq!(status, Status::INVALID_LOCK_RANGE);
    }
    let status = ask(
        &mut world,
        file,
        0,
        vec![element(u64::MAX, 1, EXCLUSIVE_NOW)],
    );
    assert_eq!(status, Status::SUCCESS);
}

#[test]
fn a_lock_needs_access_to_data() {
    let mut world = world();
    world.disk.add_directory("d");
    let directory = world.open("d", ALL);
    let no_data = world.open("a", AccessMask::FILE_READ_ATTRIBUTES);
    for flags in [SHARED_NOW, EXCLUSIVE_NOW, LockFlags::EXCLUSIVE_LOCK] {
        let status = one(&mut world, directory, flags);
        assert_eq!(status, Status::INVALID_DEVICE_REQUEST);
        assert_eq!(one(&mut world, no_data, flags), Status::ACCESS_DENIED);
    }
    let status = one(&mut world, directory, LockFlags::UNLOCK);
    assert_eq!(status, Status::INVALID_DEVICE_REQUEST);
    let reader = world.open("a", AccessMask::FILE_READ_DATA);
    assert_eq!(one(&mut world, reader, EXCLUSIVE_NOW), Status::SUCCESS);
}

#[test]
fn a_close_grants_what_others_wait_for() {
    let mut world = world();
    let (holder, other) = (world.open("a", ALL), world.open("a", ALL));
    assert_eq!(one(&mut world, holder, EXCLUSIVE_NOW), Status::SUCCESS);
    // These tests do not wait for another client: a waiting request returns PENDING.
    let waits = Status::PENDING;
    assert_eq!(one(&mut world, other, LockFlags::SHARED_LOCK), waits);
    world.close(holder).expect("it closes");
    let granted = |notice: &Notice| {
        matches!(
            notice,
            Notice::LockSettled {
                is_granted: true,
                ..
            }
        )
    };
    assert!(world.notices.iter().any(granted));
}

/// smbtorture smb2.lock.replay_smb3_specification_multi
#[test]
fn a_request_that_comes_twice_is_served_once() {
    let mut world = world();
    world.has_multichannel = true;
    let file = world.open("a", ALL);
    let again = |world: &mut World, sequence, flags| {
        let locks = vec![element(100, 100, flags)];
        ask(world, file, sequence, locks)
    };
    let refused = Status::LOCK_NOT_GRANTED;
    // Buckets go from 1 to 64.
    assert_eq!(again(&mut world, 0x001, EXCLUSIVE_NOW), Status::SUCCESS);
    assert_eq!(again(&mut world, 0x001, EXCLUSIVE_NOW), refused);
    assert_eq!(again(&mut world, 0x411, EXCLUSIVE_NOW), refused);
    assert_eq!(again(&mut world, 0x411, EXCLUSIVE_NOW), refused);
    assert_eq!(again(&mut world, 0x001, LockFlags::UNLOCK), Status::SUCCESS);
    for flags in [EXCLUSIVE_NOW, EXCLUSIVE_NOW, LockFlags::UNLOCK] {
        assert_eq!(again(&mut world, 0x011, flags), Status::SUCCESS);
    }
    // A failed request leaves no lock sequence, and clears the one that it used.
    for _ in 0..2 {
        assert_eq!(again(&mut world, 0x012, EXCLUSIVE_NOW), refused);
        assert_eq!(again(&mut world, 0x401, EXCLUSIVE_NOW), refused);
    }
    assert_eq!(again(&mut world, 0x011, EXCLUSIVE_NOW), refused);
    for _ in 0..2 {
        assert_eq!(again(&mut world, 0x402, LockFlags::UNLOCK), Status::SUCCESS);
    }
    let status = again(&mut world, 0x403, LockFlags::UNLOCK);
    assert_eq!(status, Status::RANGE_NOT_LOCKED);
}

#[test]
fn without_several_connections_nothing_comes_twice() {
    let mut world = world();
    let file = world.open("a", ALL);
    let lock = vec![element(0, 1, EXCLUSIVE_NOW)];
    assert_eq!(ask(&mut world, file, 0x011, lock.clone()), Status::SUCCESS);
    let status = ask(&mut world, file, 0x011, lock);
    assert_eq!(status, Status::LOCK_NOT_GRANTED);
}

#[test]
fn waiting_locks_are_limited() {
    let limits = Limits {
        lock_waits: 0,
        ..Limits::default()
    };
    let mut world = World::of(disk_share(), ALL, limits);
    world.disk.add_file("a", FileAttributes::NONE);
    let file = world.open("a", ALL);
    let blocking = LockFlags::EXCLUSIVE_LOCK;
    assert_eq!(one(&mut world, file, blocking), Status::SUCCESS);
    let status = one(&mut world, file, blocking);
    assert_eq!(status, Status::INSUFFICIENT_RESOURCES);
}
