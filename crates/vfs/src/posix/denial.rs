//! Finds the file or directory with the Unix permissions or the descriptor that refuse an access.
//!
//! The server looks up the path with its own credentials, then asks the kernel for the permissions
//! of the user on each directory of the path and on the file. So access control lists count too.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use proto::file::FileKind;
use proto::path::SharePath;
use proto::report::NeededAccess;
use proto::token::Token;
use wire::Status;
use wire::access::AccessMask;

use super::Posix;
use super::directory::{Parent, Run};
use super::file_ref::FileRef;
use super::open::with_kernel_permissions;
use super::security::owners;
use super::stat::{Stat, kind_of};
use crate::rights::{Permissions, STICKY};
use crate::{Denial, DescriptorDenial, Effort, Permission, Step, Stop, identity};

/// Rights that need the permission to read.
const READS: AccessMask = AccessMask(AccessMask::FILE_READ_DATA.0 | AccessMask::FILE_READ_EA.0);
/// Rights that need the permission to write.
const WRITES: AccessMask = AccessMask(
    AccessMask::FILE_WRITE_DATA.0
        | AccessMask::FILE_APPEND_DATA.0
        | AccessMask::FILE_WRITE_EA.0
        | AccessMask::FILE_DELETE_CHILD.0,
);
/// Rights of the owner.
const OWNS: AccessMask = AccessMask(AccessMask::WRITE_DAC.0 | AccessMask::WRITE_OWNER.0);

/// A file or directory that the server has found.
struct Found<'a> {
    path: &'a SharePath,
    fd: &'a OwnedFd,
    stat: &'a Stat,
}

impl Posix {
    /// See [`FileSystem::find_denial`](crate::FileSystem::find_denial).
    pub(super) fn denial(
        &self,
        token: &Arc<Token>,
        needs: &[(SharePath, NeededAccess)],
    ) -> Option<Denial> {
        let own = identity::process_token();
        identity::own().ok()?;
        let root = self.root(&own, Effort::Blocking).ok()?;
        let run = Run {
            token: &own,
            user: token,
            root: &root,
            effort: Effort::Blocking,
            is_exact: false,
        };
        // With a service account, the permissions of that account apply.
        let token = &Arc::clone(self.credentials(token));
        let denials = needs
            .iter()
            .filter_map(|(path, access)| self.denial_of(token, path, *access, run).ok());
        let denials: Vec<Denial> = denials.collect();
        let refusing = denials.iter().find(|denial| denial.missing.is_some());
        refusing.or(denials.last()).cloned()
    }

    fn denial_of(
        &self,
        token: &Arc<Token>,
        path: &SharePath,
        access: NeededAccess,
        run: Run<'_>,
    ) -> Step<Denial> {
        let mut parent = self.directory(&SharePath::root(), run)?;
        for name in path.parent().components() {
            if let Some(denial) = refusal(token, &Found::directory(&parent), Permission::Search) {
                return Ok(denial);
            }
            parent = match self.directory(&parent.path.join(name), run) {
                // The server is not root: it has the permissions of the user.
                Err(Stop::Failed(Status::ACCESS_DENIED)) => {
                    return Ok(Found::directory(&parent).denial(Some(Permission::Search)));
                }
                found => found?,
            };
        }
        let directory = Found::directory(&parent);
        if path.is_root() {
            let denial = self.descriptor_denial(&directory, None, access, run);
            return Ok(denial.unwrap_or_else(|| denial_on(token, &directory, None, access)));
        }
        if let Some(denial) = refusal(token, &directory, Permission::Search) {
            return Ok(denial);
        }
        match self.entry(&parent.directory, path.name(), run)? {
            Some(entry) => {
                let path = parent.path.join(&entry.name);
                let found = Found {
                    path: &path,
                    fd: &entry.fd,
                    stat: &entry.stat,
                };
                let denial = self.descriptor_denial(&found, Some(&directory), access, run);
                Ok(denial.unwrap_or_else(|| denial_on(token, &found, Some(&directory), access)))
            }
            None => {
                let add = NeededAccess::Add;
                let denial = self.descriptor_denial(&directory, None, add, run);
                let denial = denial.or_else(|| change_denial(token, &directory, None));
                Ok(denial.unwrap_or_else(|| directory.denial(None)))
            }
        }
    }

    /// The denial if the descriptor of a file or directory refuses the access.
    fn descriptor_denial(
        &self,
        found: &Found<'_>,
        directory: Option<&Found<'_>>,
        access: NeededAccess,
        run: Run<'_>,
    ) -> Option<Denial> {
        let needed = match access {
            NeededAccess::Open(access) => access
                .without(AccessMask::MAXIMUM_ALLOWED)
                .without(AccessMask::FILE_READ_ATTRIBUTES),
            NeededAccess::Add => AccessMask::FILE_ADD_FILE,
            NeededAccess::Remove => AccessMask::DELETE,
        };
        let mut denial = self.refused_rights(found, needed, run)?;
        // The directory may grant the deletion of its entries.
        let deletes = directory.filter(|_| denial.rights.contains(AccessMask::DELETE));
        let refused = deletes
            .map(|directory| self.refused_rights(directory, AccessMask::FILE_DELETE_CHILD, run));
        if refused.is_some_and(|refused| refused.is_none()) {
            denial.rights = denial.rights.without(AccessMask::DELETE);
        }
        (!denial.rights.is_empty()).then(|| Denial {
            by_descriptor: Some(denial),
            ..found.denial(None)
        })
    }

