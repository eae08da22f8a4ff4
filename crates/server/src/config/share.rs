//! A section `[[share]]`: a shared directory.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Spanned;
use vfs::posix::SecurityAttribute;
use wire::file_name::NameMapping;
use wire::upcase::is_same_name;

use super::{AuditChoice, Check, ConfigError, SyncChoice, unplaced};

/// Longest share name in bytes. \[MS-SRVS\]: clients show at most 80 characters.
const MAX_SHARE_NAME: usize = 80;

/// A section `[[share]]` of the configuration: a shared directory.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShareSection {
    /// Name of the share, by which clients connect to it. Unequal to the names of other shares, in
    /// upper or lower case.
    #[schemars(with = "String")]
    pub name: Spanned<String>,
    /// Path of the shared directory on this machine. If the directory is missing, the server
    /// refuses clients of the share until it exists.
    #[schemars(with = "PathBuf")]
    pub path: Spanned<PathBuf>,
    /// Whether the share is read-only: clients cannot change files, except the users in
    /// `write_users`. Default: no.
    #[serde(default)]
    pub read_only: bool,
    /// Comment of the share in lists of shares. Default: empty.
    #[serde(default)]
    pub comment: String,
    /// The users that may connect to the share: names of users, or `@` and the name of a group. A
    /// group is one of the file of users, or else one of Unix. Empty: all users. `users` is another
    /// name of this key.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub valid_users: Vec<Spanned<String>>,
    /// The users and groups that may not connect to the share, even if `valid_users` has them.
    /// Default: empty.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub invalid_users: Vec<Spanned<String>>,
    /// The users and groups that may only read, even if the share is not read-only. The key does
    /// not permit them to connect. Default: empty.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub read_users: Vec<Spanned<String>>,
    /// The users and groups that may read and write, even if the share is read-only or `read_users`
    /// has them. The key does not permit them to connect. Default: empty.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub write_users: Vec<Spanned<String>>,
    /// Addresses and networks from which clients may connect to the share, such as `192.0.2.0/24`.
    /// They decide before `hosts_deny`. Without `hosts_deny`, all other clients may not connect,
    /// except those of this machine (loopback). Default: empty.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub hosts_allow: Vec<Spanned<String>>,
    /// Addresses and networks from which clients may not connect to the share. Default: empty.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub hosts_deny: Vec<Spanned<String>>,
    /// Whether guests may connect to the share. Default: no.
    #[serde(default)]
    pub guest: bool,
    /// Whether clients with a user name that has no account become guests. If false for all shares
    /// (the default), only clients with the user name `guest` or an empty one become guests. One
    /// share with true is enough, because a login does not name a share. Requires `guest`.
    #[serde(default)]
    pub guest_unknown_users: bool,
    /// Whether the server requires encryption for requests to the share. Default: no.
    #[serde(default)]
    pub encryption_required: bool,
    /// Whether the share is missing in lists of shares. Clients can connect to it by its name.
    /// Default: no.
    #[serde(default)]
    pub hidden: bool,
    /// Whether clients may cache files with oplocks and leases. Default: yes.
    #[serde(default = "yes")]
    pub oplocks: bool,
    /// Whether clients may cache lists of directories with leases. Without effect if `oplocks` is
    /// false, or if another share has directories of this one. Default: yes.
    #[serde(default = "yes")]
    pub directory_leases: bool,
    /// Whether open files can survive a lost connection (durable handles). Default: yes.
    #[serde(default = "yes")]
    pub durable_handles: bool,
    /// Whether clients may watch directories for changes (CHANGE_NOTIFY). Default: yes.
    #[serde(default = "yes")]
    pub notify: bool,
    /// Whether large reads and writes bypass the page cache (direct I/O). Default: no.
    #[serde(default)]
    pub direct: bool,
    /// Rule by which the server puts written data on stable storage. Default: when a client
    /// requests it, by a FLUSH or by write-through.
    #[serde(default)]
    pub sync: SyncChoice,
    /// Treatment of Linux file names that SMB cannot transmit, such as names with a colon. Default:
    /// clients see such files under mapped names.
    #[serde(default)]
    pub names: Names,
    /// Name of the Unix user that all file operations on the share run as. `None` (the default)
    /// stands for the Unix account of the session's user.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub force_user: Option<Spanned<String>>,
    /// Whether the permissions of Unix also decide about the access of users (the default), or the
    /// security descriptors of files alone.
    #[serde(default)]
    pub acl: AclChoice,
    /// Name of the Unix account that owns all files and runs all operations with `acl = "windows"`,
    /// which requires it.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub service_account: Option<Spanned<String>>,
    /// The extended attribute in which the server stores security descriptors (Windows access
    /// lists) of files. Default: `security.NTACL`, which a server without CAP_SYS_ADMIN cannot
    /// write.
    #[serde(default)]
    pub acl_xattr: AclXattr,
    /// Whether lists of directories leave out the files that the user may not read. Default: no.
    #[serde(default)]
    pub access_based_enumeration: bool,
    /// Whether the server keeps named streams that do not fit into an extended attribute in the
    /// hidden directory `.smbeam-streams` of the share. If false, writes of longer streams fail.
    /// Default: no.
    #[serde(default)]
    pub large_streams: bool,
    /// Whether Linux clients may use the SMB3 POSIX extensions: exact names, Unix modes and owners,
    /// POSIX deletion and rename. They need `names = "map"`. Default: yes.
    #[serde(default = "yes")]
    pub posix: bool,
    /// Operations that the audit log records in the share, as in `audit.operations`; an empty list
    /// for none. Default: those of `audit.operations`.
    #[serde(default)]
    #[schemars(with = "Option<Vec<String>>")]
    pub audit: Option<Vec<AuditChoice>>,
}

