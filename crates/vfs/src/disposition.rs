//! What an open comes to, once it is known whether the file is there.

use proto::file::{Existing, KindWanted, Metadata, OpenPlan};
use wire::Status;
use wire::access::AccessMask;

use crate::rights;

/// Whether a file that is there may be opened as the plan says, its rights aside.
pub(crate) fn existing(plan: &OpenPlan, file: &Metadata) -> Result<(), Status> {
    if plan.existing == Existing::Create {
        return Err(Status::OBJECT_NAME_COLLISION);
    }
    match plan.kind {
        KindWanted::File if file.is_directory() => Err(Status::FILE_IS_A_DIRECTORY),
        KindWanted::Directory if !file.is_directory() => Err(Status::NOT_A_DIRECTORY),
        KindWanted::Any | KindWanted::File | KindWanted::Directory => Ok(()),
    }
}

/// The rights on a file that the plan would make; whoever makes it has all that there are.
pub(crate) fn absent(plan: &OpenPlan) -> Result<AccessMask, Status> {
    if plan.existing == Existing::Open {
        return Err(Status::OBJECT_NAME_NOT_FOUND);
    }
    let new = Metadata::default();
    rights::grant(rights::FULL, plan.access, plan.implied_access, &new)
}
