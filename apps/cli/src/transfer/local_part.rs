//! Incomplete files on this machine: they are created without following links, and reserve their
//! space.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::{FallocateFlags, OFlags, fallocate, fstatfs};
use rustix::io::Errno;

/// Creates a new file. If the name exists, it is removed first: it is the incomplete file of an
/// earlier transfer.
pub(super) fn create_anew(path: &Path) -> io::Result<File> {
    match create_new(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(path)?;
            create_new(path)
        }
        created => created,
    }
}

/// Creates a new file. It fails if the name exists, even as a link that leads nowhere.
pub(super) fn create_new(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    File::options()
        .write(true)
        .create_new(true)
        .custom_flags(flags)
        .open(path)
}

/// Opens the incomplete file of an earlier transfer to continue it. If the name is anything but a
/// regular file of this user with one name, the file is created anew.
pub(super) fn open_or_create(path: &Path) -> io::Result<File> {
    match open_own(path) {
        Some(file) => Ok(file),
        None => create_anew(path),
    }
}

fn open_own(path: &Path) -> Option<File> {
    // A pipe without a reader would block.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = File::options()
        .write(true)
        .custom_flags(flags)
        .open(path)
        .ok()?;
    let metadata = file.metadata().ok()?;
    let is_own = metadata.uid() == rustix::process::geteuid().as_raw();
    (metadata.is_file() && is_own && metadata.nlink() == 1).then_some(file)
}

/// Replaces the content of an existing file. If the space is not sufficient, the file remains as it
/// is.
pub(super) fn overwrite(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let file = File::options().write(true).open(path)?;
    if !reserve(&file, 0, bytes.len() as u64) {
        return Err(io::ErrorKind::StorageFull.into());
    }
    file.write_all_at(bytes, 0)?;
    file.set_len(bytes.len() as u64)
}

/// The type of tmpfs. statfs(2)
const TMPFS_MAGIC: i64 = 0x0102_1994;

/// Reserves space for the bytes between `from` and `size`, so that a full disk fails at once and
/// the file is not fragmented. Returns false if the space is not sufficient. File systems without
/// this function do not fail.
pub(super) fn reserve(file: &File, from: u64, size: u64) -> bool {
    if size <= from {
        return true;
    }
    let wanted = size - from;
    match fstatfs(file) {
        // A tmpfs has no fragmentation, and allocation takes half as long as writing.
        Ok(system) if system.f_type == TMPFS_MAGIC => {
            let free = u128::from(system.f_bavail) * u128::from(system.f_bsize.unsigned_abs());
            // A tmpfs without a limit reports 0 blocks.
            system.f_blocks == 0 || free >= u128::from(wanted)
        }
        _ => fallocate(file, FallocateFlags::KEEP_SIZE, from, wanted) != Err(Errno::NOSPC),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_planted_link_is_not_followed() {
        let directory = tempfile::tempdir().expect("a directory");
        let (precious, part) = (
            directory.path().join("precious"),
            directory.path().join("part"),
        );
        for open in [create_anew, open_or_create] {
            fs::write(&precious, "precious").expect("a file");
            symlink(&precious, &part).expect("a link");
            open(&part)
                .and_then(|mut file| file.write_all(b"data"))
                .expect("a new file");
            assert_eq!(fs::read(&precious).expect("a file"), b"precious");
            assert_eq!(fs::read(&part).expect("a file"), b"data");
            fs::remove_file(&part).expect("the part");
            fs::hard_link(&precious, &part).expect("a hard link");
            open(&part)
                .and_then(|mut file| file.write_all(b"data"))
                .expect("a new file");
            assert_eq!(fs::read(&precious).expect("a file"), b"precious");
            fs::remove_file(&part).expect("the part");
        }
        symlink(directory.path().join("nowhere"), &part).expect("a link");
        assert!(create_new(&part).is_err());
        assert!(!directory.path().join("nowhere").exists());
    }

    #[test]
    fn an_own_file_is_continued() {
        let directory = tempfile::tempdir().expect("a directory");
        let part = directory.path().join("part");
        fs::write(&part, "beginning").expect("a file");
        let length =
            |file: io::Result<File>| file.expect("open").metadata().expect("metadata").len();
        assert_eq!(length(open_or_create(&part)), 9);
        assert_eq!(length(create_anew(&part)), 0);
    }

    #[test]
    fn an_overwritten_file_has_the_new_length() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("x");
        fs::write(&path, "a longer text").expect("a file");
        overwrite(&path, b"short").expect("space");
        assert_eq!(fs::read(&path).expect("a file"), b"short");
    }
}
