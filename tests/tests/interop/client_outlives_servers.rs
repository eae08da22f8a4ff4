//! A server that is killed during a transfer: the caller receives the error, and continues later.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::rig::proxy::{Cut, Proxy, Way};
use crate::rig::{Peer, Rig, SHARE, TIME_LIMIT, connect_through, for_each_transport, pattern};
use anyhow::{Context as _, Result, bail, ensure};
use smbeam_client::transfer::{TransferOptions, download, upload};
use smbeam_client::{
    Error, OpenOptions, Options, Protection, Share, Transport, Wait, WriteOptions,
};

for_each_transport!(
    a_download_is_resumed,
    an_upload_is_resumed,
    a_connection_that_breaks_within_a_frame_is_lost,
    a_server_that_comes_back_is_found_again,
);

const FILE_BYTES: usize = 64 << 20;
/// Number of transferred bytes after which the server is killed.
const KILL_BYTES: u64 = 20 << 20;

/// Number and size of the requests in flight. A message of NetBIOS holds at most 64 KiB.
fn options(peer: Peer) -> TransferOptions {
    let io_size = match peer.transport {
        Transport::Nbt => 64 << 10,
        _ => 256 << 10,
    };
    TransferOptions::default().io_size(io_size).depth(8)
}

/// Options of a client that reports a lost connection at once.
fn once() -> Options {
    Options::default().reconnect_timeout(Duration::ZERO)
}

fn share_once(rig: &Rig) -> Result<Share> {
    Ok(rig.connect(once())?.share(SHARE).wait()?)
}

/// Runs `act` on a separate thread and fails if it hangs.
fn soon<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(act()));
    receiver.recv_timeout(TIME_LIMIT).context("it hangs")
}

fn assert_lost<T>(result: Result<T, Error>) -> Result<()> {
    match result {
        Ok(_) => bail!("it worked without a server"),
        Err(error) => {
            let text = error.to_string();
            ensure!(
                error.is_lost() && text.contains("file"),
                "{text} ({error:?})"
            );
            Ok(())
        }
    }
}

fn a_download_is_resumed(peer: Peer) -> Result<()> {
    let mut rig = Rig::new(peer)?;
    let bytes = pattern(FILE_BYTES, 1);
    std::fs::write(rig.path("file"), &bytes)?;
    let file = share_once(&rig)?
        .open("file", &OpenOptions::new().read(true))
        .wait()?;
    let options = options(peer);
    let (report, reported) = mpsc::channel();
    let (resume, resumed) = mpsc::channel::<()>();
    let reading = thread::spawn(move || {
        let mut pieces: Vec<(u64, Vec<u8>)> = Vec::new();
        let mut got = 0;
        let mut sink = |offset: u64, piece: &[u8]| {
            pieces.push((offset, piece.to_vec()));
            got += piece.len() as u64;
            if got >= KILL_BYTES {
                // The server is dead before anything further is asked for.
                let _ = report.send(());
                let _ = resumed.recv_timeout(TIME_LIMIT);
                got = 0;
            }
            Ok(())
        };
        let result = download(&file, 0..u64::MAX, &mut sink, &options, &mut |_| ()).wait();
        (result, pieces)
    });
    reported.recv_timeout(TIME_LIMIT)?;
    rig.server.kill()?;
    drop(resume);
    let (result, pieces) = soon(move || reading.join())?.ok().context("a panic")?;
    assert_lost(result)?;
    // The received pieces are right, and another server sends the rest.
    let mut back = vec![0; FILE_BYTES];
    let mut is_there = vec![false; FILE_BYTES.div_ceil(options.io_size)];
    for (offset, piece) in pieces {
        let start = usize::try_from(offset)?;
        ensure!(start.is_multiple_of(options.io_size) && piece.len() == options.io_size);
        back[start..start + piece.len()].copy_from_slice(&piece);
        is_there[start / options.io_size] = true;
    }
    let count = is_there.iter().filter(|is_there| **is_there).count();
    ensure!(
        count > 0 && count < is_there.len(),
        "{count} of {} pieces came",
        is_there.len()
    );
    rig.server.restart()?;
    let file = rig
        .share()?
        .open("file", &OpenOptions::new().read(true))
        .wait()?;
    for (index, _) in is_there
        .iter()
        .enumerate()
        .filter(|(_, is_there)| !**is_there)
    {
        let start = index * options.io_size;
        let (count, piece) = file.read_at(vec![0; options.io_size], start as u64).wait();
        ensure!(count? == options.io_size);
        back[start..start + options.io_size].copy_from_slice(&piece);
    }
    ensure!(back == bytes, "what was resumed is something else");
    Ok(())
}

