//! The validated parameters of a CREATE. \[MS-SMB2\] 3.3.5.9, \[MS-FSA\] 2.1.5.1

use alloc::sync::Arc;
use alloc::vec::Vec;

use wire::access::{
    AccessMask, CreateDisposition, CreateOptions, FileAttributes, ImpersonationLevel, OplockLevel,
    ShareAccess,
};
use wire::create::Request;
use wire::create_context::{Lease, find, name};
use wire::{Flags, Header, Status};

use super::contexts::Asked;
use super::ea;
use crate::ea::Ea;
use crate::file::{Existing, KindWanted};
use crate::path::SharePath;
use crate::server::open::WRITE_RIGHTS;
use crate::server::quota::QuotaGuard;
use crate::server::replay::CreateReplayEntry;
use crate::server::tree::TreeConnect;
use crate::token::Token;

/// The validated parameters of a CREATE.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) path: SharePath,
    /// Whether the name has the type of the unnamed data stream, which a directory lacks.
    pub(crate) is_data_stream: bool,
    /// The requested rights: no generic ones, possibly MAXIMUM_ALLOWED.
    pub(crate) access: AccessMask,
    /// ACCESS_SYSTEM_SECURITY if the client requests it. No descriptor grants it: root has it as
    /// a privilege.
    pub(crate) system_access: AccessMask,
    pub(crate) share_access: ShareAccess,
    pub(crate) disposition: CreateDisposition,
    pub(crate) options: CreateOptions,
    /// Attributes of a new or overwritten file.
    pub(crate) attributes: FileAttributes,
    pub(crate) asked: Asked,
    /// Extended attributes of a new or overwritten file, until they are set.
    pub(crate) eas: Vec<Ea>,
    /// The requested oplock level; an unknown level counts as none.
    pub(crate) oplock: OplockLevel,
    /// Whether the request has waited for a break.
    pub(crate) is_retry: bool,
    /// Whether an earlier try of this request, which had to wait, created the file.
    pub(crate) is_made: bool,
    /// Number of names that were removed before the file system opens this one.
    pub(crate) removals: u64,
    /// The client's name for it.
    pub(crate) replay_entry: Option<Arc<CreateReplayEntry>>,
    /// That the open counts.
    pub(crate) place: Option<Arc<QuotaGuard>>,
}

/// Bits that no option has. smbtorture smb2.create.gentest
const INVALID_OPTIONS: CreateOptions = CreateOptions(0xFF00_0000);
/// Options that no server supports: FILE_CREATE_TREE_CONNECTION, FILE_OPEN_BY_FILE_ID and
/// FILE_RESERVE_OPFILTER. \[MS-SMB2\] 3.3.5.9, smbtorture smb2.create.gentest
const UNSUPPORTED_OPTIONS: CreateOptions = CreateOptions(0x0010_2080);
/// Attributes that a request may name; most have no effect. smbtorture smb2.create.gentest
const VALID_ATTRIBUTES: FileAttributes = FileAttributes(0x0000_7FB7);
/// Attributes that a new file keeps.
const KEPT_ATTRIBUTES: FileAttributes = FileAttributes(0x0000_3127);
/// Rights that exist: the specific and standard ones, ACCESS_SYSTEM_SECURITY, MAXIMUM_ALLOWED and
/// the generic ones. smbtorture smb2.create.gentest
const VALID_RIGHTS: AccessMask = AccessMask(0xF31F_01FF);
/// Bits of a share mode. \[MS-SMB2\] 2.2.13
const VALID_SHARE_ACCESS: u32 = 7;

/// The file of NTFS with the quotas of a volume. smbcquotas queries and sets quotas through an open
/// of it with rights to write. Such an open is one of the root of the share that can do nothing
/// else. The kernel checks the right to query or set a quota.
const QUOTA_FILE: &str = "$Extend\\$Quota:$Q:$INDEX_ALLOCATION";

/// Whether a request opens [`QUOTA_FILE`].
fn is_quota_file(request: &Request<'_>) -> bool {
    if request.create_disposition != CreateDisposition::OPEN || !request.name.0.starts_with(b"$\0")
    {
        return false;
    }
    let name = request.name.decode();
    name.is_some_and(|name| name.eq_ignore_ascii_case(QUOTA_FILE))
}

