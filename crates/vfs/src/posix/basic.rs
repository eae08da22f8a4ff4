//! Attributes, times and lengths of open files.

use std::os::fd::OwnedFd;
use std::time::{SystemTime, UNIX_EPOCH};

use proto::file::{BasicChanges, FileKind, Outcome, VolumeInfo};
use rustix::fs::{
    AtFlags, CWD, Mode, StatVfsMountFlags, Timespec, Timestamps, UTIME_OMIT, chmodat, fdatasync,
    fstatvfs, fsync, ftruncate, utimensat,
};
use rustix::io::Errno;
use wire::access::FileAttributes;
use wire::{FileTime, Status};

use super::data::reserve;
use super::directory::Run;
use super::file::OpenFile;
use super::file_ref::FileRef;
use super::metadata::store;
use super::sectors::Sectors;
use super::stat::{Stat, as_server, by_descriptor, stat, supports_attributes};
use super::volume::Volume;
use super::{CUT_MAX, Posix, quota, streams};
use crate::dosattrib::DosInfo;
use crate::errno::{Context, status};
use crate::{Effort, Step, Stop, attributes};

/// Maximum length of a name in UTF-16 units that clients of Windows accept. File systems that count
/// bytes have the same limit.
const NAME_MAX: u32 = 255;
/// The owner's permission to write.
const OWNER_WRITES: u32 = 0o200;

impl Posix {
    pub(super) fn stat(&self, file: &OpenFile, run: Run<'_>) -> Step<Outcome> {
        let stat = stat(&*file.fd).map_err(|errno| status(errno, Context::Open))?;
        let name = file.link.location().name;
        let mut metadata = self.metadata(file.file_ref(), &stat, &name);
        if let Some(stream) = &file.stream {
            streams::describe(self.base(file, run.effort), stream, &mut metadata)?;
        }
        Ok(Outcome::Metadata(metadata))
    }

    pub(super) fn set_basic(
        &self,
        file: &OpenFile,
        changes: &BasicChanges,
        run: Run<'_>,
    ) -> Step<Outcome> {
        // Only the kernel can set the time of the last metadata change.
        let BasicChanges {
            created,
            accessed,
            written,
            changed: _,
            attributes,
        } = *changes;
        if created.is_some() || attributes.is_some() {
            self.set_note(file, created, attributes)?;
        }
        if accessed.is_some() || written.is_some() {
            set_times(file.file_ref(), accessed, written)?;
        }
        self.stat(file, run)
    }

    pub(super) fn set_mode(
        &self,
        file: &OpenFile,
        mode: u32,
        mask: u32,
        run: Run<'_>,
    ) -> Step<Outcome> {
        if self.has_service_account() {
            // The mode is that of the service account, and decides about no user.
            return self.stat(file, run);
        }
        let stat = stat(&*file.fd).map_err(|errno| status(errno, Context::Attributes))?;
        let kept = u32::from(stat.0.stx_mode) & 0o7777 & !mask;
        change_mode(file, kept | mode & mask)?;
        self.stat(file, run)
    }

    /// Changes the DOS attributes or the creation time in the extended attribute, and preserves the
    /// rest.
    fn set_note(
        &self,
        file: &OpenFile,
        created: Option<FileTime>,
        asked: Option<FileAttributes>,
    ) -> Step<()> {
        let stat = stat(&*file.fd).map_err(|errno| status(errno, Context::Attributes))?;
        if !supports_attributes(&stat) {
            return Ok(());
        }
        if !file.volume.stores_attributes {
            return asked.map_or(Ok(()), |asked| set_writable(file, &stat, asked));
        }
        let is = self.metadata(file.file_ref(), &stat, "");
        let asked = asked.unwrap_or(is.attributes);
        let info = DosInfo {
            attributes: Some(attributes::replaced(is.attributes, asked)),
            created: Some(created.unwrap_or(is.created)),
        };
        let stored = store(file.file_ref(), info);
        Ok(stored.map_err(|errno| status(errno, Context::Attributes))?)
    }

