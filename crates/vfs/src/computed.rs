//! Unix permissions that are computed from mode and access control list, for a process that cannot
//! take on the identity of the user. Security modules and flags of files do not count.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use proto::token::Token;
use rustix::fs::getxattr;

use crate::rights::Permissions;
use crate::security::{ACCESS_LIST, PosixAcl, PosixTag as Tag};

/// Longest extended attribute on Linux in bytes. xattr(7)
const VALUE_MAX: usize = 64 << 10;

/// Computes the permissions of a user on a file or directory by the algorithm of acl(5). Follows
/// symbolic links.
///
/// # Errors
/// The file does not exist, or this process may not search its directory.
pub fn computed_permissions(path: &Path, token: &Token) -> io::Result<Permissions> {
    let metadata = std::fs::metadata(path)?;
    let mut value = vec![0; VALUE_MAX];
    let list = match getxattr(path, ACCESS_LIST, &mut value) {
        Ok(length) => PosixAcl::decode(&value[..length]),
        Err(_) => None,
    };
    let list = list.unwrap_or_else(|| PosixAcl::of_mode(metadata.mode()));
    let bits = decide(&list, token, metadata.uid(), metadata.gid());
    Ok(Permissions {
        read: bits & 4 != 0,
        write: bits & 2 != 0,
        execute: bits & 1 != 0,
    })
}

/// The permission bits: 4 for read, 2 for write, 1 for execute.
fn decide(list: &PosixAcl, token: &Token, owner: u32, group: u32) -> u16 {
    if token.is_root() {
        return 7;
    }
    if token.uid == owner {
        return list.permissions(Tag::UserObj).unwrap_or(0);
    }
    let mask = list.permissions(Tag::Mask).unwrap_or(7);
    if let Some(bits) = list.permissions(Tag::User(token.uid)) {
        return bits & mask;
    }
    let is_member = |gid: u32| token.gid == gid || token.groups.contains(&gid);
    let of_groups = list.entries().iter().filter(|entry| match entry.tag {
        Tag::GroupObj => is_member(group),
        Tag::Group(gid) => is_member(gid),
        _ => false,
    });
    // The kernel wants one entry with all needed bits; each bit is asked for separately here.
    let of_groups = of_groups.map(|entry| entry.permissions);
    match of_groups.reduce(|one, other| one | other) {
        Some(bits) => bits & mask,
        None => list.permissions(Tag::Other).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::security::PosixEntry as Entry;

    fn list(entries: &[(Tag, u16)]) -> PosixAcl {
        let entry = |(tag, permissions): &(Tag, u16)| Entry {
            tag: *tag,
            permissions: *permissions,
        };
        PosixAcl::new(entries.iter().map(entry).collect())
    }

    #[test]
    fn the_first_class_that_fits_decides() {
        let list = list(&[
            (Tag::UserObj, 4),
            (Tag::User(2), 7),
            (Tag::GroupObj, 1),
            (Tag::Group(30), 7),
            (Tag::Mask, 5),
            (Tag::Other, 2),
        ]);
        let of = |uid, groups: &[u32]| {
            let token = Token::new(uid, 99, groups.to_vec());
            decide(&list, &token, 1, 20)
        };
        assert_eq!(of(0, &[]), 7, "root");
        assert_eq!(of(1, &[30]), 4, "the owner, although a group has more");
        assert_eq!(of(2, &[]), 5, "a named user, within the mask");
        assert_eq!(of(3, &[20]), 1, "the group of the file");
        assert_eq!(
            of(3, &[20, 30]),
            5,
            "the union of the groups, within the mask"
        );
        assert_eq!(of(3, &[]), 2, "others, without the mask");
    }

    #[test]
    fn a_mode_decides_without_a_list() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("file");
        std::fs::write(&file, "text").expect("a file");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o604);
        std::fs::set_permissions(&file, mode).expect("the owner");
        let stranger = Token::new(u32::MAX - 7, u32::MAX - 7, Vec::new());
        let permissions = computed_permissions(&file, &stranger).expect("a file");
        let expected = Permissions {
            read: true,
            write: false,
            execute: false,
        };
        assert_eq!(permissions, expected);
    }
}
