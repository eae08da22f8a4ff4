//! A range of a local file that a stream sends like memory.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// A range of a local file that a stream sends without a copy in memory of the process.
#[derive(Debug)]
pub struct FileRange {
    /// The local file, open for reading.
    pub file: Arc<fs::File>,
    /// Offset of the range in the file in bytes.
    pub offset: u64,
    /// Length of the range in bytes.
    pub len: usize,
    /// The error of reading the file, which the send sets; `None` without an error. After an error
    /// the peer has received zeros in place of the missing bytes, so the connection stays usable.
    pub error: Option<io::Error>,
}

impl FileRange {
    /// Returns the range of `len` bytes from byte `offset` of `file`; `error` is `None`.
    #[must_use]
    pub fn new(file: Arc<fs::File>, offset: u64, len: usize) -> Self {
        Self {
            file,
            offset,
            len,
            error: None,
        }
    }

    /// Reads the first bytes of the range into `bytes` until `bytes` is full. Blocks the thread if
    /// they are not in the page cache. Bytes past the end of the file are zeros, and `error`
    /// reports them.
    pub fn load(&mut self, bytes: &mut [u8]) {
        self.load_at(0, bytes);
    }

    /// Reads from the range after its first `done` bytes, as `load` does.
    pub(crate) fn load_at(&mut self, done: usize, bytes: &mut [u8]) {
        if let Err((error, there)) = read_full(&self.file, bytes, self.offset + done as u64) {
            bytes[there..].fill(0);
            self.error.get_or_insert(error);
        }
    }
}

/// Fills `bytes` from the file. An error comes with the number of bytes that were read.
fn read_full(file: &fs::File, bytes: &mut [u8], offset: u64) -> Result<(), (io::Error, usize)> {
    let mut done = 0;
    while done < bytes.len() {
        match file.read_at(&mut bytes[done..], offset + done as u64) {
            Ok(0) => return Err((io::ErrorKind::UnexpectedEof.into(), done)),
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err((error, done)),
        }
    }
    Ok(())
}
