//! Two clients at one file: locks and share modes of the one refuse requests of the other.

use std::time::Duration;

use crate::rig::{Peer, Rig, assert_status, for_each_transport, soon, within};
use anyhow::{Result, ensure};
use smbeam_client::{File, LeaseState, LockKind, OpenOptions, Share, Status, Wait, WriteOptions};

for_each_transport!(
    locked_ranges_are_kept,
    a_waiting_client_gets_the_lock,
    a_waiting_client_may_give_up,
    share_modes_are_kept,
    locks_end_with_a_connection,
);

/// Time after which the request of the waiting client has probably arrived. With a shorter time the
/// test checks less, and does not fail.
const A_WHILE: Duration = Duration::from_millis(300);

struct Two {
    _rig: Rig,
    shares: [Share; 2],
}

fn two(peer: Peer) -> Result<Two> {
    let rig = Rig::new(peer)?;
    let shares = [rig.share()?, rig.share()?];
    shares[0]
        .write("file", vec![1; 10_000], &WriteOptions::default())
        .wait()?;
    Ok(Two { _rig: rig, shares })
}

/// Without leases: smbd checks no locks for a client while the break of its lease is in progress.
fn open(share: &Share) -> Result<File> {
    let both = OpenOptions::new().read(true).write(true);
    let both = both.lease(LeaseState::NONE);
    Ok(share.open("file", &both).wait()?)
}

fn locked_ranges_are_kept(peer: Peer) -> Result<()> {
    let two = two(peer)?;
    let [mine, other] = [open(&two.shares[0])?, open(&two.shares[1])?];
    mine.lock(1000..2000, LockKind::Exclusive, false).wait()?;
    let conflict = Status::FILE_LOCK_CONFLICT;
    assert_status(other.read_at(vec![0; 100], 1500).wait().0, conflict)?;
    assert_status(other.write_at(vec![2; 100], 1999).wait().0, conflict)?;
    let again = other.lock(1999..3000, LockKind::Shared, false).wait();
    assert_status(again, Status::LOCK_NOT_GRANTED)?;
    // Beside it and for its owner nothing is locked.
    other.write_at(vec![2; 1000], 2000).wait().0?;
    other.read_at(vec![0; 1000], 0).wait().0?;
    mine.write_at(vec![3; 1000], 1000).wait().0?;
    mine.unlock(1000..2000).wait()?;
    let (count, bytes) = other.read_at(vec![0; 1000], 1000).wait();
    ensure!(
        count? == 1000 && bytes == vec![3; 1000],
        "what was written is not there"
    );
    // Readers share the range; no client writes.
    mine.lock(0..10, LockKind::Shared, false).wait()?;
    other.lock(0..10, LockKind::Shared, false).wait()?;
    other.read_at(vec![0; 10], 0).wait().0?;
    assert_status(other.write_at(vec![2; 10], 0).wait().0, conflict)?;
    assert_status(mine.unlock(0..9).wait(), Status::RANGE_NOT_LOCKED)
}

fn a_waiting_client_gets_the_lock(peer: Peer) -> Result<()> {
    let two = two(peer)?;
    let [mine, other] = [open(&two.shares[0])?, open(&two.shares[1])?];
    mine.lock(0..100, LockKind::Exclusive, false).wait()?;
    let mut waiting = Box::pin(other.lock(50..150, LockKind::Exclusive, true));
    ensure!(within(A_WHILE, &mut waiting).is_none(), "it was granted");
    mine.unlock(0..100).wait()?;
    soon("the lock", waiting)??;
    let refused = mine.lock(100..200, LockKind::Exclusive, false).wait();
    assert_status(refused, Status::LOCK_NOT_GRANTED)
}

fn a_waiting_client_may_give_up(peer: Peer) -> Result<()> {
    let two = two(peer)?;
    let [mine, other] = [open(&two.shares[0])?, open(&two.shares[1])?];
    mine.lock(0..100, LockKind::Exclusive, false).wait()?;
    let mut waiting = Box::pin(other.lock(50..150, LockKind::Exclusive, true));
    ensure!(within(A_WHILE, &mut waiting).is_none(), "it was granted");
    drop(waiting);
    // The answers come in the order of the requests: after this one no client waits any more.
    other.share().session().echo().wait()?;
    mine.unlock(0..100).wait()?;
    soon(
        "the lock without a competing request",
        mine.lock(50..150, LockKind::Exclusive, true),
    )??;
    Ok(())
}

fn share_modes_are_kept(peer: Peer) -> Result<()> {
    let two = two(peer)?;
    let alone = OpenOptions::new().read(true).share(true, false, false);
    let mine = two.shares[0].open("file", &alone).wait()?;
    let violation = Status::SHARING_VIOLATION;
    let write = OpenOptions::new().write(true);
    assert_status(two.shares[1].open("file", &write).wait(), violation)?;
    assert_status(two.shares[1].remove_file("file").wait(), violation)?;
    assert_status(
        two.shares[1].rename("file", "other", false).wait(),
        violation,
    )?;
    ensure!(two.shares[1].read("file").wait()?.len() == 10_000);
    mine.close().wait()?;
    two.shares[1].rename("file", "other", false).wait()?;
    Ok(())
}

fn locks_end_with_a_connection(peer: Peer) -> Result<()> {
    let two = two(peer)?;
    let [mine, other] = [open(&two.shares[0])?, open(&two.shares[1])?];
    mine.lock(0..100, LockKind::Exclusive, false).wait()?;
    let waiting = other.lock(0..100, LockKind::Exclusive, true);
    two.shares[0].session().close().wait()?;
    soon("the lock of a closed session", waiting)??;
    Ok(())
}
