//! The open named streams.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use proto::file::{FileKey, StreamId};
use proto::path::StreamName;
use rustix::fs::XattrFlags;
use rustix::io::Errno;

use super::xattr;
use crate::fold;
use crate::posix::file_ref::FileRef;

/// A named stream that is open. All its opens share it, so that a rename updates all of them.
#[derive(Debug)]
pub(in crate::posix) struct OpenStream {
    id: StreamId,
    /// The name of the stream. The lock is held while the data are replaced.
    name: Mutex<StreamName>,
}

impl OpenStream {
    /// The number of the stream within its file.
    pub(super) fn id(&self) -> StreamId {
        self.id
    }

    /// The present name of the stream.
    pub(super) fn name(&self) -> StreamName {
        self.lock().clone()
    }

    /// The length of the data in bytes.
    pub(super) fn size(&self, file: FileRef<'_>) -> Result<u64, Errno> {
        xattr::size(file, &self.lock())
    }

    /// The data.
    pub(super) fn read(&self, file: FileRef<'_>) -> Result<Vec<u8>, Errno> {
        xattr::read(file, &self.lock())
    }

    /// Changes the data. The stream is locked in between; `change` returns whether to store the
    /// data.
    pub(super) fn change<T>(
        &self,
        file: FileRef<'_>,
        change: impl FnOnce(&mut Vec<u8>) -> Result<(T, bool), Errno>,
    ) -> Result<T, Errno> {
        let name = self.lock();
        let mut data = xattr::read(file, &name)?;
        let (result, is_changed) = change(&mut data)?;
        if is_changed {
            xattr::write(file, &name, data, XattrFlags::REPLACE)?;
        }
        Ok(result)
    }

    /// Gives the stream another name. Replaces the stream `replaced`, and stores the data under the
    /// new name before it removes the old one, so that a crash does not lose them.
    pub(super) fn rename(
        &self,
        file: FileRef<'_>,
        to: &StreamName,
        replaced: Option<&StreamName>,
    ) -> Result<(), Errno> {
        let mut name = self.lock();
        if *name == *to {
            return Ok(());
        }
        let data = xattr::read(file, &name)?;
        xattr::write(file, to, data, XattrFlags::empty())?;
        xattr::remove(file, &name)?;
        if let Some(replaced) = replaced.filter(|replaced| *replaced != to) {
            xattr::remove(file, replaced)?;
        }
        *name = to.clone();
        Ok(())
    }

    /// Removes the stream.
    pub(super) fn remove(&self, file: FileRef<'_>) -> Result<(), Errno> {
        xattr::remove(file, &self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, StreamName> {
        self.name.lock().unwrap_or_else(PoisonError::into_inner)
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
