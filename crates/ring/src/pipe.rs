//! The pipe that a stream splices files through.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use crate::sys;

/// Bytes that a pipe is asked to hold: more brings nothing, and it is what the kernel allows to
/// everybody.
pub(crate) const PIPE_BYTES: usize = 1 << 20;

/// What pages go through from a file to a socket. It is empty between two ranges; one that is
/// not belongs to a stream that is of no more use.
pub(crate) struct Pipe {
    pub(crate) output: OwnedFd,
    pub(crate) input: OwnedFd,
}

impl Pipe {
    /// A new pipe of up to [`PIPE_BYTES`].
    pub(crate) fn new() -> io::Result<Self> {
        let (output, input) = sys::pipe()?;
        // A smaller one will do.
        let _ = sys::set_pipe_bytes(input.as_fd(), PIPE_BYTES);
        Ok(Self { output, input })
    }
}
