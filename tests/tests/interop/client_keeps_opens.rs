//! Open files and locks of a program survive the loss of all connections, and each request takes
//! effect once. A lease that breaks lets another client continue.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::rig::proxy::{Proxy, Way};
use crate::rig::{
    Case, Peer, Rig, SHARE, TIME_LIMIT, assert_status, connect_through, tests_over_tcp, within,
};
use anyhow::{Context as _, Result, ensure};
use smbeam_client::{
    Channels, Error, File, LeaseState, LockKind, OpenOptions, Options, Share, Status, Wait,
};
use smbeam_tests::client::Client;
use smbeam_tests::files::{assert_same_file, assert_same_tree, make_tree, write_random};
use smbeam_tests::harness::Test;
use smbeam_tests::subject::{Plan, Subject};
use smbeam_tests::{scale, wait};

pub(crate) fn tests() -> Vec<Test> {
    let cases: &[(&str, Case)] = &[
        ("an_outage_of_the_only_channel", |peer| {
            outage(peer, 1, None)
        }),
        ("an_outage_of_all_channels", |peer| outage(peer, 4, None)),
        ("another_address_of_the_client", |peer| {
            outage(peer, 1, Some(OTHER_ADDRESS))
        }),
        ("transfers_continue_after_an_outage", transfers),
        ("a_break_lets_another_client_continue", a_break),
        ("a_break_waits_for_its_callback", a_slow_callback),
        ("leases_and_durable_opens_are_optional", without),
        ("a_server_that_restarts_closes_files", a_restart),
        ("posix_opens_survive_an_outage", posix_opens),
        ("a_create_without_a_response_is_found", a_lost_response),
    ];
    tests_over_tcp(cases)
}

/// An address of loopback beside the usual one.
const OTHER_ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// Files that the program holds open.
const FILES: usize = 100;
/// Files of which it has locked a range.
const LOCKED: usize = 50;
/// The locked bytes, beyond those that are written.
const RANGE: std::ops::Range<u64> = (1 << 30)..(1 << 30) + 16;
/// A range that is locked and unlocked again and again.
const TOGGLED: std::ops::Range<u64> = (1 << 31)..(1 << 31) + 16;
/// Bytes of a record, and count of records of each file.
const RECORD: usize = 512;
const RECORDS: u64 = 64;
/// Limit for another client that waits for a break: a server waits 35 seconds for an
/// acknowledgment.
const BREAK_LIMIT: Duration = Duration::from_secs(15);

/// The time without a connection.
fn outage_time() -> Duration {
    scale::choose(Duration::from_secs(2), Duration::from_secs(20))
}

/// smbd keeps durable opens only if the kernel knows nothing of its locks.
fn durable(plan: &mut Plan) {
    for line in [
        "kernel oplocks = no",
        "kernel share modes = no",
        "posix locking = no",
    ] {
        plan.samba_globals.push(line.to_owned());
    }
}

fn both() -> OpenOptions {
    OpenOptions::new().read(true).write(true).create(true)
}

/// The record number `number` of a file.
fn record(file: usize, number: u64) -> Vec<u8> {
    let mut bytes = format!("{file}/{number} ").into_bytes();
    bytes.resize(RECORD, b'.');
    bytes
}

/// A program with open files and locks.
struct Program {
    files: Vec<File>,
}

impl Program {
    fn start(share: &Share) -> Result<Self> {
        let mut files = Vec::new();
        for index in 0..FILES {
            let file = share.open(&format!("file-{index}"), &both()).wait()?;
            ensure!(
                file.durable_timeout().is_some(),
                "file {index} is not durable"
            );
            if index < LOCKED {
                file.lock(RANGE, LockKind::Exclusive, false).wait()?;
            }
            files.push(file);
        }
        Ok(Self { files })
    }

    /// Writes records of all files one after the other, and locks and unlocks a range of each,
    /// until `is_over` and a last round. Counts rounds.
    fn run(&self, rounds: &AtomicU64, is_over: &AtomicBool) -> Result<(), Error> {
        loop {
            let is_last = is_over.load(Ordering::Relaxed);
            let round = rounds.load(Ordering::Relaxed);
            for (index, file) in self.files.iter().enumerate() {
                file.lock(TOGGLED, LockKind::Exclusive, false).wait()?;
                let offset = (round % RECORDS) * RECORD as u64;
                file.write_at(record(index, round), offset).wait().0?;
                let (count, bytes) = file.read_at(vec![0; RECORD], offset).wait();
                assert!(count? == RECORD && bytes == record(index, round));
                file.unlock(TOGGLED).wait()?;
            }
            rounds.fetch_add(1, Ordering::Relaxed);
            if is_last {
                return Ok(());
            }
        }
    }
}

