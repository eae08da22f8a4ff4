//! Access rights of opens to files with a stored security descriptor, and the descriptors of new
//! files.
//!
//! The descriptor decides about all rights. The kernel decides again about the data and the names:
//! it opens the file and changes the directory with the user's credentials. DELETE also needs the
//! permission to remove the name from the directory, so that an open fails instead of the deletion
//! later. Root has all rights, as in Samba.
//!
//! With a service account, the kernel decides about the access of that account only. Descriptors
//! then decide alone, also about changes of names. A file without a stored one has one that stands
//! for its permissions. Every user may pass through directories, as on Windows.

use std::os::fd::OwnedFd;
use std::sync::Arc;

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
    /// Decides about an open by a descriptor. `None` if the permissions of Unix decide: there is no
    /// stored descriptor, or the user is root.
    pub(super) fn decide(
        &self,
        plan: &OpenPlan,
        subject: Subject<'_>,
        run: Run<'_>,
    ) -> Option<Decided> {
        let token = identity::effective(run.user);
        if token.is_root() {
            return None;
        }
        let Subject { file, metadata, .. } = subject;
        let descriptor = self.deciding_descriptor(file, metadata)?;
        let mut maximal = self.granted(&descriptor, &token, owners(metadata));
        if self.shows_attributes(subject, &token) {
            maximal |= AccessMask::FILE_READ_ATTRIBUTES;
        }
        if !maximal.contains(AccessMask::DELETE) && self.deletes_child(subject, &token) {
            maximal |= AccessMask::DELETE;
        }
        if !subject.may_remove {
            maximal = maximal.without(AccessMask::DELETE);
        }
        let (asked, implied) = (plan.access, plan.implied_access);
        let granted = rights::grant(maximal, asked, implied, metadata);
        let is_maximum = asked.contains(AccessMask::MAXIMUM_ALLOWED);
        let credentials = identity::effective(run.token);
        let granted = match is_maximum {
            true => granted.map(|granted| {
                let refused = refused_by_kernel(file.fd, metadata, &credentials);
                granted.without(refused.without(asked))
            }),
            false => granted,
        };
        Some(Decided { granted, maximal })
    }

    /// The descriptor that decides about a file: a stored one; with a service account, any.
    pub(super) fn deciding_descriptor(
        &self,
        file: FileRef<'_>,
        metadata: &Metadata,
    ) -> Option<SecurityDescriptor> {
        match self.has_service_account() {
            true => Some(self.descriptor_of(file, metadata)),
            false => self.stored_descriptor(file, metadata),
        }
    }

    /// The rights that the deciding descriptor of a directory grants; `None` if permissions decide.
    fn granted_by(&self, directory: FileRef<'_>, token: &Token) -> Option<AccessMask> {
        let metadata = self.current(directory).ok()?;
        let descriptor = self.deciding_descriptor(directory, &metadata)?;
        Some(self.granted(&descriptor, token, owners(&metadata)))
    }

    /// Whether the user may read the attributes of a file because it may use or list the directory.
    /// \[MS-FSA\] 2.1.5.1.2.1. The kernel has checked the use; with a service account, the list of
    /// the directory decides.
    fn shows_attributes(&self, subject: Subject<'_>, token: &Token) -> bool {
        if !self.has_service_account() {
            return true;
        }
        let granted = |parent| self.granted_by(parent, token);
        let granted = subject.parent.and_then(granted);
        granted.is_some_and(|granted| granted.contains(AccessMask::FILE_LIST_DIRECTORY))
    }

    /// Whether the descriptor of the directory grants the right to delete its entries. Without a
    /// stored one the permissions decide.
    fn deletes_child(&self, subject: Subject<'_>, token: &Token) -> bool {
        let by_permissions = subject.may_remove && !self.has_service_account();
        let Some(parent) = subject.parent else {
            return by_permissions;
        };
        let granted = self.granted_by(parent, token);
        granted.map_or(by_permissions, |granted| {
            granted.contains(AccessMask::FILE_DELETE_CHILD)
        })
    }

    /// Checks that the user may replace a file in a directory. The kernel does so for the
    /// credentials of the thread, so only a service account needs it.
    ///
    /// # Errors
    /// ACCESS_DENIED if neither the file nor the directory lets the user delete the file.
    pub(super) fn check_replaced(
        &self,
        file: FileRef<'_>,
        parent: &Parent,
        run: Run<'_>,
    ) -> Step<()> {
        let token = identity::effective(run.user);
        if !self.has_service_account() || token.is_root() {
            return Ok(());
        }
        let grants = |file, right| {
            let granted = self.granted_by(file, &token);
            granted.is_some_and(|granted| granted.contains(right))
        };
        let directory = directory_of(parent, run);
        let may_delete =
            grants(file, AccessMask::DELETE) || grants(directory, AccessMask::FILE_DELETE_CHILD);
        match may_delete {
            true => Ok(()),
            false => Err(Status::ACCESS_DENIED.into()),
        }
    }

    /// Whether access-based enumeration shows a file to the user.
    pub(super) fn is_listed(&self, file: FileRef<'_>, stat: &Stat, user: &Arc<Token>) -> bool {
        let token = identity::effective(user);
        if token.is_root() {
            return true;
        }
        let metadata = self.metadata_with(file.volume, stat, None, "");
        match self.deciding_descriptor(file, &metadata) {
            Some(descriptor) => {
                let granted = self.granted(&descriptor, &token, owners(&metadata));
                granted.contains(LISTED)
            }
            None => {
                let has = Permissions::of(&token, &metadata);
                has.read || with_kernel_permissions(file.fd, has).read
            }
        }
    }

    /// The deciding descriptor of the directory of a new name. `is_directory`: the name is that of
    /// a directory.
    ///
    /// # Errors
    /// ACCESS_DENIED if the descriptor does not let the user add the name.
    pub(super) fn parent_descriptor(
        &self,
        is_directory: bool,
        parent: &Parent,
        run: Run<'_>,
    ) -> Step<Option<SecurityDescriptor>> {
        let directory = directory_of(parent, run);
        let metadata = self.metadata_with(directory.volume, &parent.stat, None, "");
        let Some(descriptor) = self.deciding_descriptor(directory, &metadata) else {
            return Ok(None);
        };
        let token = identity::effective(run.user);
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
        run: Run<'_>,
    ) -> Step<Option<SecurityDescriptor>> {
        let mut result = None;
        if let Some(parent) = parent {
            let creator = self.creator(file, run)?;
            let is_directory = plan.kind == KindWanted::Directory;
            let inherited = security::inherited(parent, creator, is_directory)?;
            if self.has_service_account() {
                let own = security::with_default_list(inherited, creator);
                let metadata = self.current(file)?;
                self.store_descriptor(file, &own, &metadata)?;
                result = Some(own);
            } else if let Some(inherited) = inherited {
                let change = security::change_of_inherited(inherited);
                result = Some(self.change_security(file, &change, run)?);
            }
        }
        if let Some(sent) = &plan.security {
            let change = security::change_of_new(sent);
            if !change.parts.is_empty() {
                result = Some(self.change_security(file, &change, run)?);
            }
        }
        Ok(result)
    }

    /// The owner and the group of a new file: those of Unix; with a service account, the user and
    /// its primary group.
    fn creator(&self, file: FileRef<'_>, run: Run<'_>) -> Step<Creator> {
        let (uid, gid) = match self.has_service_account() {
            true => {
                let user = identity::effective(run.user);
                (user.uid, user.gid)
            }
            false => {
                let Metadata { uid, gid, .. } = self.current(file)?;
                (uid, gid)
            }
        };
        let shown = |account: UnixAccount| {
            let shown = self.accounts.shown(account);
            shown.unwrap_or(account.unix_sid())
        };
        Ok(Creator {
            owner: shown(UnixAccount::User(uid)),
            group: shown(UnixAccount::Group(gid)),
        })
    }
}

fn directory_of<'a>(parent: &'a Parent, run: Run<'a>) -> FileRef<'a> {
    FileRef {
        fd: &parent.directory.fd,
        volume: &parent.directory.volume,
        is_path: true,
        token: run.token,
        may_set_attributes: false,
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