impl Wanted {
    /// Checks a request of the user with this token. `has_posix`: the connection has the SMB3
    /// POSIX extensions.
    pub(crate) fn new(
        request: &Request<'_>,
        tree: &TreeConnect,
        token: &Token,
        has_posix: bool,
    ) -> Result<Self, Status> {
        if request.impersonation_level > ImpersonationLevel::DELEGATE {
            return Err(Status::BAD_IMPERSONATION_LEVEL);
        }
        let has_posix = has_posix && tree.share.posix;
        let is_posix = has_posix && find(&request.contexts, name::POSIX).is_some();
        let is_quota_file = !is_posix && is_quota_file(request);
        let path = match is_posix {
            true => SharePath::from_posix_wire(request.name)?,
            false if is_quota_file => SharePath::root(),
            false => SharePath::from_wire(request.name)?,
        };
        // Rights come first: smbtorture smb2.create.gentest has both wrong.
        let access = match is_quota_file {
            true => AccessMask::FILE_READ_ATTRIBUTES,
            false => map_rights(request.desired_access, token)?,
        };
        check_options(request)?;
        let asked = Asked::new(&request.contexts, has_posix)?;
        let wanted = Self {
            path,
            is_data_stream: !is_posix && SharePath::is_data_stream(request.name),
            access: access.without(AccessMask::ACCESS_SYSTEM_SECURITY),
            system_access: access & AccessMask::ACCESS_SYSTEM_SECURITY,
            share_access: request.share_access,
            disposition: request.create_disposition,
            options: request.create_options,
            attributes: match is_posix {
                true => FileAttributes::NONE,
                false => kept_attributes(request),
            },
            asked,
            eas: ea::requested(&request.contexts, request.create_options)?,
            oplock: request.oplock_level,
            is_retry: false,
            is_made: false,
            removals: 0,
            replay_entry: None,
            place: None,
        };
        wanted.check_rights(tree)?;
        wanted.check_root()?;
        // A stream is no directory, not even one of a directory. smbtorture smb2.streams.dir
        let is_directory = wanted.options.contains(CreateOptions::DIRECTORY_FILE);
        if is_directory && (wanted.is_data_stream || wanted.path.stream().is_some()) {
            return Err(Status::NOT_A_DIRECTORY);
        }
        Ok(wanted)
    }

    /// \[MS-SMB2\] 3.3.5.9: no right beyond those of the tree, none needed but not asked for.
    fn check_rights(&self, tree: &TreeConnect) -> Result<(), Status> {
        let access = self.access.without(AccessMask::MAXIMUM_ALLOWED);
        if !tree.maximal_access.contains(access) {
            return Err(Status::ACCESS_DENIED);
        }
        let deletes = self.options.contains(CreateOptions::DELETE_ON_CLOSE);
        let may_delete = AccessMask::DELETE | AccessMask::MAXIMUM_ALLOWED;
        // Windows and Samba say so, where [MS-SMB2] 3.3.5.9 has ACCESS_DENIED.
        if deletes && !self.access.intersects(may_delete) {
            return Err(Status::INVALID_PARAMETER);
        }
        let may_only_open = matches!(
            self.disposition,
            CreateDisposition::OPEN | CreateDisposition::OPEN_IF
        );
        if is_read_only(tree) && !may_only_open {
            return Err(Status::ACCESS_DENIED);
        }
        Ok(())
    }

    /// The root of a share exists, is a directory, and cannot be deleted.
    fn check_root(&self) -> Result<(), Status> {
        if !self.path.is_root() || self.path.stream().is_some() {
            return Ok(());
        }
        if self.options.contains(CreateOptions::NON_DIRECTORY_FILE) {
            return Err(Status::FILE_IS_A_DIRECTORY);
        }
        if self.options.contains(CreateOptions::DELETE_ON_CLOSE) {
            return Err(Status::CANNOT_DELETE);
        }
        if self.disposition == CreateDisposition::CREATE {
            return Err(Status::OBJECT_NAME_COLLISION);
        }
        Ok(())
    }

    /// Whether the open is one of the SMB3 POSIX extensions.
    pub(crate) fn is_posix(&self) -> bool {
        self.asked.posix.is_some()
    }

    /// The requested lease; `None` where the client asks for an oplock.
    pub(crate) fn lease(&self) -> Option<&Lease> {
        let lease = self.asked.lease.as_ref();
        lease.filter(|_| self.oplock == OplockLevel::LEASE)
    }

    /// Whether the request is a replay that the client repeats instead of a wait for another
    /// client: the first try may have been lost with its channel while it waited. smbtorture
    /// smb2.replay.dhv2-pending2n-vs-oplock-sane
    pub(crate) fn must_not_wait(&self, header: &Header) -> bool {
        let is_replay = header.flags.contains(Flags::REPLAY_OPERATION);
        let entry = self.replay_entry.as_ref();
        is_replay && entry.is_some_and(|entry| !entry.is_second())
    }

    /// Whether the request truncates an existing file.
    pub(crate) fn overwrites(&self) -> bool {
        matches!(
            self.disposition,
            CreateDisposition::SUPERSEDE
                | CreateDisposition::OVERWRITE
                | CreateDisposition::OVERWRITE_IF
        )
    }

