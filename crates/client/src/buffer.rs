//! Buffers that an operation owns while it runs.

use std::sync::Arc;

use ring::{Region, Source};

/// A buffer that a READ fills. The operation owns it, so that it stays valid when the future is
/// dropped.
///
/// A READ fills the length of the buffer, not its capacity: `vec![0; n]` reads up to `n` bytes.
pub trait IoBuf: Sized + Send + 'static {
    /// Converts the buffer to a region.
    fn into_region(self) -> Region;
    /// Converts the region of [`into_region`](Self::into_region) back.
    fn from_region(region: Region) -> Self;
    /// The value that replaces the buffer if it is lost because the client was closed.
    fn lost() -> Self;
}

/// A buffer that a WRITE sends. Its bytes do not change during the operation.
pub trait IoSource: Sized + Send + 'static {
    /// Converts the buffer to a source.
    fn into_source(self) -> Source;
    /// Converts the source of [`into_source`](Self::into_source) back.
    fn from_source(source: Source) -> Self;
    /// As [`IoBuf::lost`].
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
