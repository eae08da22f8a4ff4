//! The answers of a file system to the core.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

use wire::Status;
use wire::security::SecurityDescriptor;

use super::{DirectoryEntry, FileHandle, FoundLink, Metadata, Opened, StreamEntry, VolumeInfo};
use crate::disk_quota::DiskQuota;
use crate::ea::Ea;
use crate::path::SharePath;

/// The result of a successful request to a file system ([`FileOp`](super::FileOp)).
///
/// The `expect_` functions return the value of one variant.
///
/// # Panics
///
/// The `expect_` functions panic if the file system answered with another variant. That is a bug of
/// the file system or of the I/O driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The operation is complete and has no value.
    Done,
    /// Answers [`FileOp::Open`](super::FileOp::Open) and [`FileOp::Reopen`](super::FileOp::Reopen):
    /// the open file and its metadata.
    Opened(Opened),
    /// Answers [`Operation::Stat`](super::Operation::Stat) and the operations that change metadata:
    /// the metadata after the operation.
    Metadata(Metadata),
    /// Answers [`Operation::Rename`](super::Operation::Rename): the new name as the file system
    /// spells it.
    Renamed(SharePath),
    /// Answers [`Operation::LookUp`](super::Operation::LookUp): the metadata, or `None` if the file
    /// does not exist.
    Found(Option<Metadata>),
    /// Answers [`Operation::ReadDirectory`](super::Operation::ReadDirectory): the next entries. No
    /// entries mean the end of the directory.
    Directory(Vec<DirectoryEntry>),
    /// Answers [`Operation::CopyRange`](super::Operation::CopyRange), also a copy that ended early.
    Copied {
        /// Number of copied bytes from the start of the range.
        count: u32,
        /// The reason why the count is less than the requested length; SUCCESS for a full copy.
        status: Status,
    },
    /// Answers [`Operation::ZeroRange`](super::Operation::ZeroRange): the offset up to which the
    /// range is zero. The file system may stop before the end of a long range; the core then
    /// requests the rest.
    Zeroed(u64),
    /// Answers [`Operation::AllocatedRanges`](super::Operation::AllocatedRanges): all ranges, or
    /// the first ones up to the limit.
    Ranges(Vec<Range<u64>>),
    /// Answers [`Operation::ReadHandle`](super::Operation::ReadHandle): the handle of the file.
    Handle(FileHandle),
    /// Answers [`Operation::ListStreams`](super::Operation::ListStreams): the data streams of the
    /// file.
    Streams(Vec<StreamEntry>),
    /// Answers [`Operation::ReadReparse`](super::Operation::ReadReparse): the encoded reparse point
    /// (REPARSE_DATA_BUFFER).
    Reparse(Vec<u8>),
    /// Answers [`FileOp::FindLink`](super::FileOp::FindLink): the reparse point, or `None` if the
    /// path has none any more.
    Link(Option<FoundLink>),
    /// Answers [`Operation::QueryEas`](super::Operation::QueryEas): the extended attributes, in the
    /// order of the file system.
    Eas(Vec<Ea>),
    /// Answers [`Operation::QueryQuotas`](super::Operation::QueryQuotas).
    Quotas(Vec<DiskQuota>),
    /// Answers [`Operation::QuerySecurity`](super::Operation::QuerySecurity): the whole security
    /// descriptor.
    Security(Box<SecurityDescriptor>),
    /// Answers [`Operation::Volume`](super::Operation::Volume): size and properties of the file
    /// system.
    Volume(VolumeInfo),
}

impl Outcome {
    /// Checks that the file system answered with [`Outcome::Done`], the success of an operation
    /// without a value.
    ///
    /// # Panics
    /// The outcome is another variant, which is a bug of the file system or of the I/O driver.
    pub fn expect_done(self) {
        let Self::Done = self else {
            panic!("the operation has no value, the driver answered {self:?}");
        };
    }

    /// Returns the open file in [`Outcome::Opened`], the answer to an open. Panics for another
    /// variant: a bug of the I/O driver.
    pub fn expect_opened(self) -> Opened {
        let Self::Opened(opened) = self else {
            panic!("an open expects Opened, the driver answered {self:?}");
        };
        opened
    }

    /// Returns the file's metadata in [`Outcome::Metadata`], the answer to a query or change of
    /// metadata. Panics for another variant: a bug of the I/O driver.
    pub fn expect_metadata(self) -> Metadata {
        let Self::Metadata(metadata) = self else {
            panic!("the operation expects Metadata, the driver answered {self:?}");
        };
        metadata
    }

