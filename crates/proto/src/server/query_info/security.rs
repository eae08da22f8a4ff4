//! Queries of the security descriptor. \[MS-SMB2\] 3.3.5.20.3

use alloc::vec::Vec;

use wire::Status;
use wire::access::AccessMask;
use wire::query_info::SecurityInformation;
use wire::security::SecurityDescriptor;

use crate::server::open::{Need, Open};

/// Whether the open lets these parts be read. \[MS-SMB2\] 3.3.5.20.3
///
/// No part needs no right, as on Windows and Samba: smbtorture smb2.sdread.
pub(super) fn check(parts: SecurityInformation, open: &Open) -> Result<(), Status> {
    if parts.contains(SecurityInformation::SACL) {
        open.authorize(Need::Right(AccessMask::ACCESS_SYSTEM_SECURITY))?;
    }
    if parts.without(SecurityInformation::SACL).is_empty() {
        return Ok(());
    }
    open.authorize(Need::Right(AccessMask::READ_CONTROL))
}

/// The requested parts. The SACL is part of an answer only if the request names it, which needs
/// the right to read it: labels, attributes and policies are entries of the SACL.
pub(super) fn describe(parts: SecurityInformation, descriptor: &SecurityDescriptor) -> Vec<u8> {
    const OF_ANSWER: SecurityInformation = SecurityInformation(
        SecurityInformation::OWNER.0
            | SecurityInformation::GROUP.0
            | SecurityInformation::DACL.0
            | SecurityInformation::SACL.0,
    );
    let selected = descriptor.select(parts & OF_ANSWER);
    let mut out = Vec::with_capacity(selected.encoded_len());
    selected.encode(&mut out);
    out
}
