//! Decisions of an open that depend on whether the file exists.

use proto::file::{Existing, KindWanted, Metadata, OpenPlan};
use wire::Status;
use wire::access::AccessMask;

use crate::rights;

/// Checks that the plan allows an existing file of this kind. Access rights are not checked.
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

/// Checks that the plan allows the creation of the file. Returns the granted rights: the creator
/// has all rights.
pub(crate) fn absent(plan: &OpenPlan) -> Result<AccessMask, Status> {
    if plan.existing == Existing::Open {
        return Err(Status::OBJECT_NAME_NOT_FOUND);
    }
    let new = Metadata::default();
    rights::grant(rights::FULL, plan.access, plan.implied_access, &new)
}
