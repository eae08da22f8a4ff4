//! Named streams that do not fit into an extended attribute.
//!
//! The data of a large stream are a file of the share's hidden directory (`blob`); the base file
//! has a pointer to it (`pointer`). A stream moves there when its attribute cannot hold a change,
//! and never back. The order of the steps makes each of them safe against a crash:
//!
//! - The blob is complete and on stable storage before a pointer names it. The pointer exists
//!   before the attribute with the data is removed; if both exist, the pointer wins.
//! - A rename sets the new pointer before it removes the old one. In between, the stream has two
//!   names.
//! - A removal removes the pointer, then marks the blob as released.
//!
//! A local copy of a file has the pointers of its original. So only the sweep removes blobs
//! (`sweep`), after it has searched the share for other pointers (`search`). It also finds blobs
//! that a crash has left. A pointer without a blob counts as no stream: the file was copied or
//! restored without the hidden directory.

pub(in crate::posix) mod blob;
pub(super) mod pointer;
mod search;
pub(in crate::posix) mod sweep;

use std::os::fd::OwnedFd;

use proto::path::StreamName;
use rustix::fs::{XattrFlags, copy_file_range, fsync};
use rustix::io::{Errno, pread, pwrite};

use self::blob::Blob;
use self::pointer::BlobId;
use super::base::Base;
use super::xattr;

/// Length of a buffer for a copy in bytes.
const BUFFER: usize = 1 << 20;

/// The blob of a stream; `None` if the stream is not large.
pub(super) fn find(base: Base<'_>, name: &StreamName) -> Result<Option<Blob>, Errno> {
    let Some(root) = base.root else {
        return Ok(None);
    };
    match pointer::read(base.file, name)? {
        Some(id) => blob::open(base, root, &id),
        None => Ok(None),
    }
}

/// The present blob of a stream, of which `last` was the blob: the same one without an open.
pub(super) fn refresh(
    base: Base<'_>,
    name: &StreamName,
    last: Option<Blob>,
) -> Result<Option<Blob>, Errno> {
    let Some(root) = base.root else {
        return Ok(None);
    };
    match (pointer::read(base.file, name)?, last) {
        (None, _) => Ok(None),
        (Some(id), Some(last)) if last.id == id => Ok(Some(last)),
        (Some(id), _) => blob::open(base, root, &id),
    }
}

/// The large streams of a file, with the lengths of their data in bytes.
pub(super) fn list(base: Base<'_>) -> Result<Vec<(StreamName, u64)>, Errno> {
    let Some(root) = base.root else {
        return Ok(Vec::new());
    };
    let mut streams = Vec::new();
    for (name, id) in pointer::list(base.file)? {
        if let Some(blob) = blob::open(base, root, &id)? {
            streams.push((name, blob.size()?));
        }
    }
    Ok(streams)
}

/// Makes sure that a stream is stored in one way only, after a crash: with a blob, its attribute
/// has old data; without one, its pointer leads nowhere.
pub(super) fn remove_rest(base: Base<'_>, name: &StreamName, is_large: bool) -> Result<(), Errno> {
    match (base.root, is_large) {
        (None, _) => Ok(()),
        (Some(_), true) => remove_inline(base, name),
        (Some(_), false) => pointer::remove(base.file, name),
    }
}

/// Moves a stream with these data out of its attribute, under the name `to`. Fails with `refusal`,
/// the error of the attribute, if the share keeps no large streams.
pub(super) fn move_out(
    base: Base<'_>,
    (name, to): (&StreamName, &StreamName),
    data: &[u8],
    refusal: Errno,
) -> Result<Blob, Errno> {
    let root = base.root.ok_or(refusal)?;
    base.may_block()?;
    let blob = match blob::create(base, root) {
        // The file system has no handles or no attributes.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Err(refusal),
        blob => blob?,
    };
    let moved = write_all(&blob.fd, 0, data)
        .and_then(|()| fsync(&*blob.fd))
        .and_then(|()| point(base, (name, to), data, &blob));
    moved.inspect_err(|_| {
        // Without the attribute, the blob may be the only copy: the sweep decides.
        if xattr::size(base.file, name).is_ok() {
            let _ = blob::remove(base, root, &blob.id);
        }
    })?;
    Ok(blob)
}

/// Replaces the attribute of a stream by a pointer.
fn point(
    base: Base<'_>,
    (name, to): (&StreamName, &StreamName),
    data: &[u8],
    blob: &Blob,
) -> Result<(), Errno> {
    match pointer::set(base.file, to, &blob.id) {
        Ok(()) => {
            if name != to {
                remove_inline(base, to)?;
            }
            // An overwrite of the file may have removed the stream in between.
            xattr::remove(base.file, name).inspect_err(|_| {
                let _ = pointer::remove(base.file, to);
            })
        }
        Err(Errno::NOSPC) if name == to => displace(base, name, data, blob),
        Err(errno) => Err(errno),
    }
}