/// The content of a file after this count of rounds.
fn content(file: usize, rounds: u64) -> Vec<u8> {
    let last = |slot: u64| (0..rounds).rev().find(|round| round % RECORDS == slot);
    let numbers = (0..RECORDS).map_while(last);
    numbers.flat_map(|number| record(file, number)).collect()
}

fn outage(peer: Peer, channels: usize, source: Option<Ipv4Addr>) -> Result<()> {
    let rig = Rig::with(peer, |plan| {
        durable(plan);
        plan.channels = channels > 1;
    })?;
    let proxy = Proxy::to(rig.endpoint())?;
    let options = Options::default().channels(Channels::Exactly(channels));
    let session = connect_through(&proxy, options)?;
    ensure!(session.info().channels.len() == channels);
    let share = session.share(SHARE).wait()?;
    let program = Program::start(&share)?;
    let (rounds, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let running = scope.spawn(|| program.run(&rounds, &is_over));
        let started = wait::until("the first round", TIME_LIMIT, || {
            rounds.load(Ordering::Relaxed) > 0 || running.is_finished()
        });
        proxy.interrupt(outage_time(), source);
        let before = rounds.load(Ordering::Relaxed);
        let continued = wait::until("further rounds", TIME_LIMIT, || {
            rounds.load(Ordering::Relaxed) > before + 1 || running.is_finished()
        });
        is_over.store(true, Ordering::Relaxed);
        let result = running.join().ok().context("a panic")?;
        result.context("a call failed")?;
        started.and(continued)
    })?;
    let info = session.info();
    ensure!(info.resumptions == 1, "{} resumptions", info.resumptions);
    let rounds = rounds.load(Ordering::Relaxed);
    for index in 0..FILES {
        rig.assert_holds(&format!("file-{index}"), &content(index, rounds))?;
    }
    assert_locks(&rig, &program)?;
    wait::until("all channels", TIME_LIMIT, || {
        session.info().channels.len() == channels
    })
}

/// Fails unless the locks exclude another client, and end with their unlock.
fn assert_locks(rig: &Rig, program: &Program) -> Result<()> {
    let other = rig.share()?;
    for (index, file) in program.files.iter().enumerate() {
        let theirs = other.open(&format!("file-{index}"), &both()).wait()?;
        let mut lock = theirs.lock(RANGE, LockKind::Exclusive, false).wait();
        if index < LOCKED {
            assert_status(lock, Status::LOCK_NOT_GRANTED)?;
            file.unlock(RANGE).wait()?;
            lock = theirs.lock(RANGE, LockKind::Exclusive, false).wait();
        }
        lock?;
        theirs.lock(TOGGLED, LockKind::Exclusive, false).wait()?;
    }
    Ok(())
}

/// Opens of the SMB3 POSIX extensions continue after an outage: one with a lock, one of a removed
/// file, and one of a file that another has replaced. smbd refuses a reconnect to a file without a
/// name.
fn posix_opens(peer: Peer) -> Result<()> {
    if peer.subject == Subject::Samba {
        return Ok(());
    }
    let rig = Rig::new(peer)?;
    let proxy = Proxy::to(rig.endpoint())?;
    let session = connect_through(&proxy, Options::default())?;
    let share = session.share(SHARE).wait()?;
    let share = share.with_posix().context("a share without POSIX")?;
    let [locked, removed, replaced] = ["locked", "removed", "replaced"].map(|name| {
        let file = share.open(name, &both()).wait()?;
        ensure!(file.durable_timeout().is_some(), "{name} is not durable");
        file.write_at(name.as_bytes().to_vec(), 0).wait().0?;
        Ok(file)
    });
    let (locked, removed, replaced) = (locked?, removed?, replaced?);
    locked.lock(RANGE, LockKind::Exclusive, false).wait()?;
    // An unlock of any part, as fcntl(2) has it.
    locked.unlock(RANGE.start + 4..RANGE.end).wait()?;
    share.remove_file("removed").wait()?;
    std::fs::write(rig.path("new"), b"new")?;
    share.rename("new", "replaced", true).wait()?;

    proxy.interrupt(outage_time(), None);

    for (file, content) in [(&removed, "removed"), (&replaced, "replaced")] {
        let metadata = file.metadata().wait()?;
        ensure!(metadata.links == Some(0), "{content}: {metadata:?}");
        file.write_at(b"more".to_vec(), 100).wait().0?;
        let (count, bytes) = file.read_at(vec![0; 200], 0).wait();
        ensure!(count? == 104, "{content} has another length");
        ensure!(bytes.starts_with(content.as_bytes()) && bytes[100..].starts_with(b"more"));
    }
    ensure!(!rig.path("removed").exists());
    rig.assert_holds("replaced", b"new")?;
    let info = session.info();
    ensure!(info.resumptions == 1, "{} resumptions", info.resumptions);

    let other = rig.share()?;
    let other = other.with_posix().context("a share without POSIX")?;
    let theirs = other.open("locked", &both()).wait()?;
    let kept = RANGE.start..RANGE.start + 4;
    let lock = theirs.lock(kept.clone(), LockKind::Exclusive, false).wait();
    assert_status(lock, Status::LOCK_NOT_GRANTED)?;
    let unlocked = RANGE.start + 4..RANGE.end;
    theirs.lock(unlocked, LockKind::Exclusive, false).wait()?;
    locked.unlock(kept.clone()).wait()?;
    theirs.lock(kept, LockKind::Exclusive, false).wait()?;
    for file in [locked, removed, replaced, theirs] {
        file.close().wait()?;
    }
    Ok(())
}

