//! Mode, owner and group, and what a target does not keep of them.

use crate::failure::Failure;

/// Mode, owner and group of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unix {
    /// Permission bits of chmod(2): `st_mode & 07777`.
    pub(crate) mode: u32,
    /// The user that owns the file; `None` if the server does not report a number.
    pub(crate) uid: Option<u32>,
    /// The group that owns the file; `None` if the server does not report a number.
    pub(crate) gid: Option<u32>,
}

/// The parts that a target does not keep, with the reasons.
#[derive(Debug, Default)]
pub(crate) struct Unkept {
    /// The mode.
    pub(crate) mode: Option<Failure>,
    /// Owner and group. Few users may set another owner.
    pub(crate) owner: Option<Failure>,
}

impl Unix {
    /// Whether `old` has another owner or group than this one, as far as both are known.
    pub(super) fn has_other_owner(&self, old: Option<&Self>) -> bool {
        let differs = |new: Option<u32>, old: Option<u32>| new.is_some() && new != old;
        let (uid, gid) = old.map_or((None, None), |old| (old.uid, old.gid));
        differs(self.uid, uid) || differs(self.gid, gid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_known_owner_differs() {
        let unix = |uid, gid| Unix { mode: 0, uid, gid };
        let new = unix(Some(1), None);
        assert!(!new.has_other_owner(Some(&unix(Some(1), Some(9)))));
        assert!(new.has_other_owner(Some(&unix(Some(2), None))));
        assert!(new.has_other_owner(None));
        assert!(!unix(None, None).has_other_owner(None));
    }
}
