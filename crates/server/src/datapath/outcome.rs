//! Results of the data path, in the form that the core takes.

use std::io;

use net::PayloadBytes;
use proto::effect::Outcome;
use wire::Status;

use super::context::Context;

/// Keeps the data of a READ for its response. `payload` makes the payload of the given length.
pub(super) fn read(
    context: &Context,
    result: Result<usize, Status>,
    payload: impl FnOnce(usize) -> PayloadBytes,
) -> Outcome {
    match result {
        Ok(len) => Outcome::Read(context.output.borrow_mut().payloads.keep(payload(len))),
        Err(status) => Outcome::Failed(status),
    }
}

pub(super) fn write(result: Result<usize, Status>) -> Outcome {
    match result {
        Ok(len) => Outcome::Written(u32::try_from(len).expect("a WRITE has 32 bits of length")),
        Err(status) => Outcome::Failed(status),
    }
}

/// The status of an I/O error of the ring.
pub(super) fn status(error: &io::Error) -> Status {
    let errno = rustix::io::Errno::from_io_error(error).unwrap_or(rustix::io::Errno::IO);
    vfs::errno::status(errno, vfs::errno::Context::Data)
}