    /// The rights that the deciding descriptor of a file does not grant to the user.
    fn refused_rights(
        &self,
        found: &Found<'_>,
        needed: AccessMask,
        run: Run<'_>,
    ) -> Option<DescriptorDenial> {
        let user = identity::effective(run.user);
        let near = &run.root.volume;
        let file = FileRef {
            fd: found.fd,
            volume: &self.volumes.find(found.fd, found.stat, near, run.token),
            is_path: true,
            token: run.token,
            may_set_attributes: false,
        };
        let metadata = self.metadata_with(file.volume, found.stat, None, "");
        let descriptor = self.deciding_descriptor(file, &metadata)?;
        let owners = owners(&metadata);
        let rights = needed.without(self.granted(&descriptor, &user, owners));
        if user.is_root() || rights.is_empty() {
            return None;
        }
        let entry = self.first_denial(&descriptor, &user, owners, rights);
        Some(DescriptorDenial { rights, entry })
    }
}

/// The permission that the access to an existing file lacks.
fn denial_on(
    token: &Arc<Token>,
    file: &Found<'_>,
    directory: Option<&Found<'_>>,
    access: NeededAccess,
) -> Denial {
    let removes = match access {
        NeededAccess::Open(access) => {
            let missing = needed(access, kind_of(file.stat))
                .into_iter()
                .flatten()
                .find_map(|permission| refusal(token, file, permission));
            if let Some(denial) = missing {
                return denial;
            }
            access.contains(AccessMask::DELETE)
        }
        NeededAccess::Add | NeededAccess::Remove => true,
    };
    let change = directory
        .filter(|_| removes)
        .and_then(|directory| change_denial(token, directory, Some(file.stat)));
    change.unwrap_or_else(|| file.denial(None))
}

/// The permissions that rights on a file need, in the order of the check.
fn needed(access: AccessMask, kind: FileKind) -> [Option<Permission>; 4] {
    let when = |is_needed: bool, permission| is_needed.then_some(permission);
    let executes = access.contains(AccessMask::FILE_EXECUTE);
    let is_directory = kind == FileKind::Directory;
    [
        when(
            access.intersects(READS) || executes && !is_directory,
            Permission::Read,
        ),
        when(executes && is_directory, Permission::Search),
        when(access.intersects(WRITES), Permission::Write),
        when(access.intersects(OWNS), Permission::Ownership),
    ]
}

/// The permission that a change of the names in a directory lacks. `file` has the name.
fn change_denial(token: &Arc<Token>, directory: &Found<'_>, file: Option<&Stat>) -> Option<Denial> {
    let missing = refusal(token, directory, Permission::Write);
    if missing.is_some() {
        return missing;
    }
    let is_sticky = u32::from(directory.stat.0.stx_mode) & STICKY != 0;
    let is_owner = file.is_none_or(|file| owns(token, file)) || owns(token, directory.stat);
    (is_sticky && !is_owner).then(|| directory.denial(Some(Permission::Ownership)))
}

fn owns(token: &Token, file: &Stat) -> bool {
    token.is_root() || token.uid == file.0.stx_uid
}

/// The denial if the user of a token lacks a permission on a file or directory.
fn refusal(token: &Arc<Token>, found: &Found<'_>, permission: Permission) -> Option<Denial> {
    let has = permissions(token, found.fd)?;
    let is_missing = match permission {
        Permission::Search => !has.execute,
        Permission::Read => !has.read,
        Permission::Write => !has.write,
        Permission::Ownership => !owns(&identity::effective(token), found.stat),
    };
    is_missing.then(|| found.denial(Some(permission)))
}

/// The permissions that the kernel grants to the user of a token.
fn permissions(token: &Arc<Token>, fd: &OwnedFd) -> Option<Permissions> {
    identity::assume(token).ok()?;
    let has = with_kernel_permissions(fd, Permissions::default());
    identity::own().ok()?;
    Some(has)
}

impl<'a> Found<'a> {
    fn directory(parent: &'a Parent) -> Self {
        Self {
            path: &parent.path,
            fd: &parent.directory.fd,
            stat: &parent.stat,
        }
    }

    fn denial(&self, missing: Option<Permission>) -> Denial {
        Denial {
            path: self.path.clone(),
            missing,
            by_descriptor: None,
            mode: self.stat.0.stx_mode.into(),
            uid: self.stat.0.stx_uid,
            gid: self.stat.0.stx_gid,
        }
    }
}
