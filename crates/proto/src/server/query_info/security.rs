//! The security descriptor: owner, group and mode of Unix in the words of Windows.
//! \[MS-SMB2\] 3.3.5.20.3

use alloc::vec::Vec;

use wire::Status;
use wire::access::AccessMask;
use wire::query_info::SecurityInformation;
use wire::security::{DescriptorControl, SecurityDescriptor};

use crate::file::Metadata;
use crate::server::open::{Need, Open};

/// Whether the open lets these parts be read. \[MS-SMB2\] 3.3.5.20.3
///
/// No part needs no right, as on Windows and Samba: smbtorture smb2.sdread.
pub(super) fn check(parts: SecurityInformation, open: &Open) -> Result<(), Status> {
    if parts.contains(SecurityInformation::SACL) {
        open.authorize(Need::Right(AccessMask::ACCESS_SYSTEM_SECURITY))?;
    }
    if parts.is_empty() {
        return Ok(());
    }
    open.authorize(Need::Right(AccessMask::READ_CONTROL))
}

/// The requested parts. Labels, attributes and policies do not exist.
pub(super) fn describe(parts: SecurityInformation, metadata: &Metadata) -> Vec<u8> {
    let Metadata { uid, gid, mode, .. } = *metadata;
    let mut descriptor =
        SecurityDescriptor::from_unix_mode(uid, gid, mode, metadata.is_directory());
    if !parts.contains(SecurityInformation::OWNER) {
        descriptor.owner = None;
    }
    if !parts.contains(SecurityInformation::GROUP) {
        descriptor.group = None;
    }
    if !parts.contains(SecurityInformation::DACL) {
        descriptor.dacl = None;
        descriptor.control = descriptor.control.without(DescriptorControl::DACL_PRESENT);
    }
    let mut out = Vec::with_capacity(descriptor.encoded_len());
    descriptor.encode(&mut out);
    out
}
