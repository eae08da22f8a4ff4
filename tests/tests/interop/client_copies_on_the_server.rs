//! A copy within a server moves no data over the wire, and holes stay holes.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};

use crate::rig::{Peer, Rig, SHARE, for_each_transport, pattern};
use anyhow::{Result, ensure};
use smbeam_client::{OpenOptions, Session, Wait, WriteOptions};
use smbeam_tests::subject::{Plan, Share};

for_each_transport!(
    copies_move_no_data,
    copies_go_from_share_to_share,
    ranges_are_copied,
    holes_stay_holes,
    ranges_become_holes,
);

const FILE_BYTES: usize = 40_000_003;
/// Bytes that opening, copying and closing may need on the wire.
const OVERHEAD_BYTES: u64 = 20_000;

fn moved(session: &Session) -> u64 {
    let channels = session.info().channels;
    channels
        .iter()
        .map(|channel| channel.sent + channel.received)
        .sum()
}

fn copies_move_no_data(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    let session = rig.session()?;
    let share = session.share(SHARE).wait()?;
    for (name, length) in [("large", FILE_BYTES), ("small", 1), ("empty", 0)] {
        let bytes = pattern(length, 1);
        fs::write(rig.path(name), &bytes)?;
        let copy = format!("{name}-copy");
        let mut reported = 0;
        let before = moved(&session);
        let mut progress = |count| reported += count;
        let copied = share.copy(name, &share, &copy, &mut progress).wait()?;
        let moved = moved(&session) - before;
        ensure!(
            copied == length as u64 && reported == copied,
            "{copied} bytes, {reported} reported"
        );
        ensure!(moved < OVERHEAD_BYTES, "{moved} bytes went over the wire");
        rig.assert_holds(&copy, &bytes)?;
    }
    // The copy replaces an existing file, also a longer one.
    share
        .copy("small", &share, "large-copy", &mut |_| ())
        .wait()?;
    rig.assert_holds("large-copy", &pattern(1, 1))
}

fn copies_go_from_share_to_share(peer: Peer) -> Result<()> {
    let rig = Rig::with(peer, |plan: &mut Plan| {
        let other = plan.shares[0].path.join("other");
        if make_open(&other).is_ok() {
            plan.shares.push(Share::new("other", &other));
        }
    })?;
    let session = rig.session()?;
    let (share, other) = (session.share(SHARE).wait()?, session.share("other").wait()?);
    let bytes = pattern(FILE_BYTES, 2);
    fs::write(rig.path("file"), &bytes)?;
    let before = moved(&session);
    share.copy("file", &other, "copy", &mut |_| ()).wait()?;
    let moved = moved(&session) - before;
    ensure!(moved < OVERHEAD_BYTES, "{moved} bytes went over the wire");
    rig.assert_holds("other/copy", &bytes)
}

fn make_open(directory: &std::path::Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::create_dir(directory)?;
    fs::set_permissions(directory, fs::Permissions::from_mode(0o777))?;
    Ok(())
}

fn ranges_are_copied(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    let share = rig.share()?;
    let bytes = pattern(5_000_000, 3);
    share
        .write("from", bytes.clone(), &WriteOptions::default())
        .wait()?;
    share
        .write("to", vec![7; 100], &WriteOptions::default())
        .wait()?;
    let from = share.open("from", &OpenOptions::new().read(true)).wait()?;
    let both = OpenOptions::new().read(true).write(true);
    let to = share.open("to", &both).wait()?;
    // Odd offsets, more than one chunk, and beyond the end of the file.
    let copied = from.copy_range_to(&to, 1_000_001, 50, 3_000_001).wait()?;
    ensure!(copied == 3_000_001, "{copied}");
    let mut wanted = vec![7; 50];
    wanted.extend_from_slice(&bytes[1_000_001..4_000_002]);
    rig.assert_holds("to", &wanted)
}

/// Bytes outside of holes.
const ISLAND_BYTES: usize = 1 << 16;

fn holes_stay_holes(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    let share = rig.share()?;
    let new = OpenOptions::new().read(true).write(true).create_new(true);
    let file = share.open("sparse", &new).wait()?;
    file.set_sparse(true).wait()?;
    let length = 1 << 30;
    file.set_len(length).wait()?;
    let offsets = [1 << 20, 512 << 20, length - ISLAND_BYTES as u64];
    for offset in offsets {
        file.write_at(pattern(ISLAND_BYTES, offset), offset)
            .wait()
            .0?;
    }
    let ranges = file.allocated_ranges(0..length).wait()?;
    let wanted = offsets.map(|offset| offset..offset + ISLAND_BYTES as u64);
    ensure!(
        ranges == wanted,
        "{ranges:?} are no holes, and {wanted:?} should be"
    );
    // The answer stays within the requested range.
    let start = offsets[0] + 4096;
    let part = file.allocated_ranges(start..offsets[1]).wait()?;
    let is_right = matches!(&part[..], [range] if *range == (start..wanted[0].end));
    ensure!(is_right, "{part:?} from {start} on");
    let metadata = file.metadata().wait()?;
    ensure!(metadata.size == length, "{metadata:?}");
    ensure!(metadata.allocation < 8 << 20, "{metadata:?}");
    let on_disk = fs::metadata(rig.path("sparse"))?;
    ensure!(
        on_disk.blocks() * 512 < 8 << 20,
        "{} blocks",
        on_disk.blocks()
    );
    let (count, hole) = file.read_at(vec![1; 100_000], 300 << 20).wait();
    ensure!(
        count? == 100_000 && hole.iter().all(|byte| *byte == 0),
        "a hole is no zeros"
    );
    file.close().wait()?;
    Ok(())
}

fn ranges_become_holes(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    let share = rig.share()?;
    let local = File::create(rig.path("file"))?;
    let bytes = pattern(8 << 20, 5);
    local.write_all_at(&bytes, 0)?;
    // The writer is alice, and another user made the file.
    let read_and_write = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    fs::set_permissions(rig.path("file"), read_and_write)?;
    let open = OpenOptions::new().read(true).write(true);
    let file = share.open("file", &open).wait()?;
    file.set_sparse(true).wait()?;
    let (start, end) = (1 << 20, 5 << 20);
    file.zero_range(start..end).wait()?;
    let ranges = file.allocated_ranges(0..8 << 20).wait()?;
    ensure!(ranges == [0..start, end..8 << 20], "{ranges:?}");
    let mut wanted = bytes;
    wanted[1 << 20..5 << 20].fill(0);
    ensure!(
        share.read("file").wait()? == wanted,
        "something else was zeroed"
    );
    rig.assert_holds("file", &wanted)
}
