//! RDMA access to memory of the peer, for the data of READ and WRITE.

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

/// RDMA access to memory of the peer of one SMB Direct connection, and registration of local memory
/// for access by the peer. Clones refer to the same connection.
///
/// A call of a method posts its operation, which starts when the future is polled or a later
/// message is sent. The peer receives that message after the bytes of a write. Dropping a future
/// does not cancel the operation, but the caller does not get its memory back. A failed operation
/// ends the connection.
#[derive(Clone, Debug)]
pub struct RdmaMemory {
    stream: Stream,
}

impl RdmaMemory {
    pub(crate) fn new(stream: &Stream) -> Self {
        Self {
            stream: stream.clone(),
        }
    }

    /// Writes the bytes of all `parts` by RDMA into the regions `to` of the peer. The bytes fill
    /// the regions one after the other, without gaps. Returns the parts after the write.
    ///
    /// # Errors
    /// `InvalidInput` if the peer's regions have fewer bytes; nothing was written. Any other error
    /// means that the connection has ended.
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

    /// Writes `length` bytes of a file, starting at `offset` (bytes), into the regions `to` of the
    /// peer's memory, before it returns and without a buffer. Returns true if all bytes were
    /// written. Returns false if the provider does not support this, if the file ends before, or if
    /// the data is not in the page cache. The peer's memory may then hold any bytes.
    pub fn write_file(
        &self,
        file: BorrowedFd<'_>,
        offset: u64,
        length: usize,
        to: &[BufferDescriptorV1],
    ) -> bool {
        let has_space = length as u64 <= BufferDescriptorV1::total(to);
        let mut state = self.stream.shared().state.borrow_mut();
        has_space && state.pair.write_file(file, offset, length, &remote(to))
    }

    /// Fills `range` of `buffer` by RDMA with the bytes of the regions `from` of the peer, in
    /// order. Returns the buffer after the read.
    ///
    /// # Errors
    /// `InvalidInput` if the peer's regions have fewer bytes than the range; nothing was read. Any
    /// other error means that the connection has ended; the range may hold any bytes then.
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
                (_, Sink::Region(_)) => unreachable!("an operation returns its memory"),
            }
        }
    }

    /// Fills `range` of `region` by RDMA with the bytes of the regions `from` of the peer, one
    /// after the other. Returns the region after the read.
    ///
    /// # Errors
    /// `InvalidInput` if the peer's regions have fewer bytes than the range; nothing was read. Any
    /// other error means that the connection has ended; the range may hold any bytes then.
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
                (_, Sink::Buffer(_)) => unreachable!("an operation returns its memory"),
            }
        }
    }

    fn read_sink(
        &self,
        from: &[BufferDescriptorV1],
        sink: Sink,
        range: Range<usize>,
    ) -> impl Future<Output = (io::Result<()>, Sink)> + use<> {
        assert!(
            range.end <= sink.bytes().len(),
            "a range is inside the memory"
        );
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

    /// Registers local memory so that the peer can access it by RDMA, until the returned
    /// [`Exposure`] is dropped. Messages may contain the [descriptor](Exposure::descriptor) until
    /// the peer invalidates its key or [`Exposure::take_back`] ends the registration.
    ///
    /// # Errors
    /// The device accepts no more regions, or the connection has ended. The error returns the
    /// memory.
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
    /// Starts the posted operations, and waits for one.
    async fn wait_for<T>(&self, once: Once<T>) -> T {
        self.shared().state.borrow_mut().pump();
        self.shared().changed();
        once.take().await
    }
}

/// Local memory that the peer can access by RDMA. Dropping it revokes the access; the memory is
/// freed when the device has ended the access.
pub struct Exposure {
    stream: Stream,
    descriptor: BufferDescriptorV1,
    /// Receives the memory at the end of the exposure. `None` once a caller waits for it.
    memory: Option<Once<Exposed>>,
}

impl Exposure {
    /// Returns the descriptor of the memory (address, key and length). A message carries it to the
    /// peer, which accesses the memory with it. \[MS-SMBD\] 2.2.3.1
    #[must_use]
    pub fn descriptor(&self) -> BufferDescriptorV1 {
        self.descriptor
    }

    /// Revokes the peer's RDMA access to the memory, unless the peer has invalidated the key
    /// already. Waits until the access has ended, and returns the memory.
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
    /// Does not revoke after `take_back`: another region may have the key by then.
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

fn remote(descriptors: &[BufferDescriptorV1]) -> Vec<rdma::RemoteRegion> {
    let remote = |descriptor: &BufferDescriptorV1| rdma::RemoteRegion {
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
