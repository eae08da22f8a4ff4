//! Sending a range of a file without a copy through this process.
//!
//! The bytes pass through a pipe of the stream, which holds references to pages of the page cache
//! and no copies. The kernel may wait for the disk and for space in the socket, so a worker thread
//! of the ring splices. If the file system does not support splicing, plain calls read the file.
//!
//! Splicing from the socket into a file was tried as well. It saves one of two copies, but then the
//! one thread that receives also writes, and the whole takes longer.
//!
//! If another process truncates the file during the send, the promised length still holds: the rest
//! is sent as zeros, and the range reports the error.

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::rc::Rc;
use std::sync::Arc;

use io_uring::{opcode, squeue, types};

use crate::epoll::Direction;
use crate::file_range::FileRange;
use crate::op::Hold;
use crate::pipe::{PIPE_BYTES, Pipe};
use crate::send::{Part, Position};
use crate::stream::Shared;
use crate::sys;

/// Bytes of one copy, where splicing is not possible.
const COPY_BYTES: usize = 128 << 10;

impl Shared {
    /// The pipe of the stream, created with the first use.
    fn pipe(&self) -> io::Result<Rc<Pipe>> {
        if let Some(pipe) = self.pipe.get() {
            return Ok(Rc::clone(pipe));
        }
        let pipe = Rc::new(Pipe::new()?);
        Ok(Rc::clone(self.pipe.get_or_init(|| pipe)))
    }

    /// Sends a range of a file.
    pub(crate) async fn send_file(&self, range: &mut FileRange) -> io::Result<()> {
        let mut done = 0;
        if let Ok(pipe) = self.pipe() {
            while done < range.len {
                let count = self.splice_in(&pipe, range, done).await;
                // The end of the file, an error, or a file that does not support splicing: reading
                // finds out which.
                let Some(count) = count.ok().filter(|count| *count > 0) else {
                    break;
                };
                self.splice_out(&pipe, count).await?;
                done += count;
            }
        }
        self.send_copy(range, done).await
    }

    /// Splices from the file into the pipe, up to the capacity of the pipe.
    async fn splice_in(
        &self,
        pipe: &Rc<Pipe>,
        range: &FileRange,
        done: usize,
    ) -> io::Result<usize> {
        let offset = range.offset + done as u64;
        let len = (range.len - done).min(PIPE_BYTES);
        if self.source.is_some() {
            let (file, input) = (range.file.as_fd(), pipe.input.as_fd());
            return sys::splice(file, Some(offset), input, len);
        }
        let (from, to) = (range.file.as_raw_fd(), pipe.input.as_raw_fd());
        let offset = i64::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
        let entry = splice_entry(from, offset, to, len);
        let hold = Hold::Splice(
            Rc::clone(&self.socket),
            Rc::clone(pipe),
            Some(Arc::clone(&range.file)),
        );
        // SAFETY: the entry refers to no memory; the hold owns all descriptors.
        let (result, _hold) = unsafe { self.handle.operate(entry, hold) }.await;
        result.map(|count| count as usize)
    }

    /// Splices `left` bytes from the pipe into the socket.
    async fn splice_out(&self, pipe: &Rc<Pipe>, mut left: usize) -> io::Result<()> {
        while left > 0 {
            match self.splice_out_once(pipe, left).await {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => left -= count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait_writable().await?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Splices once. The kernel may wait for space in the socket, so a worker thread of the ring
    /// does it.
    async fn splice_out_once(&self, pipe: &Rc<Pipe>, len: usize) -> io::Result<usize> {
        if self.source.is_some() {
            return sys::splice(pipe.output.as_fd(), None, self.socket.as_fd(), len);
        }
        let (from, to) = (pipe.output.as_raw_fd(), self.socket.as_raw_fd());
        let entry = splice_entry(from, -1, to, len);
        let hold = Hold::Splice(Rc::clone(&self.socket), Rc::clone(pipe), None);
        // SAFETY: the entry refers to no memory; the hold owns both descriptors.
        let (result, _hold) = unsafe { self.handle.operate(entry, hold) }.await;
        result.map(|count| count as usize)
    }

    /// Sends the rest of a range after its first `done` bytes by copying.
    async fn send_copy(&self, range: &mut FileRange, mut done: usize) -> io::Result<()> {
        while done < range.len {
            let mut bytes = vec![0; COPY_BYTES.min(range.len - done)];
            range.load_at(done, &mut bytes);
            done += bytes.len();
            let parts = vec![Part::Bytes(bytes)];
            self.send_memory(parts, &mut Position::default()).await.0?;
        }
        Ok(())
    }

    /// Waits until the socket, which was full, has space again.
    async fn wait_writable(&self) -> io::Result<()> {
        if self.source.is_some() {
            self.wait(Direction::Write).await;
            return Ok(());
        }
        let fd = types::Fd(self.socket.as_raw_fd());
        let entry = opcode::PollAdd::new(fd, libc::POLLOUT as u32).build();
        let hold = Hold::Poll(self.socket.clone());
        // SAFETY: the entry refers to no memory; the hold owns the socket.
        let (result, _hold) = unsafe { self.handle.operate(entry, hold) }.await;
        result.map(drop)
    }
}

fn splice_entry(from: RawFd, offset: i64, to: RawFd, len: usize) -> squeue::Entry {
    let len = u32::try_from(len).expect("no more than a pipe holds");
    opcode::Splice::new(types::Fd(from), offset, types::Fd(to), -1, len).build()
}
