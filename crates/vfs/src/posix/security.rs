//! Security descriptors of files.
//!
//! A descriptor is stored in an extended attribute in Samba's format, together with a hash of
//! owner, group, mode and access control lists. If a local program changes those later, the hash no
//! longer fits and the stored descriptor does not count any more: the permissions win. A file
//! without a stored descriptor has one that stands for its permissions.
//!
//! A new descriptor also changes owner, mode and lists, as far as they can express it. The kernel
//! still decides about each operation, so a user never exceeds its permissions.
//!
//! The server writes the attribute `security.NTACL` with its own credentials, because the kernel
//! asks for CAP_SYS_ADMIN. Without that, a share can keep descriptors in `user.NTACL`.

use proto::file::{Metadata, Outcome, SecurityChange};
use proto::token::Token;
use rustix::fs::{AtFlags, Gid, Uid, XattrFlags, chownat};
use rustix::io::Errno;
use wire::Status;
use wire::access::AccessMask;
use wire::security::{SecurityDescriptor, SecurityInformation, Sid};

use super::Posix;
use super::directory::Run;
use super::file::OpenFile;
use super::file_ref::FileRef;
use super::stat::{as_server, or_as_server, stat};
use super::unix_owners::{is_chown, rest_of_chown};
use super::xattr;
use crate::Step;
use crate::accounts::{self, Accounts};
use crate::errno::{Context, status};
use crate::security::{
    self, ACCESS_LIST, DEFAULT_LIST, NTACL_MAX, NtAcl, Owners, Permissions, PosixAcl,
};

/// Length of the buffer for most attributes in bytes. Longer ones are read again.
const USUAL_LEN: usize = 1_024;

/// The access control lists of a file.
pub(super) struct Lists {
    access: PosixAcl,
    /// The list for new files in a directory, which may be empty; `None` for other files.
    default: Option<PosixAcl>,
}

impl Lists {
    /// Reads the lists of a file; without one, the list that stands for the mode.
    fn of(file: FileRef<'_>, metadata: &Metadata) -> Self {
        let read = |name| read_attribute(file, name).ok().flatten();
        let list = |name| PosixAcl::decode(&read(name)?);
        let default = || list(DEFAULT_LIST).unwrap_or_default();
        Self {
            access: list(ACCESS_LIST).unwrap_or_else(|| PosixAcl::of_mode(metadata.mode)),
            default: metadata.is_directory().then(default),
        }
    }

    fn fingerprint(&self, metadata: &Metadata) -> [u8; 32] {
        security::fingerprint(&Permissions {
            uid: metadata.uid,
            gid: metadata.gid,
            mode: metadata.mode,
            access: &self.access,
            default: self.default.as_ref(),
        })
    }

    fn describe(&self, metadata: &Metadata, accounts: &dyn Accounts) -> SecurityDescriptor {
        let list = security::describe(owners(metadata), &self.access, self.default.as_ref());
        accounts::with_shown_sids(accounts, &list)
    }
}

pub(super) fn owners(metadata: &Metadata) -> Owners {
    let Metadata { uid, gid, .. } = *metadata;
    Owners { uid, gid }
}

impl Posix {
    /// The stored descriptor of a file; `None` if there is none, or if the permissions have changed
    /// since it was stored.
    pub(super) fn stored_descriptor(
        &self,
        file: FileRef<'_>,
        metadata: &Metadata,
    ) -> Option<SecurityDescriptor> {
        if !self.may_have_descriptor(file, metadata) {
            return None;
        }
        let name = self.options.security_attribute.name();
        let NtAcl {
            descriptor,
            fingerprint,
        } = NtAcl::decode(&read_attribute(file, name).ok()??)?;
        let fits = self.has_service_account()
            || fingerprint.is_none_or(|stored| {
                let lists = Lists::of(file, metadata);
                stored == lists.fingerprint(metadata)
            });
        fits.then_some(descriptor)
    }

    fn may_have_descriptor(&self, file: FileRef<'_>, metadata: &Metadata) -> bool {
        use proto::file::FileKind::{Directory, File};
        file.volume.stores_attributes && matches!(metadata.kind, File | Directory)
    }

    pub(super) fn query_security(&self, file: &OpenFile) -> Step<Outcome> {
        let metadata = self.current(file.file_ref())?;
        let descriptor = self.descriptor_of(file.file_ref(), &metadata);
        Ok(Outcome::Security(Box::new(descriptor)))
    }

    /// The descriptor of a file that clients see: the stored one, else one for its permissions.
    pub(super) fn descriptor_of(
        &self,
        file: FileRef<'_>,
        metadata: &Metadata,
    ) -> SecurityDescriptor {
        let stored = self.stored_descriptor(file, metadata);
        stored.unwrap_or_else(|| Lists::of(file, metadata).describe(metadata, &*self.accounts))
    }