/// Replaces the attribute of a stream by a pointer if the file has no space for both. Until the
/// pointer exists, the blob remembers the name of the stream for the sweep.
fn displace(base: Base<'_>, name: &StreamName, data: &[u8], blob: &Blob) -> Result<(), Errno> {
    let token = base.file.token;
    blob::note_move(blob, token, Some(name.as_str()))?;
    remove_inline(base, name)?;
    let set = pointer::set(base.file, name, &blob.id);
    if set.is_err() {
        xattr::write(base.file, name, data.to_vec(), XattrFlags::empty())?;
    }
    blob::note_move(blob, token, None)?;
    set
}

fn remove_inline(base: Base<'_>, name: &StreamName) -> Result<(), Errno> {
    match xattr::remove(base.file, name) {
        Ok(()) | Err(Errno::NODATA) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Copies the blob of another file before the first change of a stream.
pub(super) fn copy(base: Base<'_>, name: &StreamName, from: &Blob) -> Result<Blob, Errno> {
    let root = base.root.ok_or(Errno::NODATA)?;
    base.may_block()?;
    let blob = blob::create(base, root)?;
    let copied = copy_all(&from.fd, &blob.fd)
        .and_then(|()| fsync(&*blob.fd))
        .and_then(|()| pointer::set(base.file, name, &blob.id));
    copied.inspect_err(|_| {
        let _ = blob::remove(base, root, &blob.id);
    })?;
    Ok(blob)
}

/// Gives a large stream another name. A stream that had this name is replaced; the caller releases
/// its blob.
pub(super) fn rename(
    base: Base<'_>,
    (from, to): (&StreamName, &StreamName),
    blob: &Blob,
) -> Result<(), Errno> {
    pointer::set(base.file, to, &blob.id)?;
    remove_inline(base, to)?;
    // If a crash has left both, the attribute is old.
    remove_inline(base, from)?;
    pointer::remove(base.file, from)
}

/// The blob of a stream that an operation removes. Fails with EAGAIN if there is one and the
/// operation may not block.
pub(super) fn removable(base: Base<'_>, name: &StreamName) -> Result<Option<BlobId>, Errno> {
    if base.root.is_none() {
        return Ok(None);
    }
    let id = pointer::read(base.file, name)?;
    if id.is_some() {
        base.may_block()?;
    }
    Ok(id)
}

/// Removes the pointer of a stream to a blob, then releases the blob.
pub(super) fn remove(base: Base<'_>, name: &StreamName, id: &BlobId) -> Result<(), Errno> {
    pointer::remove(base.file, name)?;
    release(base, id);
    Ok(())
}

/// Releases a blob that lost a pointer, if the file has no other pointer to it. If that fails, the
/// sweep finds it.
pub(super) fn release(base: Base<'_>, id: &BlobId) {
    let Some(root) = base.root else {
        return;
    };
    let is_used =
        pointer::list(base.file).map(|pointers| pointers.iter().any(|(_, other)| other == id));
    let removed = match is_used {
        Ok(true) => Ok(()),
        Ok(false) => blob::release(base, root, id),
        Err(errno) => Err(errno),
    };
    if let Err(error) = removed {
        tracing::debug!(%id, %error, "cannot release the data of a named stream");
    }
}

/// Fails with EAGAIN if the operation removes large streams and may not block.
pub(super) fn may_remove_all(base: Base<'_>) -> Result<(), Errno> {
    let is_large = base.root.is_some() && base.may_block().is_err();
    match is_large && !pointer::list(base.file)?.is_empty() {
        true => Err(Errno::AGAIN),
        false => Ok(()),
    }
}

/// Releases the blobs of a file that has no name.
pub(super) fn release_blobs(base: Base<'_>) {
    let Some(root) = base.root else {
        return;
    };
    for (_, id) in pointer::list(base.file).unwrap_or_default() {
        if let Err(error) = blob::release(base, root, &id) {
            tracing::debug!(%id, %error, "cannot release the data of a named stream");
        }
    }
}

/// Writes all data at an offset.
pub(super) fn write_all(fd: &OwnedFd, mut offset: u64, mut data: &[u8]) -> Result<(), Errno> {
    while !data.is_empty() {
        match pwrite(fd, data, offset) {
            Ok(0) => return Err(Errno::NOSPC),
            Ok(count) => {
                data = &data[count..];
                offset += count as u64;
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Copies all data of a file. The kernel shares the extents where it can.
fn copy_all(from: &OwnedFd, to: &OwnedFd) -> Result<(), Errno> {
    let (mut read, mut written) = (0, 0);
    loop {
        match copy_file_range(from, Some(&mut read), to, Some(&mut written), BUFFER << 10) {
            Ok(0) => return Ok(()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::XDEV | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                return copy_by_buffer(from, to, read);
            }
            Err(errno) => return Err(errno),
        }
    }
}

fn copy_by_buffer(from: &OwnedFd, to: &OwnedFd, mut offset: u64) -> Result<(), Errno> {
    let mut buffer = vec![0; BUFFER];
    loop {
        match pread(from, &mut buffer[..], offset) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                write_all(to, offset, &buffer[..count])?;
                offset += count as u64;
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}
