//! The open named streams.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};

use proto::file::{FileKey, StreamId};
use proto::path::StreamName;
use rustix::fs::XattrFlags;
use rustix::io::Errno;

use super::base::Base;
use super::large::blob::Blob;
use super::large::pointer::BlobId;
use super::{large, xattr};
use crate::{Effort, fold};

/// A named stream that is open. All its opens share it, so that a rename updates all of them.
#[derive(Debug)]
pub(in crate::posix) struct OpenStream {
    id: StreamId,
    /// The name of the stream. The lock is held for no system call.
    name: Mutex<StreamName>,
    /// The blob at the last operation, if the stream is large. The lock is held while the data are
    /// replaced or moved.
    blob: Mutex<Option<Blob>>,
}

/// The data of a stream.
pub(super) enum Data {
    Inline(Vec<u8>),
    Large(Blob),
}

/// The result of a change of the data.
pub(super) enum Changed<T> {
    Inline(T),
    /// The data are in a blob, which the caller changes.
    Large(Blob),
}

impl OpenStream {
    /// The number of the stream within its file.
    pub(super) fn id(&self) -> StreamId {
        self.id
    }

    /// The present name of the stream.
    pub(super) fn name(&self) -> StreamName {
        let name = self.name.lock();
        name.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the stream has a blob, so that the last close may free many blocks.
    pub(in crate::posix) fn is_large(&self) -> bool {
        self.blob.try_lock().map_or(true, |blob| blob.is_some())
    }

    /// Opens the blob of a large stream, for an open. Removes what a crash has left: the attribute
    /// beside a blob, or a pointer that leads nowhere.
    pub(super) fn attach(&self, base: Base<'_>) -> Result<Option<Blob>, Errno> {
        let (blob, name) = self.lock(base)?;
        if let Err(error) = large::remove_rest(base, &name, blob.is_some()) {
            tracing::debug!(%error, "cannot remove the rest of a named stream");
        }
        Ok(blob.clone())
    }

    /// The length of the data in bytes.
    pub(super) fn size(&self, base: Base<'_>) -> Result<u64, Errno> {
        let (blob, name) = self.lock(base)?;
        match &*blob {
            Some(blob) => blob.size(),
            None => xattr::size(base.file, &name),
        }
    }

    /// The data, or the blob with them.
    pub(super) fn data(&self, base: Base<'_>) -> Result<Data, Errno> {
        let (blob, name) = self.lock(base)?;
        match &*blob {
            Some(blob) => Ok(Data::Large(blob.clone())),
            None => Ok(Data::Inline(xattr::read(base.file, &name)?)),
        }
    }

    /// The blob, if the stream is large.
    pub(super) fn blob(&self, base: Base<'_>) -> Result<Option<Blob>, Errno> {
        let (blob, _) = self.lock(base)?;
        Ok(blob.clone())
    }

    /// Changes the data in the attribute. The stream is locked in between; `change` returns whether
    /// to store the data. If the attribute cannot hold them, the stream moves into a blob, without
    /// the change.
    pub(super) fn change<T>(
        &self,
        base: Base<'_>,
        change: impl FnOnce(&mut Vec<u8>) -> Result<(T, bool), Errno>,
    ) -> Result<Changed<T>, Errno> {
        let (mut blob, name) = self.lock(base)?;
        let own = match blob.take() {
            Some(own) if own.is_own => own,
            Some(foreign) => large::copy(base, &name, &foreign)?,
            None => {
                let data = xattr::read(base.file, &name)?;
                let mut changed = data.clone();
                let stored = change(&mut changed).and_then(|(result, is_changed)| {
                    if is_changed {
                        xattr::write(base.file, &name, changed, XattrFlags::REPLACE)?;
                    }
                    Ok(result)
                });
                match stored {
                    Err(refusal) if is_too_long(refusal) => {
                        large::move_out(base, (&name, &name), &data, refusal)?
                    }
                    stored => return stored.map(Changed::Inline),
                }
            }
        };
        *blob = Some(own.clone());
        Ok(Changed::Large(own))
    }

    /// Gives the stream another name. Replaces the stream `replaced`, and stores the data under the
    /// new name before it removes the old one, so that a crash does not lose them.
    pub(super) fn rename(
        &self,
        base: Base<'_>,
        to: &StreamName,
        replaced: Option<&StreamName>,
    ) -> Result<(), Errno> {
        let (mut blob, name) = self.lock(base)?;
        if name == *to {
            return Ok(());
        }
        let other = replaced.filter(|replaced| *replaced != to);
        other
            .map(|other| large::removable(base, other))
            .transpose()?;
        let old = large::removable(base, to)?;
        match &*blob {
            Some(blob) => {
                large::rename(base, (&name, to), blob)?;
                if let Some(old) = old {
                    large::release(base, &old);
                }
            }
            None => *blob = rename_inline(base, (&name, to), old.as_ref())?,
        }
        if let Some(other) = other {
            remove(base, other)?;
        }
        *self.name.lock().unwrap_or_else(PoisonError::into_inner) = to.clone();
        Ok(())
    }

    /// Removes the stream.
    pub(super) fn remove(&self, base: Base<'_>) -> Result<(), Errno> {
        let (_blob, name) = self.lock(base)?;
        remove(base, &name)
    }

    /// Locks the data, and looks up where they are. Returns the present name too. Fails with EAGAIN
    /// instead of a wait if the operation may not block.
    fn lock(&self, base: Base<'_>) -> Result<(MutexGuard<'_, Option<Blob>>, StreamName), Errno> {
        let mut blob = match (base.effort, self.blob.try_lock()) {
            (_, Ok(blob)) => blob,
            (_, Err(TryLockError::Poisoned(error))) => error.into_inner(),
            (Effort::Cached, Err(TryLockError::WouldBlock)) => return Err(Errno::AGAIN),
            (Effort::Blocking, Err(TryLockError::WouldBlock)) => {
                self.blob.lock().unwrap_or_else(PoisonError::into_inner)
            }
        };
        let name = self.name();
        *blob = large::refresh(base, &name, blob.take())?;
        Ok((blob, name))
    }
}

/// Whether the kernel refused a value because the attributes of the file have no space for it.
fn is_too_long(errno: Errno) -> bool {
    matches!(errno, Errno::FBIG | Errno::TOOBIG | Errno::NOSPC)
}

/// Renames a stream in an attribute. Replaces a large stream with the blob `old`. Returns the blob
/// if the stream had to move into one.
fn rename_inline(
    base: Base<'_>,
    (name, to): (&StreamName, &StreamName),
    old: Option<&BlobId>,
) -> Result<Option<Blob>, Errno> {
    let data = xattr::read(base.file, name)?;
    match xattr::write(base.file, to, data.clone(), XattrFlags::empty()) {
        Err(refusal) if is_too_long(refusal) => {
            let blob = large::move_out(base, (name, to), &data, refusal)?;
            if let Some(old) = old {
                large::release(base, old);
            }
            Ok(Some(blob))
        }
        Err(errno) => Err(errno),
        Ok(()) => {
            // The old pointer would win over the new attribute.
            if let Some(old) = old {
                large::remove(base, to, old)?;
            }
            xattr::remove(base.file, name)?;
            Ok(None)
        }
    }
}

/// Removes a stream. Fails with NODATA if it does not exist.
pub(super) fn remove(base: Base<'_>, name: &StreamName) -> Result<(), Errno> {
    let blob = large::removable(base, name)?;
    match (xattr::remove(base.file, name), blob) {
        (Ok(()) | Err(Errno::NODATA), Some(blob)) => large::remove(base, name, &blob),
        (removed, _) => removed,
    }
}

/// All open named streams of a share.
#[derive(Debug, Default)]
pub(in crate::posix) struct OpenStreams {
    by_file: Mutex<HashMap<FileKey, Vec<Weak<OpenStream>>>>,
    /// The number of the last new stream. Numbers are never used again.
    last: AtomicU64,
}

impl OpenStreams {
    /// The open stream of a name: the one that other opens use, or a new one.
    pub(super) fn share(&self, file: FileKey, name: StreamName) -> Arc<OpenStream> {
        let mut by_file = self.by_file.lock().unwrap_or_else(PoisonError::into_inner);
        let streams = by_file.entry(file).or_default();
        let is_it = |it: &Arc<OpenStream>| fold::same(it.name().as_str(), name.as_str());
        if let Some(stream) = streams.iter().filter_map(Weak::upgrade).find(is_it) {
            return stream;
        }
        let stream = Arc::new(OpenStream {
            id: StreamId(self.last.fetch_add(1, Ordering::Relaxed) + 1),
            name: Mutex::new(name),
            blob: Mutex::new(None),
        });
        streams.retain(|stream| stream.strong_count() > 0);
        streams.push(Arc::downgrade(&stream));
        stream
    }

    /// Removes the streams of a file without opens.
    pub(in crate::posix) fn forget(&self, file: FileKey) {
        let mut by_file = self.by_file.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(streams) = by_file.get_mut(&file) else {
            return;
        };
        streams.retain(|stream| stream.strong_count() > 0);
        if streams.is_empty() {
            by_file.remove(&file);
        }
    }
}
