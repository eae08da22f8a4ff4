//! Access rights of opens to files with a stored security descriptor, and the descriptors of new
//! files.
//!
//! The descriptor decides about all rights. The kernel decides again about the data and the names:
//! it opens the file and changes the directory with the user's credentials. DELETE also needs the
//! permission to remove the name from the directory, so that an open fails instead of the deletion
//! later. Root has all rights, as in Samba.

use std::os::fd::OwnedFd;

use proto::file::{KindWanted, Metadata, OpenPlan};
use proto::token::Token;
use wire::Status;
use wire::access::AccessMask;
use wire::security::SecurityDescriptor;

use super::Posix;
use super::directory::{Parent, Run};
use super::file_ref::FileRef;
use super::open::with_kernel_permissions;
use super::security::owners;
use super::stat::Stat;
use crate::accounts::UnixAccount;
use crate::rights::{self, Permissions};
use crate::security::{self, Creator};
use crate::{Step, identity};

/// The rights for which the kernel must let the user read a file or list a directory.
const READS: AccessMask = AccessMask(AccessMask::FILE_READ_DATA.0 | AccessMask::FILE_EXECUTE.0);

/// The rights without which access-based enumeration hides a file, as in Samba and Windows:
/// smbtorture smb2.acls-with-sysacl.ACCESSBASED
const LISTED: AccessMask = AccessMask(
    AccessMask::FILE_READ_DATA.0
        | AccessMask::FILE_READ_EA.0
        | AccessMask::FILE_READ_ATTRIBUTES.0
        | AccessMask::READ_CONTROL.0,
);

/// The rights that a stored descriptor grants to an open.
pub(super) struct Decided {
    pub(super) granted: Result<AccessMask, Status>,
    pub(super) maximal: AccessMask,
}

/// The file that an open is for.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) file: FileRef<'a>,
    pub(super) metadata: &'a Metadata,
    /// The directory of the name; `None` for the root of the share.
    pub(super) parent: Option<FileRef<'a>>,
    /// Whether the permissions of the directory let the user remove the name.
    pub(super) may_remove: bool,
}

impl Posix {
    /// Decides about an open of a file with a stored descriptor. `None` if the permissions of Unix
    /// decide: there is no descriptor, or the user is root.
    pub(super) fn decide(&self, plan: &OpenPlan, subject: Subject<'_>) -> Option<Decided> {
        let token = identity::effective(&plan.token);
        if token.is_root() {
            return None;
        }
        let Subject { file, metadata, .. } = subject;
        let descriptor = self.stored_descriptor(file, metadata)?;
        let mut maximal = self.granted(&descriptor, &token, owners(metadata));
        // A user that may use the directory may read the attributes. [MS-FSA] 2.1.5.1.2.1
        maximal |= AccessMask::FILE_READ_ATTRIBUTES;
        if !maximal.contains(AccessMask::DELETE) && self.deletes_child(subject, &token) {
            maximal |= AccessMask::DELETE;
        }
        if !subject.may_remove {
            maximal = maximal.without(AccessMask::DELETE);
        }
        let (asked, implied) = (plan.access, plan.implied_access);
        let granted = rights::grant(maximal, asked, implied, metadata);
        let is_maximum = asked.contains(AccessMask::MAXIMUM_ALLOWED);
        let granted = match is_maximum {
            true => granted.map(|granted| {
                let refused = refused_by_kernel(file.fd, metadata, &token);
                granted.without(refused.without(asked))
            }),
            false => granted,
        };
        Some(Decided { granted, maximal })
    }

    /// Whether the descriptor of the directory grants the right to delete its entries. Without a
    /// stored one the permissions decide.
    fn deletes_child(&self, subject: Subject<'_>, token: &Token) -> bool {
        let Some(parent) = subject.parent else {
            return subject.may_remove;
        };
        let granted = || {
            let metadata = self.current(parent).ok()?;
            let descriptor = self.stored_descriptor(parent, &metadata)?;
            Some(self.granted(&descriptor, token, owners(&metadata)))
        };
        granted().map_or(subject.may_remove, |granted| {
            granted.contains(AccessMask::FILE_DELETE_CHILD)
        })
    }

