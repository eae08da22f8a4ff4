//! The received frame of which a WRITE writes a part.

use std::ops::Range;

use ring::Buffer;

/// The frame that the core parses, while effects may refer to it.
pub(crate) enum Frame<'a> {
    /// The frame is part of a chunk, which the runtime needs again soon.
    Borrowed(&'a mut [u8]),
    /// The frame is this range of a separate buffer. A WRITE can take the buffer.
    Owned(Option<Buffer>, Range<usize>),
    /// There is no frame: the call of the core has none.
    None,
}

/// Bytes of a WRITE that has to wait.
pub(super) enum Source {
    /// The buffer of the frame, and the range of the bytes in it.
    Buffer(Buffer, Range<usize>),
    /// A copy.
    Bytes(Vec<u8>),
}

impl Frame<'_> {
    /// The bytes of the frame. It is empty once a WRITE has taken the buffer.
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Owned(Some(buffer), range) => &mut buffer[range.clone()],
            Self::Owned(None, _) | Self::None => &mut [],
        }
    }

    /// Returns true if a WRITE can take the buffer of the frame.
    pub(super) fn has_buffer(&self) -> bool {
        matches!(self, Self::Owned(Some(_), _))
    }

    /// Takes the bytes of `range` for a WRITE that has to wait: with the buffer if the frame has
    /// one, else as a copy.
    pub(super) fn take(&mut self, range: Range<usize>) -> Source {
        match self {
            Self::Owned(buffer @ Some(_), whole) => {
                let range = whole.start + range.start..whole.start + range.end;
                Source::Buffer(buffer.take().expect("matched above"), range)
            }
            _ => Source::Bytes(self.bytes()[range].to_vec()),
        }
    }
}

impl Source {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Buffer(buffer, range) => &buffer[range.clone()],
            Self::Bytes(bytes) => bytes,
        }
    }
}
