//! The pipe that a stream splices files through.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use crate::sys;

/// Requested capacity of a pipe in bytes. A larger pipe is not faster, and the kernel allows this
/// size to all users.
pub(crate) const PIPE_BYTES: usize = 1 << 20;

/// The pipe between a file and a socket. It is empty between two ranges, except when the stream has
/// failed.
pub(crate) struct Pipe {
    pub(crate) output: OwnedFd,
    pub(crate) input: OwnedFd,
}

impl Pipe {
    /// A new pipe with a capacity of up to [`PIPE_BYTES`].
    pub(crate) fn new() -> io::Result<Self> {
        let (output, input) = sys::pipe()?;
        // A refusal leaves a smaller pipe, which works too.
        let _ = sys::set_pipe_bytes(input.as_fd(), PIPE_BYTES);
        Ok(Self { output, input })
    }
}
