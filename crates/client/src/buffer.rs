//! Buffers that an operation owns while it runs.

use std::sync::Arc;

use ring::{Region, Source};

/// Memory that a read of a file fills. The caller passes the buffer to the operation and gets the
/// buffer back with the result. The operation owns the buffer meanwhile, so a caller may drop the
/// future while the kernel still writes to the memory.
///
/// A read fills the length of the buffer, not its capacity: `vec![0; n]` reads up to `n` bytes.
pub trait IoBuf: Sized + Send + 'static {
    /// Converts the buffer to a [`Region`], the type of the memory that the I/O threads fill. The
    /// client calls this at the start of an operation.
    fn into_region(self) -> Region;
    /// Converts a region that [`into_region`](Self::into_region) made back to the buffer. The
    /// client calls this at the end of an operation.
    fn from_region(region: Region) -> Self;
    /// Returns the empty buffer that an operation returns when the client was closed and the
    /// caller's buffer is lost.
    fn lost() -> Self;
}

/// Bytes that a write to a file sends. The caller passes the buffer to the operation and gets the
/// buffer back with the result. The operation owns the buffer meanwhile, so the bytes do not
/// change.
pub trait IoSource: Sized + Send + 'static {
    /// Converts the buffer to a [`Source`], the type of the bytes that the I/O threads send. The
    /// client calls this at the start of an operation.
    fn into_source(self) -> Source;
    /// Converts a source that [`into_source`](Self::into_source) made back to the buffer. The
    /// client calls this at the end of an operation.
    fn from_source(source: Source) -> Self;
    /// Returns the empty buffer that an operation returns when the client was closed and the
    /// caller's buffer is lost.
    fn lost_source() -> Self;
}

impl IoBuf for Vec<u8> {
    fn into_region(self) -> Region {
        self.into()
    }

    fn from_region(region: Region) -> Self {
        region.into_vec().unwrap_or_default()
    }

    fn lost() -> Self {
        Self::new()
    }
}

impl IoBuf for Box<[u8]> {
    fn into_region(self) -> Region {
        self.into()
    }

    fn from_region(region: Region) -> Self {
        Vec::from_region(region).into_boxed_slice()
    }

    fn lost() -> Self {
        Self::default()
    }
}

impl IoBuf for Region {
    fn into_region(self) -> Region {
        self
    }

    fn from_region(region: Region) -> Self {
        region
    }

    fn lost() -> Self {
        Self::from(Vec::new())
    }
}

impl<B: IoBuf> IoSource for B {
    fn into_source(self) -> Source {
        self.into_region().into()
    }

    fn from_source(source: Source) -> Self {
        match source.into_region() {
            Ok(region) => B::from_region(region),
            Err(_) => B::lost(),
        }
    }

    fn lost_source() -> Self {
        B::lost()
    }
}

impl IoSource for Arc<[u8]> {
    fn into_source(self) -> Source {
        self.into()
    }

    fn from_source(source: Source) -> Self {
        source.into_shared().unwrap_or_default()
    }

    fn lost_source() -> Self {
        Self::default()
    }
}

impl IoSource for Source {
    fn into_source(self) -> Source {
        self
    }

    fn from_source(source: Source) -> Self {
        source
    }

    fn lost_source() -> Self {
        Region::from(Vec::new()).into()
    }
}