    pub(super) fn overwrite(
        &self,
        file: &OpenFile,
        asked: FileAttributes,
        allocation: u64,
        run: Run<'_>,
    ) -> Step<Outcome> {
        if file.stream.is_some() {
            self.cut(file, 0, run)?;
            return self.stat(file, run);
        }
        // fallocate may allocate many extents, which takes long.
        if allocation > 0 && run.effort == Effort::Cached {
            return Err(Stop::WouldBlock);
        }
        self.may_remove_streams(file.file_ref(), run)?;
        self.cut(file, 0, run)?;
        streams::remove_all(self.base(file, run.effort))?;
        if allocation > 0 {
            reserve(&file.fd, allocation)?;
        }
        let stat = stat(&*file.fd).map_err(|errno| status(errno, Context::Data))?;
        let is = self.metadata(file.file_ref(), &stat, "");
        let kept = is.attributes & FileAttributes::REPARSE_POINT;
        let stored = attributes::of_new(asked, FileKind::File) | kept;
        let info = DosInfo {
            attributes: Some(stored),
            created: Some(is.created),
        };
        keep(file.file_ref(), info);
        self.stat(file, run)
    }

    pub(super) fn set_end_of_file(
        &self,
        file: &OpenFile,
        length: u64,
        run: Run<'_>,
    ) -> Step<Outcome> {
        self.cut(file, length, run)?;
        Ok(Outcome::Done)
    }

    pub(super) fn set_allocation(
        &self,
        file: &OpenFile,
        length: u64,
        run: Run<'_>,
    ) -> Step<Outcome> {
        if run.effort == Effort::Cached {
            return Err(Stop::WouldBlock);
        }
        file.check_writes()?;
        if let Some(stream) = &file.stream {
            streams::set_allocation(self.base(file, run.effort), stream, length)?;
            return Ok(Outcome::Done);
        }
        let stat_of = || stat(&*file.fd).map_err(|errno| status(errno, Context::Data));
        let before = stat_of()?;
        if length < before.0.stx_size {
            self.cut(file, length, run)?;
            return Ok(Outcome::Done);
        }
        if length > 0 {
            reserve(&file.fd, length)?;
        }
        self.keep_write_time(file, &before, &stat_of()?);
        Ok(Outcome::Done)
    }

    /// After a reservation, which changed no data: the time of the last write stays, and the change
    /// time advances. A kernel may change the first one, or neither. A failure does not matter.
    /// smbtorture smb2.timestamps.modern_write_time_update-2
    fn keep_write_time(&self, file: &OpenFile, before: &Stat, after: &Stat) {
        let times = |stat| self.metadata_with(&file.volume, stat, None, "");
        let (before, after) = (times(before), times(after));
        let written = (before.written != after.written).then_some(before.written);
        if written.is_some() || before.changed == after.changed {
            // Setting any time, even to its present value, advances the change time.
            let _ = set_times(file.file_ref(), Some(after.accessed), written);
        }
    }

    /// Truncates or extends a file; inline unless it frees much space.
    fn cut(&self, file: &OpenFile, length: u64, run: Run<'_>) -> Step<()> {
        file.check_writes()?;
        if let Some(stream) = &file.stream {
            return streams::set_length(self.base(file, run.effort), stream, length);
        }
        if run.effort == Effort::Cached {
            let size = stat(&*file.fd)
                .map_err(|errno| status(errno, Context::Data))?
                .0
                .stx_size;
            if size.saturating_sub(length) > CUT_MAX {
                return Err(Stop::WouldBlock);
            }
        }
        Ok(ftruncate(&*file.fd, length).map_err(|errno| status(errno, Context::Data))?)
    }

    pub(super) fn flush(&self, file: &OpenFile, run: Run<'_>) -> Step<Outcome> {
        if run.effort == Effort::Cached {
            return Err(Stop::WouldBlock);
        }
        if let Some(stream) = &file.stream {
            streams::flush(file, self.base(file, run.effort), stream)?;
            return Ok(Outcome::Done);
        }
        let flushed = match file.kind {
            // An O_PATH descriptor has no data to flush.
            _ if file.is_path => Ok(()),
            FileKind::Directory => fsync(&*file.fd),
            FileKind::File | FileKind::Link | FileKind::Special => fdatasync(&*file.fd),
        };
        flushed.map_err(|errno| status(errno, Context::Data))?;
        Ok(Outcome::Done)
    }

