//! Security descriptors of files on servers.

use smbeam_client::{DescriptorControl, SecurityDescriptor, SecurityInformation, Wait as _};

use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::file_path::RemotePath;

/// The parts that every user may see and copy: owner, group and DACL.
pub(crate) const PARTS: SecurityInformation = SecurityInformation(
    SecurityInformation::OWNER.0 | SecurityInformation::GROUP.0 | SecurityInformation::DACL.0,
);

/// Checks that the server keeps access control lists of the file.
///
/// # Errors
/// It does not, or does not report it.
pub(crate) fn check(path: &RemotePath) -> Outcome {
    let volume = path.share.volume_of(&path.path).wait();
    let volume = volume.map_err(path.failed())?;
    match volume.keeps_access_lists {
        true => Ok(()),
        false => {
            let reason = "the server keeps no access control lists for this file system";
            Err(Failure::new(Exit::Failed, path, reason))
        }
    }
}

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
