//! The compression of files, which the server does not support. \[MS-FSA\] 2.1.5.10
//!
//! Windows and Samba say so by success where a file system compresses nothing: smbtorture
//! smb2.ioctl.compress_notsup_get and compress_notsup_set.

use wire::Status;
use wire::access::AccessMask;
use wire::ioctl::Request;

use super::request::reply;
use crate::server::context::{Context, Reply};
use crate::server::open::Need;

/// COMPRESSION_FORMAT_NONE. \[MS-FSCC\] 2.3.12
const NONE: [u8; 2] = [0; 2];

/// Returns the compression.
pub(super) fn get(context: &mut Context<'_>, request: &Request<'_>) -> Result<Reply, Status> {
    context.open(request.file_id)?;
    if (request.max_output_response as usize) < NONE.len() {
        return Err(Status::INVALID_PARAMETER);
    }
    Ok(reply(request, &NONE))
}

/// Accepts the format that each file has: none.
pub(super) fn set(context: &mut Context<'_>, request: &Request<'_>) -> Result<Reply, Status> {
    let open = context.open(request.file_id)?;
    open.authorize(Need::Right(AccessMask::FILE_WRITE_DATA))?;
    match request.input.get(..NONE.len()) {
        None => Err(Status::INVALID_PARAMETER),
        Some(format) if format == NONE => Ok(reply(request, &[])),
        Some(_) => Err(Status::NOT_SUPPORTED),
    }
}

#[cfg(test)]
mod tests {
    use wire::FileId;
    use wire::access::FileAttributes;
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
    ) -> Result<usize, Status> {
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
        Ok(Response::decode(&body).expect("a response").output.len())
    }

    #[test]
    fn no_file_is_compressed_or_ever_will_be() {
        let mut world = World::new();
        world.disk.add_file("a", FileAttributes::NONE);
        let id = world.open("a", ALL);
        assert_eq!(ask(&mut world, id, CtlCode::GET_COMPRESSION, &[]), Ok(2));
        let mut set = |input: &[u8]| ask(&mut world, id, CtlCode::SET_COMPRESSION, input);
        assert_eq!(set(&[0, 0]), Ok(0));
        assert_eq!(set(&[1, 0]), Err(Status::NOT_SUPPORTED));
        assert_eq!(set(&[0]), Err(Status::INVALID_PARAMETER));
        let reader = world.open("a", AccessMask::FILE_READ_DATA);
        let denied = ask(&mut world, reader, CtlCode::SET_COMPRESSION, &[0, 0]);
        assert_eq!(denied, Err(Status::ACCESS_DENIED));
    }
}
