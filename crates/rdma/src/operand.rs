//! The memory of operations: local memory that they own, and memory of the peer.

use std::fmt;
use std::ops::Range;
use std::rc::Rc;

use ring::{Buffer, Memory, Part, Region, Source};

use crate::slots::Slot;

/// Local bytes that an operation only reads: of a SEND, or the source of an RDMA WRITE. The
/// operation owns them until its completion.
#[derive(Debug)]
pub enum Piece {
    /// A range inside a slot.
    Slot(Slot, Range<usize>),
    /// A range of a part that several operations may share. The range must be inside
    /// [`Part::bytes`].
    Shared(Rc<Part>, Range<usize>),
}

impl Piece {
    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Slot(slot, range) => &slot[range.clone()],
            Self::Shared(part, range) => &part.bytes()[range.clone()],
        }
    }

    /// The long-lived memory that a device registers once: the slab of a slot or of a buffer, or
    /// separate pages. `None` for other memory, which a provider copies or registers for the length
    /// of an operation.
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

/// Local memory that an RDMA READ fills. The operation owns it until its completion.
#[derive(Debug)]
pub enum Sink {
    /// A buffer of the pool.
    Buffer(Buffer),
    /// Other memory.
    Region(Region),
}

impl Sink {
    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Buffer(buffer) => buffer,
            Self::Region(region) => region,
        }
    }

    /// The bytes, for writing.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Buffer(buffer) => buffer,
            Self::Region(region) => region,
        }
    }

    /// As [`Piece::memory`].
    #[must_use]
    pub fn memory(&self) -> Option<&Memory> {
        match self {
            Self::Buffer(buffer) => Some(buffer.memory()),
            Self::Region(region) => region.memory(),
        }
    }
}

/// Local memory that the peer may access, either for reading or for writing. The queue pair owns it
/// until the end of the exposure.
pub enum Exposed {
    /// The peer reads it.
    ToRead(Source),
    /// A buffer of the pool that the peer writes.
    BufferToWrite(Buffer),
    /// Other memory that the peer writes.
    ToWrite(Region),
}

impl Exposed {
    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes().len()
    }

    /// Whether the length is 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes().is_empty()
    }

    /// Whether the peer may write it. Otherwise the peer may read it.
    #[must_use]
    pub fn is_to_write(&self) -> bool {
        match self {
            Self::ToRead(_) => false,
            Self::BufferToWrite(_) | Self::ToWrite(_) => true,
        }
    }

    /// As [`Piece::memory`].
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

/// Memory of the peer, as the peer has described it. \[MS-SMBD\] 2.2.3.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteRegion {
    /// Address of the first byte, as the peer counts.
    pub address: u64,
    /// The key of the peer's registration.
    pub key: u32,
    /// Length in bytes.
    pub length: u32,
}
