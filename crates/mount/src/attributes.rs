//! Attributes of inodes: what the kernel shows of the metadata of the server.

use std::time::{Duration, SystemTime};

use fuser::{FileAttr, FileType, INodeNo};
use smbeam_client::{FileAttributes, Metadata, ReparsePoint, ReparseTag};
use wire::reparse::NfsFile;

use crate::inodes::Identity;
use crate::options::MountOptions;

/// Length of a block of `st_blocks` in bytes.
const BLOCK_BYTES: u64 = 512;
/// Preferred length of reads and writes in bytes.
const IO_BYTES: u32 = 1 << 20;

/// A file of the server: its metadata, and the parts that a reparse point adds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub(crate) metadata: Metadata,
    pub(crate) kind: FileType,
    /// Number of the device that a special file stands for.
    pub(crate) device: u32,
    /// Length in bytes of the target of a symbolic link.
    pub(crate) target_len: u64,
}

impl Node {
    /// A file with a tag that needs no query of its reparse point.
    pub(crate) fn new(metadata: Metadata) -> Self {
        Self {
            kind: kind_of(&metadata),
            metadata,
            device: 0,
            target_len: 0,
        }
    }

    /// The same file after a change of its metadata.
    pub(crate) fn changed(self, metadata: Metadata) -> Self {
        Self { metadata, ..self }
    }

    /// Whether the reparse point says more than its tag, or than the mode.
    pub(crate) fn needs_reparse_point(&self) -> bool {
        if self.metadata.unix.is_some() {
            let kinds = [
                FileType::Symlink,
                FileType::CharDevice,
                FileType::BlockDevice,
            ];
            return kinds.contains(&self.kind);
        }
        let tag = self.metadata.reparse_tag;
        self.kind == FileType::Symlink
            || tag.is_some_and(|tag| {
                [ReparseTag::NFS, ReparseTag::LX_CHR, ReparseTag::LX_BLK].contains(&tag)
            })
    }

    /// Takes kind, device and length of the target from the reparse point.
    pub(crate) fn add(&mut self, point: &ReparsePoint) {
        if let Some(target) = point.symlink_target() {
            self.kind = FileType::Symlink;
            self.target_len = target.len() as u64;
            return;
        }
        let device = |major: u32, minor: u32| {
            u32::try_from(rustix::fs::makedev(major, minor)).unwrap_or_default()
        };
        (self.kind, self.device) = match NfsFile::decode(&point.data) {
            Ok(NfsFile::Fifo) => (FileType::NamedPipe, 0),
            Ok(NfsFile::Socket) => (FileType::Socket, 0),
            Ok(NfsFile::CharacterDevice { major, minor }) => {
                (FileType::CharDevice, device(major, minor))
            }
            Ok(NfsFile::BlockDevice { major, minor }) => {
                (FileType::BlockDevice, device(major, minor))
            }
            _ => (self.kind, 0),
        };
    }

    pub(crate) fn identity(&self) -> Identity {
        Identity {
            id: self.metadata.file_id,
            created: self.metadata.created,
            is_directory: self.kind == FileType::Directory,
        }
    }

    /// The attributes for the kernel.
    pub(crate) fn attributes(&self, ino: u64, options: &MountOptions) -> FileAttr {
        let metadata = &self.metadata;
        let size = match self.kind {
            FileType::Symlink => self.target_len,
            FileType::RegularFile => metadata.size.min(i64::MAX as u64),
            _ => 0,
        };
        let links = match (metadata.unix, self.kind) {
            (Some(unix), _) => unix.links,
            (None, FileType::Directory) => 2,
            (None, _) => metadata.links.unwrap_or(1),
        };
        let uid = metadata.unix.and_then(|unix| unix.uid());
        let gid = metadata.unix.and_then(|unix| unix.gid());
        FileAttr {
            ino: INodeNo(ino),
            size,
            blocks: metadata.allocation.div_ceil(BLOCK_BYTES),
            atime: metadata.accessed,
            mtime: metadata.written,
            ctime: metadata.changed,
            crtime: metadata.created,
            kind: self.kind,
            perm: self.permissions(options),
            nlink: links,
            uid: uid.unwrap_or(options.uid),
            gid: gid.unwrap_or(options.gid),
            rdev: self.device,
            blksize: IO_BYTES,
            flags: 0,
        }
    }

    /// The mode of the server, or the one that the options give to every file. READONLY takes the
    /// permission to write away from the latter. Windows ignores READONLY of directories.
    fn permissions(&self, options: &MountOptions) -> u16 {
        if let Some(unix) = self.metadata.unix
            && self.kind != FileType::Symlink
        {
            return (unix.permissions() & 0o7777) as u16;
        }
        let is_read_only = self.metadata.attributes.contains(FileAttributes::READONLY);
        match self.kind {
            FileType::Directory => options.dir_mode,
            FileType::Symlink => 0o777,
            _ if is_read_only => options.file_mode & !0o222,
            _ => options.file_mode,
        }
    }
}

/// The kind of a file as far as its mode or its tag says it. A file with an unknown reparse point
/// is a regular file: deduplicated, in the cloud, compressed.
pub(crate) fn kind_of(metadata: &Metadata) -> FileType {
    if let Some(unix) = metadata.unix {
        return kind_of_mode(unix.mode);
    }
    match metadata.reparse_tag {
        Some(ReparseTag::AF_UNIX) => FileType::Socket,
        Some(ReparseTag::LX_FIFO) => FileType::NamedPipe,
        Some(ReparseTag::LX_CHR) => FileType::CharDevice,
        Some(ReparseTag::LX_BLK) => FileType::BlockDevice,
        Some(ReparseTag::SYMLINK | ReparseTag::LX_SYMLINK) => FileType::Symlink,
        Some(ReparseTag::NFS) => FileType::RegularFile,
        _ if metadata.is_dir() => FileType::Directory,
        _ => FileType::RegularFile,
    }
}

fn kind_of_mode(mode: u32) -> FileType {
    match rustix::fs::FileType::from_raw_mode(mode) {
        rustix::fs::FileType::Directory => FileType::Directory,
        rustix::fs::FileType::Symlink => FileType::Symlink,
        rustix::fs::FileType::Fifo => FileType::NamedPipe,
        rustix::fs::FileType::Socket => FileType::Socket,
        rustix::fs::FileType::CharacterDevice => FileType::CharDevice,
        rustix::fs::FileType::BlockDevice => FileType::BlockDevice,
        _ => FileType::RegularFile,
    }
}

/// The time of a request of the kernel.
pub(crate) fn time(time: fuser::TimeOrNow) -> SystemTime {
    match time {
        fuser::TimeOrNow::SpecificTime(time) => time,
        fuser::TimeOrNow::Now => SystemTime::now(),
    }
}

/// The time for which the kernel may use a value that no lease protects.
pub(crate) const UNPROTECTED: Duration = Duration::ZERO;
