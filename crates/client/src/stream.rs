//! Sequential access to a file: read ahead, written behind.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use ring::Region;

use crate::Wait;
use crate::error::Error;
use crate::file::File;
use crate::file::io::{count, written};
use crate::io::call::Pending;

/// Count of READs in flight ahead of the caller.
const READ_AHEAD: usize = 8;
/// Count of WRITEs in flight behind the caller.
const WRITE_BEHIND: usize = 8;

impl File {
    /// Returns a reader that starts at the first byte of the file. The reader sends READs before
    /// the caller asks for their bytes.
    pub fn reader(&self) -> FileReader {
        FileReader::new(self.clone())
    }

    /// Returns a sequential writer of the file. The writer accepts bytes while WRITEs of earlier
    /// bytes are in flight. It starts at the end of a file that was opened with
    /// [`OpenOptions::append`](crate::OpenOptions::append), else at the first byte.
    ///
    /// # Errors
    /// The server does not return the length of a file that was opened for appending. Only for such
    /// a file this function sends a request and blocks the thread.
    pub fn writer(&self) -> Result<FileWriter, Error> {
        FileWriter::new(self.clone())
    }
}

/// A sequential reader of a file, made by [`File::reader`]. It sends READs before the caller asks
/// for the bytes.
///
/// The methods of [`Read`] and [`Seek`] block the thread. With the cargo feature `tokio` or
/// `futures` the reader implements the traits `AsyncRead` and `AsyncSeek` of that project as well.
pub struct FileReader {
    file: File,
    /// Bytes of the last READ; the caller has taken the first `taken` of them.
    piece: Region,
    taken: usize,
    /// Offset in the file of the next byte for the caller.
    position: u64,
    /// READs in flight, in the order of their offsets.
    ahead: VecDeque<Pending>,
    /// Offset of the next READ.
    next: u64,
    is_at_end: bool,
    seek: SeekState,
}

/// A seek in progress.
#[derive(Default)]
struct SeekState {
    /// Query for the length of the file, for a seek from its end.
    length: Option<Pending>,
    /// Target that `start_seek` was called with.
    #[cfg(feature = "tokio")]
    target: Option<SeekFrom>,
}

impl SeekState {
    /// Computes the offset that a seek leads to.
    fn poll_target(
        &mut self,
        file: &File,
        position: u64,
        to: SeekFrom,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<u64>> {
        let target = match to {
            SeekFrom::Start(target) => Some(target),
            SeekFrom::Current(by) => position.checked_add_signed(by),
            SeekFrom::End(by) => {
                let length = self.length.get_or_insert_with(|| file.start_len());
                let done = ready!(Pin::new(length).poll(context));
                self.length = None;
                file.finish_len(done)?.checked_add_signed(by)
            }
        };
        Poll::Ready(target.ok_or_else(|| io::ErrorKind::InvalidInput.into()))
    }
}

impl FileReader {
    fn new(file: File) -> Self {
        Self {
            file,
            piece: no_bytes(),
            taken: 0,
            position: 0,
            ahead: VecDeque::new(),
            next: 0,
            is_at_end: false,
            seek: SeekState::default(),
        }
    }

    /// Takes the next piece.
    fn poll_refill(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let size = self.file.read_size();
        // The next READ reuses the memory of the last piece.
        self.piece = no_bytes();
        self.taken = 0;
        while self.ahead.len() < READ_AHEAD {
            let pending = self.file.start_read_wanted(size, self.next);
            self.ahead.push_back(pending);
            self.next += size as u64;
        }
        let first = self.ahead.front_mut().expect("at least one was started");
        let (reply, memory) = ready!(Pin::new(first).poll(context)).only();
        self.ahead.pop_front();
        let count = count(reply).map_err(|cause| {
            // A caller that continues after the error continues at this position.
            self.jump(self.position);
            self.file.failed("read", cause)
        })?;
        self.piece = memory.filled(count);
        if count < size {
            // The file ends here, or the server returned fewer bytes than requested: the READs
            // ahead have wrong offsets.
            self.ahead.clear();
            self.next = self.position + count as u64;
            self.is_at_end = count == 0;
        }
        Poll::Ready(Ok(()))
    }

    fn jump(&mut self, position: u64) {
        self.ahead.clear();
        self.piece = no_bytes();
        self.taken = 0;
        self.position = position;
        self.next = position;
        self.is_at_end = false;
    }

