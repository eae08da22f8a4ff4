//! Memory that a caller gives away for the length of an operation.

use std::sync::Arc;

use ring::{Region, Source};

/// Bytes that a READ fills: owned, so that they stay where they are however the future ends.
///
/// Only the bytes that are there count, not the capacity: `vec![0; n]` reads up to `n` bytes.
pub trait IoBuf: Sized + Send + 'static {
    /// Gives the bytes away.
    fn into_region(self) -> Region;
    /// Takes them back. `region` is what [`into_region`](Self::into_region) made.
    fn from_region(region: Region) -> Self;
    /// What is given back where the bytes are lost: the client was closed in between.
    fn lost() -> Self;
}

/// Bytes that a WRITE sends. Nobody changes them meanwhile.
pub trait IoSource: Sized + Send + 'static {
    /// Gives the bytes away.
    fn into_source(self) -> Source;
    /// Takes them back. `source` is what [`into_source`](Self::into_source) made.
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
