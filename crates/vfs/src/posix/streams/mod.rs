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

mod attribute;
mod data;
mod open;
pub(super) mod opens;
mod xattr;

use proto::file::{FileKind, Metadata, Outcome, StreamEntry};
use proto::path::StreamName;
use wire::Status;
use wire::access::FileAttributes;

use self::opens::OpenStream;
use super::Posix;
use super::file::OpenFile;
use super::file_ref::FileRef;
use super::stat::{stat, supports_attributes};
use crate::errno::{Context, status};
use crate::{Step, fold};

pub(super) use self::data::{allocated, flush, read, set_allocation, set_length, write, zero};

/// Allocation unit of a stream in bytes, for clients.
const UNIT: u64 = 4096;

/// A named stream that was found: its name as stored, and the length of its data in bytes.
struct Found {
    name: StreamName,
    size: u64,
}

impl Posix {
    /// The unnamed data stream of a file, which a directory lacks, and the named streams.
    pub(super) fn list_streams(&self, file: &OpenFile) -> Step<Outcome> {
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
            for Found { name, size } in named(file.file_ref())? {
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
    pub(super) fn remove_stream(&self, file: &OpenFile, name: &StreamName) -> Step<Outcome> {
        let own =
            (file.stream.as_ref()).filter(|own| fold::same(own.name().as_str(), name.as_str()));
        let removed = match own {
            Some(own) => own.remove(file.file_ref()),
            None => xattr::remove(file.file_ref(), name),
        };
        removed.map_err(|errno| status(errno, Context::Remove))?;
        Ok(Outcome::Done)
    }

    /// Gives the open stream another name.
    pub(super) fn rename_stream(
        &self,
        file: &OpenFile,
        to: &StreamName,
        replace: bool,
    ) -> Step<Outcome> {
        let stream = file.stream.as_ref().ok_or(Status::INVALID_PARAMETER)?;
        let there = find(file.file_ref(), to)?;
        let is_itself = |found: &Found| fold::same(found.name.as_str(), stream.name().as_str());
        let replaced = match there {
            Some(found) if is_itself(&found) => None,
            Some(_) if !replace => return Err(Status::OBJECT_NAME_COLLISION.into()),
            other => other.map(|found| found.name),
        };
        let renamed = stream.rename(file.file_ref(), to, replaced.as_ref());
        renamed.map_err(|errno| status(errno, Context::Data))?;
        Ok(Outcome::Done)
    }
}

/// Removes all named streams of a file: an overwrite of the file deletes them.
/// \[MS-FSA\] 2.1.5.1.2.1
pub(super) fn remove_all(file: FileRef<'_>) -> Step<()> {
    if !file.volume.stores_attributes {
        return Ok(());
    }
    for name in xattr::list(file).map_err(|errno| status(errno, Context::Data))? {
        match xattr::remove(file, &name) {
            Ok(()) | Err(rustix::io::Errno::NODATA) => {}
            Err(errno) => return Err(status(errno, Context::Data).into()),
        }
    }
    Ok(())
}

/// Replaces the sizes and the kind of a file by those of its open stream.
pub(super) fn describe(
    file: FileRef<'_>,
    stream: &OpenStream,
    metadata: &mut Metadata,
) -> Step<()> {
    let size = stream.size(file);
    let size = size.map_err(|errno| status(errno, Context::Open))?;
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

/// The named streams of a file.
fn named(file: FileRef<'_>) -> Step<Vec<Found>> {
    let mut found = Vec::new();
    for name in xattr::list(file).map_err(|errno| status(errno, Context::Open))? {
        // The stream may have been removed in the meantime.
        if let Ok(size) = xattr::size(file, &name) {
            found.push(Found { name, size });
        }
    }
    Ok(found)
}

/// The named stream of a file with this name, without regard to case.
fn find(file: FileRef<'_>, name: &StreamName) -> Step<Option<Found>> {
    if let Ok(size) = xattr::size(file, name) {
        let name = name.clone();
        return Ok(Some(Found { name, size }));
    }
    let named = named(file)?;
    let is_it = |found: &Found| fold::same(found.name.as_str(), name.as_str());
    Ok(named.into_iter().find(is_it))
}
