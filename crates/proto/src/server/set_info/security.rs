//! Changes of the security descriptor. \[MS-SMB2\] 3.3.5.21.3

use alloc::boxed::Box;
use alloc::sync::Arc;

use wire::Status;
use wire::access::AccessMask;
use wire::query_info::SecurityInformation;
use wire::security::SecurityDescriptor;

use super::{done, wait};
use crate::file::{FileOp, Operation, SecurityChange};
use crate::server::context::{Context, Progress};
use crate::server::open::{Need, Open};

/// The parts that the server stores.
const STORED: SecurityInformation = SecurityInformation(
    SecurityInformation::OWNER.0
        | SecurityInformation::GROUP.0
        | SecurityInformation::DACL.0
        | SecurityInformation::SACL.0,
);

pub(super) fn start(
    context: &mut Context<'_>,
    open: Arc<Open>,
    parts: SecurityInformation,
    buffer: &[u8],
) -> Result<Progress<super::Step>, Status> {
    let descriptor = SecurityDescriptor::decode(buffer);
    let descriptor = descriptor.map_err(|_| Status::INVALID_SECURITY_DESCR)?;
    let parts = sent(parts, &descriptor);
    check(parts, &open)?;
    // As Windows: nothing to change is a success.
    if parts.is_empty() {
        return Ok(done());
    }
    // As Samba: a client of the SMB3 POSIX extensions changes the mode by a list of one entry.
    let mode = descriptor.to_change_of_mode().filter(|_| open.is_posix);
    if let Some(mode) = mode.filter(|_| parts == SecurityInformation::DACL) {
        let operation = Operation::SetMode { mode, mask: 0o7777 };
        let operation = FileOp::OnOpen(open.file, operation);
        return Ok(wait(context, operation, super::Step::Security(open)));
    }
    let change = Box::new(SecurityChange { parts, descriptor });
    let operation = FileOp::OnOpen(open.file, Operation::SetSecurity(change));
    Ok(wait(context, operation, super::Step::Security(open)))
}

/// The named parts that change. A missing owner or group changes nothing. A missing list becomes a
/// NULL list, also without its flag: smbtorture smb2.create.nulldacl.
fn sent(parts: SecurityInformation, descriptor: &SecurityDescriptor) -> SecurityInformation {
    let mut parts = parts & STORED;
    if descriptor.owner.is_none() {
        parts = parts.without(SecurityInformation::OWNER);
    }
    if descriptor.group.is_none() {
        parts = parts.without(SecurityInformation::GROUP);
    }
    parts
}

/// Checks the rights that the parts need. A SACL needs WRITE_DAC in addition to
/// ACCESS_SYSTEM_SECURITY, as in Windows and Samba: smbtorture3 SMB2-SACL.
fn check(parts: SecurityInformation, open: &Open) -> Result<(), Status> {
    let owners = SecurityInformation::OWNER | SecurityInformation::GROUP;
    if parts.intersects(owners) {
        open.authorize(Need::Right(AccessMask::WRITE_OWNER))?;
    }
    if parts.intersects(SecurityInformation::DACL | SecurityInformation::SACL) {
        open.authorize(Need::Right(AccessMask::WRITE_DAC))?;
    }
    if parts.contains(SecurityInformation::SACL) {
        open.authorize(Need::Right(AccessMask::ACCESS_SYSTEM_SECURITY))?;
    }
    Ok(())
}
