//! DOS attributes are compatible with Samba in both directions.

use std::fs;

use rustix::fs::{XattrFlags, getxattr, setxattr};
use vfs::dosattrib::DosInfo;
use vfs::posix::Options;
use wire::FileTime;
use wire::access::{AccessMask, FileAttributes};

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
