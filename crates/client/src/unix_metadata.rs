//! The Unix metadata of files that the SMB3 POSIX extensions report.

use wire::posix::PosixAttributes;
use wire::security::Sid;

/// Unix metadata of a file, which servers with the SMB3 POSIX extensions report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnixMetadata {
    /// Type and permissions of the file, as `st_mode` of stat(2). The type is that of a regular
    /// file if the server reports one that Unix does not have.
    pub mode: u32,
    /// Number of hard links (names) of the file.
    pub links: u32,
    /// SID of the user that owns the file.
    pub owner: Sid,
    /// SID of the group that owns the file.
    pub group: Sid,
    /// Number of the file system that the file is on. It has no meaning on another machine.
    pub device: u32,
}

impl UnixMetadata {
    /// Returns the number of the user that owns the file on the server; `None` if its SID has none:
    /// Samba reports the users of its own database by SIDs of its domain.
    pub fn uid(&self) -> Option<u32> {
        self.owner.to_unix_user()
    }

    /// Returns the number of the group that owns the file on the server; `None` if its SID has
    /// none.
    pub fn gid(&self) -> Option<u32> {
        self.group.to_unix_group()
    }

    /// Returns the permission bits of chmod(2): `st_mode & 07777`.
    pub fn permissions(&self) -> u32 {
        self.mode & 0o7777
    }

    pub(crate) fn new(attributes: &PosixAttributes) -> Self {
        let create = &attributes.create;
        let regular = 0o100_000 | create.mode.permissions();
        Self {
            mode: create.mode.to_unix().unwrap_or(regular),
            links: create.number_of_links,
            owner: create.owner,
            group: create.group,
            device: attributes.device,
        }
    }
}

#[cfg(test)]
mod tests {
    use wire::posix::{PosixCreateResponse, PosixMode};

    use super::*;

    #[test]
    fn unix_metadata_are_those_of_stat() {
        let attributes = PosixAttributes {
            device: 5,
            create: PosixCreateResponse {
                number_of_links: 2,
                reparse_tag: 0,
                mode: PosixMode::from_unix(0o140_750),
                owner: Sid::unix_user(1000),
                group: "S-1-5-32-544".parse().expect("a SID"),
            },
        };
        let unix = UnixMetadata::new(&attributes);
        assert_eq!((unix.mode, unix.permissions()), (0o140_750, 0o750));
        assert_eq!((unix.uid(), unix.gid(), unix.links), (Some(1000), None, 2));
        let unknown = PosixAttributes {
            create: PosixCreateResponse {
                mode: PosixMode(0o640 | 7 << 12),
                ..attributes.create
            },
            ..attributes
        };
        assert_eq!(UnixMetadata::new(&unknown).mode, 0o100_640);
    }
}
