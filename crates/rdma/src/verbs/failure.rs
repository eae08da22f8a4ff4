//! Converts errors of devices and of RDMA-CM.

use std::ffi::{CStr, c_int};
use std::io;

use super::ffi;
use super::library::Library;
use crate::provider::Failure;

/// Converts the status of a completion.
pub(super) fn completion_failure(
    library: &'static Library,
    completion: &ffi::Wc,
) -> Result<(), Failure> {
    Err(match completion.status {
        ffi::WC_SUCCESS => return Ok(()),
        ffi::WC_WR_FLUSH_ERR => Failure::Flushed,
        ffi::WC_REM_ACCESS_ERR => Failure::RemoteAccess,
        ffi::WC_RNR_RETRY_EXC_ERR => Failure::ReceiverNotReady,
        // For a receive: the message is longer. For a SEND: the peer reports that.
        ffi::WC_LOC_LEN_ERR | ffi::WC_REM_INV_REQ_ERR => Failure::TooLong,
        // The peer acknowledged none of the retransmissions.
        ffi::WC_RETRY_EXC_ERR => Failure::PeerDisconnected,
        status => Failure::Device(format!(
            "{} (status {status}, vendor {:#x})",
            status_text(library, status),
            completion.vendor_err
        )),
    })
}

fn status_text(library: &'static Library, status: c_int) -> String {
    // SAFETY: the function accepts every number, and returns a string that is never freed.
    let text = unsafe { (library.wc_status_str)(status) };
    if text.is_null() {
        return String::from("unknown");
    }
    // SAFETY: as above; the string ends with a zero.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_string_lossy().into_owned()
}

/// Why connecting failed: the failed step, and the status of the event.
pub(super) fn refused(step: &str, status: c_int) -> Failure {
    Failure::Refused(match status {
        // An errno from RDMA-CM.
        ..0 => format!("{step}: {}", io::Error::from_raw_os_error(-status)),
        0 => step.to_owned(),
        // Reason 8 of an InfiniBand rejection: the port has no listener.
        8 => format!("{step}: no listener on this port"),
        28 => format!("{step}: by the application"),
        reason => format!("{step}: reason {reason}"),
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
                "connection refused: rejected: no listener on this port",
                "connection refused: address: No such device (os error 19)",
            ]
        );
    }
}
