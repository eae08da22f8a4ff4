//! Named streams and extended attributes up to the limits of each file system, and past them; with
//! `large_streams`, streams have no limit.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use smbeam_client::{
    Error, ExtendedAttribute, OpenOptions, Share as Connected, Status, Transport, Wait,
};
use smbeam_tests::lab::Lab;
use smbeam_tests::random::Random;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::smbclient::Smbclient;
use smbeam_tests::subject::{Share, Subject};
use smbeam_tests::tests;
use smbeam_tests::volume::{FileSystem, Volume};

use crate::rig::{Peer, Rig, assert_status};

tests!(
    large_streams_are_the_same_in_both_directions,
    streams_and_attributes_on_ext4,
    streams_and_attributes_on_btrfs,
    streams_and_attributes_on_xfs,
    streams_and_attributes_on_tmpfs,
);

/// The share that keeps large streams.
const LARGE: &str = "large";
/// Maximum length of a stream in an extended attribute in bytes.
const STREAM_MAX: usize = 65_535;
/// Length of the file systems in bytes; btrfs and xfs need more than 300 MB.
const VOLUME_LEN: u64 = 512 << 20;
/// Number of streams of one file.
const STREAMS: usize = 200;
/// Maximum length of the name of a stream in bytes of UTF-8: 255 without `user.DosStream.` and
/// `:$DATA`.
const STREAM_NAME_MAX: usize = 255 - 15 - 6;
/// Maximum length of the name of an extended attribute in bytes: 255 without `user.`.
const ATTRIBUTE_NAME_MAX: usize = 250;

/// A server with the directory as the share `data`, and as one that keeps large streams.
fn rig(directory: &Path) -> Result<Rig> {
    let scratch = Scratch::new("limits")?;
    let peer = Peer {
        subject: Subject::Smbeam,
        transport: Transport::Tcp,
    };
    fs::set_permissions(directory, fs::Permissions::from_mode(0o777))?;
    Rig::sharing(peer, scratch, directory, |plan| {
        plan.shares.push(Share {
            large_streams: true,
            ..Share::new(LARGE, directory)
        });
    })
}

fn new_stream() -> OpenOptions {
    OpenOptions::new().write(true).create(true)
}

/// Writes a stream by one request. Removes it if that fails.
fn write(share: &Connected, file: &str, name: &str, data: Vec<u8>) -> Result<(), Error> {
    let stream = share.open_stream(file, name, &new_stream()).wait()?;
    let written = stream.write_at(data, 0).wait().0;
    stream.close().wait()?;
    written.map(drop).inspect_err(|_| {
        let _ = share.remove_stream(file, name).wait();
    })
}

fn read(share: &Connected, file: &str, name: &str, length: usize) -> Result<Vec<u8>> {
    let reading = OpenOptions::new().read(true);
    let stream = share.open_stream(file, name, &reading).wait()?;
    let mut data = Vec::new();
    while data.len() < length + 1 {
        let part = stream.read(1 << 20, data.len() as u64).wait()?;
        if part.is_empty() {
            break;
        }
        data.extend_from_slice(&part);
    }
    stream.close().wait()?;
    Ok(data)
}

fn make(share: &Connected, name: &str) -> Result<()> {
    let file = share.open(name, &new_stream()).wait()?;
    Ok(file.close().wait()?)
}

fn random(length: usize) -> Vec<u8> {
    let mut data = vec![0; length];
    Random::new(length as u64).fill(&mut data);
    data
}

/// The largest length up to `max` that `fits`. 1 fits.
fn largest(max: usize, fits: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (1, max + 1);
    while high - low > 1 {
        let middle = low.midpoint(high);
        match fits(middle) {
            true => low = middle,
            false => high = middle,
        }
    }
    low
}

fn large_streams_are_the_same_in_both_directions() -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("large-streams")?;
    let directory = scratch.open_directory("share")?;
    let rig = rig(&directory)?;
    let share = rig.session()?.share(LARGE).wait()?;
    let smbclient = Smbclient::new(&lab, &rig.server).share(LARGE);
    make(&share, "file")?;
    for length in [STREAM_MAX - 1, STREAM_MAX, STREAM_MAX + 1, 5_000_001] {
        let data = random(length);
        let (up, down) = (scratch.path().join("up"), scratch.path().join("down"));
        fs::write(&up, &data)?;
        let (up, down) = (up.display(), down.display());
        smbclient.run(&format!("put {up} file:theirs"))?;
        ensure!(
            read(&share, "file", "theirs", length)? == data,
            "smbclient has written other data: {length}"
        );
        write(&share, "file", "ours", data.clone())?;
        smbclient.run(&format!("get file:ours {down}"))?;
        let found = fs::read(scratch.path().join("down"))?;
        ensure!(found == data, "smbclient has read other data: {length}");
        smbclient.run(&format!("get file:theirs {down}"))?;
        let found = fs::read(scratch.path().join("down"))?;
        ensure!(found == data, "smbclient has other data: {length}");
        for name in ["ours", "theirs"] {
            share.remove_stream("file", name).wait()?;
        }
    }
    Ok(())
}

fn streams_and_attributes_on_ext4() -> Result<()> {
    // A block of 4 KiB for all attributes of a file, with their names.
    check(FileSystem::Ext4, 3_500..=4_096, Status::DISK_FULL)
}

fn streams_and_attributes_on_btrfs() -> Result<()> {
    // A node of 16 KiB without its headers.
    check(FileSystem::Btrfs, 16_000..=16_384, Status::DISK_FULL)
}

