//! Share modes: which opens of a stream are possible at one time. \[MS-FSA\] 2.1.4.12

use wire::access::{AccessMask, ShareAccess};

/// The rights of an open that share modes govern, and its share mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sharing {
    /// Rights.
    pub(crate) access: AccessMask,
    /// The rights that other opens may have.
    pub(crate) share: ShareAccess,
    /// Whether the open is one of the SMB3 POSIX extensions.
    pub(crate) is_posix: bool,
}

/// Rights that a share mode is about, and the bit of the share mode that allows them.
///
/// FILE_APPEND_DATA counts as writing and FILE_EXECUTE as reading, as in Windows and Samba.
const KINDS: [(AccessMask, ShareAccess); 3] = [
    (
        AccessMask(AccessMask::FILE_READ_DATA.0 | AccessMask::FILE_EXECUTE.0),
        ShareAccess::READ,
    ),
    (
        AccessMask(AccessMask::FILE_WRITE_DATA.0 | AccessMask::FILE_APPEND_DATA.0),
        ShareAccess::WRITE,
    ),
    (AccessMask::DELETE, ShareAccess::DELETE),
];

impl Sharing {
    /// Whether neither of two opens does what the other does not allow. An open that neither
    /// reads, writes nor deletes is compatible with all share modes: \[MS-FSA\] 2.1.4.12,
    /// and Windows asks for attributes so all the time.
    pub(crate) fn is_compatible(self, other: Self) -> bool {
        if self.is_stat_only() || other.is_stat_only() {
            return true;
        }
        // Unix has no share modes. Samba applies them, so that cifs.ko, which deletes with the
        // share mode DELETE alone, gives an open file another name instead.
        if self.is_posix && other.is_posix {
            return true;
        }
        KINDS.iter().all(|(rights, share)| {
            let is_allowed =
                |one: Self, by: Self| !one.access.intersects(*rights) || by.share.contains(*share);
            is_allowed(self, other) && is_allowed(other, self)
        })
    }

    /// Whether no right is held that a share mode is about.
    fn is_stat_only(self) -> bool {
        !KINDS
            .iter()
            .any(|(rights, _)| self.access.intersects(*rights))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each combination of reading, writing and deleting.
    fn access(bits: u32) -> AccessMask {
        let mut access = AccessMask::FILE_READ_ATTRIBUTES;
        for (bit, right) in [
            (1, AccessMask::FILE_READ_DATA),
            (2, AccessMask::FILE_WRITE_DATA),
            (4, AccessMask::DELETE),
        ] {
            if bits & bit != 0 {
                access |= right;
            }
        }
        access
    }

    #[test]
    fn all_pairs_of_access_and_share_follow_the_rule() {
        for first in 0..64 {
            for second in 0..64 {
                let (access1, share1) = (first & 7, first >> 3);
                let (access2, share2) = (second & 7, second >> 3);
                // The bits of access and share stand in the same places.
                let conflicts = access1 & !share2 | access2 & !share1;
                let expected = access1 == 0 || access2 == 0 || conflicts == 0;
                let one = Sharing {
                    access: access(access1),
                    share: ShareAccess(share1),
                    is_posix: false,
                };
                let other = Sharing {
                    access: access(access2),
                    share: ShareAccess(share2),
                    is_posix: false,
                };
                assert_eq!(one.is_compatible(other), expected, "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn opens_of_the_posix_extensions_share_everything_among_themselves() {
        let deaf = |is_posix| Sharing {
            access: access(7),
            share: ShareAccess::NONE,
            is_posix,
        };
        assert!(deaf(true).is_compatible(deaf(true)));
        assert!(!deaf(true).is_compatible(deaf(false)));
        assert!(!deaf(false).is_compatible(deaf(true)));
    }

    #[test]
    fn execute_reads_and_append_writes() {
        let with = |access, share| Sharing {
            access,
            share,
            is_posix: false,
        };
        let reader = with(AccessMask::FILE_READ_DATA, ShareAccess::READ);
        let executer = with(AccessMask::FILE_EXECUTE, ShareAccess::READ);
        let appender = with(
            AccessMask::FILE_APPEND_DATA,
            ShareAccess::READ | ShareAccess::WRITE,
        );
        let deaf = with(AccessMask::FILE_READ_DATA, ShareAccess::NONE);
        assert!(reader.is_compatible(executer));
        assert!(!deaf.is_compatible(executer));
        assert!(!reader.is_compatible(appender));
    }
}
