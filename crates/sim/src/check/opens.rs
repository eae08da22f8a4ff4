//! Share modes: no two opens of a file conflict. \[MS-FSA\] 2.1.5.1.2

use std::collections::BTreeMap;

use proto::time::Instant;
use wire::access::{AccessMask, ShareAccess};

use crate::check::{Check, ensure};

/// An open that certainly exists: the client received the answer to its CREATE and has not sent its
/// CLOSE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    /// Number of the file.
    pub(crate) key: u64,
    /// Requested rights; the server granted all of them.
    pub(crate) access: AccessMask,
    /// Share mode: the accesses that the open permits to other opens.
    pub(crate) share: ShareAccess,
    /// Whether the open has the SMB3 POSIX extensions: such opens share everything with each other.
    pub(crate) is_posix: bool,
}

/// Identifies an open: its client and the client's number for it.
pub(crate) type Holder = (usize, u64);

/// All opens that certainly exist.
#[derive(Debug, Default)]
pub(crate) struct Opens {
    held: BTreeMap<Holder, Held>,
    /// Opens that have lost their session, and the time until which they certainly exist.
    disconnected: Vec<(Instant, Holder, Held)>,
}

const READS: AccessMask = AccessMask(AccessMask::FILE_READ_DATA.0 | AccessMask::FILE_EXECUTE.0);
const WRITES: AccessMask =
    AccessMask(AccessMask::FILE_WRITE_DATA.0 | AccessMask::FILE_APPEND_DATA.0);

/// The access of one open, and the share mode with which another open permits it.
const USES: [(AccessMask, ShareAccess); 3] = [
    (READS, ShareAccess::READ),
    (WRITES, ShareAccess::WRITE),
    (AccessMask::DELETE, ShareAccess::DELETE),
];

impl Opens {
    /// The client received the answer to a CREATE.
    pub(crate) fn opened(&mut self, holder: Holder, held: Held) -> Check {
        let disconnected = self.disconnected.iter().map(|(_, other, its)| (other, its));
        for (other, its) in self.held.iter().chain(disconnected) {
            let is_alike = its.key == held.key;
            ensure(!is_alike || is_allowed(its, &held), || {
                format!("{holder:?} {held:x?} was opened beside {other:?} {its:x?}")
            })?;
        }
        self.held.insert(holder, held);
        Ok(())
    }

    /// The client sends a CLOSE, or another request that ends the open.
    pub(crate) fn closing(&mut self, holder: Holder) {
        self.held.remove(&holder);
        self.disconnected.retain(|(_, other, _)| *other != holder);
    }

    /// The session of an open has lost its last connection; the open exists until this time.
    /// Returns whether it certainly existed before.
    pub(crate) fn disconnected(&mut self, holder: Holder, until: Instant) -> bool {
        let held = self.held.remove(&holder);
        let held = held.map(|held| (until, holder, held));
        self.disconnected.extend(held);
        held.is_some()
    }

    /// The client has reconnected to an open. It held its share mode all the time.
    pub(crate) fn reconnected(&mut self, holder: Holder) -> Check {
        let mut disconnected = self.disconnected.iter();
        let index = disconnected.position(|(_, other, _)| *other == holder);
        match index.map(|index| self.disconnected.swap_remove(index)) {
            Some((_, _, held)) => self.opened(holder, held),
            // The server was late to close it.
            None => Ok(()),
        }
    }

    /// A reconnect to an open has failed: `is_missing` if the server does not have it.
    pub(crate) fn lost(&mut self, holder: Holder, is_missing: bool) -> Check {
        let before = self.disconnected.len();
        self.disconnected.retain(|(_, other, _)| *other != holder);
        let is_early = self.disconnected.len() < before;
        ensure(!is_missing || !is_early, || {
            format!("the server has lost the open {holder:?} before its time was up")
        })
    }

    /// Forgets disconnected opens after their deadline.
    pub(crate) fn expire(&mut self, now: Instant) {
        self.disconnected.retain(|(until, _, _)| *until > now);
    }
}

fn is_allowed(one: &Held, other: &Held) -> bool {
    let uses = |open: &Held| {
        USES.iter()
            .any(|(access, _)| open.access.intersects(*access))
    };
    if one.is_posix && other.is_posix {
        return true;
    }
    // Share modes do not apply to opens that neither read nor write nor delete.
    if !uses(one) || !uses(other) {
        return true;
    }
    let allows = |by: &Held, open: &Held| {
        (USES.iter())
            .all(|(access, share)| !open.access.intersects(*access) || by.share.contains(*share))
    };
    allows(one, other) && allows(other, one)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(access: AccessMask, share: ShareAccess) -> Held {
        Held {
            key: 1,
            access,
            share,
            is_posix: false,
        }
    }

    #[test]
    fn a_conflict_is_found_and_a_close_ends_it() {
        let mut opens = Opens::default();
        let reader = held(AccessMask::FILE_READ_DATA, ShareAccess::READ);
        let writer = held(AccessMask::FILE_WRITE_DATA, ShareAccess::READ);
        assert_eq!(opens.opened((0, 0), reader), Ok(()));
        assert_eq!(opens.opened((0, 1), reader), Ok(()));
        assert!(opens.opened((1, 0), writer).is_err());
        opens.closing((0, 0));
        opens.closing((0, 1));
        assert_eq!(opens.opened((1, 0), writer), Ok(()));
    }

    #[test]
    fn a_disconnected_open_conflicts_until_its_time_is_up() {
        let mut opens = Opens::default();
        let reader = held(AccessMask::FILE_READ_DATA, ShareAccess::READ);
        let writer = held(AccessMask::FILE_WRITE_DATA, ShareAccess::READ);
        let at = |seconds| Instant(std::time::Duration::from_secs(seconds));
        assert_eq!(opens.opened((0, 0), reader), Ok(()));
        assert!(opens.disconnected((0, 0), at(5)));
        assert!(!opens.disconnected((0, 0), at(9)));
        opens.expire(at(4));
        assert!(opens.opened((1, 0), writer).is_err());
        opens.expire(at(5));
        assert_eq!(opens.opened((1, 0), writer), Ok(()));
    }

    #[test]
    fn posix_opens_share_everything_with_each_other() {
        let mut opens = Opens::default();
        let posix = Held {
            is_posix: true,
            ..held(AccessMask::FILE_WRITE_DATA, ShareAccess::NONE)
        };
        let other = held(AccessMask::FILE_READ_DATA, ShareAccess::WRITE);
        assert_eq!(opens.opened((0, 0), posix), Ok(()));
        assert_eq!(opens.opened((1, 0), posix), Ok(()));
        assert!(opens.opened((2, 0), other).is_err());
    }

    #[test]
    fn an_open_for_attributes_conflicts_with_no_other() {
        let mut opens = Opens::default();
        let silent = held(AccessMask::FILE_READ_ATTRIBUTES, ShareAccess::NONE);
        let writer = held(AccessMask::FILE_WRITE_DATA, ShareAccess::NONE);
        assert_eq!(opens.opened((0, 0), silent), Ok(()));
        assert_eq!(opens.opened((0, 1), writer), Ok(()));
    }
}
