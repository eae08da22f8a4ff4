//! A range of a local file that is sent in the place of memory, without passing through this
//! process.
//!
//! The bytes go through a pipe of the stream, which holds references to pages of the page cache
//! and no copies. The kernel would wait for the disk and for room in the socket, so a thread of
//! the ring does it. A file system that cannot do that is read by plain calls.
//!
//! The other way, from the socket into a file, was tried as well: it saves one of two copies, but
//! the one thread that receives then writes, too, and takes longer in all.
//!
//! A file that others shorten while it is sent cannot take back the length that was promised: the
//! rest is zeros, and the range says so.

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

/// Bytes that are copied at a time where there is no other way.
const COPY_BYTES: usize = 128 << 10;

impl Shared {
    /// The pipe of the stream, made when it is first needed.
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
                // Its end, its failure, or nothing that can be spliced: reading tells.
                let Some(count) = count.ok().filter(|count| *count > 0) else {
                    break;
                };
                self.splice_out(&pipe, count).await?;
                done += count;
            }
        }
        self.send_copy(range, done).await
    }

    /// From the file into the pipe, as much as that holds.
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

    /// So many bytes from the pipe into the socket.
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

    /// The kernel would wait for room in the socket: a thread of the ring does it.
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

    /// Sends what is left of a range behind its first `done` bytes.
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

    /// Waits until the socket has room again, which it had not just now.
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