    fn poll_read_into(
        &mut self,
        context: &mut Context<'_>,
        target: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        if self.taken == self.piece.len() && !self.is_at_end && !target.is_empty() {
            ready!(self.poll_refill(context))?;
        }
        let rest = &self.piece[self.taken..];
        let count = target.len().min(rest.len());
        target[..count].copy_from_slice(&rest[..count]);
        self.taken += count;
        self.position += count as u64;
        Poll::Ready(Ok(count))
    }

    fn poll_seek_to(&mut self, context: &mut Context<'_>, to: SeekFrom) -> Poll<io::Result<u64>> {
        let (file, position) = (&self.file, self.position);
        let target = ready!(self.seek.poll_target(file, position, to, context))?;
        if target != self.position {
            self.jump(target);
        }
        Poll::Ready(Ok(target))
    }
}

fn no_bytes() -> Region {
    Region::from(Vec::new())
}

impl Read for FileReader {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        poll_fn(|context| self.poll_read_into(context, target)).wait()
    }
}

impl Seek for FileReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        poll_fn(|context| self.poll_seek_to(context, to)).wait()
    }
}

/// A sequential writer to a file, made by [`File::writer`]. It has up to 8 WRITEs in flight while
/// the caller continues.
///
/// An error of a WRITE is returned by a later write or by the flush. Flush the writer before it is
/// dropped: the drop waits for the WRITEs in flight and ignores their errors.
///
/// The methods of [`Write`] and [`Seek`] block the thread. With the cargo feature `tokio` or
/// `futures` the writer implements the traits `AsyncWrite` and `AsyncSeek` of that project as well.
pub struct FileWriter {
    file: File,
    /// Bytes that are not sent yet.
    piece: Vec<u8>,
    /// Offset of the piece in the file.
    position: u64,
    /// WRITEs in flight, in the order of their offsets, with their lengths in bytes.
    behind: VecDeque<(Pending, usize)>,
    /// Memory of a WRITE that is done, for the next piece.
    spare: Vec<u8>,
    seek: SeekState,
}

impl FileWriter {
    fn new(file: File) -> Result<Self, Error> {
        let position = match file.is_append() {
            true => file.len().wait()?,
            false => 0,
        };
        Ok(Self {
            file,
            piece: Vec::new(),
            position,
            behind: VecDeque::new(),
            spare: Vec::new(),
            seek: SeekState::default(),
        })
    }

    /// Sends the piece.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        if self.piece.is_empty() {
            return Poll::Ready(Ok(()));
        }
        ready!(self.poll_settle(context, WRITE_BEHIND - 1))?;
        let spare = std::mem::take(&mut self.spare);
        let piece = std::mem::replace(&mut self.piece, spare);
        let len = piece.len();
        let source = Region::from(piece).into();
        let pending = self.file.start_write(source, self.position);
        self.behind.push_back((pending, len));
        self.position += len as u64;
        Poll::Ready(Ok(()))
    }

    /// Waits until at most `left` WRITEs are in flight.
    fn poll_settle(&mut self, context: &mut Context<'_>, left: usize) -> Poll<Result<(), Error>> {
        while self.behind.len() > left
            && let Some((pending, len)) = self.behind.front_mut()
        {
            let len = *len;
            let (reply, memory) = ready!(Pin::new(pending).poll(context)).only();
            self.behind.pop_front();
            written(reply, len).map_err(|cause| self.file.failed("write", cause))?;
            let region = memory
                .into_source()
                .and_then(|source| source.into_region().ok());
            self.spare = region
                .and_then(|region| region.into_vec().ok())
                .unwrap_or_default();
            self.spare.clear();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_write_from(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let size = self.file.write_size();
        if self.piece.len() == size {
            ready!(self.poll_send(context))?;
        }
        self.piece.reserve_exact(size - self.piece.len());
        let count = bytes.len().min(size - self.piece.len());
        self.piece.extend_from_slice(&bytes[..count]);
        Poll::Ready(Ok(count))
    }

    fn poll_flush_all(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(context))?;
        ready!(self.poll_settle(context, 0))?;
        Poll::Ready(Ok(()))
    }

    fn poll_seek_to(&mut self, context: &mut Context<'_>, to: SeekFrom) -> Poll<io::Result<u64>> {
        ready!(self.poll_send(context))?;
        if matches!(to, SeekFrom::End(_)) {
            ready!(self.poll_settle(context, 0))?;
        }
        let (file, position) = (&self.file, self.position);
        self.position = ready!(self.seek.poll_target(file, position, to, context))?;
        Poll::Ready(Ok(self.position))
    }
}

