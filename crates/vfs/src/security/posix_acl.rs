//! Access control lists of Linux (POSIX.1e draft 17), as the extended attributes
//! `system.posix_acl_access` and `system.posix_acl_default` hold them. acl(5)

/// Name of the extended attribute with the access control list of a file.
pub(crate) const ACCESS: &str = "system.posix_acl_access";
/// Name of the extended attribute with the list that new files in a directory get.
pub(crate) const DEFAULT: &str = "system.posix_acl_default";

/// The version of the format. linux/posix_acl_xattr.h
const VERSION: u32 = 2;
/// Length of an entry in bytes: tag, permissions and identifier.
const ENTRY_LEN: usize = 8;
/// The identifier in entries without one.
const NO_ID: u32 = u32::MAX;
/// Maximum number of entries that the server reads and writes. An attribute of 64 KiB could hold
/// 8,191; file systems accept less: ext4 507, xfs 5,461.
const ENTRIES_MAX: usize = 8_191;

/// The kind of an entry, in the order of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Tag {
    /// The owner of the file.
    UserObj,
    /// The user with this uid.
    User(u32),
    /// The group of the file.
    GroupObj,
    /// The group with this gid.
    Group(u32),
    /// The permissions that users and groups with entries, and the group of the file, have at
    /// most.
    Mask,
    /// All others.
    Other,
}

/// An entry: the permissions of a user or group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) tag: Tag,
    /// 4 for read, 2 for write, 1 for execute.
    pub(crate) permissions: u16,
}

/// An access control list. A list without entries means that the directory has no default list.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct PosixAcl {
    /// Sorted by tag.
    entries: Vec<Entry>,
}

impl PosixAcl {
    /// Makes a list of these entries, in any order.
    pub(crate) fn new(mut entries: Vec<Entry>) -> Self {
        entries.sort_by_key(|entry| entry.tag);
        Self { entries }
    }

    /// The list that stands for a mode.
    pub(crate) fn of_mode(mode: u32) -> Self {
        let entry = |tag, shift: u32| Entry {
            tag,
            permissions: (mode >> shift & 0o7) as u16,
        };
        Self::new(vec![
            entry(Tag::UserObj, 6),
            entry(Tag::GroupObj, 3),
            entry(Tag::Other, 0),
        ])
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Whether the list has no more than the mode of a file can express.
    #[cfg(test)]
    pub(crate) fn is_mode(&self) -> bool {
        let is_basic =
            |entry: &Entry| matches!(entry.tag, Tag::UserObj | Tag::GroupObj | Tag::Other);
        self.entries.iter().all(is_basic)
    }

    /// The permissions of the entry with a tag; `None` if there is no such entry.
    pub(crate) fn permissions(&self, tag: Tag) -> Option<u16> {
        let entry = self.entries.iter().find(|entry| entry.tag == tag)?;
        Some(entry.permissions)
    }

    /// The nine permission bits that the kernel shows for a file with this list: those of owner,
    /// mask (or group) and others.
    pub(crate) fn mode(&self) -> u32 {
        let of = |tag| self.permissions(tag).map(u32::from);
        let group = of(Tag::Mask).or(of(Tag::GroupObj));
        let [user, group, other] = [of(Tag::UserObj), group, of(Tag::Other)];
        user.unwrap_or(0) << 6 | group.unwrap_or(0) << 3 | other.unwrap_or(0)
    }

    /// Decodes the value of an extended attribute. `None` if the value is not valid.
    pub(crate) fn decode(value: &[u8]) -> Option<Self> {
        let (version, entries) = value.split_first_chunk()?;
        let (entries, rest) = entries.as_chunks::<ENTRY_LEN>();
        let is_valid = u32::from_le_bytes(*version) == VERSION
            && rest.is_empty()
            && entries.len() <= ENTRIES_MAX;
        if !is_valid {
            return None;
        }
        let entries = entries.iter().map(decode_entry).collect::<Option<_>>()?;
        Some(Self::new(entries))
    }

    /// Encodes the value of an extended attribute.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut value = VERSION.to_le_bytes().to_vec();
        for Entry { tag, permissions } in &self.entries {
            let (tag, id) = match *tag {
                Tag::UserObj => (1_u16, NO_ID),
                Tag::User(uid) => (2, uid),
                Tag::GroupObj => (4, NO_ID),
                Tag::Group(gid) => (8, gid),
                Tag::Mask => (16, NO_ID),
                Tag::Other => (32, NO_ID),
            };
            value.extend(tag.to_le_bytes());
            value.extend(permissions.to_le_bytes());
            value.extend(id.to_le_bytes());
        }
        value
    }
}

fn decode_entry(entry: &[u8; ENTRY_LEN]) -> Option<Entry> {
    let [t0, t1, p0, p1, id @ ..] = *entry;
    let id = u32::from_le_bytes(id);
    let tag = match u16::from_le_bytes([t0, t1]) {
        1 => Tag::UserObj,
        2 => Tag::User(id),
        4 => Tag::GroupObj,
        8 => Tag::Group(id),
        16 => Tag::Mask,
        32 => Tag::Other,
        _ => return None,
    };
    Some(Entry {
        tag,
        permissions: u16::from_le_bytes([p0, p1]) & 0o7,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_those_of_the_kernel() {
        // setfacl -m u:2001:rw of a file with mode 0640
        let value = [
            2, 0, 0, 0, 1, 0, 6, 0, 0xFF, 0xFF, 0xFF, 0xFF, 2, 0, 6, 0, 0xD1, 7, 0, 0, 4, 0, 4, 0,
            0xFF, 0xFF, 0xFF, 0xFF, 16, 0, 6, 0, 0xFF, 0xFF, 0xFF, 0xFF, 32, 0, 0, 0, 0xFF, 0xFF,
            0xFF, 0xFF,
        ];
        let list = PosixAcl::decode(&value).expect("a list");
        assert_eq!(list.permissions(Tag::User(2001)), Some(6));
        assert_eq!(list.mode(), 0o660);
        assert!(!list.is_mode());
        assert_eq!(list.encode(), value);
    }

    #[test]
    fn a_mode_is_a_list() {
        let list = PosixAcl::of_mode(0o100_754);
        assert_eq!(list.mode(), 0o754);
        assert!(list.is_mode());
        assert_eq!(PosixAcl::decode(&list.encode()), Some(list));
    }

    #[test]
    fn other_values_are_refused() {
        let good = PosixAcl::of_mode(0o644).encode();
        for end in 0..good.len() {
            let is_short_list = end >= 4 && (end - 4) % ENTRY_LEN == 0;
            assert_eq!(PosixAcl::decode(&good[..end]).is_some(), is_short_list);
        }
        let mut other = good.clone();
        other[0] = 3;
        assert_eq!(PosixAcl::decode(&other), None);
        let mut other = good;
        other[4] = 3;
        assert_eq!(PosixAcl::decode(&other), None);
    }
}
