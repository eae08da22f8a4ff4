//! What Samba keeps on disk is understood, and what is kept here Samba understands.

use std::fs;

use rustix::fs::{XattrFlags, getxattr, setxattr};
use vfs::dosattrib::DosInfo;
use vfs::posix::Options;
use wire::FileTime;
use wire::access::{AccessMask, FileAttributes};

use crate::share::Folder;

const NAME: &str = "user.DOSATTRIB";

/// Whether the folder keeps extended attributes; says so otherwise.
fn keeps(folder: &Folder) -> bool {
    let set = setxattr(folder.path(""), "user.probe", b"x", XattrFlags::empty());
    if let Err(error) = &set {
        println!("skipped: no extended attributes here ({error})");
    }
    set.is_ok()
}

#[test]
fn what_samba_wrote_is_shown() {
    let folder = Folder::new(Options::default());
    if !keeps(&folder) {
        return;
    }
    fs::write(folder.path("f"), b"").expect("a file");
    let plain = folder
        .share
        .open_for("f", AccessMask::FILE_READ_ATTRIBUTES)
        .expect("a file");
    assert_eq!(plain.metadata.attributes, FileAttributes::NONE);
    // Version 3, as smbd 3.5 to 4.10 wrote it: HIDDEN and ARCHIVE, born at a time of its own.
    let born = FileTime(0x01D5_C03F_6E11_8000);
    let mut value = b"0x22\0\0\x03\0\x03\0\0\0\x11\0\0\0\x22\0\0\0\0\0\0\0".to_vec();
    value.extend([0; 16]);
    value.extend(born.0.to_le_bytes());
    value.extend([0; 8]);
    setxattr(folder.path("f"), NAME, &value, XattrFlags::empty()).expect("an attribute");
    let seen = folder
        .share
        .open_for("f", AccessMask::FILE_READ_ATTRIBUTES)
        .expect("a file");
    let expected = FileAttributes::HIDDEN | FileAttributes::ARCHIVE;
    assert_eq!(seen.metadata.attributes, expected);
    assert_eq!(seen.metadata.created, born);
}

#[test]
fn what_is_kept_here_is_of_the_newest_version() {
    let folder = Folder::new(Options::default());
    if !keeps(&folder) {
        return;
    }
    let created = folder.share.create("f").expect("a new file");
    let mut value = [0; 64];
    let count = getxattr(folder.path("f"), NAME, &mut value[..]).expect("an attribute");
    let value = &value[..count];
    assert_eq!(value[..16], *b"\0\0\x05\0\x05\0\0\0\x11\0\0\0\x20\0\0\0");
    assert_eq!(value[16..], created.metadata.created.0.to_le_bytes());
    let info = DosInfo::decode(value).expect("a value");
    assert_eq!(info.created, Some(created.metadata.created));
}
