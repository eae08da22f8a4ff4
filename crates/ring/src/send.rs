//! Sending: gathered parts, owned until the last byte is in the kernel.
//!
//! Each send is tried inline first and goes to the ring when the socket is full. Measured against
//! sending through the ring only (examples/stream.rs, two runs of each): the time does not differ
//! beyond the noise, but at depth 1 inline needs one enter for a reply instead of two, and a
//! reply that fits needs no box and no vector of iovecs.

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

/// Ranges of memory in one inline call. Enough for a batch of small replies; a longer list takes
/// more calls, and an array of this size is cheap on the stack.
const RANGES_INLINE: usize = 64;

/// Something to send.
pub enum Part {
    /// All bytes of a vector.
    Bytes(Vec<u8>),
    /// A range of a buffer, which must lie inside.
    Buffer(Buffer, Range<usize>),
    /// All bytes of memory that is not the pool's.
    Source(Source),
    /// A range of a file. It comes back with what was wrong with it.
    File(FileRange),
    /// A range of a file that is in memory. Bytes that the file has lost meanwhile are zeros.
    View(View),
}

impl Part {
    /// The bytes to send.
    ///
    /// # Panics
    /// For a file, which is not in memory, or not for us to look at.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Buffer(buffer, range) => &buffer[range.clone()],
            Self::Source(source) => source,
            Self::File(_) | Self::View(_) => panic!("the bytes of a file are not in memory"),
        }
    }

    /// What the kernel reads, where that is memory.
    fn range(&self) -> Option<libc::iovec> {
        match self {
            Self::File(_) => None,
            Self::View(view) => Some(view.range()),
            _ => Some(to_iovec(self.bytes())),
        }
    }

    /// How many bytes.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks")]
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

/// What a send in the ring works on, at a fixed address in its box.
pub(crate) struct Gather {
    parts: Vec<Part>,
    iovecs: Vec<libc::iovec>,
    message: libc::msghdr,
}

impl Pinned for Gather {}

/// How far a send has come: whole parts, then bytes of the next.
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

    /// Reads what is left of the next view, in which the kernel may have found nothing somewhere.
    /// What the file does not have any more is zeros: the length was promised. `false`: there is no
    /// view.
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

    /// What is left to send, up to the next file.
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
    /// Sends all parts in order, and gives them back when the kernel has taken the last byte.
    ///
    /// One task at a time sends. Dropping the future midway leaves half a message with the peer:
    /// every send after it fails with `BrokenPipe`.
    pub async fn send(&self, parts: Vec<Part>) -> (io::Result<()>, Vec<Part>) {
        if self.shared.is_sending.replace(true) {
            return (Err(io::ErrorKind::BrokenPipe.into()), parts);
        }
        let (result, parts) = self.shared.send_all(parts).await;
        // After an error the peer may have half a message, too: leave the mark.
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

    /// Sends up to the next file.
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
                Err(error) if is_passing(&error) => {}
                Err(error) => return (Err(error), parts),
            }
        }
        (Ok(()), parts)
    }

    /// One try without waiting.
    fn send_now(&self, parts: &[Part], position: Position) -> io::Result<usize> {
        let mut ranges = [to_iovec(&[]); RANGES_INLINE];
        let mut used = 0;
        for (slot, range) in ranges.iter_mut().zip(position.rest(parts)) {
            *slot = range;
            used += 1;
        }
        count(&self.handle.inner().stats, |stats| stats.inline_calls += 1);
        // The head of a frame goes with the bytes of the file behind it.
        let is_last = position.part + used == parts.len();
        let more = if is_last { 0 } else { libc::MSG_MORE };
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL | more;
        // SAFETY: the ranges are memory that the parts own, which are borrowed, and mappings of
        // files.
        unsafe { sys::send_ranges(self.socket.as_fd(), &ranges[..used], flags) }
    }

    /// Sends the rest with one operation that waits for room in the kernel.
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
        // SAFETY: the entry points at the header in the box, that at the iovecs in their vector,
        // those at memory of the parts (vectors, pool buffers, sources and mappings). None of it
        // moves with the hold, which owns it all and is not looked into until it comes back.
        match unsafe { self.handle.operate(entry, hold) }.await {
            (result, Hold::Send(_, gather)) => {
                let parts = gather.downcast::<Gather>().parts;
                (result.map(|sent| sent as usize), parts)
            }
            _ => unreachable!("an operation gives back what it was given"),
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

fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