fn an_upload_is_resumed(peer: Peer) -> Result<()> {
    let mut rig = Rig::new(peer)?;
    let bytes = pattern(FILE_BYTES, 2);
    let new = OpenOptions::new().write(true).create_new(true);
    let file = share_once(&rig)?.open("file", &new).wait()?;
    let mut options = options(peer);
    // The server may handle requests in any order, on two connections if the client has two. A
    // small span makes sure that all data before the requests in flight are written.
    options.span = (options.io_size * (options.depth + 1)) as u64;
    let (report, reported) = mpsc::channel();
    let (resume, resumed) = mpsc::channel::<()>();
    let source = bytes.clone();
    let writing = thread::spawn(move || {
        let mut done = 0;
        let mut is_reported = false;
        let mut progress = move |count| {
            done += count;
            if done >= KILL_BYTES && !is_reported {
                is_reported = true;
                let _ = report.send(());
                let _ = resumed.recv_timeout(TIME_LIMIT);
            }
        };
        let mut source = source.as_slice();
        upload(&file, 0..u64::MAX, &mut source, &options, &mut progress).wait()
    });
    reported.recv_timeout(TIME_LIMIT)?;
    rig.server.kill()?;
    drop(resume);
    let result = soon(move || writing.join())?.ok().context("a panic")?;
    assert_lost(result)?;
    let on_disk = std::fs::metadata(rig.path("file"))?.len();
    ensure!(
        on_disk >= KILL_BYTES && on_disk <= FILE_BYTES as u64,
        "{on_disk} bytes on disk"
    );
    rig.server.restart()?;
    let share = rig.share()?;
    let file = share.open("file", &OpenOptions::new().write(true)).wait()?;
    let from = KILL_BYTES - options.span;
    let mut rest = &bytes[..];
    upload(&file, from..u64::MAX, &mut rest, &options, &mut |_| ()).wait()?;
    file.close().wait()?;
    rig.assert_holds("file", &bytes)
}

fn a_connection_that_breaks_within_a_frame_is_lost(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    let bytes = pattern(4 << 20, 3);
    std::fs::write(rig.path("file"), &bytes)?;
    // In the midst of the data, where they go straight into the caller's buffer, and of a header.
    let places = [5000, 1_000_000, 1 << 20, (1 << 20) + 3000, (2 << 20) + 77];
    let places = match peer.transport {
        // Packets have no such places, and each cut takes a while to be noticed.
        Transport::Quic => &places[1..2],
        _ => &places[..],
    };
    for &after in places {
        let cut = Cut {
            connection: 0,
            way: Way::Back,
            after,
        };
        let proxy = Proxy::with_cut(rig.endpoint(), Some(cut))?;
        let share = through(&proxy)?;
        let file = share.open("file", &OpenOptions::new().read(true)).wait()?;
        let (result, buffer) = soon(move || file.read_at(vec![0; 4 << 20], 0).wait())?;
        ensure!(proxy.was_cut(), "nothing was cut");
        assert_lost(result)?;
        ensure!(buffer.len() == 4 << 20, "the buffer comes back");
        assert_lost(share.read("file").wait())?;
        // The way there breaks as well, and the file is as it was or new up to some byte.
        let cut = Cut {
            way: Way::There,
            ..cut
        };
        let proxy = Proxy::with_cut(rig.endpoint(), Some(cut))?;
        let share = through(&proxy)?;
        let writing = share.clone();
        let new = pattern(4 << 20, after);
        let options = WriteOptions::default();
        let result = soon(move || writing.write("file-2", new, &options).wait())?;
        ensure!(proxy.was_cut(), "nothing was cut");
        assert_lost(result)?;
    }
    rig.assert_holds("file", &bytes)
}

/// RDMA carries data past the relay unless they are encrypted.
fn through(proxy: &Proxy) -> Result<Share> {
    let protection = match proxy.endpoint().transport {
        Transport::SmbDirect => Protection::Encrypt,
        _ => Protection::AsAsked,
    };
    let session = connect_through(proxy, once().protection(protection))?;
    Ok(session.share(SHARE).wait()?)
}

fn a_server_that_comes_back_is_found_again(peer: Peer) -> Result<()> {
    let mut rig = Rig::new(peer)?;
    for round in 0..peer.amount(3, 1) {
        let share = share_once(&rig)?;
        share
            .write("file", vec![round; 1000], &WriteOptions::default())
            .wait()?;
        rig.server.kill()?;
        assert_lost(share.read("file").wait())?;
        let refused = rig.session().err().context("a login without a server")?;
        ensure!(matches!(refused, Error::Connect(..)), "{refused:?}");
        rig.server.restart()?;
        ensure!(rig.share()?.read("file").wait()? == vec![round; 1000]);
    }
    Ok(())
}
