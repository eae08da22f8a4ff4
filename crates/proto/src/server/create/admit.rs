//! Checks that need the opened file. \[MS-FSA\] 2.1.5.1.2

use wire::Status;
use wire::access::{AccessMask, CreateOptions, FileAttributes};

use super::wanted::Wanted;
use crate::file::{FileOp, Opened, Operation};
use crate::server::context::Context;
use crate::server::fsa::Sharing;
use crate::server::tree::TreeConnect;

/// Rights that no open of a READONLY file gets.
const WRITES_DATA: AccessMask =
    AccessMask(AccessMask::FILE_WRITE_DATA.0 | AccessMask::FILE_APPEND_DATA.0);
/// Rights that MAXIMUM_ALLOWED does not give on a READONLY file: a file has no children to delete.
/// \[MS-FSA\] 2.1.5.1.2.1, smbtorture smb2.maximum_allowed.read_only_file
const WRITES_ANYTHING: AccessMask = AccessMask(WRITES_DATA.0 | AccessMask::FILE_DELETE_CHILD.0);

/// Checks whether the file may stay open, and returns the granted rights.
pub(super) fn admit(
    wanted: &Wanted,
    opened: &Opened,
    tree: &TreeConnect,
) -> Result<AccessMask, Status> {
    let mut granted = opened.granted.without(AccessMask::MAXIMUM_ALLOWED) & tree.maximal_access;
    // DOS attributes mean nothing to clients of the SMB3 POSIX extensions, as with Samba.
    if !opened.created && !wanted.is_posix() {
        check_existing(wanted, opened)?;
        granted = without_writes_to_readonly(wanted, opened, granted)?;
    }
    if wanted.options.contains(CreateOptions::DELETE_ON_CLOSE) {
        check_delete(wanted, opened, granted)?;
    }
    Ok(granted)
}

fn check_existing(wanted: &Wanted, opened: &Opened) -> Result<(), Status> {
    if !wanted.overwrites() {
        return Ok(());
    }
    if opened.metadata.is_directory() {
        // Windows says this where NON_DIRECTORY_FILE is not given; with it the file system has
        // said FILE_IS_A_DIRECTORY.
        return Err(Status::INVALID_PARAMETER);
    }
    // [MS-FSA] 2.1.5.1.2.1: an overwrite must not make a file visible. One that is hidden for its
    // name stays so: Samba, too, looks only at what it keeps.
    let veiled = FileAttributes::HIDDEN | FileAttributes::SYSTEM;
    if !wanted.attributes.contains(opened.metadata.stored & veiled) {
        return Err(Status::ACCESS_DENIED);
    }
    Ok(())
}

/// READONLY forbids to write to a file that is there, not to the open that makes it. Of a
/// directory it forbids nothing. \[MS-FSA\] 2.1.5.1.2.1
fn without_writes_to_readonly(
    wanted: &Wanted,
    opened: &Opened,
    granted: AccessMask,
) -> Result<AccessMask, Status> {
    let attributes = opened.metadata.attributes;
    if opened.metadata.is_directory() || !attributes.contains(FileAttributes::READONLY) {
        return Ok(granted);
    }
    if wanted.overwrites() || wanted.access.intersects(WRITES_DATA) {
        return Err(Status::ACCESS_DENIED);
    }
    // The remaining rights come from MAXIMUM_ALLOWED.
    let unasked = WRITES_ANYTHING.without(wanted.access);
    Ok(granted.without(unasked))
}

fn check_delete(wanted: &Wanted, opened: &Opened, granted: AccessMask) -> Result<(), Status> {
    if !granted.contains(AccessMask::DELETE) {
        return Err(Status::ACCESS_DENIED);
    }
    let attributes = if opened.created {
        wanted.attributes
    } else {
        opened.metadata.attributes
    };
    let is_protected = !opened.metadata.is_directory() && !wanted.is_posix();
    if is_protected && attributes.contains(FileAttributes::READONLY) {
        return Err(Status::CANNOT_DELETE);
    }
    Ok(())
}

/// The access and share mode of the open.
pub(super) fn sharing(wanted: &Wanted, granted: AccessMask) -> Sharing {
    Sharing {
        access: granted,
        share: wanted.share_access,
        is_posix: wanted.is_posix(),
    }
}

/// The access and share mode during the CREATE: an overwrite writes.
pub(super) fn checked_sharing(wanted: &Wanted, granted: AccessMask) -> Sharing {
    sharing(wanted, granted | wanted.implied_access())
}

/// Closes what may not stay open. A file that was made for it goes again: it was refused for what
/// the request asked, not for what another client did.
pub(super) fn discard(context: &mut Context<'_>, wanted: &Wanted, opened: &Opened) {
    let is_ours = opened.created && !wanted.path.is_root();
    if is_ours && !context.server.files.is_open(opened.metadata.key) {
        context.run(FileOp::OnOpen(
            opened.file,
            Operation::Unlink {
                path: opened.path.clone(),
            },
        ));
    }
    context.run(FileOp::OnOpen(opened.file, Operation::Close));
}
