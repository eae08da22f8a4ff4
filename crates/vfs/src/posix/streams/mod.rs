//! Named data streams of files and directories.
//!
//! A stream is an extended attribute of its file in the format of Samba's module `streams_xattr`:
//! the name is `user.DosStream.NAME:$DATA`, and the value is the data followed by a byte of zero.
//! So a directory can move between the two servers. The kernel limits the data to 64 KiB, and some
//! file systems to less: ext4 with blocks of 4 KiB stores about 4,000 bytes for all attributes of
//! a file.
//!
//! A read fetches the attribute; a write replaces it as a whole, under a lock that all opens of the
//! stream share. The kernel replaces an attribute atomically, so that a crash leaves the old or the
//! new data.
//!
//! A share with [`super::Options::large_streams`] keeps the data that an attribute cannot hold in a
//! hidden directory: see [`large`].

mod attribute;
mod base;
mod data;
pub(super) mod large;
mod open;
pub(super) mod opens;
mod xattr;

use proto::file::{FileKind, Metadata, Outcome, StreamEntry};
use proto::path::StreamName;
use rustix::io::Errno;
use wire::Status;
use wire::access::FileAttributes;

use self::base::Base;
use self::opens::OpenStream;
use super::Posix;
use super::directory::{Directory, Run};
use super::file::OpenFile;
use super::file_ref::FileRef;
use super::stat::{stat, supports_attributes};
use crate::errno::{Context, status};
use crate::{Effort, Step, Stop, fold};

pub(super) use self::data::{allocated, flush, read, set_allocation, set_length, write, zero};

/// Allocation unit of a stream in bytes, for clients.
const UNIT: u64 = 4096;

/// A named stream that was found: its name as stored, and the length of its data in bytes.
struct Found {
    name: StreamName,
    size: u64,
}

impl Posix {
    /// The file of an open, for an operation on its streams.
    pub(super) fn base<'a>(&self, file: &'a OpenFile, effort: Effort) -> Base<'a> {
        self.base_of(file.file_ref(), &file.root, effort)
    }

    fn base_of<'a>(&self, file: FileRef<'a>, root: &'a Directory, effort: Effort) -> Base<'a> {
        let keeps_large = self.options.large_streams && file.volume.stores_attributes;
        Base::new(file, root, keeps_large, effort)
    }

    /// Fails with WouldBlock if the removal of a file may take long because of its large streams.
    pub(super) fn may_remove_streams(&self, file: FileRef<'_>, run: Run<'_>) -> Step<()> {
        let may = large::may_remove_all(self.base_of(file, run.root, run.effort));
        may.map_err(|errno| failed(errno, Context::Remove))
    }

    /// Releases the data of the large streams of a file if it has lost its last name.
    pub(super) fn name_removed(&self, file: FileRef<'_>, is_directory: bool, run: Run<'_>) {
        let base = self.base_of(file, run.root, Effort::Blocking);
        if base.root.is_none() {
            return;
        }
        // Some file systems count the links of a directory in other ways.
        let is_last = |fd| stat(fd).is_ok_and(|stat| stat.0.stx_nlink == 0);
        if is_directory || is_last(file.fd) {
            large::release_blobs(base);
        }
    }

    /// The unnamed data stream of a file, which a directory lacks, and the named streams.
    pub(super) fn list_streams(&self, file: &OpenFile, run: Run<'_>) -> Step<Outcome> {
        let stat = stat(&*file.fd).map_err(|errno| status(errno, Context::Open))?;
        let metadata = self.metadata(file.file_ref(), &stat, "");
        let mut entries = Vec::new();
        if metadata.kind == FileKind::File {
            entries.push(StreamEntry {
                name: None,
                size: metadata.size,
                allocation: metadata.allocation,
            });
        }
        if file.volume.stores_attributes && supports_attributes(&stat) {
            for Found { name, size } in named(self.base(file, run.effort))? {
                entries.push(StreamEntry {
                    name: Some(name),
                    size,
                    allocation: allocation(size),
                });
            }
        }
        Ok(Outcome::Streams(entries))
    }

    /// Removes a named stream of the file of an open.
    pub(super) fn remove_stream(
        &self,
        file: &OpenFile,
        name: &StreamName,
        run: Run<'_>,
    ) -> Step<Outcome> {
        let base = self.base(file, run.effort);
        let own =
            (file.stream.as_ref()).filter(|own| fold::same(own.name().as_str(), name.as_str()));
        let removed = match own {
            Some(own) => own.remove(base),
            None => opens::remove(base, name),
        };
        removed.map_err(|errno| failed(errno, Context::Remove))?;
        Ok(Outcome::Done)
    }

    /// Gives the open stream another name.
    pub(super) fn rename_stream(
        &self,
        file: &OpenFile,
        to: &StreamName,
        replace: bool,
        run: Run<'_>,
    ) -> Step<Outcome> {
        let base = self.base(file, run.effort);
        let stream = file.stream.as_ref().ok_or(Status::INVALID_PARAMETER)?;
        let there = find(base, to)?;
        let is_itself = |found: &Found| fold::same(found.name.as_str(), stream.name().as_str());
        let replaced = match there {
            Some(found) if is_itself(&found) => None,
            Some(_) if !replace => return Err(Status::OBJECT_NAME_COLLISION.into()),
            other => other.map(|found| found.name),
        };
        let renamed = stream.rename(base, to, replaced.as_ref());
        renamed.map_err(|errno| failed(errno, Context::Data))?;
        Ok(Outcome::Done)
    }
}