impl ShareSection {
    /// Makes a share of the directory `path` under the name `name`, with default options: every
    /// user with a password may connect. With `read_only` clients cannot change files.
    pub fn new(name: &str, path: &Path, read_only: bool) -> Self {
        Self {
            name: unplaced(name.to_owned()),
            path: unplaced(path.to_owned()),
            read_only,
            comment: String::new(),
            valid_users: Vec::new(),
            invalid_users: Vec::new(),
            read_users: Vec::new(),
            write_users: Vec::new(),
            hosts_allow: Vec::new(),
            hosts_deny: Vec::new(),
            guest: false,
            guest_unknown_users: false,
            encryption_required: false,
            hidden: false,
            oplocks: true,
            directory_leases: true,
            durable_handles: true,
            notify: true,
            direct: false,
            sync: SyncChoice::Flush,
            names: Names::Map,
            force_user: None,
            acl: AclChoice::default(),
            service_account: None,
            acl_xattr: AclXattr::default(),
            access_based_enumeration: false,
            large_streams: false,
            posix: true,
            audit: None,
        }
    }

    /// Whether another section of the configuration has the same file system: the same directory,
    /// with the same treatment of its files. Their users and other rights may differ.
    pub(crate) fn has_files_of(&self, other: &Self) -> bool {
        let Self {
            name: _,
            path,
            read_only: _,
            comment: _,
            valid_users: _,
            invalid_users: _,
            read_users: _,
            write_users: _,
            hosts_allow: _,
            hosts_deny: _,
            guest: _,
            guest_unknown_users: _,
            encryption_required: _,
            hidden: _,
            oplocks: _,
            directory_leases: _,
            durable_handles: _,
            notify,
            direct,
            sync: _,
            names,
            force_user: _,
            acl,
            service_account,
            acl_xattr,
            access_based_enumeration,
            large_streams,
            posix: _,
            audit: _,
        } = other;
        is_same_name(self.name.get_ref(), other.name.get_ref())
            && self.path == *path
            && self.notify == *notify
            && self.direct == *direct
            && self.names == *names
            && self.acl == *acl
            && self.service_account == *service_account
            && self.acl_xattr == *acl_xattr
            && self.access_based_enumeration == *access_based_enumeration
            && self.large_streams == *large_streams
    }
}

