//! Sending: gathered parts, which the send owns until the kernel has the last byte.
//!
//! The stream tries each send inline and uses the ring when the socket is full. Measured against
//! sending through the ring only (examples/stream.rs, two runs of each), the time does not differ
//! beyond the noise. But at depth 1, an inline send needs one enter for a reply instead of two, and
//! a reply that fits needs no box and no vector of iovecs.

use std::fmt;
use std::io;
use std::mem;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};

use io_uring::{opcode, types};

use crate::buffer::Buffer;
use crate::config::count;
use crate::epoll::Direction;
use crate::file_range::FileRange;
use crate::op::{Hold, Pinned};
use crate::region::Source;
use crate::stream::{Shared, Stream};
use crate::sys;
use crate::view::View;

/// Number of memory ranges in one inline call. It is enough for a batch of small replies. A longer
/// list takes more calls, and an array of this size is cheap on the stack.
const RANGES_INLINE: usize = 64;

/// A part of a message that a stream sends: bytes in memory or in a file.
pub enum Part {
    /// All bytes of a vector of the caller.
    Bytes(Vec<u8>),
    /// The bytes of a range inside a buffer of the pool.
    Buffer(Buffer, Range<usize>),
    /// All bytes of memory that is not a buffer of the pool.
    Source(Source),
    /// The bytes of a range of a file. If reading the file failed, the returned part has the error.
    File(FileRange),
    /// The bytes of a mapped range of a file. Bytes past the end of a file that was truncated
    /// meanwhile are sent as zeros.
    View(View),
}

impl Part {
    /// Returns the bytes of the part.
    ///
    /// # Panics
    /// For `File` and `View`: their bytes are in a file and not in memory of this process.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Buffer(buffer, range) => &buffer[range.clone()],
            Self::Source(source) => source,
            Self::File(_) | Self::View(_) => panic!("the bytes of a file are not in memory"),
        }
    }

    /// The memory that the kernel reads. `None` for a file.
    fn range(&self) -> Option<libc::iovec> {
        match self {
            Self::File(_) => None,
            Self::View(view) => Some(view.range()),
            _ => Some(to_iovec(self.bytes())),
        }
    }

    /// Returns the length of the part in bytes.
    #[expect(clippy::len_without_is_empty, reason = "a part is rarely empty")]
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::File(range) => range.len,
            Self::View(view) => view.len(),
            _ => self.bytes().len(),
        }
    }
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Bytes(_) => "Bytes",
            Self::Buffer(..) => "Buffer",
            Self::Source(_) => "Source",
            Self::File(_) => "File",
            Self::View(_) => "View",
        };
        write!(f, "Part::{name}({} bytes)", self.len())
    }
}

/// The memory that a send in the ring refers to. It has a fixed address in its box.
pub(crate) struct Gather {
    parts: Vec<Part>,
    iovecs: Vec<libc::iovec>,
    message: libc::msghdr,
}

impl Pinned for Gather {}

/// Progress of a send: number of whole parts, then bytes of the next part.
#[derive(Clone, Copy, Default)]
pub(crate) struct Position {
    part: usize,
    bytes: usize,
}

impl Position {
    /// Skips `count` sent bytes, and parts that are empty.
    fn advance(&mut self, parts: &[Part], mut count: usize) {
        while let Some(part) = parts.get(self.part) {
            let left = part.len() - self.bytes;
            if count < left {
                self.bytes += count;
                return;
            }
            count -= left;
            *self = Self {
                part: self.part + 1,
                bytes: 0,
            };
        }
        assert_eq!(count, 0, "no more is sent than there is");
    }

    /// Replaces the next view by a copy of its remaining bytes, because the kernel may have found a
    /// part of the mapping past the end of the file. Such bytes are zeros, because the length is
    /// promised to the peer. Returns false if no view is left.
    fn read_view(&mut self, parts: &mut [Part]) -> io::Result<bool> {
        let left = parts.iter_mut().enumerate().skip(self.part);
        let mut views = left.filter_map(|(index, part)| match part {
            Part::View(view) => Some((index, view.file_range(), part)),
            _ => None,
        });
        let Some((index, mut range, part)) = views.next() else {
            return Ok(false);
        };
        let done = match index == self.part {
            true => mem::take(&mut self.bytes),
            false => 0,
        };
        let mut bytes = vec![0; range.len - done];
        range.load_at(done, &mut bytes);
        if let Some(error) = range.error
            && error.kind() != io::ErrorKind::UnexpectedEof
        {
            return Err(error);
        }
        *part = Part::Bytes(bytes);
        Ok(true)
    }

    /// The memory that is left to send, up to the next file.
    fn rest<'a>(&self, parts: &'a [Part]) -> impl Iterator<Item = libc::iovec> + use<'a> {
        let skip = self.bytes;
        let ranges = parts[self.part..].iter().map_while(Part::range);
        ranges.enumerate().map(move |(index, mut range)| {
            if index == 0 {
                range.iov_base = range.iov_base.wrapping_byte_add(skip);
                range.iov_len -= skip;
            }
            range
        })
    }
}

