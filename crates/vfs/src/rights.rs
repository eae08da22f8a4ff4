//! Access rights: Unix permissions as an access mask.
//!
//! | right | required |
//! |---|---|
//! | READ_ATTRIBUTES, READ_CONTROL, SYNCHRONIZE | search permission on the directory |
//! | READ_DATA (LIST_DIRECTORY), READ_EA | `r` |
//! | WRITE_DATA, APPEND_DATA (ADD_FILE, ADD_SUBDIRECTORY), WRITE_EA, DELETE_CHILD | `w` |
//! | EXECUTE of a file | `r`: a READ with this right reads the bytes, and so does the kernel |
//! | TRAVERSE | `x` |
//! | WRITE_ATTRIBUTES | `w`, or ownership |
//! | WRITE_DAC, WRITE_OWNER | ownership |
//! | DELETE | `w` and `x` of the parent; in a sticky one also ownership of either |
//! | ACCESS_SYSTEM_SECURITY | never granted |
//!
//! No client can delete the root of a share. Still, a user with the right to change its names gets
//! DELETE on it when the client requests DELETE by name: clients that always request GENERIC_ALL
//! could not open it otherwise. Samba and Windows grant it too. MAXIMUM_ALLOWED omits it, because
//! it would only conflict with opens that do not share DELETE.
//!
//! Root has all rights. A READONLY file grants no WRITE_DATA or APPEND_DATA to a new open. It may
//! be opened for DELETE but not be deleted. \[MS-FSA\] 2.1.5.1.2.1, 2.1.5.15.3. As in Windows, the
//! maximal access mask ignores READONLY.
//!
//! Samba differs in two points. It grants DELETE to the owner regardless of the parent, and fails
//! later. It requires `x` for EXECUTE, which files created over SMB have only as a side effect of
//! `map archive`. In both servers the kernel decides in the end, because the file is opened under
//! the token's credentials.

use proto::file::{FileKind, Metadata};
use proto::token::Token;
use wire::Status;
use wire::access::{AccessMask, FileAttributes};

/// The rights of every user with search permission on the directory.
const ALWAYS: AccessMask = AccessMask(
    AccessMask::FILE_READ_ATTRIBUTES.0 | AccessMask::READ_CONTROL.0 | AccessMask::SYNCHRONIZE.0,
);
/// The rights for `r`.
const READ: AccessMask = AccessMask(AccessMask::FILE_READ_DATA.0 | AccessMask::FILE_READ_EA.0);
/// The rights for `w`.
const WRITE: AccessMask = AccessMask(
    WRITE_DATA.0
        | AccessMask::FILE_WRITE_EA.0
        | AccessMask::FILE_DELETE_CHILD.0
        | AccessMask::FILE_WRITE_ATTRIBUTES.0,
);
/// The rights of the owner.
const OWNER: AccessMask = AccessMask(
    AccessMask::FILE_WRITE_ATTRIBUTES.0 | AccessMask::WRITE_DAC.0 | AccessMask::WRITE_OWNER.0,
);
/// Access rights that permit writing data: FILE_WRITE_DATA and FILE_APPEND_DATA. One of them is
/// enough.
pub const WRITE_DATA: AccessMask =
    AccessMask(AccessMask::FILE_WRITE_DATA.0 | AccessMask::FILE_APPEND_DATA.0);
/// Access rights that permit reading data: FILE_READ_DATA and FILE_EXECUTE. One of them is enough.
pub const READ_DATA: AccessMask =
    AccessMask(AccessMask::FILE_READ_DATA.0 | AccessMask::FILE_EXECUTE.0);
/// All access rights to a file. The open that creates a file has all of them.
pub const FULL: AccessMask = AccessMask(0x001F_01FF);

/// The sticky bit in the mode of a directory.
pub(crate) const STICKY: u32 = 0o1000;

