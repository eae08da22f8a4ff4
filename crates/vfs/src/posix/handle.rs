//! File handles: opening a file again independently of its name. name_to_handle_at(2)
//!
//! A handle only finds the current name of the file. The file itself is then opened by that name,
//! beneath the root of the share and with the rights of the token, as in any other open. So a
//! handle never leads out of the share.
//!
//! The file of a handle of another file system than the root's is opened by its last known name.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use proto::file::{Existing, FileHandle, KindWanted, OpenPlan, Opened, ReopenPlan};
use proto::path::SharePath;
use rustix::fs::{Mode, OFlags, openat, readlink};
use wire::Status;
use wire::access::{AccessMask, FileAttributes};
use wire::file_name::NameMapping;

use super::Posix;
use super::directory::Directory;
use super::file::OpenFile;
use super::lasting_handle::{self, lasting_handle};
use super::mapping::wire_path;
use super::stat::by_descriptor;
use crate::errno::{Context, status};
use crate::{Effort, Step, Stop, identity};

/// Returns the handle of an open file.
pub(super) fn read(file: &OpenFile) -> Step<FileHandle> {
    let bytes = lasting_handle(&file.fd, &file.volume);
    Ok(FileHandle(bytes.map_err(|error| handle_status(&error))?))
}

impl Posix {
    /// Opens a file by its handle. Reads the disk, because the kernel may have to load the inode.
    pub(super) fn reopen_by_handle(&self, plan: &ReopenPlan, effort: Effort) -> Step<Opened> {
        if plan.share != self.share {
            return Err(Status::INVALID_PARAMETER.into());
        }
        if effort == Effort::Cached {
            return Err(Stop::WouldBlock);
        }
        let token = self.credentials(&plan.token);
        identity::assume(token)?;
        let root = self.root(token, effort)?;
        let path = path_of(&root, self.options.names, &plan.handle)?;
        let open = OpenPlan {
            share: plan.share,
            token: plan.token.clone(),
            path: path.unwrap_or_else(|| plan.path.clone()),
            access: plan.access,
            implied_access: AccessMask::NONE,
            existing: Existing::Open,
            kind: KindWanted::Any,
            attributes: FileAttributes::NONE,
            allocation: 0,
            security: None,
            open_link: true,
            posix: None,
        };
        let opened = self.open(&open, effort)?;
        let file = self.file(opened.file)?;
        if read(&file) == Ok(plan.handle.clone()) {
            return Ok(opened);
        }
        // Another file has the name now.
        drop(file);
        self.close(opened.file, effort)?;
        Err(Status::OBJECT_NAME_NOT_FOUND.into())
    }
}

/// Returns the current name of the file with this handle. `None` if the server lacks
/// CAP_DAC_READ_SEARCH, if the file is on another file system than the root, or if the kernel does
/// not know a name beneath the root of the share.
fn path_of(root: &Directory, names: NameMapping, handle: &FileHandle) -> Step<Option<SharePath>> {
    let (serial, handle) = lasting_handle::parts(&handle.0).ok_or(Status::OBJECT_NAME_NOT_FOUND)?;
    if serial != root.volume.id.serial {
        return Ok(None);
    }
    identity::own()?;
    // open_by_handle_at(2) refuses O_PATH descriptors of the mount.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mount = openat(&root.fd, ".", flags, Mode::empty());
    let mount = mount.map_err(|errno| status(errno, Context::Open))?;
    let file = match ring::open_by_handle(mount.as_fd(), handle) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(None),
        Err(error) => return Err(handle_status(&error).into()),
    };
    let (Some(root), Some(path)) = (path_in_mount(&root.fd), path_in_mount(&file)) else {
        return Ok(None);
    };
    let below = path.strip_prefix(&*root);
    let below = below.and_then(|below| match root.ends_with(b"/") {
        true => Some(below),
        false => below.strip_prefix(b"/"),
    });
    Ok(below.and_then(|below| wire_path(names, below)))
}

/// Returns the path of an open file as the kernel knows it.
fn path_in_mount(file: &OwnedFd) -> Option<Vec<u8>> {
    let path = readlink(by_descriptor(file), Vec::new()).ok()?;
    Some(path.into_bytes())
}

/// Converts an error of the handle calls. ESTALE and EINVAL mean that the file was deleted or that
/// the handle belongs to another file system.
fn handle_status(error: &io::Error) -> Status {
    match error.raw_os_error() {
        Some(libc::ESTALE | libc::EINVAL) => Status::OBJECT_NAME_NOT_FOUND,
        Some(libc::EOPNOTSUPP | libc::ENOSYS) => Status::NOT_SUPPORTED,
        Some(errno) => status(rustix::io::Errno::from_raw_os_error(errno), Context::Open),
        None => Status::OBJECT_NAME_NOT_FOUND,
    }
}
