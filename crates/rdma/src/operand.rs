//! What operations work on: memory of ours that they own, and memory of the peer.

use std::fmt;
use std::ops::Range;
use std::rc::Rc;

use ring::{Buffer, Memory, Part, Region, Source};

use crate::slots::Slot;

/// Bytes of ours that an operation only reads: of a SEND, or the source of an RDMA WRITE. It owns
/// them until its completion.
#[derive(Debug)]
pub enum Piece {
    /// A range of a slot, which must lie inside.
    Slot(Slot, Range<usize>),
    /// A range of something that several operations may share; it must lie inside of
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

    /// What a device knows once it was told: the slab of a slot or of a buffer, or pages of their
    /// own. `None` for other memory, which a provider copies or makes known for the length of an
    /// operation.
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

/// Memory of ours that an RDMA READ fills. The operation owns it until its completion.
#[derive(Debug)]
pub enum Sink {
    /// Of the pool.
    Buffer(Buffer),
    /// Of others.
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

    /// The bytes, to be written.
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

/// Memory of ours that the peer may reach, in one way only. The queue pair owns it until it is
/// out of the peer's reach again.
pub enum Exposed {
    /// The peer reads it.
    ToRead(Source),
    /// The peer writes it, a buffer of the pool.
    BufferToWrite(Buffer),
    /// The peer writes it.
    ToWrite(Region),
}

impl Exposed {
    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes().len()
    }

    /// Whether there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes().is_empty()
    }

    /// Whether the peer may write it; else it may read it.
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

    /// The bytes: to be looked at before the peer may write them.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::ToRead(source) => source,
            Self::BufferToWrite(buffer) => buffer,
            Self::ToWrite(region) => region,
        }
    }

    /// Takes on the first of these bytes, where the peer was to write it.
    pub(crate) fn fill(&mut self, from: &[u8]) {
        let into: &mut [u8] = match self {
            Self::ToRead(_) => return,
            Self::BufferToWrite(buffer) => buffer,
            Self::ToWrite(region) => region,
        };
        into.copy_from_slice(&from[..into.len()]);
    }

    /// The address of the first byte. What is written there, while this is exposed, nobody here
    /// looks at.
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

/// Memory of the peer, as the peer has told us. \[MS-SMBD\] 2.2.3.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    /// Of the first byte, in the peer's terms.
    pub address: u64,
    /// The key of the peer's registration.
    pub key: u32,
    /// Length in bytes.
    pub length: u32,
}