    /// The rights that a descriptor grants to a user. With a service account, the owner of a file
    /// in Unix is no user.
    pub(super) fn granted(
        &self,
        descriptor: &SecurityDescriptor,
        token: &Token,
        owners: Owners,
    ) -> AccessMask {
        let descriptor = accounts::with_unix_sids(&*self.accounts, descriptor);
        security::granted(&descriptor, token, self.counting(owners))
    }

    /// The entry that denies rights to a user. See [`security::first_denial`].
    pub(super) fn first_denial(
        &self,
        descriptor: &SecurityDescriptor,
        token: &Token,
        owners: Owners,
        rights: AccessMask,
    ) -> Option<(usize, Sid)> {
        let descriptor = accounts::with_unix_sids(&*self.accounts, descriptor);
        security::first_denial(&descriptor, token, self.counting(owners), rights)
    }

    /// The owners of a file in Unix, as far as they are users.
    fn counting(&self, owners: Owners) -> Owners {
        match self.has_service_account() {
            true => Owners::NONE,
            false => owners,
        }
    }

    pub(super) fn set_security(
        &self,
        file: &OpenFile,
        change: &SecurityChange,
        run: Run<'_>,
    ) -> Step<Outcome> {
        if file.is_exact && is_chown(change) && !self.has_service_account() {
            self.change_unix_owners(file.file_ref(), change)?;
            let parts = rest_of_chown(change);
            if !parts.is_empty() {
                let descriptor = change.descriptor.clone();
                let rest = SecurityChange { parts, descriptor };
                self.change_security(file.file_ref(), &rest, run)?;
            }
            return Ok(Outcome::Done);
        }
        self.change_security(file.file_ref(), change, run)?;
        Ok(Outcome::Done)
    }

    /// Replaces parts of the descriptor of a file, and changes the permissions accordingly; with a
    /// service account, only the descriptor. Returns the new descriptor.
    pub(super) fn change_security(
        &self,
        file: FileRef<'_>,
        change: &SecurityChange,
        run: Run<'_>,
    ) -> Step<SecurityDescriptor> {
        let metadata = self.current(file)?;
        let current = self.descriptor_of(file, &metadata);
        let new = security::apply(&current, change);
        let of_unix = accounts::with_unix_sids(&*self.accounts, &new);
        let current = accounts::with_unix_sids(&*self.accounts, &current);
        let owners = self.counting(owners(&metadata));
        let owners = check_owners(run.user, (&current, &of_unix), owners)?;
        if !self.has_service_account() {
            change_owners(file, &metadata, owners)?;
            if change.parts.contains(SecurityInformation::DACL) {
                change_lists(file, &of_unix, owners, metadata.is_directory())?;
            }
        }
        let metadata = self.current(file)?;
        self.store_descriptor(file, &new, &metadata)?;
        Ok(new)
    }

    /// Stores a descriptor with the hash of the present permissions. A file system or a process
    /// that cannot store it keeps the permissions alone; with a service account it fails.
    pub(super) fn store_descriptor(
        &self,
        file: FileRef<'_>,
        descriptor: &SecurityDescriptor,
        metadata: &Metadata,
    ) -> Step<()> {
        if !self.may_have_descriptor(file, metadata) {
            return match self.has_service_account() {
                true => Err(Status::NOT_SUPPORTED.into()),
                false => Ok(()),
            };
        }
        let lists = Lists::of(file, metadata);
        let fingerprint = lists.fingerprint(metadata);
        let of_lists = lists.describe(metadata, &*self.accounts);
        let value = NtAcl::encode(descriptor, &of_lists, &fingerprint);
        if value.len() > NTACL_MAX {
            return Err(Status::INVALID_ACL.into());
        }
        let name = self.options.security_attribute.name();
        let write = || write_attribute(file, name, &value);
        match or_as_server(file.token, write) {
            Ok(()) => Ok(()),
            Err(errno @ (Errno::ACCESS | Errno::PERM | Errno::OPNOTSUPP))
                if self.has_service_account() =>
            {
                Err(status(errno, Context::Attributes).into())
            }
            Err(Errno::ACCESS | Errno::PERM | Errno::OPNOTSUPP) => {
                tracing::debug!(name, "cannot store a security descriptor");
                Ok(())
            }
            Err(errno) => Err(status(errno, Context::Attributes).into()),
        }
    }

