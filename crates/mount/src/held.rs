//! Written data that the server does not have yet, of one inode.
//!
//! A write under a lease with WRITE_CACHING returns when its bytes are here. Adjacent writes become
//! one extent. A task takes extents and sends them; bytes in flight stay counted until the server
//! has responded. Extents that overlap bytes in flight wait for them, because a server may execute
//! two WRITEs in any order.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Poll, Waker};
use std::time::SystemTime;

use fuser::Errno;
use smbeam_client::PosixChanges;

use crate::handles::lock;

/// Length in bytes at which an extent is sent: one WRITE of the client library has this length.
const FULL: usize = 1 << 20;
/// Largest number of bytes that the data of an inode and of a mount hold.
const FILE_MAX: u64 = 32 << 20;
const MOUNT_MAX: u64 = 256 << 20;

/// The limits of held bytes, and their number in the whole mount.
pub(crate) struct Budget {
    held: AtomicU64,
    file_max: u64,
    mount_max: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            held: AtomicU64::new(0),
            file_max: FILE_MAX,
            mount_max: MOUNT_MAX,
        }
    }
}

impl Budget {
    /// Number of held bytes.
    pub(crate) fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// Takes bytes, if the limit permits that.
    fn take(&self, count: u64) -> bool {
        let take = |held: u64| Some(held + count).filter(|it| *it <= self.mount_max);
        let order = Ordering::Relaxed;
        self.held.fetch_update(order, order, take).is_ok()
    }

    fn release(&self, count: u64) {
        self.held.fetch_sub(count, Ordering::Relaxed);
    }
}

/// The held data of an inode.
#[derive(Default)]
pub(crate) struct Held {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// Extents by their offsets. They do not overlap.
    waiting: BTreeMap<u64, Vec<u8>>,
    /// Ranges that the server has not confirmed.
    in_flight: Vec<Range<u64>>,
    /// Bytes of both.
    bytes: u64,
    /// Length of the file with the held data, while the lease permits no other client to change
    /// it.
    size: Option<u64>,
    /// Length of the file on the server when the first held byte came.
    base: u64,
    written: Option<SystemTime>,
    /// Number of failed WRITEs, and the first error since a program received one.
    failures: u64,
    error: Option<Errno>,
    /// Changes of attributes that follow the data, and those that the server has not confirmed.
    changes: PosixChanges,
    changing: Option<PosixChanges>,
    /// Tasks that wait until everything is sent. New data wait for them.
    flushing: usize,
    /// Whether a task sends the data after a pause.
    has_timer: bool,
    wakers: Vec<Waker>,
}

/// The position of a write.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Position {
    At(u64),
    /// The end of the file. O_APPEND
    End,
}

/// The result of a write.
pub(crate) enum Insert {
    /// The data are held, at this offset. `needs_timer`: the caller must send them after a pause.
    Held { at: u64, needs_timer: bool },
    /// The file has too many held bytes, or a task waits until all are sent.
    Busy(Vec<u8>),
    /// No lease protects held data, or the mount has too many.
    Refused(Vec<u8>),
}

/// Extents that a task sends.
pub(crate) type Batch = Vec<(u64, Vec<u8>)>;

impl Held {
    /// Holds a write. `is_protected` says whether the lease permits it; a break changes that before
    /// it takes the held data.
    pub(crate) fn insert(
        &self,
        position: Position,
        bytes: Vec<u8>,
        budget: &Budget,
        is_protected: impl FnOnce() -> bool,
    ) -> Insert {
        let mut inner = lock(&self.inner);
        let len = bytes.len() as u64;
        let Some(size) = inner.size.filter(|_| is_protected()) else {
            return Insert::Refused(bytes);
        };
        if inner.flushing > 0 || (inner.bytes > 0 && inner.bytes + len > budget.file_max) {
            return Insert::Busy(bytes);
        }
        let at = match position {
            Position::At(at) => at,
            Position::End => size,
        };
        let Some(end) = at.checked_add(len).filter(|end| *end <= i64::MAX as u64) else {
            return Insert::Refused(bytes);
        };
        if !budget.take(len) {
            return Insert::Refused(bytes);
        }
        if inner.bytes == 0 {
            inner.base = size;
        }
        let replaced = inner.put(at, bytes);
        budget.release(replaced);
        inner.bytes += len - replaced;
        inner.size = Some(size.max(end));
        inner.written = Some(SystemTime::now());
        // The write sets the time again.
        inner.changes.basic.written = None;
        let needs_timer = !std::mem::replace(&mut inner.has_timer, true);
        Insert::Held { at, needs_timer }
    }