    /// Whether access-based enumeration shows a file to the user.
    pub(super) fn is_listed(&self, file: FileRef<'_>, stat: &Stat) -> bool {
        let token = identity::effective(file.token);
        if token.is_root() {
            return true;
        }
        let metadata = self.metadata_with(file.volume, stat, None, "");
        match self.stored_descriptor(file, &metadata) {
            Some(descriptor) => self
                .granted(&descriptor, &token, owners(&metadata))
                .contains(LISTED),
            None => {
                let has = Permissions::of(&token, &metadata);
                has.read || with_kernel_permissions(file.fd, has).read
            }
        }
    }

    /// The stored descriptor of the directory of a new name. `is_directory`: the name is that of a
    /// directory.
    ///
    /// # Errors
    /// ACCESS_DENIED if the descriptor does not let the user add the name.
    pub(super) fn parent_descriptor(
        &self,
        is_directory: bool,
        parent: &Parent,
        run: Run<'_>,
    ) -> Step<Option<SecurityDescriptor>> {
        let directory = FileRef {
            fd: &parent.directory.fd,
            volume: &parent.directory.volume,
            is_path: true,
            token: run.token,
            may_set_attributes: false,
        };
        let metadata = self.metadata_with(directory.volume, &parent.stat, None, "");
        let Some(descriptor) = self.stored_descriptor(directory, &metadata) else {
            return Ok(None);
        };
        let token = identity::effective(run.token);
        let needed = match is_directory {
            true => AccessMask::FILE_ADD_SUBDIRECTORY,
            false => AccessMask::FILE_ADD_FILE,
        };
        let granted = self.granted(&descriptor, &token, owners(&metadata));
        if !token.is_root() && !granted.contains(needed) {
            return Err(Status::ACCESS_DENIED.into());
        }
        Ok(Some(descriptor))
    }

    /// Gives a new file the descriptor that it inherits and that the client sent. Returns it;
    /// `None` if the permissions of Unix decide about the file.
    pub(super) fn secure(
        &self,
        plan: &OpenPlan,
        file: FileRef<'_>,
        parent: Option<&SecurityDescriptor>,
    ) -> Step<Option<SecurityDescriptor>> {
        let mut result = None;
        if let Some(parent) = parent {
            let Metadata { uid, gid, .. } = self.current(file)?;
            let shown = |account: UnixAccount| {
                let shown = self.accounts.shown(account);
                shown.unwrap_or(account.unix_sid())
            };
            let creator = Creator {
                owner: shown(UnixAccount::User(uid)),
                group: shown(UnixAccount::Group(gid)),
            };
            let is_directory = plan.kind == KindWanted::Directory;
            if let Some(inherited) = security::inherited(parent, creator, is_directory)? {
                let change = security::change_of_inherited(inherited);
                result = Some(self.change_security(file, &change)?);
            }
        }
        if let Some(sent) = &plan.security {
            let change = security::change_of_new(sent);
            if !change.parts.is_empty() {
                result = Some(self.change_security(file, &change)?);
            }
        }
        Ok(result)
    }
}

/// The rights to data that the kernel refuses to a user. A client that asks for all rights gets
/// the others.
fn refused_by_kernel(fd: &OwnedFd, metadata: &Metadata, token: &Token) -> AccessMask {
    let has = with_kernel_permissions(fd, Permissions::of(token, metadata));
    let mut refused = AccessMask::NONE;
    if !has.read {
        refused |= match metadata.is_directory() {
            true => AccessMask::FILE_LIST_DIRECTORY,
            false => READS,
        };
    }
    if !has.write {
        refused |= rights::WRITE_DATA;
    }
    refused
}
