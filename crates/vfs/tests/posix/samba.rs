//! DOS attributes and named streams are compatible with Samba in both directions.

use std::fs;

use proto::file::{Existing, FileOp, KindWanted, OpenPlan, Opened, Operation};
use proto::path::{SharePath, StreamName};
use rustix::fs::{XattrFlags, getxattr, setxattr};
use vfs::dosattrib::DosInfo;
use vfs::posix::Options;
use wire::access::{AccessMask, FileAttributes};
use wire::{FileTime, Status};

use crate::share::LocalDirectory;

const NAME: &str = "user.DOSATTRIB";

/// Whether the directory supports extended attributes; prints a message if not.
fn keeps(local: &LocalDirectory) -> bool {
    let set = setxattr(local.path(""), "user.probe", b"x", XattrFlags::empty());
    if let Err(error) = &set {
        println!("skipped: no extended attributes here ({error})");
    }
    set.is_ok()
}

#[test]
fn attributes_written_by_samba_are_read() {
    let local = LocalDirectory::new(Options::default());
    if !keeps(&local) {
        return;
    }
    fs::write(local.path("f"), b"").expect("a file");
    let plain = local
        .share
        .open_for("f", AccessMask::FILE_READ_ATTRIBUTES)
        .expect("a file");
    assert_eq!(plain.metadata.attributes, FileAttributes::NONE);
    // Version 3, as in smbd 3.5 to 4.10: HIDDEN and ARCHIVE, with a creation time.
    let born = FileTime(0x01D5_C03F_6E11_8000);
    let mut value = b"0x22\0\0\x03\0\x03\0\0\0\x11\0\0\0\x22\0\0\0\0\0\0\0".to_vec();
    value.extend([0; 16]);
    value.extend(born.0.to_le_bytes());
    value.extend([0; 8]);
    setxattr(local.path("f"), NAME, &value, XattrFlags::empty()).expect("an attribute");
    let seen = local
        .share
        .open_for("f", AccessMask::FILE_READ_ATTRIBUTES)
        .expect("a file");
    let expected = FileAttributes::HIDDEN | FileAttributes::ARCHIVE;
    assert_eq!(seen.metadata.attributes, expected);
    assert_eq!(seen.metadata.created, born);
}

#[test]
fn attributes_are_written_in_the_newest_version() {
    let local = LocalDirectory::new(Options::default());
    if !keeps(&local) {
        return;
    }
    let created = local.share.create("f").expect("a new file");
    let mut value = [0; 64];
    let count = getxattr(local.path("f"), NAME, &mut value[..]).expect("an attribute");
    let value = &value[..count];
    assert_eq!(value[..16], *b"\0\0\x05\0\x05\0\0\0\x11\0\0\0\x20\0\0\0");
    assert_eq!(value[16..], created.metadata.created.0.to_le_bytes());
    let info = DosInfo::decode(value).expect("a value");
    assert_eq!(info.created, Some(created.metadata.created));
}

/// Opens or creates a stream of the file `f`.
fn open_stream(local: &LocalDirectory, name: &str, existing: Existing) -> Opened {
    let plan = local.share.plan("", existing, KindWanted::Any);
    let stream = StreamName::new(name);
    let path = SharePath::from_trusted("f").with_stream(stream);
    let opened = local.share.open_plan(OpenPlan { path, ..plan });
    opened.expect("an open stream")
}

#[test]
fn streams_are_stored_as_samba_stores_them() {
    let local = LocalDirectory::new(Options::default());
    if !keeps(&local) {
        return;
    }
    let stream = open_stream(&local, "Zone.Identifier", Existing::Create).file;
    let data = b"[ZoneTransfer]\r\nZoneId=3\r\n";
    assert_eq!(local.share.write(stream, Some(0), data), Ok(data.len()));
    let mut value = [0xAA; 64];
    let name = "user.DosStream.Zone.Identifier:$DATA";
    let count = getxattr(local.path("f"), name, &mut value[..]).expect("an attribute");
    assert_eq!(value[..count], [&data[..], b"\0"].concat());
}

#[test]
fn streams_of_samba_are_read() {
    let local = LocalDirectory::new(Options::default());
    if !keeps(&local) {
        return;
    }
    local.share.file("f", b"");
    for (name, value) in [
        ("user.DosStream.AFP_AfpInfo:$DATA", &b"AFP\0"[..]),
        ("user.DosStream.empty:$DATA", b"\0"),
        // Nothing of these is a stream.
        ("user.DosStream.no type", b"1\0"),
        ("user.other", b"1\0"),
    ] {
        setxattr(local.path("f"), name, value, XattrFlags::empty()).expect("an attribute");
    }
    let stream = open_stream(&local, "afp_afpinfo", Existing::Open);
    assert_eq!(stream.metadata.size, 3);
    assert_eq!(local.share.read(stream.file, 0, 9), Ok(b"AFP".to_vec()));
    let outcome = local
        .share
        .execute(&FileOp::OnOpen(stream.file, Operation::ListStreams));
    let streams = outcome.expect("a list").expect_streams();
    let mut streams: Vec<_> = (streams.iter())
        .map(|stream| (stream.name.as_ref().map(StreamName::as_str), stream.size))
        .collect();
    streams.sort_unstable();
    let expected = [(None, 0), (Some("AFP_AfpInfo"), 3), (Some("empty"), 0)];
    assert_eq!(streams, expected);
}

#[test]
fn a_stream_has_the_limit_of_an_attribute() {
    let local = LocalDirectory::new(Options::default());
    if !keeps(&local) {
        return;
    }
    let stream = open_stream(&local, "s", Existing::Create).file;
    let write = |at, bytes: &[u8]| local.share.write(stream, Some(at), bytes);
    assert_eq!(write(65_535, b"1"), Err(Status::ALLOTTED_SPACE_EXCEEDED));
    assert_eq!(write(u64::MAX, b"1"), Err(Status::ALLOTTED_SPACE_EXCEEDED));
    // The file system may have less space.
    let most = write(0, &[7; 65_535]);
    assert!(
        [Ok(65_535), Err(Status::DISK_FULL)].contains(&most),
        "{most:?}"
    );
}