impl Stream {
    /// Sends all parts in order. Returns the parts when the kernel has taken the last byte, or
    /// after an error.
    ///
    /// One task at a time may send. Dropping the future before its end leaves the peer with a part
    /// of a message: every later send fails with `BrokenPipe`.
    ///
    /// # Errors
    /// The connection is lost, or an earlier send was dropped before its end.
    pub async fn send(&self, parts: Vec<Part>) -> (io::Result<()>, Vec<Part>) {
        if self.shared.is_sending.replace(true) {
            return (Err(io::ErrorKind::BrokenPipe.into()), parts);
        }
        let (result, parts) = self.shared.send_all(parts).await;
        // After an error the peer may have a part of a message, too: keep the mark.
        self.shared.is_sending.set(result.is_err());
        (result, parts)
    }
}

impl Shared {
    async fn send_all(&self, mut parts: Vec<Part>) -> (io::Result<()>, Vec<Part>) {
        let mut position = Position::default();
        position.advance(&parts, 0);
        while position.part < parts.len() {
            if let Part::File(range) = &mut parts[position.part] {
                let len = range.len;
                if let Err(error) = self.send_file(range).await {
                    return (Err(error), parts);
                }
                position.advance(&parts, len);
                continue;
            }
            let result;
            (result, parts) = self.send_memory(parts, &mut position).await;
            let is_hole = |error: &io::Error| error.raw_os_error() == Some(libc::EFAULT);
            let result = match result {
                Err(error) if is_hole(&error) => match position.read_view(&mut parts) {
                    Ok(false) => Err(error),
                    read => read.map(drop),
                },
                result => result,
            };
            if result.is_err() {
                return (result, parts);
            }
        }
        (Ok(()), parts)
    }

    /// Sends all memory up to the next file.
    pub(crate) async fn send_memory(
        &self,
        mut parts: Vec<Part>,
        position: &mut Position,
    ) -> (io::Result<()>, Vec<Part>) {
        while (parts.get(position.part)).is_some_and(|part| !matches!(part, Part::File(_))) {
            let mut result = self.send_now(&parts, *position);
            if is_would_block(&result) {
                match self.source {
                    Some(_) => self.wait(Direction::Write).await,
                    None => (result, parts) = self.send_in_ring(parts, *position).await,
                }
            }
            match result {
                Ok(0) => return (Err(io::ErrorKind::WriteZero.into()), parts),
                Ok(sent) => position.advance(&parts, sent),
                Err(error) if is_transient(&error) => {}
                Err(error) => return (Err(error), parts),
            }
        }
        (Ok(()), parts)
    }

    /// Tries to send once, without waiting.
    fn send_now(&self, parts: &[Part], position: Position) -> io::Result<usize> {
        let mut ranges = [to_iovec(&[]); RANGES_INLINE];
        let mut used = 0;
        for (slot, range) in ranges.iter_mut().zip(position.rest(parts)) {
            *slot = range;
            used += 1;
        }
        count(&self.handle.inner().stats, |stats| stats.inline_calls += 1);
        // The header of a frame leaves with the bytes of the file that follows it.
        let is_last = position.part + used == parts.len();
        let more = if is_last { 0 } else { libc::MSG_MORE };
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL | more;
        // SAFETY: the ranges describe memory that the parts own, and `parts` is borrowed during the
        // call, or mappings of files, which the views in the parts keep mapped.
        unsafe { sys::send_ranges(self.socket.as_fd(), &ranges[..used], flags) }
    }

    /// Sends the rest with one operation, which waits for space in the socket.
    async fn send_in_ring(
        &self,
        parts: Vec<Part>,
        position: Position,
    ) -> (io::Result<usize>, Vec<Part>) {
        let gather = gather(parts, position);
        let fd = types::Fd(self.socket.as_raw_fd());
        let flags = (libc::MSG_NOSIGNAL | libc::MSG_WAITALL) as u32;
        let entry = opcode::SendMsg::new(fd, &raw const gather.message)
            .flags(flags)
            .build();
        let hold = Hold::Send(self.socket.clone(), gather);
        // SAFETY: the entry points at the header in the box, the header at the iovecs in their
        // vector, and the iovecs at memory of the parts (vectors, pool buffers, sources and
        // mappings). None of it moves with the hold. The hold owns all of it, and nothing accesses
        // it until the hold returns.
        match unsafe { self.handle.operate(entry, hold) }.await {
            (result, Hold::Send(_, gather)) => {
                let parts = gather.downcast::<Gather>().parts;
                (result.map(|sent| sent as usize), parts)
            }
            _ => unreachable!("an operation returns its hold"),
        }
    }
}

fn gather(parts: Vec<Part>, position: Position) -> Box<Gather> {
    let rest = position.rest(&parts).take(sys::IOV_MAX);
    let iovecs: Vec<_> = rest.collect();
    let message = sys::message(&iovecs);
    Box::new(Gather {
        parts,
        iovecs,
        message,
    })
    .checked()
}

impl Gather {
    fn checked(self: Box<Self>) -> Box<Self> {
        assert_eq!(self.message.msg_iov.cast_const(), self.iovecs.as_ptr());
        self
    }
}

fn to_iovec(bytes: &[u8]) -> libc::iovec {
    libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    }
}

fn is_would_block(result: &io::Result<usize>) -> bool {
    matches!(result, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
