//! FSCTL_QUERY_FILE_REGIONS: ranges of a file by the use of their storage.

use alloc::vec::Vec;

use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::open_enum::open_flags;

open_flags! {
    /// The use of a region of a file. \[MS-FSCC\] 2.3.55
    RegionUsage(u32) {
        /// The region has valid data in the cache or on the disk.
        VALID_CACHED_DATA = 0x0000_0001,
        /// The region has valid data on the disk.
        VALID_NONCACHED_DATA = 0x0000_0002,
    }
}

/// Input of FSCTL_QUERY_FILE_REGIONS: the range and the uses that the client is interested in.
/// Without input, the query is about the whole file. \[MS-FSCC\] 2.3.55
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileRegionsRequest {
    /// Offset of the range in bytes; a signed integer on the wire.
    pub file_offset: u64,
    /// Length of the range in bytes; a signed integer on the wire.
    pub length: u64,
    /// The uses of the regions that the client requests.
    pub usage: RegionUsage,
}

impl FileRegionsRequest {
    /// Decodes the input buffer of the request. Fails when `input` has less than 24 bytes.
    pub fn decode(input: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(input);
        let request = Self {
            file_offset: reader.u64("FileOffset")?,
            length: reader.u64("Length")?,
            usage: RegionUsage(reader.u32("DesiredUsage")?),
        };
        reader.skip("Reserved", 4)?;
        Ok(request)
    }

    /// Encodes the input buffer of the request.
    pub fn encode(&self) -> Vec<u8> {
        let mut input = Vec::new();
        input.put_u64(self.file_offset);
        input.put_u64(self.length);
        input.put_u32(self.usage.0);
        input.put_u32(0);
        input
    }
}

/// A region of a file in the response. \[MS-FSCC\] 2.3.56.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileRegion {
    /// Offset of the region in bytes.
    pub file_offset: u64,
    /// Length of the region in bytes.
    pub length: u64,
    /// The use of the region.
    pub usage: RegionUsage,
}

/// Output of FSCTL_QUERY_FILE_REGIONS. \[MS-FSCC\] 2.3.56
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRegions {
    /// Number of all regions in the range, also of those that do not fit the response.
    pub total: u32,
    /// The regions in the response.
    pub regions: Vec<FileRegion>,
}

impl FileRegions {
    /// Length of the output before the regions in bytes.
    pub const FIXED_LEN: usize = 16;
    /// Length of a region in bytes.
    pub const REGION_LEN: usize = 24;

    /// Decodes the output buffer of the response. Fails when `output` is shorter than the regions
    /// that it announces.
    pub fn decode(output: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(output);
        reader.skip("Flags", 4)?;
        let total = reader.u32("TotalRegionEntryCount")?;
        let count = reader.u32("RegionEntryCount")?;
        reader.skip("Reserved", 4)?;
        let mut regions = Vec::new();
        for _ in 0..count {
            regions.push(FileRegion {
                file_offset: reader.u64("FileOffset")?,
                length: reader.u64("Length")?,
                usage: RegionUsage(reader.u32("DesiredUsage")?),
            });
            reader.skip("Reserved", 4)?;
        }
        Ok(Self { total, regions })
    }

    /// Encodes the output buffer of the response. Panics for more than 4 Gi regions.
    pub fn encode(&self) -> Vec<u8> {
        let count = u32::try_from(self.regions.len()).expect("less than 4 Gi regions");
        let mut output = Vec::new();
        output.put_u32(0);
        output.put_u32(self.total);
        output.put_u32(count);
        output.put_u32(0);
        for region in &self.regions {
            output.put_u64(region.file_offset);
            output.put_u64(region.length);
            output.put_u32(region.usage.0);
            output.put_u32(0);
        }
        output
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn request_and_response_survive_a_round_trip() {
        let request = FileRegionsRequest {
            file_offset: 1,
            length: 2,
            usage: RegionUsage::VALID_CACHED_DATA,
        };
        assert_eq!(FileRegionsRequest::decode(&request.encode()), Ok(request));
        assert!(FileRegionsRequest::decode(&request.encode()[1..]).is_err());
        let region = FileRegion {
            file_offset: 3,
            length: 4,
            usage: RegionUsage::VALID_CACHED_DATA,
        };
        let regions = FileRegions {
            total: 9,
            regions: vec![region; 2],
        };
        let output = regions.encode();
        let expected = FileRegions::FIXED_LEN + 2 * FileRegions::REGION_LEN;
        assert_eq!(output.len(), expected);
        assert_eq!(FileRegions::decode(&output), Ok(regions));
        assert!(FileRegions::decode(&output[..expected - 1]).is_err());
    }
}
