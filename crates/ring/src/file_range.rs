//! A range of a local file that is sent in the place of memory.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// A range of a file.
#[derive(Debug)]
pub struct FileRange {
    /// The file, open for reading.
    pub file: Arc<fs::File>,
    /// Where it starts. Bytes.
    pub offset: u64,
    /// Bytes.
    pub len: usize,
    /// What went wrong with the file; the connection is none the worse.
    pub error: Option<io::Error>,
}

impl FileRange {
    /// One that nothing was done with yet.
    #[must_use]
    pub fn new(file: Arc<fs::File>, offset: u64, len: usize) -> Self {
        Self {
            file,
            offset,
            len,
            error: None,
        }
    }

    /// Reads the first bytes of the range. Those that the file does not have are zeros, and the
    /// range says so.
    pub fn load(&mut self, bytes: &mut [u8]) {
        self.load_at(0, bytes);
    }

    /// The same from behind the first `done` bytes of the range.
    pub(crate) fn load_at(&mut self, done: usize, bytes: &mut [u8]) {
        if let Err((error, there)) = read_full(&self.file, bytes, self.offset + done as u64) {
            bytes[there..].fill(0);
            self.error.get_or_insert(error);
        }
    }
}

/// Reads until the bytes are full; or says why not, and how many there are.
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
