//! Security descriptors of files on servers.

use smbeam_client::{DescriptorControl, SecurityDescriptor, SecurityInformation, Wait as _};

use crate::failure::Outcome;
use crate::file_path::RemotePath;

/// The parts that every user may see and copy: owner, group and DACL.
pub(crate) const PARTS: SecurityInformation = SecurityInformation(
    SecurityInformation::OWNER.0 | SecurityInformation::GROUP.0 | SecurityInformation::DACL.0,
);

/// Queries `parts` of the descriptor.
pub(crate) fn of(path: &RemotePath, parts: SecurityInformation) -> Outcome<SecurityDescriptor> {
    let found = path.share.security(&path.path, parts).wait();
    found.map_err(path.failed())
}

/// Sets `parts` of the descriptor.
pub(crate) fn set(
    path: &RemotePath,
    parts: SecurityInformation,
    descriptor: &SecurityDescriptor,
) -> Outcome {
    let descriptor = with_request(descriptor.clone());
    let set = path.share.set_security(&path.path, parts, &descriptor);
    set.wait().map_err(path.failed())
}

/// The descriptor with a request to keep AUTO_INHERITED: servers clear the flag without it.
/// \[MS-DTYP\] 2.5.3.4.2
fn with_request(mut descriptor: SecurityDescriptor) -> SecurityDescriptor {
    for (flag, request) in [
        (
            DescriptorControl::DACL_AUTO_INHERITED,
            DescriptorControl::DACL_AUTO_INHERIT_REQ,
        ),
        (
            DescriptorControl::SACL_AUTO_INHERITED,
            DescriptorControl::SACL_AUTO_INHERIT_REQ,
        ),
    ] {
        if descriptor.control.contains(flag) {
            descriptor.control |= request;
        }
    }
    descriptor
}