    /// Takes extents that overlap no bytes in flight: all of them, or the full ones. The caller
    /// sends them and calls [`Self::sent`].
    pub(crate) fn take(&self, only_full: bool) -> Batch {
        let mut inner = lock(&self.inner);
        let Inner {
            waiting, in_flight, ..
        } = &mut *inner;
        let is_free = |at: u64, len: usize| {
            let end = at + len as u64;
            in_flight.iter().all(|it| it.end <= at || end <= it.start)
        };
        let wanted = |(at, bytes): (&u64, &Vec<u8>)| {
            let is_long = !only_full || bytes.len() >= FULL;
            (is_long && is_free(*at, bytes.len())).then_some(*at)
        };
        let starts: Vec<u64> = waiting.iter().filter_map(wanted).collect();
        let taken = starts.into_iter().map(|at| {
            let bytes = waiting.remove(&at).expect("it was found");
            in_flight.push(at..at + bytes.len() as u64);
            (at, bytes)
        });
        taken.collect()
    }

    /// Takes the changes of attributes and the only extent, if that has at most `max` bytes and
    /// nothing is in flight. The caller sends both, and calls [`Self::sent`] and
    /// [`Self::end_change`].
    pub(crate) fn take_together(&self, max: usize) -> Option<(u64, Vec<u8>, PosixChanges)> {
        let mut inner = lock(&self.inner);
        let is_single = inner.waiting.len() == 1 && inner.in_flight.is_empty();
        let (_, bytes) = inner.waiting.first_key_value().filter(|_| is_single)?;
        if bytes.len() > max {
            return None;
        }
        let changes = inner.begin_change()?;
        let (at, bytes) = inner.waiting.pop_first()?;
        inner.in_flight.push(at..at + bytes.len() as u64);
        Some((at, bytes, changes))
    }

    /// Holds changes of attributes that follow held data. Returns false if no data are held, or if
    /// the changes depend on the order of those before. `is_protected` is as for
    /// [`Self::insert`].
    pub(crate) fn defer(
        &self,
        changes: &PosixChanges,
        is_protected: impl FnOnce() -> bool,
    ) -> bool {
        let mut inner = lock(&self.inner);
        let has_owner = changes.uid.is_some() || changes.gid.is_some();
        // A change of the owner clears bits of the mode.
        let depends = has_owner && inner.changes.mode.is_some();
        let may_wait = inner.bytes > 0 && inner.flushing == 0 && !depends && is_protected();
        if may_wait {
            inner.changes = inner.changes.then(changes);
        }
        may_wait
    }

    /// Takes the changes of attributes. The caller sends them behind the data, and calls
    /// [`Self::end_change`].
    pub(crate) fn begin_change(&self) -> Option<PosixChanges> {
        lock(&self.inner).begin_change()
    }

    /// The server has responded to changes of attributes.
    pub(crate) fn end_change(&self, error: Option<Errno>) {
        let mut inner = lock(&self.inner);
        inner.changing = None;
        inner.fail(error);
        inner.wake();
    }

    /// The changes of attributes that the server may not have.
    pub(crate) fn changes(&self) -> PosixChanges {
        let inner = lock(&self.inner);
        inner.changing.unwrap_or_default().then(&inner.changes)
    }

    /// Waits until the server has responded to changes of attributes.
    pub(crate) async fn has_changed(&self) {
        self.changed(|inner| inner.changing.is_none()).await;
    }

