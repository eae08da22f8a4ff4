//! A session of several connections: all of them carry its data, and none is missed when it breaks.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::rig::proxy::{Cut, Proxy, Way};
use crate::rig::{Peer, Rig, SHARE, TIME_LIMIT, connect_through, for_each_transport, pattern};
use anyhow::{Context as _, Result, ensure};
use smbeam_client::transfer::{TransferOptions, download, upload};
use smbeam_client::{
    Channels, Error, OpenOptions, Options, Protection, Session, Share, Transport, Wait,
    WriteOptions,
};
use smbeam_tests::subject::Subject;
use smbeam_tests::wait;
use wire::dialect::Dialect;

for_each_transport!(
    every_channel_carries_data,
    the_server_lists_its_interfaces,
    there_is_one_channel_where_more_do_not_help,
    a_channel_that_breaks_within_a_frame_loses_nothing,
    one_channel_after_the_other_may_break,
    nothing_is_done_twice,
    the_last_channel_takes_the_session_along,
);

const FILE_BYTES: usize = 48 << 20;
/// Limit of transfers until all channels have carried data.
const TRIES: usize = 10;
/// Bytes of the file that each of four channels carries at least.
const SHARE_BYTES: u64 = 1 << 20;
/// The same where RDMA carries the data: more than a login and a few requests.
const REQUEST_BYTES: u64 = 3000;
/// Within an answer, near the end of the part of one channel of four.
const LATE_BYTES: u64 = (2 << 20) + 12_345;
/// Within its first answer. A channel that has lost its last packet waits for longer than the other
/// channels need for the rest of the file, so a test over QUIC cannot expect more.
const EARLY_BYTES: u64 = 200 << 10;
/// Enough requests that all channels have some.
const OPTIONS: TransferOptions = TransferOptions::new().io_size(256 << 10).depth(16).span(0);

fn rig(peer: Peer) -> Result<Rig> {
    Rig::with(peer, |plan| plan.channels = true)
}

fn channels(count: usize, protection: Protection) -> Options {
    Options::default()
        .channels(Channels::Exactly(count))
        .protection(protection)
}

/// Sends a file; `progress` receives the number of sent bytes.
fn send(share: &Share, name: &str, bytes: &[u8], progress: &mut dyn Progress) -> Result<(), Error> {
    let new = OpenOptions::new().write(true).create(true).truncate(true);
    let file = share.open(name, &new).wait()?;
    let mut source = bytes;
    let mut add = |count| progress.add(count);
    upload(&file, 0..u64::MAX, &mut source, &OPTIONS, &mut add).wait()?;
    file.close().wait()
}

fn fetch(share: &Share, name: &str, progress: &mut dyn Progress) -> Result<Vec<u8>, Error> {
    let file = share.open(name, &OpenOptions::new().read(true)).wait()?;
    let mut bytes = vec![0; FILE_BYTES];
    let mut sink = |offset: u64, piece: &[u8]| {
        let start = usize::try_from(offset).map_err(std::io::Error::other)?;
        bytes[start..start + piece.len()].copy_from_slice(piece);
        Ok(())
    };
    let mut add = |count| progress.add(count);
    download(&file, 0..FILE_BYTES as u64, &mut sink, &OPTIONS, &mut add).wait()?;
    file.close().wait()?;
    Ok(bytes)
}

/// Counts bytes, and may do something about it.
trait Progress: Send {
    fn add(&mut self, count: u64);
}

impl<F: FnMut(u64) + Send> Progress for F {
    fn add(&mut self, count: u64) {
        self(count);
    }
}

fn every_channel_carries_data(peer: Peer) -> Result<()> {
    let rig = rig(peer)?;
    let all = [Protection::AsAsked, Protection::Encrypt, Protection::Sign];
    for &protection in &all[..peer.amount(3, 2)] {
        let least = match goes_by_rdma(peer, protection) {
            true => REQUEST_BYTES,
            false => SHARE_BYTES,
        };
        for count in [1, 2, 4] {
            let session = rig.connect(channels(count, protection))?;
            let there = session.info().channels.len();
            ensure!(
                there == count,
                "{there} channels of {count}, {protection:?}"
            );
            let share = session.share(SHARE).wait()?;
            let bytes = pattern(FILE_BYTES, count as u64);
            let mut are_used = false;
            // A thread of one channel may not run during a whole transfer.
            for _ in 0..TRIES {
                send(&share, "file", &bytes, &mut |_| ())?;
                rig.assert_holds("file", &bytes)?;
                ensure!(
                    fetch(&share, "file", &mut |_| ())? == bytes,
                    "it comes back as something else"
                );
                let mut channels = session.info().channels.into_iter();
                are_used = channels.all(|it| it.sent > least && it.received > least);
                if are_used {
                    break;
                }
            }
            let channels = session.info().channels;
            ensure!(are_used, "one of {count} is idle: {channels:?}");
            session.close().wait()?;
        }
    }
    Ok(())
}

