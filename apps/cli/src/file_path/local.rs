//! Files on this machine.

use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_OMIT, utimensat};
use smbeam_client::FileAttributes;

use super::{Detail, Entry, FileInfo, Kind, LocalPath};
use crate::failure::{Failure, Outcome};
use crate::location::shown;

/// Bytes per block of `st_blocks`. stat(2)
const BLOCK_BYTES: u64 = 512;
/// The permission bits for writing.
const WRITE_MODE: u32 = 0o222;

fn failed(path: &Path) -> impl Fn(io::Error) -> Failure {
    move |error| Failure::local(&shown(path), &error)
}

/// Converts the metadata of a local file.
pub(crate) fn info_of(metadata: &Metadata) -> FileInfo {
    let kind = match metadata.file_type() {
        kind if kind.is_file() => Kind::File,
        kind if kind.is_dir() => Kind::Directory,
        kind if kind.is_symlink() => Kind::Link,
        _ => Kind::Other,
    };
    let mut attributes = FileAttributes::NONE;
    if kind == Kind::Directory {
        attributes |= FileAttributes::DIRECTORY;
    }
    if metadata.mode() & WRITE_MODE == 0 {
        attributes |= FileAttributes::READONLY;
    }
    FileInfo {
        kind,
        size: metadata.len(),
        allocation: metadata.blocks().saturating_mul(BLOCK_BYTES),
        created: metadata.created().ok(),
        accessed: metadata.accessed().unwrap_or(UNIX_EPOCH),
        written: metadata.modified().unwrap_or(UNIX_EPOCH),
        changed: time_of(metadata.ctime(), metadata.ctime_nsec()),
        attributes,
        file_id: Some(metadata.ino()),
        shared: (kind == Kind::File && metadata.nlink() > 1)
            .then_some((metadata.dev(), metadata.ino())),
    }
}

fn time_of(seconds: i64, nanoseconds: i64) -> SystemTime {
    let part = Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(0));
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let base = if seconds < 0 {
        UNIX_EPOCH.checked_sub(whole)
    } else {
        UNIX_EPOCH.checked_add(whole)
    };
    base.and_then(|base| base.checked_add(part))
        .unwrap_or(UNIX_EPOCH)
}

pub(super) fn lookup(path: &Path, follow: bool) -> Outcome<Option<FileInfo>> {
    let metadata = if follow {
        fs::metadata(path)
    } else {
        fs::symlink_metadata(path)
    };
    match metadata {
        Ok(metadata) => Ok(Some(info_of(&metadata))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(path)(error)),
    }
}

pub(super) fn list(
    path: &LocalPath,
    detail: Detail,
    each: &mut dyn FnMut(Outcome<Entry>) -> bool,
) -> Outcome {
    let follow = detail == Detail::Followed;
    for entry in fs::read_dir(path).map_err(failed(path))? {
        let entry = entry.map_err(failed(path))?;
        if !each(entry_of(path, &entry, follow)) {
            break;
        }
    }
    Ok(())
}

fn entry_of(directory: &LocalPath, entry: &fs::DirEntry, follow: bool) -> Outcome<Entry> {
    let path = entry.path();
    let name = directory
        .smb_name(&entry.file_name())
        .map_err(|error| Failure::name(&shown(&path), error))?;
    let mut metadata = entry.metadata().map_err(failed(&path))?;
    if follow && metadata.is_symlink() {
        metadata = fs::metadata(&path).map_err(failed(&path))?;
    }
    Ok(Entry {
        name,
        info: info_of(&metadata),
    })
}

pub(super) fn create_directory(path: &Path) -> Outcome<bool> {
    match fs::create_dir(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(false),
        Err(error) => Err(failed(path)(error)),
    }
}

pub(super) fn remove(path: &Path, kind: Kind) -> Outcome {
    match kind {
        Kind::Directory => fs::remove_dir(path),
        _ => fs::remove_file(path),
    }
    .map_err(failed(path))
}

pub(super) fn set_info(path: &Path, info: &FileInfo, source_is_remote: bool) -> Outcome {
    set_times(path, info, true)?;
    let is_read_only = info.attributes.contains(FileAttributes::READONLY);
    // READONLY of a directory does not restrict its use. [MS-FSCC] 2.6
    if source_is_remote && is_read_only && !info.is_directory() {
        let mode = fs::metadata(path).map_err(failed(path))?.mode();
        fs::set_permissions(path, Permissions::from_mode(mode & !WRITE_MODE))
            .map_err(failed(path))?;
    }
    Ok(())
}

/// Sets the times, with `follow` those of the target of a link.
pub(super) fn set_times(path: &Path, info: &FileInfo, follow: bool) -> Outcome {
    let times = timestamps(Some(info.accessed), Some(info.written));
    let flags = match follow {
        true => AtFlags::empty(),
        false => AtFlags::SYMLINK_NOFOLLOW,
    };
    utimensat(CWD, path, &times, flags).map_err(|error| Failure::local(&shown(path), &error.into()))
}

/// Times for utimensat(2). `None` leaves a time unchanged.
pub(super) fn timestamps(accessed: Option<SystemTime>, written: Option<SystemTime>) -> Timestamps {
    Timestamps {
        last_access: timespec(accessed),
        last_modification: timespec(written),
    }
}

fn timespec(time: Option<SystemTime>) -> Timespec {
    let omit = Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_OMIT,
    };
    let Some(time) = time else { return omit };
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => Timespec {
            tv_sec: i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(after.subsec_nanos()),
        },
        Err(error) => {
            let before = error.duration();
            let seconds = i64::try_from(before.as_secs()).unwrap_or(i64::MAX);
            match before.subsec_nanos() {
                0 => Timespec {
                    tv_sec: -seconds,
                    tv_nsec: 0,
                },
                part => Timespec {
                    tv_sec: -seconds - 1,
                    tv_nsec: 1_000_000_000 - i64::from(part),
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_1970_are_times() {
        let early = UNIX_EPOCH - Duration::new(1, 250_000_000);
        let spec = timespec(Some(early));
        assert_eq!((spec.tv_sec, spec.tv_nsec), (-2, 750_000_000));
        assert_eq!(time_of(spec.tv_sec, spec.tv_nsec), early);
        assert_eq!(timespec(None).tv_nsec, UTIME_OMIT);
    }

    #[test]
    fn times_are_set_and_seen() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("x");
        fs::write(&path, "text").expect("a file");
        let mut info = lookup(&path, true).expect("a look").expect("a file");
        assert_eq!((info.kind, info.size), (Kind::File, 4));
        info.written = UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_700);
        info.attributes = FileAttributes::READONLY;
        set_info(&path, &info, true).expect("times");
        let again = lookup(&path, true).expect("a look").expect("a file");
        assert_eq!(again.written, info.written);
        assert!(again.attributes.contains(FileAttributes::READONLY));
        assert!(
            lookup(&directory.path().join("y"), true)
                .expect("a look")
                .is_none()
        );
    }
}
