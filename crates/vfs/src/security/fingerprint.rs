//! The hash of owner, group, mode and access control lists of a file, by which Samba and this
//! server notice that a local program has changed them.
//!
//! Samba encodes a structure `smb_acl_wrapper` in NDR and hashes it with SHA-256. (librpc/idl/
//! smb_acl.idl) The structure has two pointers to lists, the owner, the group and st_mode. A list
//! is a conformant array of entries: the tag, the identifier of a user or group, the permissions.

use super::posix_acl::{PosixAcl, Tag};

/// Length of the hash in bytes. The attribute has place for 64; the rest is 0.
pub(crate) const HASH_LEN: usize = 32;

/// What the hash covers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Permissions<'a> {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// st_mode, with the type of the file.
    pub(crate) mode: u32,
    pub(crate) access: &'a PosixAcl,
    /// The default list of a directory, which may be empty; `None` for other files.
    pub(crate) default: Option<&'a PosixAcl>,
}

/// Returns the SHA-256 hash over owner, group, mode and lists.
pub(crate) fn fingerprint(permissions: &Permissions<'_>) -> [u8; HASH_LEN] {
    crypto::sha256(&encode(permissions))
}

/// The structure in NDR (32 bits, little endian).
fn encode(permissions: &Permissions<'_>) -> Vec<u8> {
    /// The first number of a pointer that is not NULL.
    const REFERENT: u32 = 0x0002_0000;
    let Permissions {
        uid,
        gid,
        mode,
        access,
        default,
    } = *permissions;
    let mut ndr = Vec::new();
    put_u32(&mut ndr, REFERENT);
    put_u32(&mut ndr, default.map_or(0, |_| REFERENT + 4));
    put_hyper(&mut ndr, uid);
    put_hyper(&mut ndr, gid);
    put_u32(&mut ndr, mode);
    put_list(&mut ndr, access);
    default.iter().for_each(|list| put_list(&mut ndr, list));
    ndr
}

fn put_list(ndr: &mut Vec<u8>, list: &PosixAcl) {
    let count = u32::try_from(list.entries().len()).expect("a list has at most 8,191 entries");
    put_u32(ndr, count);
    align(ndr, 8);
    put_u32(ndr, count);
    put_u32(ndr, 0);
    for entry in list.entries() {
        let (tag, id) = match entry.tag {
            Tag::User(uid) => (1_u16, Some(uid)),
            Tag::UserObj => (2, None),
            Tag::Group(gid) => (3, Some(gid)),
            Tag::GroupObj => (4, None),
            Tag::Other => (5, None),
            Tag::Mask => (6, None),
        };
        align(ndr, 8);
        ndr.extend(tag.to_le_bytes());
        ndr.extend(tag.to_le_bytes());
        id.iter().for_each(|id| put_hyper(ndr, *id));
        put_u32(ndr, entry.permissions.into());
    }
}

fn align(ndr: &mut Vec<u8>, alignment: usize) {
    ndr.resize(ndr.len().next_multiple_of(alignment), 0);
}

fn put_u32(ndr: &mut Vec<u8>, value: u32) {
    align(ndr, 4);
    ndr.extend(value.to_le_bytes());
}

fn put_hyper(ndr: &mut Vec<u8>, value: u32) {
    align(ndr, 8);
    ndr.extend(u64::from(value).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::super::posix_acl::Entry;
    use super::*;

    fn permissions<'a>(access: &'a PosixAcl, default: Option<&'a PosixAcl>) -> Permissions<'a> {
        Permissions {
            uid: 2001,
            gid: 2001,
            mode: 0o100_644,
            access,
            default,
        }
    }

    #[test]
    fn the_structure_is_aligned() {
        let list = PosixAcl::new(vec![
            Entry {
                tag: Tag::UserObj,
                permissions: 6,
            },
            Entry {
                tag: Tag::User(7),
                permissions: 4,
            },
        ]);
        let ndr = encode(&permissions(&list, None));
        let expected: [&[u8]; 12] = [
            &[0, 0, 2, 0, 0, 0, 0, 0],
            &[0xD1, 7, 0, 0, 0, 0, 0, 0],
            &[0xD1, 7, 0, 0, 0, 0, 0, 0],
            &[0xA4, 0x81, 0, 0],
            &[2, 0, 0, 0],
            &[2, 0, 0, 0],
            &[0, 0, 0, 0],
            &[2, 0, 2, 0, 6, 0, 0, 0],
            &[1, 0, 1, 0],
            &[0, 0, 0, 0],
            &[7, 0, 0, 0, 0, 0, 0, 0],
            &[4, 0, 0, 0],
        ];
        assert_eq!(ndr, expected.concat());
    }

    /// The values are those of smbd 4.25.1 for a file and a directory with these lists.
    #[test]
    fn the_hash_is_that_of_samba() {
        let entry = |tag, permissions| Entry { tag, permissions };
        let list = PosixAcl::new(vec![
            entry(Tag::UserObj, 7),
            entry(Tag::User(2001), 7),
            entry(Tag::GroupObj, 5),
            entry(Tag::Group(2001), 5),
            entry(Tag::Mask, 7),
            entry(Tag::Other, 5),
        ]);
        let file = Permissions {
            mode: 0o100_775,
            ..permissions(&list, None)
        };
        assert_eq!(fingerprint(&file)[..4], [0x15, 0xD5, 0xFC, 0x4E]);
        let directory = Permissions {
            mode: 0o040_775,
            ..permissions(&list, Some(&list))
        };
        assert_eq!(fingerprint(&directory)[..4], [0x03, 0x74, 0x03, 0x92]);
    }

    #[test]
    fn every_part_counts() {
        let list = PosixAcl::of_mode(0o644);
        let base = permissions(&list, None);
        let hash = fingerprint(&base);
        let other = PosixAcl::of_mode(0o640);
        let empty = PosixAcl::default();
        let changed = [
            Permissions { uid: 1, ..base },
            Permissions { gid: 1, ..base },
            Permissions {
                mode: 0o640,
                ..base
            },
            permissions(&other, None),
            permissions(&list, Some(&empty)),
        ];
        for changed in changed {
            assert_ne!(fingerprint(&changed), hash, "{changed:?}");
        }
    }
}