/// Whether data are in no message.
fn goes_by_rdma(peer: Peer, protection: Protection) -> bool {
    peer.transport == Transport::SmbDirect && protection == Protection::AsAsked
}

fn the_server_lists_its_interfaces(peer: Peer) -> Result<()> {
    let rig = rig(peer)?;
    let interfaces = rig.session()?.interfaces().wait()?;
    let loopback = Some(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let found = interfaces.iter().find(|found| found.address == loopback);
    let found = found.with_context(|| format!("{interfaces:?}"))?;
    // smbeam listens by SMB Direct there, too.
    let is_rdma_due = peer.subject == Subject::Smbeam;
    let is_right = found.is_rss_capable && found.is_rdma_capable == is_rdma_due;
    ensure!(is_right, "{found:?}");
    ensure!(found.speed >= 1_000_000_000, "{found:?}");
    Ok(())
}

fn there_is_one_channel_where_more_do_not_help(peer: Peer) -> Result<()> {
    let rig = rig(peer)?;
    let old = channels(4, Protection::AsAsked).dialects(vec![Dialect::SMB_2_1]);
    for options in [old, Options::default()] {
        let session = rig.connect(options)?;
        ensure!(session.info().channels.len() == 1, "{:?}", session.info());
        let share = session.share(SHARE).wait()?;
        share
            .write("file", b"text".to_vec(), &WriteOptions::default())
            .wait()?;
        rig.assert_holds("file", b"text")?;
    }
    Ok(())
}

fn through(proxy: &Proxy, protection: Protection) -> Result<Session> {
    let session = connect_through(proxy, channels(4, protection))?;
    ensure!(session.info().channels.len() == 4, "{:?}", session.info());
    Ok(session)
}

/// The first channel and another, in both directions, plain and encrypted.
fn a_channel_that_breaks_within_a_frame_loses_nothing(peer: Peer) -> Result<()> {
    let rig = rig(peer)?;
    let bytes = pattern(FILE_BYTES, 7);
    let all = [
        (0, Protection::AsAsked),
        (3, Protection::Encrypt),
        (2, Protection::Sign),
    ];
    for &(connection, protection) in &all[..peer.amount(3, 2)] {
        let after = match peer.transport {
            _ if goes_by_rdma(peer, protection) => REQUEST_BYTES,
            Transport::Quic => EARLY_BYTES,
            _ => LATE_BYTES,
        };
        for way in [Way::There, Way::Back] {
            let cut = Cut {
                connection,
                way,
                after,
            };
            let proxy = Proxy::with_cut(rig.endpoint(), Some(cut))?;
            let session = through(&proxy, protection)?;
            let share = session.share(SHARE).wait()?;
            (|| {
                match way {
                    Way::There => send(&share, "file", &bytes, &mut |_| ())?,
                    Way::Back => fs::write(rig.path("file"), &bytes)?,
                }
                let back = fetch(&share, "file", &mut |_| ())?;
                ensure!(proxy.was_cut(), "nothing was cut");
                ensure!(back == bytes, "it comes back as something else");
                rig.assert_holds("file", &bytes)
            })()
            .with_context(|| format!("channel {connection} {way:?}, {protection:?}"))?;
        }
    }
    Ok(())
}

fn one_channel_after_the_other_may_break(peer: Peer) -> Result<()> {
    let rig = rig(peer)?;
    let proxy = Proxy::to(rig.endpoint())?;
    let session = through(&proxy, Protection::AsAsked)?;
    let share = session.share(SHARE).wait()?;
    let bytes = pattern(FILE_BYTES, 8);
    let third = FILE_BYTES as u64 / 3;
    // Two break while a file is sent, and a third while it is fetched.
    let (mut done, mut broken) = (0, 0);
    let mut breaking = |count| {
        done += count;
        if done > third * (broken + 1) && broken < 2 {
            proxy.cut(usize::try_from(broken).unwrap_or(0));
            broken += 1;
        }
    };
    send(&share, "file", &bytes, &mut breaking)?;
    rig.assert_holds("file", &bytes)?;
    let (mut done, mut is_broken) = (0, false);
    let mut breaking = |count| {
        done += count;
        if done > third && !is_broken {
            is_broken = true;
            proxy.cut(2);
        }
    };
    let back = fetch(&share, "file", &mut breaking)?;
    ensure!(is_broken && broken == 2, "nothing was broken");
    ensure!(back == bytes, "it comes back as something else");
    // The rest of the session supports all operations.
    share.rename("file", "renamed", false).wait()?;
    share.remove_file("renamed").wait()?;
    ensure!(!session.info().channels.is_empty(), "{:?}", session.info());
    Ok(())
}

/// Files are made that must not be there, renamed and removed while channels break. A lost
/// answer may make a request fail. A successful request happened once, and none happened twice.
fn nothing_is_done_twice(peer: Peer) -> Result<()> {
    const HANDS: usize = 4;
    const ROUNDS: usize = 60;
    let rig = rig(peer)?;
    let proxy = Proxy::to(rig.endpoint())?;
    let session = through(&proxy, Protection::AsAsked)?;
    let share = session.share(SHARE).wait()?;
    let done = AtomicUsize::new(0);
    let work = |hand: usize| -> Result<Vec<String>> {
        let mut lost = Vec::new();
        for round in 0..ROUNDS {
            let name = format!("{hand}-{round}");
            if let Err(error) = make_and_rename(&share, &name) {
                ensure!(error.is_lost(), "{name}: {error} ({error:?})");
                lost.push(name);
            }
            done.fetch_add(1, Ordering::Relaxed);
        }
        Ok(lost)
    };
    let lost = thread::scope(|scope| {
        let work = &work;
        let hands: Vec<_> = (0..HANDS)
            .map(|hand| scope.spawn(move || work(hand)))
            .collect();
        for broken in 1..HANDS {
            let is_time = || done.load(Ordering::Relaxed) >= broken * ROUNDS;
            wait::until("some of the work", TIME_LIMIT, is_time)?;
            proxy.cut(broken);
        }
        let mut lost = Vec::new();
        for hand in hands {
            lost.extend(hand.join().ok().context("a panic")??);
        }
        anyhow::Ok(lost)
    })?;
    // At most the requests in flight on three channels.
    ensure!(lost.len() <= 3 * HANDS, "{lost:?} were lost");
    for hand in 0..HANDS {
        for round in 0..ROUNDS {
            let name = format!("{hand}-{round}");
            let is_there = [format!("{name}-made"), format!("{name}-renamed")]
                .map(|name| rig.path(&name).exists());
            let is_right = lost.contains(&name) || is_there == [false, true];
            ensure!(is_right, "{name} is made and renamed: {is_there:?}");
        }
    }
    Ok(())
}

fn make_and_rename(share: &Share, name: &str) -> Result<(), Error> {
    let (made, renamed) = (format!("{name}-made"), format!("{name}-renamed"));
    let new = OpenOptions::new().write(true).create_new(true);
    let file = share.open(&made, &new).wait()?;
    file.write_at(name.as_bytes().to_vec(), 0).wait().0?;
    file.close().wait()?;
    share.rename(&made, &renamed, false).wait()
}

fn the_last_channel_takes_the_session_along(peer: Peer) -> Result<()> {
    let mut rig = rig(peer)?;
    fs::write(rig.path("file"), pattern(FILE_BYTES, 9))?;
    let once = channels(4, Protection::AsAsked).reconnect_timeout(Duration::ZERO);
    let session = rig.connect(once)?;
    let share = session.share(SHARE).wait()?;
    let (report, reported) = mpsc::channel();
    let reading = thread::spawn(move || {
        loop {
            let result = fetch(&share, "file", &mut |_| ());
            let _ = report.send(());
            if let Err(error) = result {
                return error;
            }
        }
    });
    reported.recv_timeout(TIME_LIMIT)?;
    rig.server.kill()?;
    let end = loop {
        if let Err(end) = reported.recv_timeout(TIME_LIMIT) {
            break end;
        }
    };
    ensure!(end == RecvTimeoutError::Disconnected, "it hangs");
    let error = reading.join().ok().context("a panic")?;
    ensure!(error.is_lost(), "{error:?}");
    // Each channel finds out for itself.
    let is_gone = || session.info().channels.is_empty();
    wait::until("the channels to go", TIME_LIMIT, is_gone)?;
    ensure!(session.echo().wait().is_err_and(|error| error.is_lost()));
    Ok(())
}
