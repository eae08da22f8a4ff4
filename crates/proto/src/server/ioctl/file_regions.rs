//! QUERY_FILE_REGIONS: the part of a file with valid data. \[MS-FSCC\] 2.3.55, \[MS-FSA\]
//! 2.1.5.10.22
//!
//! Linux keeps no valid data length: all bytes of a file are valid, up to its end.

use alloc::vec::Vec;
use core::ops::Range;

use wire::Status;
use wire::access::AccessMask;
use wire::fsctl::{FileRegion, FileRegions, FileRegionsRequest, RegionUsage};
use wire::ioctl::Request;

use super::request::Asked;
use crate::effect::Outcome;
use crate::file::{FileOp, Operation};
use crate::server::context::{Context, Progress, Reply};
use crate::server::fsa::MAX_OFFSET;
use crate::server::open::{Need, malformed};

/// A query that waits for the size of the file.
pub(crate) struct Step {
    asked: Asked,
    range: Range<u64>,
    usage: RegionUsage,
    /// Maximum length of the output in bytes.
    max_len: usize,
}

/// Starts on a request.
pub(super) fn start(
    context: &mut Context<'_>,
    request: &Request<'_>,
) -> Result<Progress<Step>, Status> {
    let open = context.open(request.file_id)?;
    open.authorize(Need::Right(AccessMask::FILE_READ_DATA))?;
    let max_len = request.max_output_response as usize;
    if max_len < FileRegions::FIXED_LEN {
        return Err(Status::BUFFER_TOO_SMALL);
    }
    let (range, usage) = match request.input {
        [] => (0..MAX_OFFSET, RegionUsage::VALID_CACHED_DATA),
        input => {
            let request = FileRegionsRequest::decode(input).map_err(malformed)?;
            let end = request.file_offset.checked_add(request.length);
            let end = end.filter(|end| *end <= MAX_OFFSET);
            let end = end.ok_or(Status::INVALID_PARAMETER)?;
            (request.file_offset..end, request.usage)
        }
    };
    let valid = RegionUsage::VALID_CACHED_DATA | RegionUsage::VALID_NONCACHED_DATA;
    if open.is_directory || !usage.intersects(valid) {
        return Err(Status::INVALID_PARAMETER);
    }
    let step = Step {
        asked: Asked::by(request),
        range,
        usage: usage & valid,
        max_len,
    };
    Ok(context.wait(FileOp::OnOpen(open.file, Operation::Stat), step))
}

impl Step {
    pub(super) fn resume(self, outcome: Outcome) -> Result<Reply, Status> {
        let size = outcome.expect_file()?.expect_metadata().size;
        let Range { start, end } = self.range;
        let length = end.min(size).saturating_sub(start);
        let region = FileRegion {
            file_offset: start,
            length,
            usage: self.usage,
        };
        let total = u32::from(length > 0);
        let fits = FileRegions::FIXED_LEN + FileRegions::REGION_LEN <= self.max_len;
        let mut regions = Vec::new();
        if length > 0 && fits {
            regions.push(region);
        }
        let status = match fits || length == 0 {
            true => Status::SUCCESS,
            false => Status::BUFFER_OVERFLOW,
        };
        let output = FileRegions { total, regions }.encode();
        Ok(self.asked.reply(status, &output))
    }
}

#[cfg(test)]
mod tests {
    use wire::access::FileAttributes;
    use wire::fsctl::CtlCode;
    use wire::ioctl::{IoctlFlags, Response};

    use super::*;
    use crate::server::ioctl;
    use crate::server::scripted::{ALL, World, body};

    fn ask(input: &[u8], length: u32) -> Result<(Status, FileRegions), Status> {
        let mut world = World::new();
        world.disk.add_file("a", FileAttributes::NONE);
        world.disk.files.get_mut("a").expect("a file").size = 1000;
        let request = Request {
            ctl_code: CtlCode::QUERY_FILE_REGIONS,
            file_id: world.open("a", ALL),
            max_input_response: 0,
            max_output_response: length,
            flags: IoctlFlags::IS_FSCTL,
            input,
            output: &[],
        };
        let reply = world.run(ioctl::start, |out| request.encode(out))?;
        let body = body(&reply);
        let output = Response::decode(&body).expect("a response").output;
        Ok((reply.status, FileRegions::decode(output).expect("regions")))
    }

    fn within(file_offset: u64, length: u64, usage: u32) -> Vec<u8> {
        let usage = RegionUsage(usage);
        FileRegionsRequest {
            file_offset,
            length,
            usage,
        }
        .encode()
    }

    #[test]
    fn all_bytes_up_to_the_end_are_valid() {
        let region = |input: &[u8]| {
            let (status, found) = ask(input, 40).expect("regions");
            assert_eq!(status, Status::SUCCESS);
            found.regions.first().map(|it| (it.file_offset, it.length))
        };
        assert_eq!(region(&[]), Some((0, 1000)));
        assert_eq!(region(&within(10, 20, 1)), Some((10, 20)));
        assert_eq!(region(&within(900, 200, 1)), Some((900, 100)));
        assert_eq!(region(&within(1000, 200, 1)), None);
    }

    #[test]
    fn a_region_that_does_not_fit_is_counted() {
        let (status, found) = ask(&[], 39).expect("the count");
        assert_eq!(status, Status::BUFFER_OVERFLOW);
        assert_eq!((found.total, found.regions.len()), (1, 0));
        assert_eq!(ask(&[], 15), Err(Status::BUFFER_TOO_SMALL));
        let invalid = Err(Status::INVALID_PARAMETER);
        assert_eq!(ask(&within(1, u64::MAX, 1), 40), invalid);
        assert_eq!(ask(&within(0, 1, 0), 40), invalid);
        assert_eq!(ask(&[0; 23], 40), invalid);
    }
}