/// The connection ends before the response to a CREATE, and to a compound of a CREATE and a query.
/// The client receives the open that the server made, and no second one remains.
fn a_lost_response(peer: Peer) -> Result<()> {
    let rig = Rig::with(peer, durable)?;
    let proxy = Proxy::to(rig.endpoint())?;
    let session = connect_through(&proxy, Options::default())?;
    let share = session.share(SHARE).wait()?;
    let other = rig.share()?;
    for (number, is_new, is_compound) in [
        (0, false, false),
        (1, false, true),
        (2, true, false),
        (3, true, true),
    ] {
        let name = format!("file-{number}");
        let options = both().create_new(is_new);
        proxy.cut_at_next(Way::Back);
        let file = match is_compound {
            true => share.open_with_metadata(&name, &options).wait()?.0,
            false => share.open(&name, &options).wait()?,
        };
        ensure!(file.was_created(), "{name}: the open is another one");
        ensure!(file.durable_timeout().is_some(), "{name} is not durable");
        file.write_at(b"data".to_vec(), 0).wait().0?;
        file.close().wait()?;
        rig.assert_holds(&name, b"data")?;
        let alone = OpenOptions::new().read(true).share(false, false, false);
        other.open(&name, &alone).wait()?.close().wait()?;
    }
    let info = session.info();
    ensure!(info.resumptions == 4, "{} resumptions", info.resumptions);
    Ok(())
}

fn transfers(peer: Peer) -> Result<()> {
    let bytes = scale::choose(96 << 20, 1 << 30);
    let rig = Rig::with(peer, durable)?;
    let proxy = Proxy::to(rig.endpoint())?;
    let client = Client::of(&format!("127.0.0.1:{}", proxy.endpoint().port))?;
    let (up, down) = (client.local("up"), rig.path("down"));
    write_random(&up, bytes, 1)?;
    write_random(&down, bytes, 2)?;
    interrupted(&client, &proxy, &["put", "up", "{}"])?;
    assert_same_file(&up, &rig.path("up"))?;
    interrupted(&client, &proxy, &["get", "{}down", "."])?;
    assert_same_file(&down, &client.local("down"))?;
    let tree = client.local("tree");
    make_tree(&tree, 300)?;
    write_random(&tree.join("large"), bytes / 4, 3)?;
    interrupted(&client, &proxy, &["sync", "tree", "{}tree"])?;
    assert_same_tree(&tree, &rig.path("tree"))?;
    assert_no_parts(&rig.path("tree"))
}

/// Runs a command during which all connections are lost for some time.
fn interrupted(client: &Client, proxy: &Proxy, arguments: &[&str]) -> Result<()> {
    let before = proxy.passed();
    let mut child = client.spawn(arguments)?;
    wait::until("some of the bytes", TIME_LIMIT, || {
        proxy.passed() > before + (4 << 20)
    })?;
    proxy.interrupt(outage_time(), None);
    let status = wait::for_end(&mut child, 2 * TIME_LIMIT)?;
    let output = client.spawned(status.and_then(|status| status.code()))?;
    ensure!(output.code == Some(0), "{arguments:?}: {output}");
    Ok(())
}