/// The Unix permissions (read, write and execute) that a user has on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Permissions {
    /// Whether the mode or the access control list of the file grants the user the read permission.
    pub read: bool,
    /// Whether the mode or the access control list of the file grants the user the write
    /// permission.
    pub write: bool,
    /// Whether the mode or the access control list of the file grants the user the execute
    /// permission: for directories, the permission to look up names in it.
    pub execute: bool,
}

impl Permissions {
    /// Returns the permissions that the mode of a file grants to the user with the Unix credentials
    /// `token`: as owner, else as group, else as other. Root may read and write, search
    /// directories, and execute a file that any user may execute.
    pub fn of(token: &Token, file: &Metadata) -> Self {
        if token.is_root() {
            let execute = file.is_directory() || file.mode & 0o111 != 0;
            return Self {
                read: true,
                write: true,
                execute,
            };
        }
        let shift = match () {
            () if token.uid == file.uid => 6,
            () if token.has_group(file.gid) => 3,
            () => 0,
        };
        let bits = file.mode >> shift;
        Self {
            read: bits & 4 != 0,
            write: bits & 2 != 0,
            execute: bits & 1 != 0,
        }
    }

    /// Returns whether these permissions on a directory allow the user to add and remove names:
    /// write and execute.
    pub fn changes_names(self) -> bool {
        self.write && self.execute
    }
}

/// Returns whether the user with the Unix credentials `token` may remove the name of `file` from
/// the directory `parent`. `of` are the permissions of that user on `parent`, which must include
/// write and execute. In a directory with the sticky bit, only root and the owners of file and
/// directory may remove the name.
pub fn may_remove(token: &Token, file: &Metadata, parent: &Metadata, of: Permissions) -> bool {
    let is_owner = token.is_root() || token.uid == file.uid || token.uid == parent.uid;
    of.changes_names() && (parent.mode & STICKY == 0 || is_owner)
}

/// Returns the maximal access rights (MAXIMUM_ALLOWED) of the user with the Unix credentials
/// `token` on a file. `has` are the permissions of that user on the file; `may_remove` says whether
/// the parent directory allows the user to remove the name.
pub fn maximal(token: &Token, file: &Metadata, has: Permissions, may_remove: bool) -> AccessMask {
    let mut mask = ALWAYS;
    let is_data = matches!(file.kind, FileKind::File | FileKind::Directory);
    if has.read && is_data {
        mask |= READ;
    }
    if has.write && is_data {
        mask |= WRITE;
    }
    let executes = if file.is_directory() {
        has.execute
    } else {
        has.read
    };
    if executes && is_data {
        mask |= AccessMask::FILE_EXECUTE;
    }
    if token.is_root() || token.uid == file.uid {
        mask |= OWNER;
    }
    if may_remove {
        mask |= AccessMask::DELETE;
    }
    mask
}

/// Decides about an open of `file` and returns its access rights. `maximal` are all rights of the
/// user on the file, as [`maximal`](maximal()) computes them. `asked` are the rights that the
/// client requests: specific ones, not generic ones such as GENERIC_READ, and possibly
/// MAXIMUM_ALLOWED. `implied` are rights that the open needs in addition, such as the right to
/// write for an overwrite.
///
/// Returns the rights in `asked`, without those in `implied`. MAXIMUM_ALLOWED is replaced by all
/// rights in `maximal`. The metadata `file` matter only for the attribute READONLY: if it is set on
/// a file that is not a directory, the rights to write and append data count as missing in
/// `maximal`.
///
/// # Errors
/// ACCESS_DENIED if a right in `asked` or `implied` is not in `maximal`. Generic rights always fail
/// in this manner.
pub fn grant(
    maximal: AccessMask,
    asked: AccessMask,
    implied: AccessMask,
    file: &Metadata,
) -> Result<AccessMask, Status> {
    let allowed = if is_read_only(file) {
        maximal.without(WRITE_DATA)
    } else {
        maximal
    };
    let named = asked.without(AccessMask::MAXIMUM_ALLOWED);
    if !allowed.contains(named | implied) {
        return Err(Status::ACCESS_DENIED);
    }
    match asked.contains(AccessMask::MAXIMUM_ALLOWED) {
        true => Ok(named | allowed),
        false => Ok(named),
    }
}