/// Removes all named streams of a file: an overwrite of the file deletes them.
/// \[MS-FSA\] 2.1.5.1.2.1
pub(super) fn remove_all(base: Base<'_>) -> Step<()> {
    if !base.file.volume.stores_attributes {
        return Ok(());
    }
    for Found { name, .. } in named(base)? {
        match opens::remove(base, &name) {
            Ok(()) | Err(Errno::NODATA) => {}
            Err(errno) => return Err(failed(errno, Context::Data)),
        }
    }
    Ok(())
}

/// Replaces the sizes and the kind of a file by those of its open stream.
pub(super) fn describe(base: Base<'_>, stream: &OpenStream, metadata: &mut Metadata) -> Step<()> {
    let size = stream.size(base);
    let size = size.map_err(|errno| failed(errno, Context::Open))?;
    of_stream(stream, size, metadata);
    Ok(())
}

fn of_stream(stream: &OpenStream, size: u64, metadata: &mut Metadata) {
    metadata.key = metadata.key.with_stream(stream.id());
    metadata.kind = FileKind::File;
    metadata.attributes = metadata.attributes.without(FileAttributes::DIRECTORY);
    metadata.size = size;
    metadata.allocation = allocation(size);
}

fn allocation(size: u64) -> u64 {
    size.next_multiple_of(UNIT)
}

/// The named streams of a file. A large stream wins over an attribute with its name.
fn named(base: Base<'_>) -> Step<Vec<Found>> {
    let large = large::list(base).map_err(|errno| failed(errno, Context::Open))?;
    let mut found: Vec<_> = (large.into_iter())
        .map(|(name, size)| Found { name, size })
        .collect();
    for name in xattr::list(base.file).map_err(|errno| failed(errno, Context::Open))? {
        if found.iter().any(|other| other.name == name) {
            continue;
        }
        // The stream may have been removed in the meantime.
        if let Ok(size) = xattr::size(base.file, &name) {
            found.push(Found { name, size });
        }
    }
    Ok(found)
}

/// The named stream of a file with this name, without regard to case.
fn find(base: Base<'_>, name: &StreamName) -> Step<Option<Found>> {
    let size = match large::find(base, name).map_err(|errno| failed(errno, Context::Open))? {
        Some(blob) => blob.size(),
        None => xattr::size(base.file, name),
    };
    if let Ok(size) = size {
        let name = name.clone();
        return Ok(Some(Found { name, size }));
    }
    let named = named(base)?;
    let is_it = |found: &Found| fold::same(found.name.as_str(), name.as_str());
    Ok(named.into_iter().find(is_it))
}

/// The status of a failed operation on streams.
fn failed(errno: Errno, context: Context) -> Stop {
    match errno {
        Errno::AGAIN => Stop::WouldBlock,
        errno => Stop::Failed(status(errno, context)),
    }
}