fn assert_no_parts(directory: &Path) -> Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let name = entry?.file_name();
        ensure!(
            !name.to_string_lossy().ends_with(".part"),
            "{name:?} is left"
        );
    }
    Ok(())
}

fn a_break(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    let session = rig.session()?;
    let file = session.share(SHARE).wait()?.open("file", &both()).wait()?;
    let all = LeaseState(7);
    let lease = file.lease().context("a lease")?;
    ensure!(lease.state == all, "{lease:?}");
    let again = file.share().open("file", &both()).wait()?;
    ensure!(
        again.lease() == file.lease(),
        "opens of a path share a lease"
    );
    let (sender, breaks) = mpsc::channel();
    file.on_lease_break(move |event| {
        let _ = sender.send(event);
    });
    let other = rig.share()?;
    let theirs = within(BREAK_LIMIT, other.open("file", &both())).context("the other waits")??;
    let event = breaks.recv_timeout(TIME_LIMIT)?;
    ensure!(event.from == all && event.to != all, "{event:?}");
    ensure!(event.epoch > lease.epoch, "{event:?}, {lease:?}");
    let now = file.lease().context("a lease")?;
    ensure!((now.state, now.epoch) == (event.to, event.epoch), "{now:?}");
    theirs.write_at(vec![7; 100], 0).wait().0?;
    let (count, bytes) = file.read_at(vec![0; 100], 0).wait();
    ensure!(count? == 100 && bytes == [7; 100]);
    Ok(())
}

fn a_slow_callback(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    let session = rig.session()?;
    let file = session.share(SHARE).wait()?.open("file", &both()).wait()?;
    // A cache that writes back.
    let cached = file.clone();
    let has_written = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&has_written);
    file.on_lease_break(move |event| {
        let holds = |rights: LeaseState| rights.contains(LeaseState::WRITE_CACHING);
        if holds(event.from) && !holds(event.to) {
            let written = cached.write_at(vec![9; 3 << 20], 0).wait().0;
            flag.store(written.is_ok(), Ordering::SeqCst);
        }
    });
    let other = rig.share()?;
    let reading = OpenOptions::new().read(true);
    let theirs = within(BREAK_LIMIT, other.open("file", &reading)).context("it waits")??;
    ensure!(
        has_written.load(Ordering::SeqCst),
        "the callback comes first"
    );
    let (count, bytes) = theirs.read_at(vec![0; 3 << 20], 0).wait();
    ensure!(count? == 3 << 20 && bytes.iter().all(|byte| *byte == 9));
    file.close().wait()?;
    Ok(())
}

fn without(peer: Peer) -> Result<()> {
    let rig = Rig::with(peer, durable)?;
    for (options, has_lease) in [
        (Options::default().leases(false), false),
        (Options::default().durable(false), true),
    ] {
        let session = rig.connect(options)?;
        let info = session.info();
        ensure!(info.leases == has_lease && !info.durable, "{info:?}");
        let file = session.share(SHARE).wait()?.open("file", &both()).wait()?;
        ensure!(file.lease().is_some() == has_lease && file.durable_timeout().is_none());
        file.close().wait()?;
    }
    let share = rig.share()?;
    let none = both().lease(LeaseState::NONE);
    ensure!(share.open("file", &none).wait()?.lease().is_none());
    let file = share.open("file", &both().durable(false)).wait()?;
    ensure!(file.durable_timeout().is_none());
    Ok(())
}

/// A server that was killed has forgotten the opens. The session continues, a file that is only
/// read too, and a file with unknown writes does not.
fn a_restart(peer: Peer) -> Result<()> {
    let mut rig = Rig::with(peer, durable)?;
    std::fs::write(rig.path("read"), vec![5; 1000])?;
    let share = rig.share()?;
    let session = share.session().clone();
    let reading = OpenOptions::new().read(true);
    let read = share.open("read", &reading).wait()?;
    let written = share.open("written", &both()).wait()?;
    rig.server.kill()?;
    rig.server.restart()?;
    let (count, bytes) = read.read_at(vec![0; 1000], 0).wait();
    ensure!(count? == 1000 && bytes == [5; 1000]);
    let error = written
        .write_at(vec![1; 10], 0)
        .wait()
        .0
        .err()
        .context("it works")?;
    let text = error.to_string();
    ensure!(error.is_lost() && text.contains("written"), "{text}");
    ensure!(text.contains("the server closed the file"), "{text}");
    written.close().wait()?;
    share.open("written", &both()).wait()?.close().wait()?;
    ensure!(session.info().resumptions == 1 && !session.is_lost());
    Ok(())
}
