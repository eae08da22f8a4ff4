//! Futures that are dropped, buffers that are borrowed, forks: nobody is hurt.

mod rig;

use std::io::{Read, Seek, SeekFrom, Write};
use std::pin::{Pin, pin};
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use rig::meddler::meddler;
use rig::{Rig, options, pattern};
use smbeam_client::transfer::{LocalFile, TransferOptions, download, upload};
use smbeam_client::{Client, LockKind, OpenOptions, Share, Status, Wait};

/// How long a test waits for what should be there at once.
const BOUND: Duration = Duration::from_secs(60);
/// How often it looks whether the server has done what nobody waits for.
const LOOKS: usize = 1000;

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

/// Tells when its future may go on.
struct Told(Sender<()>);

impl Wake for Told {
    fn wake(self: Arc<Self>) {
        let _ = self.0.send(());
    }
}

/// A future that is polled by hand.
struct ByHand<F> {
    future: Pin<Box<F>>,
    waker: Waker,
    woken: Receiver<()>,
}

impl<F: Future> ByHand<F> {
    fn new(future: F) -> Self {
        let (told, woken) = mpsc::channel();
        Self {
            future: Box::pin(future),
            waker: Waker::from(Arc::new(Told(told))),
            woken,
        }
    }

    /// Whether it is done.
    fn poll(&mut self) -> bool {
        let mut context = Context::from_waker(&self.waker);
        self.future.as_mut().poll(&mut context).is_ready()
    }

    /// Waits until it may go on.
    fn woken(&self) {
        self.woken.recv_timeout(BOUND).expect("it is woken");
    }

    /// Drops the future between the arrival of its result and the poll that would return it.
    /// Returns false if the first poll had the result.
    fn leave_done(mut self) -> bool {
        let has_waited = !self.poll();
        if has_waited {
            self.woken();
        }
        has_waited
    }
}

fn both() -> OpenOptions {
    OpenOptions::new().read(true).write(true).create(true)
}

#[test]
fn a_dropped_future_costs_nothing_but_its_answer() {
    let rig = Rig::new();
    let share = rig.share();
    let bytes = pattern(8 << 20, 1);
    std::fs::write(rig.path("file"), &bytes).expect("a file");
    let file = share.open("file", &both()).wait().expect("open");
    for round in 0..50_u64 {
        start_and_leave(file.read_at(vec![0; 4 << 20], round << 10));
        start_and_leave(file.write_at(bytes.clone(), 0));
        start_and_leave(share.metadata("file"));
        start_and_leave(share.open("file", &both()));
        start_and_leave(share.read_dir("", "*"));
    }
    let (count, back) = file.read_at(vec![0; 8 << 20], 0).wait();
    assert_eq!(count.expect("read"), 8 << 20);
    assert!(back == bytes);
    file.close().wait().expect("close");
    // The opens that nobody waited for are closed: nobody is in the way of one who shares
    // nothing. The last of their CLOSEs may still be on its way.
    assert!(is_left_alone(&share, "file"));
}

/// Whether nobody has the file open, now or soon.
fn is_left_alone(share: &Share, path: &str) -> bool {
    let alone = both().share(false, false, false);
    (0..LOOKS).any(|_| match share.open(path, &alone).wait() {
        Ok(_) => true,
        Err(error) => {
            assert_eq!(error.status(), Some(Status::SHARING_VIOLATION));
            share.session().echo().wait().expect("echo");
            false
        }
    })
}

#[test]
fn what_was_opened_for_who_left_is_closed() {
    let rig = Rig::new();
    let share = rig.share();
    // The answer is there, but nobody looks.
    while !ByHand::new(share.open("file", &both())).leave_done() {}
    assert!(is_left_alone(&share, "file"));
}

#[test]
fn what_was_locked_for_who_left_is_unlocked() {
    let kind = LockKind::Exclusive;
    let rig = Rig::new();
    let share = rig.share();
    let file = share.open("file", &both()).wait().expect("open");
    let other = share.open("file", &both()).wait().expect("open");
    file.lock(0..1, kind, true).wait().expect("locked");
    let mut waiting = ByHand::new(other.lock(0..1, kind, true));
    assert!(!waiting.poll(), "somebody has it");
    file.unlock(0..1).wait().expect("unlocked");
    waiting.woken();
    drop(waiting);
    let is_free = (0..LOOKS).any(|_| match file.lock(0..1, kind, false).wait() {
        Ok(()) => true,
        Err(error) => {
            assert_eq!(error.status(), Some(Status::LOCK_NOT_GRANTED));
            share.session().echo().wait().expect("echo");
            false
        }
    });
    assert!(is_free);
}

#[test]
fn a_session_that_nobody_waited_for_is_over() {
    let rig = Rig::new();
    let client = Client::new(options()).expect("a client");
    let credentials = rig::credentials();
    let (open, closed) = mpsc::channel::<()>();
    let to_server = move |frame| {
        let _is_open = &open;
        vec![frame]
    };
    // The server answers only after the first poll.
    let (polled, answers) = mpsc::channel::<()>();
    let to_client = move |frame| {
        let _ = answers.recv();
        vec![frame]
    };
    let port = meddler(rig.port(), Box::new(to_server), Box::new(to_client));
    let mut connecting = ByHand::new(client.connect("127.0.0.1", Some(port), &credentials));
    assert!(!connecting.poll(), "the server has not answered");
    drop(polled);
    connecting.woken();
    drop(connecting);
    let closed = closed.recv_timeout(BOUND);
    assert_eq!(closed, Err(RecvTimeoutError::Disconnected));
}

