//! Trees with everything that Linux keeps with a file, and their comparison by rsync.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, lchown, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, Timespec, Timestamps, XattrFlags, makedev, mknodat, setxattr,
    utimensat,
};

use crate::files::write_random;

/// A file with data between two holes.
const SPARSE: &str = "sparse";
const SPARSE_BYTES: u64 = 5 << 20;
/// Names that are not possible on Windows.
const NAMES: [&[u8]; 11] = [
    b"what?",
    b"a:b",
    b"end.",
    b"end ",
    b"b\\c",
    b"\"<>|*",
    b"line\nbreak",
    b"\x01\x1f",
    b"\xff\xc3 no text",
    "\u{e4}\u{1f40b}".as_bytes(),
    "a\u{308}".as_bytes(),
];

/// Makes a tree with everything that rsync compares.
pub fn make(root: &Path, files: u64, bits: u32) -> Result<()> {
    for number in 0..files {
        let directory = root.join(format!("d{}/below{}", number % 7, number % 3));
        fs::create_dir_all(&directory)?;
        let path = directory.join(format!("f{number}"));
        write_random(&path, number * 137 % 5000, number)?;
        let (uid, gid) = (1000 + number as u32 % 5, 2000 + number as u32 % 3);
        lchown(&path, Some(uid), Some(gid))?;
        let mode = 0o400 | ((number as u32 * 37) % 0o1000);
        fs::set_permissions(&path, Permissions::from_mode(mode))?;
        if number % 5 == 0 {
            fs::hard_link(&path, root.join(format!("link{number}")))?;
        }
        if number % 4 == 0 {
            setxattr(
                &path,
                "user.comment",
                format!("c{number}").as_bytes(),
                XattrFlags::empty(),
            )?;
        }
        if number % 6 == 0 {
            let link = directory.join(format!("s{number}"));
            symlink(format!("../below{}/f{number}", number % 3), &link)?;
            lchown(&link, Some(uid), Some(gid))?;
        }
    }
    make_others(root, bits)?;
    set_times(root)
}

/// Large, sparse and special files, and names that Windows does not have.
fn make_others(root: &Path, bits: u32) -> Result<()> {
    write_random(&root.join("large"), 3_000_001, 1)?;
    fs::hard_link(root.join("large"), root.join("d1/large too"))?;
    let sparse = File::create(root.join(SPARSE))?;
    sparse.set_len(SPARSE_BYTES)?;
    sparse.write_all_at(&[7; 4096], 2 << 20)?;
    // The mode of a new file, and another owner.
    let plain = root.join("plain");
    write_random(&plain, 100, 2)?;
    fs::set_permissions(&plain, Permissions::from_mode(0o644))?;
    lchown(&plain, Some(1001), Some(2001))?;
    symlink("/etc/hostname", root.join("absolute"))?;
    symlink("missing/file", root.join("dangling"))?;
    symlink("d1", root.join("directory"))?;
    for name in NAMES {
        fs::write(root.join(OsStr::from_bytes(name)), name)?;
    }
    let directory = root.join("of:c\\d.");
    fs::create_dir(&directory)?;
    fs::write(directory.join("e|f "), "text")?;
    symlink("of:c\\d./e|f ", root.join("link*"))?;
    for (path, mode) in [
        ("large", 0o4755),
        ("d1", 0o2775),
        ("d2", 0o1777),
        ("d3", 0o500),
    ] {
        fs::set_permissions(root.join(path), Permissions::from_mode(mode & bits))?;
    }
    setxattr(
        root.join("d1"),
        "user.directory",
        b"\0\x01",
        XattrFlags::empty(),
    )?;
    let mode = Mode::from_raw_mode(0o640);
    for (name, kind, device) in [
        ("fifo", FileType::Fifo, 0),
        ("character", FileType::CharacterDevice, makedev(5, 1)),
        ("block", FileType::BlockDevice, makedev(7, 300)),
        ("large numbers", FileType::BlockDevice, makedev(259, 70_000)),
    ] {
        mknodat(CWD, root.join(name), kind, mode, device)?;
    }
    lchown(root.join("fifo"), Some(1001), Some(2001))?;
    UnixListener::bind(root.join("socket")).map(drop)?;
    Ok(())
}

/// Sets a time of each entry, of links too; directories come after their entries.
pub fn set_times(path: &Path) -> Result<()> {
    let metadata = fs::symlink_metadata(path)?;
    if metadata.is_dir() {
        for entry in fs::read_dir(path)? {
            set_times(&entry?.path())?;
        }
    }
    let time = Timespec {
        tv_sec: 1_000_000_000 + i64::try_from(metadata.ino() % 1_000_000)?,
        tv_nsec: 123_456_700,
    };
    let times = Timestamps {
        last_access: time,
        last_modification: time,
    };
    utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(())
}

/// Fails unless the holes of the tree are holes still.
pub fn assert_sparse(root: &Path) -> Result<()> {
    let found = fs::metadata(root.join(SPARSE))?;
    // The unit of the number is 512 bytes on every file system. stat(2)
    let allocated = found.blocks() * 512;
    ensure!(found.len() == SPARSE_BYTES, "{} bytes", found.len());
    ensure!(allocated < SPARSE_BYTES / 2, "{allocated} bytes on disk");
    Ok(())
}

/// Fails if rsync finds a difference of two trees.
pub fn assert_same(one: &Path, other: &Path) -> Result<()> {
    let text = differences(one, other)?;
    ensure!(text.is_empty(), "rsync finds differences:\n{text}");
    Ok(())
}

/// The differences of two trees that rsync finds: one line for each file, with the kinds of the
/// differences before its path. rsync(1), option --itemize-changes
pub fn differences(one: &Path, other: &Path) -> Result<String> {
    let output = Command::new("rsync")
        .args(["-n", "-aHAX", "--checksum", "-i", "--delete"])
        .arg(format!("{}/", one.display()))
        .arg(format!("{}/", other.display()))
        .output()
        .context("the Debian package rsync is missing")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "{output:?}");
    Ok(text)
}
