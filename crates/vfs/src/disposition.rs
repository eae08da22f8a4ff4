//! Decisions of an open that depend on whether the file exists.

use proto::file::{Existing, FileKind, KindWanted, Metadata, OpenPlan};
use wire::Status;
use wire::access::AccessMask;
use wire::reparse::ReparseTag;

use crate::rights;

/// Checks that the plan allows an existing file of this kind. Access rights are not checked.
///
/// A reparse point that the plan does not name comes before its kind and its access rights: the
/// open is for the target. A link to a directory may itself be a file. \[MS-FSA\] 2.1.5.1
pub(crate) fn existing(plan: &OpenPlan, file: &Metadata) -> Result<(), Status> {
    if plan.existing == Existing::Create {
        return Err(Status::OBJECT_NAME_COLLISION);
    }
    if !plan.open_link && file.reparse_tag != ReparseTag::NONE {
        return Err(match file.kind {
            FileKind::File | FileKind::Directory => Status::STOPPED_ON_SYMLINK,
            // Only the client can interpret them.
            FileKind::Link | FileKind::Special => Status::IO_REPARSE_TAG_NOT_HANDLED,
        });
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
