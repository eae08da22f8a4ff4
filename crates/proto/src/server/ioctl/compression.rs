//! GET_COMPRESSION and SET_COMPRESSION: compression by the file system. \[MS-FSCC\] 2.3.18,
//! 2.3.67, \[MS-FSA\] 2.1.5.10
//!
//! A file system that compresses has one format of its own; clients see it as LZNT1, as with Samba.
//! Where the file system compresses nothing, Windows and Samba accept the format "none":
//! smbtorture smb2.ioctl.compress_notsup_get and compress_notsup_set.

use alloc::sync::Arc;

use wire::Status;
use wire::access::{AccessMask, FileAttributes};
use wire::change_notify::CompletionFilter;
use wire::ioctl::Request;

use super::request::Asked;
use crate::effect::Outcome;
use crate::file::{FileOp, Operation};
use crate::server::context::{Context, Progress, Reply};
use crate::server::open::{Need, Open};

/// COMPRESSION_FORMAT_NONE. \[MS-FSCC\] 2.3.18
const NONE: u16 = 0;
/// COMPRESSION_FORMAT_DEFAULT.
const DEFAULT: u16 = 1;
/// COMPRESSION_FORMAT_LZNT1.
const LZNT1: u16 = 2;

/// The state of a request that waits for the file system.
pub(crate) struct Step {
    asked: Asked,
    /// The open through which the compression is being switched; `None` where it is only read.
    changed: Option<Arc<Open>>,
}

/// Returns the compression. No right is needed: smbtorture smb2.ioctl.compress_perms.
pub(super) fn get(
    context: &mut Context<'_>,
    request: &Request<'_>,
) -> Result<Progress<Step>, Status> {
    let open = context.open(request.file_id)?;
    if (request.max_output_response as usize) < size_of::<u16>() {
        return Err(Status::INVALID_PARAMETER);
    }
    let operation = FileOp::OnOpen(open.file, Operation::Stat);
    let step = Step {
        asked: Asked::by(request),
        changed: None,
    };
    Ok(context.wait(operation, step))
}

/// Switches the compression on or off.
pub(super) fn set(
    context: &mut Context<'_>,
    request: &Request<'_>,
) -> Result<Progress<Step>, Status> {
    let open = context.open(request.file_id)?;
    open.authorize(Need::Right(AccessMask::FILE_WRITE_DATA))?;
    let format = request.input.first_chunk::<2>();
    let format = format.ok_or(Status::INVALID_PARAMETER)?;
    let is_compressed = match u16::from_le_bytes(*format) {
        NONE => false,
        DEFAULT | LZNT1 => true,
        _ => return Err(Status::INVALID_PARAMETER),
    };
    let operation = FileOp::OnOpen(open.file, Operation::SetCompression { is_compressed });
    let step = Step {
        asked: Asked::by(request),
        changed: Some(open),
    };
    Ok(context.wait(operation, step))
}

impl Step {
    pub(super) fn resume(
        self,
        context: &mut Context<'_>,
        outcome: Outcome,
    ) -> Result<Reply, Status> {
        let metadata = outcome.expect_file()?.expect_metadata();
        if let Some(open) = &self.changed {
            context.report_change(open, CompletionFilter::ATTRIBUTES);
            return Ok(self.asked.reply(Status::SUCCESS, &[]));
        }
        let is_compressed = metadata.attributes.contains(FileAttributes::COMPRESSED);
        let format = if is_compressed { LZNT1 } else { NONE };
        Ok(self.asked.reply(Status::SUCCESS, &format.to_le_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use wire::FileId;
    use wire::fsctl::CtlCode;
    use wire::ioctl::{IoctlFlags, Response};

    use super::*;
    use crate::server::ioctl;
    use crate::server::scripted::{ALL, World, body};

    fn ask(
        world: &mut World,
        id: FileId,
        ctl_code: CtlCode,
        input: &[u8],
    ) -> Result<Option<u8>, Status> {
        let request = Request {
            ctl_code,
            file_id: id,
            max_input_response: 0,
            max_output_response: 2,
            flags: IoctlFlags::IS_FSCTL,
            input,
            output: &[],
        };
        let reply = world.run(ioctl::start, |out| request.encode(out))?;
        let body = body(&reply);
        let output = Response::decode(&body).expect("a response").output;
        Ok(output.first().copied())
    }

    #[test]
    fn a_file_is_compressed_where_the_file_system_can() {
        let mut world = World::new();
        world.disk.add_file("a", FileAttributes::NONE);
        world.disk.compresses = true;
        let id = world.open("a", ALL);
        assert_eq!(
            ask(&mut world, id, CtlCode::GET_COMPRESSION, &[]),
            Ok(Some(0))
        );
        for (format, seen) in [(1, 2), (2, 2), (0, 0)] {
            let input = [format, 0];
            assert_eq!(
                ask(&mut world, id, CtlCode::SET_COMPRESSION, &input),
                Ok(None)
            );
            let found = ask(&mut world, id, CtlCode::GET_COMPRESSION, &[]);
            assert_eq!(found, Ok(Some(seen)));
        }
        let unknown = ask(&mut world, id, CtlCode::SET_COMPRESSION, &[0x42, 0]);
        assert_eq!(unknown, Err(Status::INVALID_PARAMETER));
    }

    #[test]
    fn elsewhere_no_file_is_compressed_or_ever_will_be() {
        let mut world = World::new();
        world.disk.add_file("a", FileAttributes::NONE);
        let id = world.open("a", ALL);
        assert_eq!(
            ask(&mut world, id, CtlCode::GET_COMPRESSION, &[]),
            Ok(Some(0))
        );
        let mut set = |input: &[u8]| ask(&mut world, id, CtlCode::SET_COMPRESSION, input);
        assert_eq!(set(&[0, 0]), Ok(None));
        assert_eq!(set(&[1, 0]), Err(Status::NOT_SUPPORTED));
        assert_eq!(set(&[0]), Err(Status::INVALID_PARAMETER));
        let reader = world.open("a", AccessMask::FILE_READ_DATA);
        let denied = ask(&mut world, reader, CtlCode::SET_COMPRESSION, &[0, 0]);
        assert_eq!(denied, Err(Status::ACCESS_DENIED));
    }
}
