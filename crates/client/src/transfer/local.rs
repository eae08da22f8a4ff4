//! The local ends of transfers.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Takes the bytes of a download, on the thread that waits for it.
pub trait Sink {
    /// Takes a piece, which is never empty. Pieces come in any order, each byte once.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;
}

/// Gives the bytes of an upload.
pub trait Source {
    /// The file that it is, if it is one: then pieces go from there straight to connections that
    /// can, and [`read_at`](Self::read_at) is called for others only. Asked before each piece where
    /// connections can; an error ends the transfer.
    fn file(&mut self) -> io::Result<Option<Arc<fs::File>>> {
        Ok(None)
    }

    /// Fills the buffer with what belongs at `offset` of the file, as far as there are bytes;
    /// tells how many. Fewer than asked for are the end.
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
}

impl<F: FnMut(u64, &[u8]) -> io::Result<()>> Sink for F {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self(offset, bytes)
    }
}

/// A file of this machine, at the same offsets.
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
