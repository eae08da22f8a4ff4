//! Why something failed, from the words of the device and of RDMA-CM.

use std::ffi::{CStr, c_int};
use std::io;

use super::ffi;
use super::library::Library;
use crate::provider::Failure;

/// What a completion says about its request.
pub(super) fn completion_failure(
    library: &'static Library,
    completion: &ffi::Wc,
) -> Result<(), Failure> {
    Err(match completion.status {
        ffi::WC_SUCCESS => return Ok(()),
        ffi::WC_WR_FLUSH_ERR => Failure::Flushed,
        ffi::WC_REM_ACCESS_ERR => Failure::RemoteAccess,
        ffi::WC_RNR_RETRY_EXC_ERR => Failure::ReceiverNotReady,
        // Of a receive: the message is longer. Of a SEND: the peer says so.
        ffi::WC_LOC_LEN_ERR | ffi::WC_REM_INV_REQ_ERR => Failure::TooLong,
        // No acknowledgement, however often it was sent.
        ffi::WC_RETRY_EXC_ERR => Failure::PeerDisconnected,
        status => Failure::Device(format!(
            "{} (status {status}, vendor {:#x})",
            status_text(library, status),
            completion.vendor_err
        )),
    })
}

fn status_text(library: &'static Library, status: c_int) -> String {
    // SAFETY: the function takes every number, and returns a string that is never freed.
    let text = unsafe { (library.wc_status_str)(status) };
    if text.is_null() {
        return String::from("unknown");
    }
    // SAFETY: as above; it ends with a zero.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_string_lossy().into_owned()
}

/// Why a connection was not made: `what` failed, with the status of the report.
pub(super) fn refused(what: &str, status: c_int) -> Failure {
    Failure::Refused(match status {
        // RDMA-CM's errno.
        ..0 => format!("{what}: {}", io::Error::from_raw_os_error(-status)),
        0 => what.to_owned(),
        // InfiniBand's reason of a rejection: 8 is a port on which nobody listens.
        8 => format!("{what}: nobody listens there"),
        28 => format!("{what}: by the application"),
        reason => format!("{what}: reason {reason}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_why() {
        let texts = [
            refused("rejected", -libc::ECONNREFUSED),
            refused("rejected", 8),
            refused("address", -libc::ENODEV),
        ];
        let texts = texts.map(|failure| failure.to_string());
        assert_eq!(
            texts,
            [
                "connection refused: rejected: Connection refused (os error 111)",
                "connection refused: rejected: nobody listens there",
                "connection refused: address: No such device (os error 19)",
            ]
        );
    }
}