    /// Rights without which the open fails, beyond those asked for. CVE-2023-4091: a server that
    /// looks at the rights asked for only lets a reader empty a file.
    pub(crate) fn implied_access(&self) -> AccessMask {
        let mut implied = AccessMask::NONE;
        if self.overwrites() {
            implied |= AccessMask::FILE_WRITE_DATA;
        }
        // [MS-FSA] 2.1.5.1.2: to supersede a file is to delete it.
        if self.disposition == CreateDisposition::SUPERSEDE {
            implied |= AccessMask::DELETE;
        }
        implied
    }

    pub(crate) fn existing(&self, tree: &TreeConnect) -> Existing {
        match self.disposition {
            _ if self.is_made => Existing::OpenOrCreate,
            CreateDisposition::OPEN | CreateDisposition::OVERWRITE => Existing::Open,
            CreateDisposition::CREATE => Existing::Create,
            _ if is_read_only(tree) => Existing::Open,
            _ => Existing::OpenOrCreate,
        }
    }

    pub(crate) fn kind(&self) -> KindWanted {
        if self.options.contains(CreateOptions::DIRECTORY_FILE) {
            KindWanted::Directory
        } else if self.path.stream().is_some() {
            KindWanted::Any
        } else if self.is_data_stream || self.options.contains(CreateOptions::NON_DIRECTORY_FILE) {
            KindWanted::File
        } else {
            KindWanted::Any
        }
    }

    /// The status for a failure of the file system. In a read-only share the file system only opens
    /// existing files: a request that would create one gets ACCESS_DENIED.
    pub(crate) fn explain(&self, status: Status, tree: &TreeConnect) -> Status {
        let would_create = self.disposition == CreateDisposition::OPEN_IF && is_read_only(tree);
        if would_create && status == Status::OBJECT_NAME_NOT_FOUND {
            return Status::ACCESS_DENIED;
        }
        status
    }
}

/// Whether nothing in the tree may be written.
pub(crate) fn is_read_only(tree: &TreeConnect) -> bool {
    tree.is_read_only || !tree.maximal_access.intersects(WRITE_RIGHTS)
}

/// \[MS-FSA\] 2.1.5.1, phase 1; the statuses are those of smbtorture smb2.create.gentest.
fn check_options(request: &Request<'_>) -> Result<(), Status> {
    let (options, disposition) = (request.create_options, request.create_disposition);
    let attributes = request.file_attributes;
    if options.intersects(INVALID_OPTIONS)
        || request.share_access.0 > VALID_SHARE_ACCESS
        || disposition > CreateDisposition::OVERWRITE_IF
        || !VALID_ATTRIBUTES.contains(attributes)
    {
        return Err(Status::INVALID_PARAMETER);
    }
    if options.intersects(UNSUPPORTED_OPTIONS) {
        return Err(Status::NOT_SUPPORTED);
    }
    let is_directory = options.contains(CreateOptions::DIRECTORY_FILE);
    let is_for_files = options.contains(CreateOptions::NON_DIRECTORY_FILE)
        || matches!(
            disposition,
            CreateDisposition::SUPERSEDE
                | CreateDisposition::OVERWRITE
                | CreateDisposition::OVERWRITE_IF
        );
    if is_directory && is_for_files {
        return Err(Status::INVALID_PARAMETER);
    }
    // Nothing is encrypted on disk; smb2.create.gentest takes this from a stand-alone server.
    let makes = disposition != CreateDisposition::OPEN;
    if makes && attributes.contains(FileAttributes::ENCRYPTED) {
        return Err(Status::ACCESS_DENIED);
    }
    Ok(())
}

/// Generic rights become specific ones. \[MS-SMB2\] 2.2.13.1, \[MS-FSA\] 2.1.5.1
fn map_rights(desired: AccessMask, token: &Token) -> Result<AccessMask, Status> {
    if !VALID_RIGHTS.contains(desired) {
        return Err(Status::ACCESS_DENIED);
    }
    let access = desired.without_generic();
    // Root alone has the privilege to read and change the SACL (SeSecurityPrivilege).
    if access.contains(AccessMask::ACCESS_SYSTEM_SECURITY) && !token.is_root() {
        return Err(Status::PRIVILEGE_NOT_HELD);
    }
    // SYNCHRONIZE alone is a sufficient right, as with Windows and Samba: smbtorture
    // smb2.sharemode.sharemode-access, smb2.getinfo.getinfo_access.
    if access.is_empty() {
        return Err(Status::ACCESS_DENIED);
    }
    Ok(access)
}

/// The attributes that a new file gets: those that it can have, and ARCHIVE. \[MS-FSA\] 2.1.5.1.1
fn kept_attributes(request: &Request<'_>) -> FileAttributes {
    let kept = request.file_attributes & KEPT_ATTRIBUTES;
    if request
        .create_options
        .contains(CreateOptions::DIRECTORY_FILE)
    {
        kept.without(FileAttributes::TEMPORARY)
    } else {
        kept | FileAttributes::ARCHIVE
    }
}
