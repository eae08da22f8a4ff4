//! Reading and writing.

use fuser::{Errno, FileHandle};
use smbeam_client::Region;

use super::{Answer, Volume};
use crate::errno::errno;

impl Volume {
    /// Reads from a file. Fewer bytes than `len` are the end of the file.
    pub(crate) async fn read(&self, handle: FileHandle, offset: u64, len: u32) -> Answer<Region> {
        let open = self.file(handle)?;
        let file = match open.is_readable {
            true => open.file.clone(),
            false => return Err(Errno::EBADF),
        };
        let read = file.read(len as usize, offset).await;
        read.map_err(|error| errno(&error))
    }

    /// Writes to a file. Returns the number of written bytes.
    pub(crate) async fn write(
        &self,
        handle: FileHandle,
        offset: u64,
        bytes: Vec<u8>,
    ) -> Answer<u32> {
        let open = self.file(handle)?;
        let (written, _) = open.file.write_at(bytes, offset).await;
        let written = written.map_err(|error| errno(&error))?;
        u32::try_from(written).map_err(|_| Errno::EIO)
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