/// The value of `names` in a section `[[share]]`: treatment of Linux file names that SMB cannot
/// transmit, such as names with a colon or with a dot at the end. See [`NameMapping`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Names {
    /// Clients see such files under mapped names.
    #[default]
    Map,
    /// Clients do not see such files, and cannot create them.
    Hide,
}

impl From<Names> for NameMapping {
    fn from(names: Names) -> Self {
        match names {
            Names::Map => Self::Map,
            Names::Hide => Self::Hide,
        }
    }
}

/// The value of `acl` in a section `[[share]]`: the rules that decide about the access of users.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AclChoice {
    /// The security descriptor of a file, and the permissions of Unix.
    #[default]
    Unix,
    /// The security descriptor alone. All files belong to the service account.
    Windows,
}

/// The value of `acl_xattr` in a section `[[share]]`: the extended attribute with the security
/// descriptors of files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum AclXattr {
    /// `security.NTACL`, as Samba with the module acl_xattr.
    #[default]
    #[serde(rename = "security.NTACL")]
    Security,
    /// `user.NTACL`, which needs no privilege. Local users that may write a file can change it.
    #[serde(rename = "user.NTACL")]
    User,
}

impl From<AclXattr> for SecurityAttribute {
    fn from(choice: AclXattr) -> Self {
        match choice {
            AclXattr::Security => Self::Security,
            AclXattr::User => Self::User,
        }
    }
}

fn yes() -> bool {
    true
}

impl Check<'_> {
    pub(super) fn shares(&self, shares: &[ShareSection]) -> Result<(), ConfigError> {
        for (index, share) in shares.iter().enumerate() {
            self.share(share)?;
            let name = share.name.get_ref();
            let has_name = |other: &ShareSection| is_same_name(other.name.get_ref(), name);
            if shares[..index].iter().any(has_name) {
                return Err(self.error(
                    &share.name,
                    format!("share.name: two shares have the name `{name}`"),
                ));
            }
        }
        Ok(())
    }

    pub(super) fn share(&self, share: &ShareSection) -> Result<(), ConfigError> {
        let name = share.name.get_ref();
        let is_bad = |c: char| c.is_control() || "\"\\/[]:|<>+=;,*?".contains(c);
        if name.is_empty() || name.len() > MAX_SHARE_NAME || name.contains(is_bad) {
            return Err(self.error(
                &share.name,
                format!("share.name: `{name}` is not a valid share name"),
            ));
        }
        if name.eq_ignore_ascii_case("IPC$") {
            let what = "share.name: the name IPC$ is reserved".to_owned();
            return Err(self.error(&share.name, what));
        }
        self.service_account(share)?;
        self.access(share)?;
        let path = share.path.get_ref();
        match std::fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => Ok(()),
            Ok(_) => {
                let what = format!("share.path: {} is not a directory", path.display());
                Err(self.error(&share.path, what))
            }
            // The disk of the directory may be mounted later. `Shares::open` logs it.
            Err(_) => Ok(()),
        }
    }

    /// A service account and `acl = "windows"` need each other, and exclude `force_user`.
    fn service_account(&self, share: &ShareSection) -> Result<(), ConfigError> {
        match (share.acl, &share.service_account, &share.force_user) {
            (AclChoice::Windows, None, _) => {
                let what = "share.acl: \"windows\" needs service_account, which owns the files";
                Err(self.error(&share.name, what.to_owned()))
            }
            (AclChoice::Unix, Some(account), _) => {
                let what = "share.service_account: only with acl = \"windows\"; see force_user";
                Err(self.error(account, what.to_owned()))
            }
            (AclChoice::Windows, Some(_), Some(user)) => {
                let what = "share.force_user: not with acl = \"windows\": the users differ there";
                Err(self.error(user, what.to_owned()))
            }
            (AclChoice::Unix, None, _) | (AclChoice::Windows, Some(_), None) => Ok(()),
        }
    }
}
