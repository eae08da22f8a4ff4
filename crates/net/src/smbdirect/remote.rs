//! Memory that one side names and the other reaches: what the data of READ and WRITE take.

use std::fmt;
use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::rc::Rc;

use rdma::{Exposed, Piece, Sink};
use ring::{Buffer, Part, Region};
use wire::smbd::BufferDescriptorV1;

use crate::smbdirect::Stream;
use crate::smbdirect::once::Once;
use crate::smbdirect::send::whole;

/// The memory of the peer, and ours for the peer. Clones are of the same connection.
///
/// An operation is posted when its function is called, and starts at the latest when the future
/// is polled, or when something is sent after it: what is sent then the peer sees after the bytes
/// of a write. Whoever drops the future loses the memory, not the operation. An operation that
/// fails ends the connection.
#[derive(Clone, Debug)]
pub struct Remote {
    stream: Stream,
}

impl Remote {
    pub(crate) fn new(stream: &Stream) -> Self {
        Self {
            stream: stream.clone(),
        }
    }

    /// Writes all parts, one after the other, into the peer's memory, one piece after the other.
    ///
    /// # Errors
    /// `InvalidInput`: the peer's memory has fewer bytes; nothing happened. Else the connection
    /// has ended.
    pub fn write(
        &self,
        parts: Vec<Part>,
        to: &[BufferDescriptorV1],
    ) -> impl Future<Output = (io::Result<()>, Vec<Part>)> + use<> {
        let len: usize = parts.iter().map(|part| part.bytes().len()).sum();
        let posted = if (len as u64) <= BufferDescriptorV1::total(to) {
            let pieces = parts.into_iter().map(whole).collect();
            let shared = self.stream.shared();
            Ok(shared.state.borrow_mut().post_write(pieces, &remote(to)))
        } else {
            Err(parts)
        };
        let stream = self.stream.clone();
        async move {
            match posted {
                Err(parts) => (Err(io::ErrorKind::InvalidInput.into()), parts),
                Ok(once) => {
                    let (result, pieces) = stream.wait_for(once).await;
                    (result, pieces.into_iter().filter_map(part).collect())
                }
            }
        }
    }

    /// Writes `length` bytes of a file, from `offset` on, into the peer's memory, before this
    /// returns and without a buffer. Whether it did: not every provider can, and none where the
    /// file ends or the disk would have to be waited for. If not, the peer's memory has any bytes.
    pub fn write_file(
        &self,
        file: BorrowedFd<'_>,
        offset: u64,
        length: usize,
        to: &[BufferDescriptorV1],
    ) -> bool {
        let has_room = length as u64 <= BufferDescriptorV1::total(to);
        let mut state = self.stream.shared().state.borrow_mut();
        has_room && state.pair.write_file(file, offset, length, &remote(to))
    }

    /// Fills `range` of `buffer` with the bytes of the peer's memory, one piece after the other.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub fn read(
        &self,
        from: &[BufferDescriptorV1],
        buffer: Buffer,
        range: Range<usize>,
    ) -> impl Future<Output = (io::Result<()>, Buffer)> + use<> {
        let reading = self.read_sink(from, Sink::Buffer(buffer), range);
        async move {
            match reading.await {
                (result, Sink::Buffer(buffer)) => (result, buffer),
                (_, Sink::Region(_)) => unreachable!("an operation gives back what it was given"),
            }
        }
    }

    /// [`read`](Self::read) for memory that is not the pool's.
    pub fn read_region(
        &self,
        from: &[BufferDescriptorV1],
        region: Region,
        range: Range<usize>,
    ) -> impl Future<Output = (io::Result<()>, Region)> + use<> {
        let reading = self.read_sink(from, Sink::Region(region), range);
        async move {
            match reading.await {
                (result, Sink::Region(region)) => (result, region),
                (_, Sink::Buffer(_)) => unreachable!("an operation gives back what it was given"),
            }
        }
    }

    fn read_sink(
        &self,
        from: &[BufferDescriptorV1],
        sink: Sink,
        range: Range<usize>,
    ) -> impl Future<Output = (io::Result<()>, Sink)> + use<> {
        assert!(range.end <= sink.bytes().len(), "a range lies inside");
        let posted = if range.len() as u64 <= BufferDescriptorV1::total(from) {
            let mut state = self.stream.shared().state.borrow_mut();
            Ok(state.post_read(sink, range, &remote(from)))
        } else {
            Err(sink)
        };
        let stream = self.stream.clone();
        async move {
            match posted {
                Err(sink) => (Err(io::ErrorKind::InvalidInput.into()), sink),
                Ok(once) => stream.wait_for(once).await,
            }
        }
    }

    /// Lets the peer reach memory of ours: good for what is sent from here on, until the peer
    /// gives it back or [`Exposure::take_back`] does.
    ///
    /// # Errors
    /// The device takes no more, or the connection has ended; the memory is given back.
    pub fn expose(&self, memory: Exposed) -> Result<Exposure, (io::Error, Exposed)> {
        let exposed = self.stream.shared().state.borrow_mut().expose(memory);
        let (remote, memory) = exposed?;
        Ok(Exposure {
            stream: self.stream.clone(),
            descriptor: BufferDescriptorV1 {
                offset: remote.address,
                token: remote.key,
                length: remote.length,
            },
            memory: Some(memory),
        })
    }
}

impl Stream {
    /// Starts what was posted, and waits.
    async fn wait_for<T>(&self, once: Once<T>) -> T {
        self.shared().state.borrow_mut().pump();
        self.shared().changed();
        once.take().await
    }
}

/// Memory of ours that the peer can reach. Dropped, it is out of reach as soon as can be, and
/// freed then.
pub struct Exposure {
    stream: Stream,
    descriptor: BufferDescriptorV1,
    /// Where it comes back; `None` once it is waited for.
    memory: Option<Once<Exposed>>,
}

impl Exposure {
    /// What the peer is told.
    #[must_use]
    pub fn descriptor(&self) -> BufferDescriptorV1 {
        self.descriptor
    }

    /// Takes the memory out of the peer's reach, if the peer has not done so, and waits for it.
    pub async fn take_back(mut self) -> Exposed {
        let memory = self.memory.take().expect("taken back once");
        self.revoke();
        memory.take().await
    }

    fn revoke(&self) {
        let mut state = self.stream.shared().state.borrow_mut();
        state.revoke(self.descriptor.token);
        state.pump();
        drop(state);
        self.stream.shared().changed();
    }
}

impl Drop for Exposure {
    /// What was taken back is not revoked again: its key may be another region's by now.
    fn drop(&mut self) {
        if self.memory.is_some() {
            self.revoke();
        }
    }
}

impl fmt::Debug for Exposure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exposure")
            .field("descriptor", &self.descriptor)
            .finish_non_exhaustive()
    }
}

fn remote(descriptors: &[BufferDescriptorV1]) -> Vec<rdma::Remote> {
    let remote = |descriptor: &BufferDescriptorV1| rdma::Remote {
        address: descriptor.offset,
        key: descriptor.token,
        length: descriptor.length,
    };
    descriptors.iter().map(remote).collect()
}

fn part(piece: Piece) -> Option<Part> {
    match piece {
        Piece::Shared(part, _) => Rc::into_inner(part),
        Piece::Slot(..) => None,
    }
}
