//! Errors of the client library as replies to the kernel.

use fuser::Errno;
use smbeam_client::Error;

/// The reply to an operation of the kernel.
pub(crate) type Answer<T> = Result<T, Errno>;

/// Returns the errno value with which a request of the kernel fails.
pub(crate) fn errno(error: &Error) -> Errno {
    Errno::from_i32(error.errno())
}