    /// The properties of the file system of an open. Its creation time is that of its root: of the
    /// root of the share, if the share starts below it.
    pub(super) fn volume(&self, file: &OpenFile) -> Step<Outcome> {
        let statvfs = fstatvfs(&*file.fd).map_err(|errno| status(errno, Context::Open))?;
        let root = stat(&file.root.fd).map_err(|errno| status(errno, Context::Open))?;
        let Volume {
            id, kind, sectors, ..
        } = &*file.volume;
        // A block is at most 2 GiB. A file system with larger ones is reported in bytes.
        let block = u32::try_from(statvfs.f_frsize).unwrap_or(1).max(1);
        let max_name = u32::try_from(statvfs.f_namemax).unwrap_or(u32::MAX);
        Ok(Outcome::Volume(VolumeInfo {
            block,
            total: statvfs.f_blocks,
            free: statvfs.f_bfree,
            available: statvfs.f_bavail,
            // A block consists of whole sectors.
            sector: match block.is_multiple_of(sectors.logical) {
                true => sectors.logical,
                false => Sectors::default().logical,
            },
            physical_sector: sectors.physical,
            serial: id.serial,
            max_name: max_name.min(NAME_MAX),
            kind: *kind,
            is_read_only: statvfs.f_flag.contains(StatVfsMountFlags::RDONLY),
            has_sparse_files: file.volume.stores_attributes,
            has_named_streams: file.volume.stores_attributes,
            has_extended_attributes: file.volume.stores_attributes,
            has_shared_extents: self.has_shared_extents(file),
            has_compression: file.volume.compresses,
            quotas: quota::state(file),
            created: self
                .metadata_with(&file.root.volume, &root, None, "")
                .created,
            total_files: statvfs.f_files,
            free_files: statvfs.f_ffree,
        }))
    }
}

/// Stores DOS attributes if the file system can. A failure does not undo the creation of the file.
pub(super) fn keep(of: FileRef<'_>, info: DosInfo) {
    if !of.volume.stores_attributes {
        return;
    }
    if let Err(error) = store(of, info) {
        tracing::debug!(%error, "cannot store DOS attributes");
    }
}

/// The present time of the system clock.
pub(super) fn now() -> FileTime {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    FileTime::from_unix(seconds, since.subsec_nanos())
}

/// Sets times. The right was checked when the file was opened, but the kernel lets only the owner
/// set arbitrary times.
fn set_times(of: FileRef<'_>, accessed: Option<FileTime>, written: Option<FileTime>) -> Step<()> {
    let times = Timestamps {
        last_access: time(accessed),
        last_modification: time(written),
    };
    let set = || utimensat(of.fd, "", &times, AtFlags::EMPTY_PATH);
    let result = match set() {
        Err(Errno::ACCESS | Errno::PERM) if of.may_set_attributes => as_server(of.token, set),
        result => result,
    };
    Ok(result.map_err(|errno| status(errno, Context::Attributes))?)
}

fn time(time: Option<FileTime>) -> Timespec {
    match time.map(FileTime::to_unix) {
        None => Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        },
        Some((seconds, nanoseconds)) => Timespec {
            tv_sec: seconds,
            tv_nsec: nanoseconds.into(),
        },
    }
}

/// On a file system without extended attributes, READONLY removes the owner's write permission.
fn set_writable(file: &OpenFile, stat: &Stat, asked: FileAttributes) -> Step<()> {
    let is = u32::from(stat.0.stx_mode) & 0o7777;
    let mode = match asked.contains(FileAttributes::READONLY) && file.kind == FileKind::File {
        true => is & !0o222,
        false => is | OWNER_WRITES,
    };
    if mode == is {
        Ok(())
    } else {
        change_mode(file, mode)
    }
}

/// Changes the mode, if the kernel permits it to the token.
fn change_mode(file: &OpenFile, mode: u32) -> Step<()> {
    let set = change_permissions(&file.fd, mode);
    Ok(set.map_err(|errno| status(errno, Context::Attributes))?)
}

/// Changes the mode of the file of any descriptor.
pub(super) fn change_permissions(fd: &OwnedFd, mode: u32) -> Result<(), Errno> {
    let path = by_descriptor(fd);
    chmodat(CWD, path, Mode::from_raw_mode(mode), AtFlags::empty())
}

impl OpenFile {
    /// Whether the open can transfer data, by its descriptor or as a named stream.
    fn has_data(&self) -> bool {
        self.is_data() || self.stream.is_some()
    }

    /// Fails unless the open may write data.
    pub(super) fn check_writes(&self) -> Result<(), Status> {
        match self.kind {
            FileKind::File if self.has_data() && self.writes() => Ok(()),
            FileKind::File => Err(Status::ACCESS_DENIED),
            _ => Err(Status::INVALID_DEVICE_REQUEST),
        }
    }

    /// Fails unless the open may read data.
    pub(super) fn check_reads(&self) -> Result<(), Status> {
        match self.kind {
            FileKind::File if self.has_data() && self.reads() => Ok(()),
            FileKind::File => Err(Status::ACCESS_DENIED),
            _ => Err(Status::INVALID_DEVICE_REQUEST),
        }
    }
}
