//! The memory of operations: local memory that they own, and memory of the peer.

use std::fmt;
use std::ops::Range;
use std::rc::Rc;

use ring::{Buffer, Memory, Part, Region, Source};

use crate::slots::Slot;

/// Local bytes that an operation of a queue pair reads: the bytes of a SEND, or the source of an
/// RDMA WRITE. The queue pair owns the piece until the operation completes.
#[derive(Debug)]
pub enum Piece {
    /// A range of bytes inside a slot.
    Slot(Slot, Range<usize>),
    /// A range of bytes of a part that several operations may share. The range must be inside
    /// [`Part::bytes`].
    Shared(Rc<Part>, Range<usize>),
}

impl Piece {
    /// Returns the bytes that the operation reads.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Slot(slot, range) => &slot[range.clone()],
            Self::Shared(part, range) => &part.bytes()[range.clone()],
        }
    }

    /// Returns the memory block that contains the bytes, if the block is long-lived, so that a
    /// device registers it once for many operations. `None` for other memory, which a provider
    /// copies or registers for one operation.
    #[must_use]
    pub fn memory(&self) -> Option<&Memory> {
        match self {
            Self::Slot(slot, _) => Some(slot.memory()),
            Self::Shared(part, _) => match &**part {
                Part::Buffer(buffer, _) => Some(buffer.memory()),
                Part::Source(source) => source.memory(),
                Part::Bytes(_) | Part::File(_) | Part::View(_) => None,
            },
        }
    }
}

/// Local memory that an RDMA READ fills with bytes of the peer. The queue pair owns the memory
/// until the operation completes.
#[derive(Debug)]
pub enum Sink {
    /// A buffer of the pool of the runtime.
    Buffer(Buffer),
    /// Memory that is not a buffer of the pool.
    Region(Region),
}

impl Sink {
    /// Returns the bytes of the memory, including those that no READ has filled yet.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Buffer(buffer) => buffer,
            Self::Region(region) => region,
        }
    }

    /// Returns the bytes of the memory, for writing by an emulated device.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Buffer(buffer) => buffer,
            Self::Region(region) => region,
        }
    }

    /// Returns the memory block that contains the bytes, if the block is long-lived, so that a
    /// device registers it once for many operations. `None` for other memory.
    #[must_use]
    pub fn memory(&self) -> Option<&Memory> {
        match self {
            Self::Buffer(buffer) => Some(buffer.memory()),
            Self::Region(region) => region.memory(),
        }
    }
}

/// Local memory that the peer may access, either for reading or for writing. The queue pair owns
/// the memory until the peer's access ends.
pub enum Exposed {
    /// Memory that the peer may read by RDMA.
    ToRead(Source),
    /// A buffer of the pool that the peer may write by RDMA.
    BufferToWrite(Buffer),
    /// Memory that is not a buffer of the pool and that the peer may write by RDMA.
    ToWrite(Region),
}

impl Exposed {
    /// Returns the length of the memory in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes().len()
    }

    /// Returns whether the length of the memory is 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes().is_empty()
    }

    /// Returns whether the peer may write the memory; otherwise the peer may read it.
    #[must_use]
    pub fn is_to_write(&self) -> bool {
        match self {
            Self::ToRead(_) => false,
            Self::BufferToWrite(_) | Self::ToWrite(_) => true,
        }
    }

    /// Returns the memory block that contains the bytes, if the block is long-lived, so that a
    /// device registers it once for many operations. `None` for other memory.
    #[must_use]
    pub fn memory(&self) -> Option<&Memory> {
        match self {
            Self::BufferToWrite(buffer) => Some(buffer.memory()),
            Self::ToRead(source) => source.memory(),
            Self::ToWrite(region) => region.memory(),
        }
    }

    /// The bytes. Valid before the exposure starts and after it ends.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::ToRead(source) => source,
            Self::BufferToWrite(buffer) => buffer,
            Self::ToWrite(region) => region,
        }
    }

    /// Copies `from` to the start of the memory, if the peer may write it.
    pub(crate) fn fill(&mut self, from: &[u8]) {
        let into: &mut [u8] = match self {
            Self::ToRead(_) => return,
            Self::BufferToWrite(buffer) => buffer,
            Self::ToWrite(region) => region,
        };
        into.copy_from_slice(&from[..into.len()]);
    }

    /// The address of the first byte. During the exposure this process does not read the bytes that
    /// the peer writes.
    pub(crate) fn start(&mut self) -> *mut u8 {
        match self {
            Self::ToRead(source) => source.as_ptr().cast_mut(),
            Self::BufferToWrite(buffer) => buffer.as_mut_ptr(),
            Self::ToWrite(region) => region.as_mut_ptr(),
        }
    }
}

impl fmt::Debug for Exposed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = if self.is_to_write() { "write" } else { "read" };
        write!(f, "Exposed({} bytes to {way})", self.len())
    }
}

/// A region of the peer's memory that this end may access by RDMA, as the peer has described it.
/// \[MS-SMBD\] 2.2.3.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteRegion {
    /// Address of the first byte, in the address space of the peer.
    pub address: u64,
    /// Key of the region (steering tag), which the peer's device checks.
    pub key: u32,
    /// Length of the region in bytes.
    pub length: u32,
}
