//! The peer's memory that this side may access, as the peer has announced it.

use std::collections::BTreeMap;

use crate::emulated::message::Announced;
use crate::emulated::sys::Far;
use crate::operand::RemoteRegion;
use crate::provider::Failure;

/// Number of regions of one queue pair that may be exposed at one time.
pub(crate) const REGIONS_MAX: usize = 4096;

/// The regions of the peer by key.
#[derive(Debug, Default)]
pub(crate) struct PeerMemory {
    regions: BTreeMap<u32, Announced>,
}

/// Kind of access to memory of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

impl PeerMemory {
    /// Adds a region that the peer announces.
    pub(crate) fn add(&mut self, region: Announced) -> Result<(), Failure> {
        if self.regions.len() >= REGIONS_MAX {
            return Err(Failure::Protocol("too many regions".into()));
        }
        if region.address.checked_add(region.length.into()).is_none() {
            return Err(Failure::Protocol("a region beyond the last address".into()));
        }
        match self.regions.insert(region.key, region) {
            None => Ok(()),
            Some(_) => Err(Failure::Protocol("one key for two regions".into())),
        }
    }

    /// Removes a region. Returns whether it was known.
    pub(crate) fn remove(&mut self, key: u32) -> bool {
        self.regions.remove(&key).is_some()
    }

    /// Removes all regions.
    pub(crate) fn clear(&mut self) {
        self.regions.clear();
    }

    /// Locates the first `bytes` bytes of `remote`, if this kind of access is allowed.
    pub(crate) fn find(
        &self,
        remote: &[RemoteRegion],
        bytes: usize,
        access: Access,
    ) -> Result<Vec<Far>, Failure> {
        let mut left = bytes;
        let mut found = Vec::with_capacity(remote.len());
        for segment in remote {
            let bytes = left.min(segment.length as usize);
            if bytes > 0 {
                self.check(segment, bytes, access)?;
                found.push(Far {
                    address: segment.address,
                    bytes,
                });
            }
            left -= bytes;
        }
        assert_eq!(left, 0, "the peer's regions hold all bytes");
        Ok(found)
    }

    fn check(&self, segment: &RemoteRegion, bytes: usize, access: Access) -> Result<(), Failure> {
        let region = self
            .regions
            .get(&segment.key)
            .ok_or(Failure::RemoteAccess)?;
        let end = region.address + u64::from(region.length);
        let segment_end = segment.address.checked_add(bytes as u64);
        let is_inside = segment.address >= region.address
            && segment_end.is_some_and(|segment_end| segment_end <= end);
        let is_allowed = region.is_to_write == (access == Access::Write);
        if is_inside && is_allowed {
            Ok(())
        } else {
            Err(Failure::RemoteAccess)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGION: Announced = Announced {
        key: 7,
        address: 1000,
        length: 100,
        is_to_write: true,
    };

    fn remote(key: u32, address: u64, length: u32) -> RemoteRegion {
        RemoteRegion {
            address,
            key,
            length,
        }
    }

    #[test]
    fn keys_bounds_and_rights_are_checked() {
        let mut memory = PeerMemory::default();
        memory.add(REGION).expect("a good region");
        let find = |remote: RemoteRegion, bytes, access| {
            memory.find(&[remote], bytes, access).map(|far| far[0])
        };
        let far = |address, bytes| Ok(Far { address, bytes });
        assert_eq!(
            find(remote(7, 1000, 100), 100, Access::Write),
            far(1000, 100)
        );
        assert_eq!(find(remote(7, 1099, 1), 1, Access::Write), far(1099, 1));
        assert_eq!(find(remote(7, 1050, 500), 50, Access::Write), far(1050, 50));
        let refused = [
            (remote(7, 1000, 100), 100, Access::Read),
            (remote(8, 1000, 100), 100, Access::Write),
            (remote(7, 999, 100), 100, Access::Write),
            (remote(7, 1001, 100), 100, Access::Write),
            (remote(7, 1100, 1), 1, Access::Write),
            (remote(7, 0, 1), 1, Access::Write),
            (remote(7, u64::MAX, 2), 2, Access::Write),
        ];
        for (remote, bytes, access) in refused {
            let found = find(remote, bytes, access);
            assert_eq!(found, Err(Failure::RemoteAccess), "{remote:?}");
        }
        assert!(memory.remove(7) && !memory.remove(7));
        let removed = memory.find(&[remote(7, 1000, 1)], 1, Access::Write);
        assert_eq!(removed, Err(Failure::RemoteAccess));
    }

    #[test]
    fn segments_are_used_in_order_until_the_bytes_are_all() {
        let mut memory = PeerMemory::default();
        memory.add(REGION).expect("a good region");
        let segments = [remote(7, 1000, 10), remote(7, 1050, 0), remote(7, 1090, 20)];
        let found = memory.find(&segments, 20, Access::Write).expect("allowed");
        let far = |address, bytes| Far { address, bytes };
        assert_eq!(found, [far(1000, 10), far(1090, 10)]);
    }

    #[test]
    fn invalid_regions_are_refused() {
        let mut memory = PeerMemory::default();
        memory.add(REGION).expect("a good region");
        assert!(memory.add(REGION).is_err(), "a key is given once");
        let beyond = Announced {
            key: 8,
            address: u64::MAX - 5,
            ..REGION
        };
        assert!(memory.add(beyond).is_err());
        for key in 100..100 + REGIONS_MAX as u32 - 1 {
            memory.add(Announced { key, ..REGION }).expect("a free key");
        }
        assert!(memory.add(Announced { key: 9, ..REGION }).is_err());
    }
}
