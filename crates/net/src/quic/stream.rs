//! The stream of a QUIC connection, which carries the frames.

use std::cell::Cell;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::ops::{DerefMut, Range};
use std::rc::Rc;

use bytes::Bytes;
use quinn_proto::{SendStream, WriteError};
use ring::{Buffer, Chunk, Part};

use super::link::{End, Link, Path};

/// Longest chunk in bytes: enough for small messages. The rest of a large message is read directly
/// into its destination.
const CHUNK_BYTES: usize = 16 << 10;

/// The stream of a connection. Clones refer to the same one. The connection closes when the last
/// clone is dropped.
#[derive(Clone)]
pub(crate) struct Stream {
    shared: Rc<Shared>,
}

struct Shared {
    link: Rc<Link>,
    /// A receive into the caller's memory was dropped midway: its bytes are lost.
    is_broken: Cell<bool>,
    /// A send is running, or was dropped midway: no other send may follow.
    is_sending: Cell<bool>,
}

impl Stream {
    pub(crate) fn new(link: Rc<Link>) -> Self {
        Self {
            shared: Rc::new(Shared {
                link,
                is_broken: Cell::new(false),
                is_sending: Cell::new(false),
            }),
        }
    }

    /// Largest WRITE that the server offers to this client, in bytes; `None` without a special
    /// limit.
    pub(crate) fn write_hint(&self) -> Option<u32> {
        self.shared.link.write_hint()
    }

    /// As [`crate::Stream::trust`].
    pub(crate) fn trust(&self) {
        self.shared.link.trust();
    }

    /// As [`crate::Stream::recv`].
    pub(crate) async fn recv(&self) -> io::Result<Chunk> {
        self.shared.check()?;
        let mut bytes = Vec::new();
        let link = &self.shared.link;
        let read = poll_fn(|context| {
            link.poll_read(context, CHUNK_BYTES, |part| {
                if bytes.is_empty() {
                    bytes.reserve(CHUNK_BYTES);
                }
                bytes.extend_from_slice(part);
            })
        });
        match read.await {
            Ok(_) | Err(End::Closed) => Ok(Chunk::from(bytes)),
            Err(end) => Err(end.error()),
        }
    }

    /// As [`crate::Stream::recv_into`], for memory of any kind.
    pub(crate) async fn recv_into<M: DerefMut<Target = [u8]>>(
        &self,
        mut memory: M,
        range: Range<usize>,
    ) -> (io::Result<()>, M) {
        let result = self.fill(&mut memory[range]).await;
        (result, memory)
    }

    async fn fill(&self, mut left: &mut [u8]) -> io::Result<()> {
        self.shared.check()?;
        let broken = Mark::set(&self.shared.is_broken);
        while !left.is_empty() {
            let most = left.len();
            let mut done = 0;
            let read = poll_fn(|context| {
                self.shared.link.poll_read(context, most, |part| {
                    left[done..done + part.len()].copy_from_slice(part);
                    done += part.len();
                })
            });
            match read.await {
                Ok(0) | Err(End::Closed) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(end) => return Err(end.error()),
                Ok(count) => left = &mut left[count..],
            }
        }
        broken.clear();
        Ok(())
    }

    /// As [`crate::Stream::send`].
    pub(crate) async fn send(&self, parts: Vec<Part>) -> (io::Result<()>, Vec<Part>) {
        if self.shared.is_sending.get() {
            return (Err(io::ErrorKind::BrokenPipe.into()), parts);
        }
        let sending = Mark::set(&self.shared.is_sending);
        let mut left = parts.into_iter();
        let mut done = Vec::new();
        while let Some(part) = left.next() {
            let result = match part {
                Part::Buffer(buffer, range) if !buffer.is_scarce() => {
                    self.lend(buffer, range).await
                }
                part => {
                    let result = self.copy(part.bytes()).await;
                    done.push(part);
                    result
                }
            };
            if let Err(error) = result {
                done.extend(left);
                return (Err(error), done);
            }
        }
        sending.clear();
        self.shared.link.flush();
        (Ok(()), done)
    }

    /// Writes bytes of which quinn-proto keeps a copy.
    async fn copy(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let count = self.write(|stream| stream.write(bytes)).await?;
            bytes = &bytes[count..];
        }
        Ok(())
    }

    /// Writes a buffer without a copy. quinn-proto holds it until the peer has acknowledged it,
    /// then it returns to its pool. The send window limits these buffers per peer, and
    /// [`Buffer::is_scarce`] limits them to half of the pool.
    async fn lend(&self, buffer: Buffer, range: Range<usize>) -> io::Result<()> {
        let mut bytes = [Bytes::from_owner(Lent(buffer, range))];
        while !bytes[0].is_empty() {
            let write = |stream: &mut SendStream<'_>| stream.write_chunks(&mut bytes);
            self.write(write).await?;
        }
        Ok(())
    }

    async fn write<T>(
        &self,
        mut write: impl FnMut(&mut SendStream<'_>) -> Result<T, WriteError>,
    ) -> io::Result<T> {
        let link = &self.shared.link;
        poll_fn(|context| {
            let written = link.poll_write(context, &mut write);
            if written.is_pending() {
                link.flush();
            }
            written
        })
        .await
    }

    pub(crate) fn shutdown(&self, how: Shutdown) {
        match how {
            Shutdown::Write => self.shared.link.finish_stream(false),
            // Without receiving, the connection is of no use.
            Shutdown::Read | Shutdown::Both => self.shared.link.finish(),
        }
    }

    pub(crate) fn peer_addr(&self) -> SocketAddr {
        self.shared.link.peer_addr()
    }

    pub(crate) fn path(&self) -> Path {
        self.shared.link.path()
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.shared.link.local_addr()
    }
}

impl Shared {
    fn check(&self) -> io::Result<()> {
        if self.is_broken.get() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        Ok(())
    }
}

/// A part of a buffer that quinn-proto holds.
struct Lent(Buffer, Range<usize>);

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        let Self(buffer, range) = self;
        &buffer[range.clone()]
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.link.finish();
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("peer", &self.peer_addr())
            .finish_non_exhaustive()
    }
}

/// Sets a flag. The flag stays set if the future with this guard is dropped midway.
struct Mark<'a>(&'a Cell<bool>);

impl<'a> Mark<'a> {
    fn set(mark: &'a Cell<bool>) -> Self {
        mark.set(true);
        Self(mark)
    }

    fn clear(self) {
        self.0.set(false);
    }
}
