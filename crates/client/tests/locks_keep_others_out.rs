//! Byte-range locks: taken, refused, waited for, given up.

mod rig;

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use rig::Rig;
use smbeam_client::{CompletionFilter, LockKind, OpenOptions, Status, Wait};

const KIND: LockKind = LockKind::Exclusive;

fn both() -> OpenOptions {
    OpenOptions::new().read(true).write(true).create(true)
}

struct Nothing;

impl Wake for Nothing {
    fn wake(self: Arc<Self>) {}
}

/// Polls once, then drops.
fn start_and_leave<F: Future>(future: F) {
    let waker = Waker::from(Arc::new(Nothing));
    let mut future = pin!(future);
    let poll = future.as_mut().poll(&mut Context::from_waker(&waker));
    drop(poll);
}

#[test]
fn a_range_has_one_owner() {
    let rig = Rig::new();
    let share = rig.share();
    let one = share.open("locked", &both()).wait().expect("open");
    let other = share.open("locked", &both()).wait().expect("open");
    one.lock(0..10, KIND, false).wait().expect("locked");
    let refused = other.lock(5..6, KIND, false).wait().expect_err("held");
    assert_eq!(refused.status(), Some(Status::LOCK_NOT_GRANTED));
    one.unlock(0..10).wait().expect("unlocked");
    other.lock(5..6, KIND, false).wait().expect("free");
}

#[test]
fn a_dropped_watch_and_a_dropped_lock_are_cancelled() {
    let rig = Rig::new();
    let share = rig.share();
    let file = share.open("file", &both()).wait().expect("open");
    let other = share.open("file", &both()).wait().expect("open");
    file.lock(0..1, KIND, true).wait().expect("locked");
    start_and_leave(other.lock(0..1, KIND, true));
    let watch = share.watch("", false, CompletionFilter::FILE_NAME);
    drop(watch.wait().expect("watched"));
    file.unlock(0..1).wait().expect("unlocked");
    // The other waits no more: the range is free.
    while let Err(error) = file.lock(0..1, KIND, false).wait() {
        assert_eq!(error.status(), Some(Status::LOCK_NOT_GRANTED));
        share.session().echo().wait().expect("echo");
    }
}

#[test]
fn who_waits_gets_it_next() {
    let rig = Rig::new();
    let share = rig.share();
    let one = share.open("file", &both()).wait().expect("open");
    let other = share.open("file", &both()).wait().expect("open");
    one.lock(0..1, KIND, false).wait().expect("locked");
    let waiting = std::thread::spawn(move || other.lock(0..1, KIND, true).wait());
    share.session().echo().wait().expect("echo");
    one.unlock(0..1).wait().expect("unlocked");
    waiting.join().expect("no panic").expect("locked");
}