/// Returns whether the attribute READONLY protects the file from changes. On a directory the
/// attribute has no effect. \[MS-FSCC\] 2.6
pub fn is_read_only(file: &Metadata) -> bool {
    !file.is_directory() && file.attributes.contains(FileAttributes::READONLY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(uid: u32, groups: &[u32]) -> Token {
        Token::new(uid, 100, groups.to_vec())
    }

    fn file(mode: u32) -> Metadata {
        Metadata {
            mode,
            uid: 1000,
            gid: 500,
            ..Metadata::default()
        }
    }

    fn all(token: &Token, file: &Metadata) -> AccessMask {
        maximal(token, file, Permissions::of(token, file), false)
    }

    #[test]
    fn the_owner_is_judged_by_the_owners_bits_alone() {
        let owner = token(1000, &[500]);
        assert!(!Permissions::of(&owner, &file(0o077)).read);
        assert!(Permissions::of(&owner, &file(0o400)).read);
    }

    #[test]
    fn a_further_group_counts_like_the_first() {
        let member = token(1, &[7, 500]);
        assert!(Permissions::of(&member, &file(0o640)).read);
        assert!(!Permissions::of(&token(1, &[7]), &file(0o640)).read);
    }

    #[test]
    fn the_owner_of_a_plain_file_has_everything_but_delete() {
        let rights = all(&token(1000, &[]), &file(0o644));
        assert_eq!(rights, FULL.without(AccessMask::DELETE));
    }

    #[test]
    fn others_read_and_do_no_more() {
        let rights = all(&token(1, &[]), &file(0o644));
        assert_eq!(rights, ALWAYS | READ | AccessMask::FILE_EXECUTE);
        assert_eq!(all(&token(1, &[]), &file(0o600)), ALWAYS);
    }

    #[test]
    fn root_may_do_everything() {
        let root = Token::new(0, 0, vec![]);
        assert_eq!(all(&root, &file(0o000)), FULL.without(AccessMask::DELETE));
    }

    #[test]
    fn a_sticky_directory_lets_owners_remove() {
        let parent = Metadata {
            mode: 0o1777,
            uid: 0,
            ..Metadata::default()
        };
        let free = Permissions {
            read: true,
            write: true,
            execute: true,
        };
        assert!(may_remove(&token(1000, &[]), &file(0o644), &parent, free));
        assert!(!may_remove(&token(1, &[]), &file(0o644), &parent, free));
        let open = Metadata {
            mode: 0o777,
            ..parent
        };
        assert!(may_remove(&token(1, &[]), &file(0o644), &open, free));
    }

    #[test]
    fn a_read_only_file_is_not_opened_for_writing() {
        let attributes = FileAttributes::READONLY;
        let file = Metadata {
            attributes,
            ..file(0o644)
        };
        let write = AccessMask::FILE_WRITE_DATA;
        let none = AccessMask::NONE;
        assert_eq!(grant(FULL, write, none, &file), Err(Status::ACCESS_DENIED));
        assert_eq!(grant(FULL, none, write, &file), Err(Status::ACCESS_DENIED));
        let granted = grant(FULL, AccessMask::MAXIMUM_ALLOWED, none, &file);
        assert_eq!(granted, Ok(FULL.without(WRITE_DATA)));
        assert_eq!(
            grant(FULL, AccessMask::DELETE, none, &file),
            Ok(AccessMask::DELETE)
        );
    }

    #[test]
    fn no_user_reads_the_sacl() {
        let asked = AccessMask::ACCESS_SYSTEM_SECURITY;
        let granted = grant(FULL, asked, AccessMask::NONE, &file(0o644));
        assert_eq!(granted, Err(Status::ACCESS_DENIED));
    }
}