    /// The present owner, group, mode and kind of a file. The DOS attributes are not read.
    pub(super) fn current(&self, file: FileRef<'_>) -> Step<Metadata> {
        let stat = stat(file.fd).map_err(|errno| status(errno, Context::Attributes))?;
        Ok(self.metadata_with(file.volume, &stat, None, ""))
    }
}

/// Checks that a user may give a file its new owner and group: users own what they create, and can
/// take the ownership. Returns the new owner and group of Unix. An owner or group without a Unix
/// identifier is in the descriptor only: smbtorture smb2.acls-with-sysacl.SDFLAGSVSCHOWN makes
/// Everyone the owner.
fn check_owners(
    token: &Token,
    (current, new): (&SecurityDescriptor, &SecurityDescriptor),
    mut owners: Owners,
) -> Result<Owners, Status> {
    let may_be = |sid| token.is_root() || token.has_sid(sid);
    if let Some(owner) = new.owner.as_ref().filter(|_| new.owner != current.owner) {
        let uid = owner.to_unix_user();
        if uid != Some(owners.uid) && !may_be(owner) {
            return Err(Status::INVALID_OWNER);
        }
        owners.uid = uid.unwrap_or(owners.uid);
    }
    if let Some(group) = new.group.as_ref().filter(|_| new.group != current.group) {
        let gid = group.to_unix_group();
        if gid != Some(owners.gid) && !may_be(group) {
            return Err(Status::INVALID_OWNER);
        }
        owners.gid = gid.unwrap_or(owners.gid);
    }
    Ok(owners)
}

/// Changes owner and group. The kernel lets no user take a file: the open has the right to change
/// the owner, and the new one is the user itself, so the server does it, as Samba does.
fn change_owners(file: FileRef<'_>, metadata: &Metadata, to: Owners) -> Step<()> {
    if to == owners(metadata) {
        return Ok(());
    }
    let uid = (to.uid != metadata.uid).then(|| Uid::from_raw(to.uid));
    let gid = (to.gid != metadata.gid).then(|| Gid::from_raw(to.gid));
    let change = || chownat(file.fd, "", uid, gid, AtFlags::EMPTY_PATH);
    let changed = match change() {
        Err(Errno::PERM | Errno::ACCESS) if uid.is_some() => as_server(file.token, change),
        result => result,
    };
    Ok(changed.map_err(|errno| status(errno, Context::Attributes))?)
}

/// Sets the lists that come closest to a descriptor, with the permissions of the user.
fn change_lists(
    file: FileRef<'_>,
    descriptor: &SecurityDescriptor,
    owners: Owners,
    is_directory: bool,
) -> Step<()> {
    let access = security::approximate(descriptor, owners, is_directory)?;
    set_access_list(file, &access).map_err(|errno| status(errno, Context::Attributes))?;
    if !is_directory {
        return Ok(());
    }
    let default = security::approximate_default(descriptor, owners)?;
    set_default_list(file, &default).map_err(|errno| status(errno, Context::Attributes))?;
    Ok(())
}

/// Sets the access list of a file. A list that a mode can express needs no support for lists in
/// the file system.
fn set_access_list(file: FileRef<'_>, list: &PosixAcl) -> Result<(), Errno> {
    match write_attribute(file, ACCESS_LIST, &list.encode()) {
        Err(Errno::OPNOTSUPP) => super::basic::change_permissions(file.fd, list.mode()),
        result => result,
    }
}

/// Sets or removes the list for new files of a directory.
fn set_default_list(file: FileRef<'_>, list: &PosixAcl) -> Result<(), Errno> {
    let set = match list.entries().is_empty() {
        true => xattr::remove(file, DEFAULT_LIST),
        false => write_attribute(file, DEFAULT_LIST, &list.encode()),
    };
    match set {
        Err(Errno::OPNOTSUPP | Errno::NODATA) => Ok(()),
        result => result,
    }
}

/// Reads an extended attribute; `None` if the file has none of that name. The server reads those
/// that the user may not read: they decide about the user's access.
fn read_attribute(file: FileRef<'_>, name: &str) -> Result<Option<Vec<u8>>, Errno> {
    let read =
        |buffer: &mut [u8]| or_as_server(file.token, || xattr::get(file, name, &mut *buffer));
    let mut usual = [0; USUAL_LEN];
    match read(&mut usual) {
        Ok(length) => Ok(Some(usual[..length].to_vec())),
        Err(Errno::RANGE) => {
            let mut value = vec![0; NTACL_MAX];
            let length = read(&mut value)?;
            value.truncate(length);
            Ok(Some(value))
        }
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(None),
        Err(errno) => Err(errno),
    }
}

fn write_attribute(file: FileRef<'_>, name: &str, value: &[u8]) -> Result<(), Errno> {
    xattr::set(file, name, value, XattrFlags::empty())
}