    /// Returns the new path in [`Outcome::Renamed`], the answer to a rename. Panics for another
    /// variant: a bug of the I/O driver.
    pub fn expect_renamed(self) -> SharePath {
        let Self::Renamed(path) = self else {
            panic!("a rename expects Renamed, the driver answered {self:?}");
        };
        path
    }

    /// Returns the metadata in [`Outcome::Found`], the answer to the lookup of a name; `None` if
    /// the file does not exist. Panics for another variant: a bug of the I/O driver.
    pub fn expect_found(self) -> Option<Metadata> {
        let Self::Found(found) = self else {
            panic!("a lookup expects Found, the driver answered {self:?}");
        };
        found
    }

    /// Returns the entries in [`Outcome::Directory`], the answer to a listing. Panics for another
    /// variant: a bug of the I/O driver.
    pub fn expect_directory(self) -> Vec<DirectoryEntry> {
        let Self::Directory(entries) = self else {
            panic!("a listing expects Directory, the driver answered {self:?}");
        };
        entries
    }

    /// Returns the number of copied bytes and the status in [`Outcome::Copied`], the answer to a
    /// copy. Panics for another variant: a bug of the I/O driver.
    pub fn expect_copied(self) -> (u32, Status) {
        let Self::Copied { count, status } = self else {
            panic!("a copy expects Copied, the driver answered {self:?}");
        };
        (count, status)
    }

    /// Returns the offset in bytes up to which the requested range is zero, from
    /// [`Outcome::Zeroed`]. It may be less than the end of the range. Panics for another variant: a
    /// bug of the I/O driver.
    pub fn expect_zeroed(self) -> u64 {
        let Self::Zeroed(end) = self else {
            panic!("zeroing expects Zeroed, the driver answered {self:?}");
        };
        end
    }

    /// Returns the allocated ranges (byte offsets in the file) in [`Outcome::Ranges`]. Panics for
    /// another variant: a bug of the I/O driver.
    pub fn expect_ranges(self) -> Vec<Range<u64>> {
        let Self::Ranges(ranges) = self else {
            panic!("the operation expects Ranges, the driver answered {self:?}");
        };
        ranges
    }

    /// Returns the handle of the file in [`Outcome::Handle`]. Panics for another variant: a bug of
    /// the I/O driver.
    pub fn expect_handle(self) -> FileHandle {
        let Self::Handle(handle) = self else {
            panic!("the operation expects Handle, the driver answered {self:?}");
        };
        handle
    }

    /// Returns the encoded reparse point in [`Outcome::Reparse`]. Panics for another variant: a bug
    /// of the I/O driver.
    pub fn expect_reparse(self) -> Vec<u8> {
        let Self::Reparse(data) = self else {
            panic!("the operation expects Reparse, the driver answered {self:?}");
        };
        data
    }

    /// Returns the reparse point on a path in [`Outcome::Link`]. Panics for another variant: a bug
    /// of the I/O driver.
    pub fn expect_link(self) -> Option<FoundLink> {
        let Self::Link(found) = self else {
            panic!("the operation expects Link, the driver answered {self:?}");
        };
        found
    }

    /// Returns the data streams of a file in [`Outcome::Streams`]. Panics for another variant: a
    /// bug of the I/O driver.
    pub fn expect_streams(self) -> Vec<StreamEntry> {
        let Self::Streams(streams) = self else {
            panic!("the operation expects Streams, the driver answered {self:?}");
        };
        streams
    }

    /// Returns the extended attributes in [`Outcome::Eas`]. Panics for another variant: a bug of
    /// the I/O driver.
    pub fn expect_eas(self) -> Vec<Ea> {
        let Self::Eas(eas) = self else {
            panic!("the operation expects Eas, the driver answered {self:?}");
        };
        eas
    }

    /// Returns the quotas in [`Outcome::Quotas`]. Panics for another variant: a bug of the I/O
    /// driver.
    pub fn expect_quotas(self) -> Vec<DiskQuota> {
        let Self::Quotas(quotas) = self else {
            panic!("the operation expects Quotas, the driver answered {self:?}");
        };
        quotas
    }

    /// Returns the security descriptor in [`Outcome::Security`]. Panics for another variant: a bug
    /// of the I/O driver.
    pub fn expect_security(self) -> SecurityDescriptor {
        let Self::Security(descriptor) = self else {
            panic!("the operation expects Security, the driver answered {self:?}");
        };
        *descriptor
    }

    /// Returns the size and properties of the file system in [`Outcome::Volume`]. Panics for
    /// another variant: a bug of the I/O driver.
    pub fn expect_volume(self) -> VolumeInfo {
        let Self::Volume(volume) = self else {
            panic!("the operation expects Volume, the driver answered {self:?}");
        };
        volume
    }
}
