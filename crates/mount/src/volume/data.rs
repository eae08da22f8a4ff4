//! Reading and writing.

use std::sync::Arc;

use fuser::{Errno, FileHandle};
use smbeam_client::Region;

use super::{Answer, Volume};
use crate::errno::errno;
use crate::opens::OpenFile;

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
        let read = self.file_for(&open).read(len as usize, offset).await;
        let bytes = read.map_err(|error| errno(&error))?;
        if bytes.len() > len as usize {
            return Err(Errno::EIO);
        }
        self.counters.read.add(bytes.len() as u64);
        Ok((bytes, (!is_protected).then_some(open.ino)))
    }

    /// Writes to a file. Returns the number of written bytes. The second value is the inode if the
    /// kernel must drop its pages after the reply.
    pub(crate) async fn write(
        self: &Arc<Self>,
        handle: FileHandle,
        offset: u64,
        bytes: Vec<u8>,
    ) -> Answer<(u32, Option<u64>)> {
        let open = self.file(handle)?;
        let is_protected = self.protect(&open).await;
        let mut must_drop = !is_protected;
        let written = match open.is_append {
            true => {
                let (written, at) = self.append(&open, bytes).await?;
                must_drop |= at != offset;
                written
            }
            false => self.write_at(&open, offset, bytes).await?,
        };
        self.counters.written.add(written.into());
        Ok((written, must_drop.then_some(open.ino)))
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
        match open.is_writable {
            true => open.file.sync().await.map_err(|error| errno(&error)),
            // An open without the right to write cannot send FLUSH, and has written nothing.
            false => Ok(()),
        }
    }
}