fn streams_and_attributes_on_xfs() -> Result<()> {
    let refusal = Status::ALLOTTED_SPACE_EXCEEDED;
    check(FileSystem::Xfs, STREAM_MAX..=STREAM_MAX, refusal)
}

fn streams_and_attributes_on_tmpfs() -> Result<()> {
    let refusal = Status::ALLOTTED_SPACE_EXCEEDED;
    check(FileSystem::Tmpfs, STREAM_MAX..=STREAM_MAX, refusal)
}

/// Checks the limits on a file system where the largest stream is in `limits`.
fn check(
    file_system: FileSystem,
    limits: std::ops::RangeInclusive<usize>,
    refusal: Status,
) -> Result<()> {
    let volume = Volume::new(file_system, VOLUME_LEN)?;
    let directory = volume.path().join("share");
    fs::create_dir(&directory)?;
    let rig = rig(&directory)?;
    let share = rig.share()?;
    lengths_of_streams(&share, &limits, refusal).context("lengths of streams")?;
    names_of_streams(&share).context("names of streams")?;
    number_of_streams(&share, refusal).context("number of streams")?;
    lengths_of_attributes(&share).context("lengths of attributes")?;
    names_of_attributes(&share).context("names of attributes")?;
    let large = rig.session()?.share(LARGE).wait()?;
    make(&large, "unlimited")?;
    let limit = *limits.end();
    for length in [limit - 1, limit, limit + 1, 300_000] {
        write(&large, "unlimited", "stream", random(length))?;
        let found = read(&large, "unlimited", "stream", length)?;
        ensure!(found == random(length), "{length} bytes are others");
    }
    Ok(())
}

fn lengths_of_streams(
    share: &Connected,
    limits: &std::ops::RangeInclusive<usize>,
    refusal: Status,
) -> Result<()> {
    make(share, "lengths")?;
    // On btrfs the limit depends on the length of the name.
    let limit = largest(STREAM_MAX + 1, |length| {
        write(share, "lengths", "stream", random(length)).is_ok()
            && share.remove_stream("lengths", "stream").wait().is_ok()
    });
    ensure!(limits.contains(&limit), "the limit is {limit}");
    for length in [limit - 1, limit] {
        write(share, "lengths", "stream", random(length))?;
        ensure!(read(share, "lengths", "stream", length)? == random(length));
        share.remove_stream("lengths", "stream").wait()?;
    }
    // A write that fails leaves the stream as it was.
    let stream = share
        .open_stream("lengths", "stream", &new_stream())
        .wait()?;
    stream.write_at(random(100), 0).wait().0?;
    assert_status(stream.write_at(random(limit + 1), 0).wait().0, refusal)?;
    stream.close().wait()?;
    ensure!(read(share, "lengths", "stream", 100)? == random(100));
    Ok(())
}

fn names_of_streams(share: &Connected) -> Result<()> {
    make(share, "names")?;
    let long = "n".repeat(STREAM_NAME_MAX);
    for name in [&long[1..], &long] {
        write(share, "names", name, b"data".to_vec())?;
        ensure!(read(share, "names", name, 4)? == b"data");
        share.remove_stream("names", name).wait()?;
    }
    let longer = long + "n";
    let refused = write(share, "names", &longer, b"data".to_vec());
    assert_status(refused, Status::OBJECT_NAME_INVALID)
}

fn number_of_streams(share: &Connected, refusal: Status) -> Result<()> {
    make(share, "number")?;
    let mut count = 0;
    while count < STREAMS {
        match write(
            share,
            "number",
            &format!("stream {count}"),
            b"data".to_vec(),
        ) {
            Ok(()) => count += 1,
            Err(Error::Status { status, .. }) if status == refusal => break,
            Err(error) => return Err(error.into()),
        }
    }
    ensure!(count > 30, "{count} streams");
    ensure!(share.streams("number").wait()?.len() == count);
    for index in 0..count {
        let name = format!("stream {index}");
        ensure!(read(share, "number", &name, 4)? == b"data", "{name}");
    }
    Ok(())
}

fn lengths_of_attributes(share: &Connected) -> Result<()> {
    make(share, "attributes")?;
    let set = |length: usize| {
        let value = [ExtendedAttribute::new("NAME", random(length))];
        share.set_extended_attributes("attributes", &value).wait()
    };
    let limit = largest(STREAM_MAX, |length| set(length).is_ok());
    ensure!(limit > 3_000, "the limit is {limit}");
    for length in [limit - 1, limit] {
        set(length)?;
        let found = share.extended_attributes("attributes").wait()?;
        ensure!(found.len() == 1 && found[0].value == random(length));
    }
    assert_status(set(limit + 1), Status::EA_TOO_LARGE)?;
    let found = share.extended_attributes("attributes").wait()?;
    ensure!(found.len() == 1 && found[0].value == random(limit));
    Ok(())
}

fn names_of_attributes(share: &Connected) -> Result<()> {
    make(share, "attribute names")?;
    let file = "attribute names";
    let set = |length: usize| {
        let name = "N".repeat(length);
        let value = [ExtendedAttribute::new(name.as_str(), "value")];
        share.set_extended_attributes(file, &value).wait()
    };
    for length in [ATTRIBUTE_NAME_MAX - 1, ATTRIBUTE_NAME_MAX] {
        set(length)?;
        let found = share.extended_attributes(file).wait()?;
        let has_it = found.iter().any(|it| it.name.len() == length);
        ensure!(has_it, "no name with {length} bytes");
    }
    ensure!(set(ATTRIBUTE_NAME_MAX + 1).is_err(), "the name is too long");
    ensure!(share.extended_attributes(file).wait()?.len() == 2);
    Ok(())
}