    /// Whether neither data nor changes are held.
    pub(crate) fn is_clean(&self) -> bool {
        let inner = lock(&self.inner);
        inner.bytes == 0 && !inner.has_changes()
    }

    /// The server has responded to the WRITEs of these ranges.
    pub(crate) fn sent(&self, ranges: &[Range<u64>], error: Option<Errno>, budget: &Budget) {
        let mut inner = lock(&self.inner);
        for range in ranges {
            let at = inner.in_flight.iter().position(|it| it == range);
            inner.in_flight.swap_remove(at.expect("it was taken"));
            let len = range.end - range.start;
            inner.bytes -= len;
            budget.release(len);
        }
        inner.fail(error);
        inner.wake();
    }

    /// Whether no data are held.
    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.inner).bytes == 0
    }

    /// Whether a read of this range needs held data: it overlaps them, or reads behind the end that
    /// the file has on the server.
    pub(crate) fn concerns(&self, range: &Range<u64>) -> bool {
        let inner = lock(&self.inner);
        let overlaps = |it: &Range<u64>| it.start < range.end && range.start < it.end;
        let waits = |(at, bytes): (&u64, &Vec<u8>)| overlaps(&(*at..*at + bytes.len() as u64));
        inner.bytes > 0
            && (range.end > inner.base
                || inner.in_flight.iter().any(overlaps)
                || inner.waiting.range(..range.end).any(waits))
    }

    /// Length of the file and time of the last held write. The length is known only while the
    /// lease permits no other client to change the file; the time, while data are held.
    pub(crate) fn shown(&self) -> (Option<u64>, Option<SystemTime>) {
        let inner = lock(&self.inner);
        (inner.size, inner.written.filter(|_| inner.bytes > 0))
    }

    /// Takes note of the length of the file.
    pub(crate) fn set_size(&self, size: Option<u64>) {
        lock(&self.inner).size = size;
    }

    /// Takes note of a write that the server has, up to this offset.
    pub(crate) fn grow(&self, end: u64) {
        let mut inner = lock(&self.inner);
        inner.size = inner.size.map(|size| size.max(end));
    }

    /// Takes note of the length of the file if it is unknown. `is_protected` says whether the lease
    /// has permitted no change since the query.
    pub(crate) fn learn_size(&self, size: u64, is_protected: impl FnOnce() -> bool) {
        let mut inner = lock(&self.inner);
        if inner.size.is_none() && is_protected() {
            inner.size = Some(size);
        }
    }

    /// Announces a task that waits until everything is sent.
    pub(crate) fn begin_flush(&self) -> Flush<'_> {
        lock(&self.inner).flushing += 1;
        Flush(self)
    }

    /// Waits until bytes were sent, or a flush has ended. `is_due` says whether the wait is over.
    async fn changed(&self, is_due: impl Fn(&Inner) -> bool) {
        poll_fn(|context| {
            let mut inner = lock(&self.inner);
            if is_due(&inner) {
                return Poll::Ready(());
            }
            inner.wakers.push(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Waits until another write can be held.
    pub(crate) async fn has_space(&self, len: usize, budget: &Budget) {
        let len = len as u64;
        self.changed(|inner| {
            let fits = inner.bytes == 0 || inner.bytes + len <= budget.file_max;
            inner.flushing == 0 && fits
        })
        .await;
    }

    /// Waits until no bytes are in flight or one of the extents that wait can be taken. Returns
    /// whether nothing is held.
    pub(crate) async fn settled(&self) -> bool {
        let before = lock(&self.inner).in_flight.len();
        self.changed(|inner| inner.in_flight.is_empty() || inner.in_flight.len() < before)
            .await;
        self.is_empty()
    }

    /// The pause before the data are sent has ended. Returns whether another one follows.
    pub(crate) fn timer_ended(&self) -> bool {
        let mut inner = lock(&self.inner);
        inner.has_timer = inner.bytes > 0 || inner.has_changes();
        inner.has_timer
    }

    /// Number of failed WRITEs.
    pub(crate) fn failures(&self) -> u64 {
        lock(&self.inner).failures
    }

    /// The error that an open has not received yet. `seen` is the number of failures that it has.
    pub(crate) fn take_error(&self, seen: &AtomicU64) -> Result<(), Errno> {
        let inner = lock(&self.inner);
        let before = seen.swap(inner.failures, Ordering::Relaxed);
        match inner.error {
            Some(error) if before < inner.failures => Err(error),
            _ => Ok(()),
        }
    }
}

/// A task that waits until everything is sent.
pub(crate) struct Flush<'a>(&'a Held);

impl Drop for Flush<'_> {
    fn drop(&mut self) {
        let mut inner = lock(&self.0.inner);
        inner.flushing -= 1;
        inner.wake();
    }
}

impl Inner {
    fn has_changes(&self) -> bool {
        self.changing.is_some() || !self.changes.is_empty()
    }

    fn begin_change(&mut self) -> Option<PosixChanges> {
        if self.changing.is_some() || self.changes.is_empty() {
            return None;
        }
        self.changing = Some(std::mem::take(&mut self.changes));
        self.changing
    }

    fn fail(&mut self, error: Option<Errno>) {
        if let Some(error) = error {
            self.failures += 1;
            self.error = Some(error);
        }
    }

    fn wake(&mut self) {
        self.wakers.drain(..).for_each(Waker::wake);
    }

    /// Puts bytes in place. Returns the number of waiting bytes that they replace.
    fn put(&mut self, at: u64, bytes: Vec<u8>) -> u64 {
        let end = at + bytes.len() as u64;
        let before = self.waiting.range_mut(..=at).next_back();
        if let Some((start, extent)) = before
            && end <= *start + extent.len() as u64
        {
            let from = (at - *start) as usize;
            extent[from..from + bytes.len()].copy_from_slice(&bytes);
            return bytes.len() as u64;
        }
        let replaced = self.cut(at..end);
        match self.waiting.range_mut(..at).next_back() {
            Some((start, extent))
                if *start + extent.len() as u64 == at && extent.len() + bytes.len() <= FULL =>
            {
                extent.extend_from_slice(&bytes);
            }
            _ => drop(self.waiting.insert(at, bytes)),
        }
        replaced
    }

    /// Removes a range from the waiting extents. Returns the number of removed bytes.
    fn cut(&mut self, range: Range<u64>) -> u64 {
        let mut removed = 0;
        while let Some((&start, extent)) = self.waiting.range_mut(..range.end).next_back() {
            let end = start + extent.len() as u64;
            if end <= range.start {
                break;
            }
            let tail = match end > range.end {
                true => extent.split_off((range.end - start) as usize),
                false => Vec::new(),
            };
            let kept = range.start.saturating_sub(start) as usize;
            removed += (extent.len() - kept) as u64;
            extent.truncate(kept);
            if kept == 0 {
                self.waiting.remove(&start);
            }
            if !tail.is_empty() {
                self.waiting.insert(range.end, tail);
            }
        }
        removed
    }
}

#[cfg(test)]
mod tests {
    use smbeam_client::Changes;

    use super::*;

    fn held(size: u64) -> Held {
        let held = Held::default();
        held.set_size(Some(size));
        held
    }

    fn write(held: &Held, budget: &Budget, at: u64, bytes: &[u8]) -> bool {
        let inserted = held.insert(Position::At(at), bytes.to_vec(), budget, || true);
        matches!(inserted, Insert::Held { .. })
    }

    fn ranges(batch: &Batch) -> Vec<Range<u64>> {
        let range = |(at, bytes): &(u64, Vec<u8>)| *at..*at + bytes.len() as u64;
        batch.iter().map(range).collect()
    }

    /// Sends everything to `server`, in any order that is allowed.
    fn drain(held: &Held, budget: &Budget, server: &mut Vec<u8>) {
        while !held.is_empty() {
            let batch = held.take(false);
            assert!(!batch.is_empty(), "data wait for nothing");
            for (at, bytes) in &batch {
                let (at, end) = (*at as usize, *at as usize + bytes.len());
                server.resize(server.len().max(end), 0);
                server[at..end].copy_from_slice(bytes);
            }
            held.sent(&ranges(&batch), None, budget);
        }
    }

    #[test]
    fn any_order_of_writes_reaches_the_server_as_a_file_without_it() {
        let mut random = 1_u64;
        let mut next = |below: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) % below
        };
        for _ in 0..200 {
            let (held, budget) = (held(0), Budget::default());
            let (mut file, mut server, mut flying) = (Vec::new(), Vec::new(), Batch::new());
            for _ in 0..60 {
                let (at, len) = (next(300), next(80) + 1);
                let bytes = vec![next(256) as u8; len as usize];
                assert!(write(&held, &budget, at, &bytes));
                let end = (at + len) as usize;
                file.resize(file.len().max(end), 0);
                file[at as usize..end].copy_from_slice(&bytes);
                if next(5) == 0 {
                    for (at, bytes) in &flying {
                        let end = *at as usize + bytes.len();
                        server.resize(server.len().max(end), 0);
                        server[*at as usize..end].copy_from_slice(bytes);
                    }
                    held.sent(&ranges(&flying), None, &budget);
                    flying = held.take(false);
                }
                assert_eq!(held.shown().0, Some(file.len() as u64));
            }
            for (at, bytes) in &flying {
                let end = *at as usize + bytes.len();
                server.resize(server.len().max(end), 0);
                server[*at as usize..end].copy_from_slice(bytes);
            }
            held.sent(&ranges(&flying), None, &budget);
            drain(&held, &budget, &mut server);
            assert_eq!(server, file);
            assert_eq!(budget.held(), 0);
        }
    }

    #[test]
    fn adjacent_writes_become_one_and_long_ones_are_sent_first() {
        let (held, budget) = (held(0), Budget::default());
        for number in 0..FULL as u64 / 4096 {
            assert!(held.take(true).is_empty());
            assert!(write(&held, &budget, number * 4096, &[1; 4096]));
        }
        assert!(write(&held, &budget, FULL as u64, b"more"));
        let batch = held.take(true);
        assert_eq!(ranges(&batch), std::slice::from_ref(&(0..FULL as u64)));
        // These bytes must not overtake the ones in flight.
        assert!(write(&held, &budget, 10, b"later"));
        let rest = held.take(false);
        let last = FULL as u64..FULL as u64 + 4;
        assert_eq!(ranges(&rest), std::slice::from_ref(&last));
        held.sent(&ranges(&batch), None, &budget);
        assert_eq!(ranges(&held.take(false)), std::slice::from_ref(&(10..15)));
    }

    #[test]
    fn a_single_short_extent_goes_with_the_changes() {
        let (held, budget) = (held(0), Budget::default());
        let mode = PosixChanges::default().mode(Some(0o640));
        assert!(write(&held, &budget, 4, &[1; 8]));
        assert!(held.take_together(8).is_none(), "no changes are held");
        assert!(held.defer(&mode, || true));
        assert!(held.take_together(7).is_none());
        assert_eq!(held.take_together(8), Some((4, vec![1; 8], mode)));
        assert!(write(&held, &budget, 20, &[2; 3]));
        assert!(held.defer(&mode, || true));
        held.sent(std::slice::from_ref(&(4..12)), None, &budget);
        assert!(held.take_together(100).is_none(), "changes are in flight");
        held.end_change(None);
        assert!(write(&held, &budget, 40, &[2; 3]));
        assert!(held.take_together(100).is_none(), "there are two extents");
        drain(&held, &budget, &mut Vec::new());
        assert_eq!((budget.held(), held.begin_change()), (0, Some(mode)));
    }

    #[test]
    fn changes_of_attributes_follow_the_data() {
        let (held, budget) = (held(0), Budget::default());
        let mode = PosixChanges::default().mode(Some(0o640));
        let owner = PosixChanges::default().owner(Some(1), None);
        let time = Changes::default().written(Some(SystemTime::UNIX_EPOCH));
        let time = PosixChanges::default().basic(time);
        assert!(!held.defer(&mode, || true), "no data are held");
        assert!(write(&held, &budget, 0, &[1; 8]));
        assert!(!held.defer(&mode, || false), "no lease permits it");
        assert!(held.defer(&time, || true) && held.defer(&owner, || true));
        assert!(held.defer(&mode, || true));
        assert!(
            !held.defer(&owner, || true),
            "it would clear bits of the mode"
        );
        assert!(write(&held, &budget, 8, &[1; 8]));
        let both = owner.mode(Some(0o640));
        assert_eq!(held.changes(), both, "the write has set the time");
        drain(&held, &budget, &mut Vec::new());
        assert!(!held.is_clean());
        assert_eq!(held.begin_change(), Some(both));
        assert_eq!((held.begin_change(), held.changes()), (None, both));
        held.end_change(Some(Errno::EPERM));
        assert!(held.is_clean() && held.failures() == 1);
    }

    #[test]
    fn without_a_lease_nothing_is_held() {
        let (held, budget) = (held(0), Budget::default());
        let refused = held.insert(Position::At(0), vec![1], &budget, || false);
        assert!(matches!(refused, Insert::Refused(bytes) if bytes == [1]));
        held.set_size(None);
        let refused = held.insert(Position::End, vec![1], &budget, || true);
        assert!(matches!(refused, Insert::Refused(_)) && held.is_empty());
    }

    #[test]
    fn bytes_have_limits_and_a_flush_holds_new_ones_off() {
        let budget = Budget {
            file_max: 10,
            mount_max: 15,
            ..Budget::default()
        };
        let (one, two) = (held(0), held(0));
        assert!(write(&one, &budget, 0, &[1; 8]));
        let busy = one.insert(Position::At(8), vec![1; 3], &budget, || true);
        assert!(matches!(busy, Insert::Busy(_)));
        assert!(write(&two, &budget, 0, &[1; 7]));
        let refused = two.insert(Position::At(7), vec![1], &budget, || true);
        assert!(matches!(refused, Insert::Refused(_)), "the mount has 15");
        drain(&one, &budget, &mut Vec::new());
        assert_eq!(budget.held(), 7);
        let flush = two.begin_flush();
        let busy = two.insert(Position::At(0), vec![1], &budget, || true);
        assert!(matches!(busy, Insert::Busy(_)));
        drop(flush);
        assert!(write(&two, &budget, 0, &[2; 3]), "it replaces bytes");
        assert_eq!(budget.held(), 7);
    }

    #[test]
    fn an_error_reaches_each_open_once() {
        let (held, budget) = (held(0), Budget::default());
        let opens = [AtomicU64::new(0), AtomicU64::new(0)];
        assert!(write(&held, &budget, 0, &[1; 8]));
        let batch = held.take(false);
        held.sent(&ranges(&batch), Some(Errno::ENOSPC), &budget);
        let later = AtomicU64::new(held.failures());
        assert_eq!(held.take_error(&later), Ok(()));
        for open in &opens {
            assert_eq!(held.take_error(open), Err(Errno::ENOSPC));
            assert_eq!(held.take_error(open), Ok(()));
        }
        assert!(held.is_empty());
    }

    #[test]
    fn reads_wait_for_held_bytes_only() {
        let (held, budget) = (held(100), Budget::default());
        assert!(!held.concerns(&(0..1000)));
        assert!(write(&held, &budget, 40, &[1; 10]));
        assert!(held.concerns(&(0..41)) && held.concerns(&(49..60)));
        assert!(!held.concerns(&(0..40)) && !held.concerns(&(50..100)));
        assert!(held.concerns(&(90..101)), "the end is held");
        let batch = held.take(false);
        assert!(held.concerns(&(45..46)));
        held.sent(&ranges(&batch), None, &budget);
        assert!(!held.concerns(&(45..46)));
        let inserted = held.insert(Position::End, vec![1], &budget, || true);
        assert!(matches!(inserted, Insert::Held { at: 100, .. }));
    }
}
