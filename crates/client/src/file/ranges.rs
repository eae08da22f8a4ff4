//! Sparse files: the allocated ranges of a file, and holes. \[MS-FSCC\] 2.3.48

use std::ops::Range;

use wire::fsctl::{AllocatedRange, CtlCode, ZeroData};

use crate::error::{Cause, Error};
use crate::file::File;

/// Largest list of ranges in one response, in bytes.
const RANGES_LEN: u32 = 64 << 10;
/// Largest count of allocated ranges of a file: 16 MiB of memory. A server could send a list
/// without an end.
const RANGES_MAX: usize = 1 << 20;

impl File {
    /// Queries the parts of `range` that have allocated disk space. The rest of `range` are holes,
    /// which read as zeros. The parts are in ascending order.
    ///
    /// # Errors
    /// The server does not support the query, or returns more than a million parts.
    pub async fn allocated_ranges(&self, range: Range<u64>) -> Result<Vec<Range<u64>>, Error> {
        let operation = "query the allocated ranges of";
        let mut found: Vec<Range<u64>> = Vec::new();
        let mut start = range.start;
        while start < range.end {
            let mut input = Vec::new();
            AllocatedRange {
                file_offset: start,
                length: range.end - start,
            }
            .encode(&mut input);
            let code = CtlCode::QUERY_ALLOCATED_RANGES;
            let (output, has_more) = self
                .ioctl(code, input, RANGES_LEN)
                .await
                .map_err(|cause| self.failed(operation, cause))?;
            let list = AllocatedRange::decode_list(&output)
                .map_err(|error| self.failed(operation, error.into()))?;
            let ranges = list
                .iter()
                .map(|range| range.file_offset..range.file_offset.saturating_add(range.length));
            found.extend(ranges);
            if found.len() > RANGES_MAX {
                let why = "the server returned too many ranges".to_owned();
                return Err(self.failed(operation, Cause::Malformed(why)));
            }
            let end = found.last().map_or(range.end, |last| last.end);
            if !has_more || end <= start {
                break;
            }
            start = end;
        }
        Ok(found)
    }

    /// Sets whether the file is sparse. In a sparse file, ranges that
    /// [`zero_range`](Self::zero_range) clears take no disk space.
    ///
    /// # Errors
    /// The server does not support sparse files, or the open has no right to write.
    pub async fn set_sparse(&self, sparse: bool) -> Result<(), Error> {
        let input = vec![u8::from(sparse)];
        self.ioctl(CtlCode::SET_SPARSE, input, 0)
            .await
            .map(drop)
            .map_err(|cause| self.failed("set the sparse attribute of", cause))
    }

    /// Sets the bytes of a range to zeros. In a sparse file the range becomes a hole, which takes
    /// no disk space.
    ///
    /// # Errors
    /// The server does not support the request, or the open has no right to write.
    pub async fn zero_range(&self, range: Range<u64>) -> Result<(), Error> {
        let zero = ZeroData {
            file_offset: range.start,
            beyond_final_zero: range.end,
        };
        self.ioctl(CtlCode::SET_ZERO_DATA, zero.encode(), 0)
            .await
            .map(drop)
            .map_err(|cause| self.failed("zero a range of", cause))
    }
}
