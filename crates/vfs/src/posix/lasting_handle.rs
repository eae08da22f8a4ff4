//! Handles of files that stay valid until the file is deleted. name_to_handle_at(2)
//!
//! The kernel's handles are unique within a file system only. So a handle starts with the serial
//! number of the file system.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::volume::Volume;

/// The handle of an open file on this file system. Fails with EOPNOTSUPP if it has no handles.
pub(super) fn lasting_handle(file: &OwnedFd, volume: &Volume) -> io::Result<Vec<u8>> {
    let mut handle = volume.id.serial.to_le_bytes().to_vec();
    handle.extend(ring::openable_handle(file.as_fd())?);
    Ok(handle)
}

/// The serial number of the file system of a handle, and the kernel's handle. `None` for bytes that
/// are no handle.
pub(super) fn parts(handle: &[u8]) -> Option<(u64, &[u8])> {
    let (serial, handle) = handle.split_first_chunk()?;
    Some((u64::from_le_bytes(*serial), handle))
}
