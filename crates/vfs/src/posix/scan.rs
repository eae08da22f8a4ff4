//! Reads of all names in a directory.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use proto::token::Token;
use rustix::fs::{Mode, OFlags, RawDir, ResolveFlags, fstatfs, openat2};
use rustix::io::Errno;
use wire::Status;
use wire::file_name::NameMapping;

use super::directory::Directory;
use super::spellings::Names;
use super::stat::as_server;
use crate::errno::{Context, status};
use crate::{Step, fold};

/// Length of the buffer for entries in bytes.
pub(super) const BUFFER: usize = 32 << 10;

/// Local file systems: all changes of their directories go through this kernel, so inotify reports
/// them. The values are `f_type` of statfs(2).
const LOCAL: [u32; 12] = [
    0xEF53,      // ext2, ext3, ext4
    0x5846_5342, // XFS
    0x9123_683E, // Btrfs
    TMPFS,
    RAMFS,
    0x794C_7630, // overlayfs; writing to its layers behind its back is not allowed
    0xF2F5_2010, // F2FS
    0x2FC1_2FC1, // ZFS
    0xCA45_1A4E, // bcachefs
    0x5265_4973, // ReiserFS
    0x3153_464A, // JFS
    0x2011_BAB0, // exFAT
];
const TMPFS: u32 = 0x0102_1994;
const RAMFS: u32 = 0x8584_58F6;

/// The result of a scan.
pub(super) struct Scan {
    /// The spelling of the requested name; `None` if it does not exist.
    pub(super) spelled: Option<String>,
    /// All names; `None` if they exceed `bytes_max`.
    pub(super) names: Option<Names>,
}

/// Opens a directory for a scan; as the server if the token may not read it. A user with search
/// permission could guess every spelling of a name, so it may find a name in any case. `None` if
/// the server may not read the directory either.
pub(super) fn open(directory: &Directory, token: &Arc<Token>) -> Step<Option<OwnedFd>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let rules = ResolveFlags::BENEATH;
    let open = || openat2(&directory.fd, ".", flags, Mode::empty(), rules);
    let opened = match open() {
        Err(Errno::ACCESS) => as_server(token, open),
        result => result,
    };
    match opened {
        Ok(fd) => Ok(Some(fd)),
        Err(Errno::ACCESS | Errno::PERM | Errno::NOENT) => Ok(None),
        Err(errno) => Err(status(errno, Context::Walk).into()),
    }
}

/// Whether the kernel sees all changes of the directory's file system.
pub(super) fn reports_all_changes(directory: &OwnedFd) -> bool {
    fstatfs(directory).is_ok_and(|stat| LOCAL.contains(&(stat.f_type as u32)))
}

/// Whether a directory is empty, including names that listings omit.
pub(super) fn is_empty(directory: &OwnedFd) -> Result<bool, Status> {
    let mut buffer = Box::new_uninit_slice(BUFFER);
    let mut entries = RawDir::new(directory, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry.map_err(|errno| status(errno, Context::Walk))?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Reads all names of a directory and finds one. Collects the names unless they exceed `bytes_max`
/// bytes. All names are those that clients see.
pub(super) fn scan(
    directory: &OwnedFd,
    name: &str,
    mapping: NameMapping,
    (bytes_max, seed): (usize, u64),
) -> Result<Scan, Status> {
    let mut names = (bytes_max > 0).then(Names::default);
    let mut spelled: Option<String> = None;
    let mut buffer = Box::new_uninit_slice(BUFFER);
    let mut entries = RawDir::new(directory, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry.map_err(|errno| status(errno, Context::Walk))?;
        let on_disk = entry.file_name().to_bytes();
        if matches!(on_disk, b"." | b"..") {
            continue;
        }
        let Some(found) = mapping.to_wire(on_disk) else {
            continue;
        };
        let found = &*found;
        if let Some(all) = &mut names {
            all.add(found, seed);
        }
        names = names.filter(|names| names.bytes() <= bytes_max);
        let is_better = spelled
            .as_deref()
            .is_none_or(|best| best != name && found < best);
        if fold::same(found, name) && (found == name || is_better) {
            spelled = Some(found.to_owned());
        }
    }
    Ok(Scan { spelled, names })
}
