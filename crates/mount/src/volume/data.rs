//! Reading and writing.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use fuser::{Errno, FileHandle};
use smbeam_client::Region;

use super::write_behind::{Sending, needs_flush};
use super::{Answer, Volume};
use crate::errno::errno;
use crate::held::Position;
use crate::opens::OpenFile;

/// A write of a program.
pub(crate) struct Written {
    pub(crate) count: u32,
    /// The inode, if the kernel must drop its pages after the reply.
    pub(crate) dropped: Option<u64>,
    /// What follows the reply, if the data are held.
    pub(crate) sending: Option<Sending>,
}

impl Volume {
    /// Reads from a file. Fewer bytes than `len` are the end of the file. The second value says
    /// whether the kernel may keep the bytes.
    pub(crate) async fn read(
        self: &Arc<Self>,
        handle: FileHandle,
        offset: u64,
        len: u32,
    ) -> Answer<(Region, Option<u64>)> {
        let open = self.file(handle)?;
        let is_protected = self.protect(&open).await;
        if needs_flush(&open.opens.held, offset, len) {
            self.flush_held(&open.opens).await;
        }
        let read = self.file_for(&open).read(len as usize, offset).await;
        let bytes = read.map_err(|error| errno(&error))?;
        if bytes.len() > len as usize {
            return Err(Errno::EIO);
        }
        self.counters.read.add(bytes.len() as u64);
        Ok((bytes, (!is_protected).then_some(open.ino)))
    }

    /// Writes to a file, or holds the bytes. `is_direct`: the server must have them at once.
    pub(crate) async fn write(
        self: &Arc<Self>,
        handle: FileHandle,
        offset: u64,
        bytes: Vec<u8>,
        is_direct: bool,
    ) -> Answer<Written> {
        let open = self.file(handle)?;
        open.has_written.store(true, Ordering::Relaxed);
        let is_protected = self.protect(&open).await;
        let position = match open.is_append {
            true => Position::End,
            false => Position::At(offset),
        };
        let count = u32::try_from(bytes.len()).map_err(|_| Errno::EIO)?;
        let bytes = match is_direct {
            true => bytes,
            false => match self.hold(&open, position, bytes).await {
                Ok(held) => {
                    self.counters.written.add(count.into());
                    return Ok(Written {
                        count,
                        dropped: (held.at != offset).then_some(open.ino),
                        sending: Some(held.sending),
                    });
                }
                Err(bytes) => bytes,
            },
        };
        self.flush_held(&open.opens).await;
        let (count, at) = match position {
            Position::End => self.append(&open, bytes).await?,
            Position::At(at) => (self.write_at(&open, at, bytes).await?, at),
        };
        open.opens.held.grow(at + u64::from(count));
        self.counters.written.add(count.into());
        Ok(Written {
            count,
            dropped: (!is_protected || at != offset).then_some(open.ino),
            sending: None,
        })
    }

    async fn write_at(&self, open: &OpenFile, offset: u64, bytes: Vec<u8>) -> Answer<u32> {
        let (written, _) = self.file_for(open).write_at(bytes, offset).await;
        let written = written.map_err(|error| errno(&error))?;
        u32::try_from(written).map_err(|_| Errno::EIO)
    }

    /// Writes to the end of a file, and returns the offset too. The kernel chose its offset before,
    /// and another client may have appended meanwhile.
    async fn append(&self, open: &OpenFile, bytes: Vec<u8>) -> Answer<(u32, u64)> {
        let _gate = open.opens.gate.lock().await;
        let end = self.file_for(open).len().await;
        let end = end.map_err(|error| errno(&error))?;
        Ok((self.write_at(open, end, bytes).await?, end))
    }

    /// Waits until the server has the bytes of a file on stable storage.
    pub(crate) async fn sync(&self, handle: FileHandle) -> Answer<()> {
        let open = self.file(handle)?;
        self.settle(&open).await?;
        match open.is_writable {
            true => open.file.sync().await.map_err(|error| errno(&error)),
            // An open without the right to write cannot send FLUSH, and has written nothing.
            false => Ok(()),
        }
    }
}