#[test]
fn borrowed_memory_is_filled_and_sent() {
    let rig = Rig::new();
    let share = rig.share();
    let file = share.open("file", &both()).wait().expect("open");
    let bytes = pattern(5_000_001, 2);
    file.write_all_at_blocking(&bytes, 3).expect("written");
    let mut back = vec![0; bytes.len()];
    file.read_exact_at_blocking(&mut back, 3).expect("read");
    assert!(back == bytes);
    let short = file.read_exact_at_blocking(&mut back, 4);
    let short = short.expect_err("one byte is missing");
    assert_eq!(short.status(), Some(Status::END_OF_FILE));
}

#[test]
fn ranges_come_back_in_the_order_in_which_they_were_asked_for() {
    let rig = Rig::new();
    let share = rig.share();
    let file = share.open("file", &both()).wait().expect("open");
    let ranges: Vec<_> = (0..100_u8)
        .map(|n| (u64::from(99 - n) * 1000, vec![n; 1000]))
        .collect();
    for (result, bytes) in file.write_ranges(ranges).wait() {
        assert_eq!(result.expect("written"), bytes.len());
    }
    let ranges = (0..101_u64).map(|n| (n * 1000, vec![0; 1000])).collect();
    let read = file.read_ranges(ranges).wait();
    for (n, (result, bytes)) in read.into_iter().enumerate() {
        let wanted = if n < 100 { 1000 } else { 0 };
        assert_eq!(result.expect("read"), wanted);
        assert!(n == 100 || bytes == vec![99 - n as u8; 1000]);
    }
}

#[test]
fn streams_read_ahead_and_write_behind() {
    let rig = Rig::new();
    let share = rig.share();
    let bytes = pattern(11_000_003, 4);
    let file = share.open("file", &both()).wait().expect("open");
    let mut writer = file.writer().expect("a writer");
    for piece in bytes.chunks(70_001) {
        writer.write_all(piece).expect("written");
    }
    writer.flush().expect("flushed");
    assert!(std::fs::read(rig.path("file")).expect("on disk") == bytes);
    let mut reader = file.reader();
    let mut back = Vec::new();
    reader.read_to_end(&mut back).expect("read");
    assert!(back == bytes);
    reader.seek(SeekFrom::End(-5)).expect("sought");
    let mut tail = Vec::new();
    reader.read_to_end(&mut tail).expect("read");
    assert_eq!(tail, bytes[bytes.len() - 5..]);
}

#[test]
fn a_reader_goes_on_from_where_it_failed() {
    let rig = Rig::new();
    let share = rig.share();
    let bytes = pattern(9 << 20, 6);
    std::fs::write(rig.path("file"), &bytes).expect("a file");
    let file = share.open("file", &both()).wait().expect("open");
    let other = share.open("file", &both()).wait().expect("open");
    let held = 2_500_000..2_500_001;
    let lock = other.lock(held.clone(), LockKind::Exclusive, false);
    lock.wait().expect("locked");
    let mut reader = file.reader();
    let mut back = Vec::new();
    for _ in 0..2 {
        reader.read_to_end(&mut back).expect_err("others hold it");
        assert!(back.len() <= 2_500_000);
    }
    other.unlock(held).wait().expect("unlocked");
    reader.read_to_end(&mut back).expect("read");
    assert!(back == bytes);
}

#[test]
fn whole_files_move() {
    let rig = Rig::new();
    let share = rig.share();
    let bytes = pattern(30_000_001, 5);
    let file = share.open("file", &both()).wait().expect("open");
    let options = TransferOptions::default().io_size(300_000).depth(5).span(0);
    let mut told = 0;
    let mut progress = |count| told += count;
    let sent = upload(&file, 0..u64::MAX, &mut &bytes[..], &options, &mut progress).wait();
    assert_eq!(sent.expect("sent"), bytes.len() as u64);
    assert_eq!(told, bytes.len() as u64);
    let local = tempfile::tempfile().expect("a file");
    let mut sink = LocalFile(Arc::new(local));
    let got = download(&file, 0..u64::MAX, &mut sink, &options, &mut |_| {}).wait();
    assert_eq!(got.expect("got"), bytes.len() as u64);
    let mut back = Vec::new();
    let mut local = &*sink.0;
    local.seek(SeekFrom::Start(0)).expect("sought");
    local.read_to_end(&mut back).expect("read");
    assert!(back == bytes);
}

/// Where the child of the test below is told what to connect to.
const PORT: &str = "SMBEAM_TEST_FORK_PORT";

/// The shell forks, which a test written in safe code cannot: see `forked`.
#[test]
fn a_child_that_inherits_nothing_connects_anew() {
    let rig = Rig::new();
    let share = rig.share();
    let file = share.open("file", &both()).wait().expect("open");
    let output = Command::new("sh")
        .args(["-c", "ls -l /proc/self/fd"])
        .env(PORT, rig.port().to_string())
        .output()
        .expect("a shell");
    // All descriptors of the client are closed on exec.
    let listed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!listed.contains("socket:"), "{listed}");
    assert!(!listed.contains("io_uring"), "{listed}");
    assert!(!listed.contains("eventfd"), "{listed}");
    file.write_at(vec![1], 0).wait().0.expect("written");
}
