//! A snapshot lists every session with its trees and opens, up to the requested limits.

use proto::server::{LockSnapshot, OpenKind, Snapshot, SnapshotLimits};
use wire::access::{OplockLevel, ShareAccess};
use wire::dialect::Dialect;

use crate::harness::{Ask, Client, EXCLUSIVE_NOW, Options, Rig, SHARED_NOW, multichannel};

const ALL: SnapshotLimits = SnapshotLimits {
    sessions: 100,
    opens: 100,
    locks: 100,
};

fn snapshot(rig: &Rig, limits: SnapshotLimits) -> Snapshot {
    rig.server.snapshot(limits)
}

#[test]
fn a_session_has_its_channels_trees_and_opens() {
    let mut rig = Rig::new(|_| {});
    assert!(snapshot(&rig, ALL).sessions.is_empty());
    let options = multichannel(Dialect::SMB_3_1_1);
    let mut first = Client::in_share(&mut rig, options, "alice", "files");
    let mut second = Client::channel_of(&mut rig, &first);
    second.log_in_bound(&mut rig, &first, "alice");
    let file = first.create(&mut rig, "f");
    first.must_lock(&mut rig, file, (0, 10), EXCLUSIVE_NOW);
    first.must_lock(&mut rig, file, (20, 5), SHARED_NOW);
    let now = snapshot(&rig, ALL);
    let [session] = now.sessions.as_slice() else {
        panic!("{now:?}");
    };
    assert_eq!(session.account.name, "alice");
    assert_eq!(session.dialect, Dialect::SMB_3_1_1);
    assert_eq!(session.channels.len(), 2);
    assert_eq!(session.trees[0].share, "files");
    let [open] = session.opens.as_slice() else {
        panic!("{session:?}");
    };
    assert_eq!((open.path.as_str(), open.kind), ("f", OpenKind::File));
    assert_eq!((open.id, open.tree), (file, session.trees[0].id));
    let lock = |offset, length, is_exclusive| LockSnapshot {
        offset,
        length,
        is_exclusive,
    };
    assert_eq!(open.locks, [lock(0, 10, true), lock(20, 5, false)]);
    assert_eq!(open.lock_count, 2);
    assert_eq!(first.close(&mut rig, file), wire::Status::SUCCESS);
    assert!(snapshot(&rig, ALL).sessions[0].opens.is_empty());
}

#[test]
fn a_snapshot_lists_oplocks_and_share_modes() {
    let mut rig = Rig::new(|_| {});
    let mut client = Client::with_credits(&mut rig);
    let (_, level) = client.open(&mut rig, Ask::level(OplockLevel::BATCH));
    let now = snapshot(&rig, ALL);
    let open = &now.sessions[0].opens[0];
    assert_eq!(
        (open.oplock, level),
        (OplockLevel::BATCH, OplockLevel::BATCH)
    );
    assert!(open.sharing.contains(ShareAccess::READ));
}

#[test]
fn objects_beyond_the_limits_are_counted() {
    let mut rig = Rig::new(|_| {});
    let mut client = Client::with_credits(&mut rig);
    let files: Vec<_> = (0..5)
        .map(|n| client.create(&mut rig, &format!("f{n}")))
        .collect();
    for offset in 0..4 {
        client.must_lock(&mut rig, files[0], (offset, 1), SHARED_NOW);
    }
    let tight = SnapshotLimits {
        opens: 3,
        locks: 2,
        ..ALL
    };
    let now = snapshot(&rig, tight);
    let opens = &now.sessions[0].opens;
    assert_eq!((opens.len(), now.opens_left_out), (3, 2));
    assert_eq!((opens[0].locks.len(), opens[0].lock_count), (2, 4));
    let _other = Client::logged_in(&mut rig, Options::default(), "bob");
    let one = SnapshotLimits { sessions: 1, ..ALL };
    let now = snapshot(&rig, one);
    assert_eq!((now.sessions.len(), now.sessions_left_out), (1, 1));
}
