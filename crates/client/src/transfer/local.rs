//! The local ends of transfers.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// The local end of a [`download`](crate::transfer::download()): it receives the bytes of the file.
/// The download calls its method on the thread that polls the download.
pub trait Sink {
    /// Stores the bytes of a piece, which is never empty. `offset` is the offset of the piece in
    /// the downloaded file. Pieces arrive in any order, each byte once.
    ///
    /// # Errors
    /// An error ends the download.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;
}

/// The local end of an [`upload`](crate::transfer::upload()): it supplies the bytes of the file.
/// The upload calls its methods on the thread that polls the upload.
pub trait Source {
    /// Returns the local file if the source is one with equal offsets; the default is `None`. A
    /// connection that supports it then sends pieces from the file without a copy, and the transfer
    /// calls [`read_at`](Self::read_at) only for the others. The transfer calls this before each
    /// such piece.
    ///
    /// # Errors
    /// An error ends the upload.
    fn file(&mut self) -> io::Result<Option<Arc<fs::File>>> {
        Ok(None)
    }

    /// Fills the buffer with the bytes at `offset`. Returns their count; fewer bytes than the
    /// buffer has mark the end of the source.
    ///
    /// # Errors
    /// An error ends the upload.
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
}

impl<F: FnMut(u64, &[u8]) -> io::Result<()>> Sink for F {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self(offset, bytes)
    }
}

/// A local file as the source of an upload or the sink of a download. A byte has the same offset in
/// the local file and in the file on the server.
#[derive(Clone, Debug)]
pub struct LocalFile(pub Arc<fs::File>);

impl From<fs::File> for LocalFile {
    fn from(file: fs::File) -> Self {
        Self(Arc::new(file))
    }
}

impl Sink for LocalFile {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }
}

impl Source for LocalFile {
    fn file(&mut self) -> io::Result<Option<Arc<fs::File>>> {
        Ok(Some(Arc::clone(&self.0)))
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        fill(buffer, offset, |buffer, offset| {
            self.0.read_at(buffer, offset)
        })
    }
}

impl Source for &[u8] {
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let start = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(self.len());
        let rest = &self[start..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

fn fill(
    buffer: &mut [u8],
    offset: u64,
    mut read: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match read(&mut buffer[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}