impl Write for FileWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        poll_fn(|context| self.poll_write_from(context, bytes)).wait()
    }

    fn flush(&mut self) -> io::Result<()> {
        poll_fn(|context| self.poll_flush_all(context)).wait()
    }
}

impl Seek for FileWriter {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        poll_fn(|context| self.poll_seek_to(context, to)).wait()
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        let _ = self.flush();
    }
}

impl fmt::Debug for FileReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileReader({} at {})", self.file.path(), self.position)
    }
}

impl fmt::Debug for FileWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileWriter({} at {})", self.file.path(), self.position)
    }
}

#[cfg(feature = "futures")]
mod futures {
    use std::io::{self, SeekFrom};
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use futures_io::{AsyncRead, AsyncSeek, AsyncWrite};

    use super::{FileReader, FileWriter};

    impl AsyncRead for FileReader {
        fn poll_read(
            self: Pin<&mut Self>,
            context: &mut Context<'_>,
            target: &mut [u8],
        ) -> Poll<io::Result<usize>> {
            self.get_mut().poll_read_into(context, target)
        }
    }

    impl AsyncSeek for FileReader {
        fn poll_seek(
            self: Pin<&mut Self>,
            context: &mut Context<'_>,
            to: SeekFrom,
        ) -> Poll<io::Result<u64>> {
            self.get_mut().poll_seek_to(context, to)
        }
    }

    impl AsyncWrite for FileWriter {
        fn poll_write(
            self: Pin<&mut Self>,
            context: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.get_mut().poll_write_from(context, bytes)
        }

        fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.get_mut().poll_flush_all(context)
        }

        fn poll_close(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.get_mut().poll_flush_all(context)
        }
    }

    impl AsyncSeek for FileWriter {
        fn poll_seek(
            self: Pin<&mut Self>,
            context: &mut Context<'_>,
            to: SeekFrom,
        ) -> Poll<io::Result<u64>> {
            self.get_mut().poll_seek_to(context, to)
        }
    }
}

#[cfg(feature = "tokio")]
mod tokio {
    use std::io::{self, SeekFrom};
    use std::pin::Pin;
    use std::task::{Context, Poll, ready};

    use ::tokio::io::{AsyncRead, AsyncSeek, AsyncWrite, ReadBuf};

    use super::{FileReader, FileWriter};

    impl AsyncRead for FileReader {
        fn poll_read(
            self: Pin<&mut Self>,
            context: &mut Context<'_>,
            target: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let unfilled = target.initialize_unfilled();
            let count = ready!(self.get_mut().poll_read_into(context, unfilled))?;
            target.advance(count);
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncSeek for FileReader {
        fn start_seek(self: Pin<&mut Self>, to: SeekFrom) -> io::Result<()> {
            self.get_mut().seek.target = Some(to);
            Ok(())
        }

        fn poll_complete(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<u64>> {
            let reader = self.get_mut();
            let Some(to) = reader.seek.target else {
                return Poll::Ready(Ok(reader.position));
            };
            let result = ready!(reader.poll_seek_to(context, to));
            reader.seek.target = None;
            Poll::Ready(result)
        }
    }

    impl AsyncWrite for FileWriter {
        fn poll_write(
            self: Pin<&mut Self>,
            context: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.get_mut().poll_write_from(context, bytes)
        }

        fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.get_mut().poll_flush_all(context)
        }

        fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.get_mut().poll_flush_all(context)
        }
    }

    impl AsyncSeek for FileWriter {
        fn start_seek(self: Pin<&mut Self>, to: SeekFrom) -> io::Result<()> {
            self.get_mut().seek.target = Some(to);
            Ok(())
        }

        fn poll_complete(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<u64>> {
            let writer = self.get_mut();
            let Some(to) = writer.seek.target else {
                // The bytes of the piece come first.
                return Poll::Ready(Ok(writer.position + writer.piece.len() as u64));
            };
            let result = ready!(writer.poll_seek_to(context, to));
            writer.seek.target = None;
            Poll::Ready(result)
        }
    }
}
