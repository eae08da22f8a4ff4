//! The identity with which file operations run.

use alloc::vec::Vec;

use wire::security::Sid;

/// Maximum number of SIDs of a domain (user and groups) in a [`Token`]. Windows allows the same
/// number in a logon (KB 328889).
pub const DOMAIN_SIDS_MAX: usize = 1024;

/// The identity of a user: Unix credentials, and SIDs for access control lists. The I/O driver
/// makes it from the account; the file system checks access with it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token {
    /// Unix user id (uid) with which the file system checks access to files.
    pub uid: u32,
    /// Unix group id (gid) of the user's primary group.
    pub gid: u32,
    /// Unix group ids (gid) of the user's supplementary groups.
    pub groups: Vec<u32>,
    /// Whether a password or ticket proved the identity.
    logon: Logon,
    /// SIDs of the user and of its groups in a domain; at most [`DOMAIN_SIDS_MAX`]. Empty for a
    /// local account.
    domain_sids: Vec<Sid>,
}

/// The kind of a logon. It decides about the well-known groups of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Logon {
    /// A user that has proved its identity: a member of Authenticated Users and of Users.
    #[default]
    Authenticated,
    /// A guest: a member of Guests.
    Guest,
    /// A logon without a name: the user Anonymous.
    Anonymous,
}

impl Logon {
    /// The well-known groups of the user. \[MS-DTYP\] 2.4.2.4
    fn sids(self) -> &'static [Sid] {
        match self {
            Self::Authenticated => &[
                Sid::EVERYONE,
                Sid::NETWORK,
                Sid::AUTHENTICATED_USERS,
                Sid::BUILTIN_USERS,
            ],
            Self::Guest => &[Sid::EVERYONE, Sid::NETWORK, Sid::BUILTIN_GUESTS],
            Self::Anonymous => &[Sid::EVERYONE, Sid::NETWORK, Sid::ANONYMOUS],
        }
    }
}

impl Token {
    /// Makes the token of a local account from its Unix user id, the id of its primary group and
    /// the ids of its supplementary groups. The token has no domain SIDs.
    pub fn new(uid: u32, gid: u32, groups: Vec<u32>) -> Self {
        Self {
            uid,
            gid,
            groups,
            logon: Logon::Authenticated,
            domain_sids: Vec::new(),
        }
    }

    /// Returns the identity with another kind of logon.
    #[must_use]
    pub fn with_logon(self, logon: Logon) -> Self {
        Self { logon, ..self }
    }

    /// Returns the identity with these SIDs of a domain: first the SID of the user, then those of
    /// groups. `None` for more than [`DOMAIN_SIDS_MAX`] SIDs.
    #[must_use]
    pub fn with_domain_sids(self, domain_sids: Vec<Sid>) -> Option<Self> {
        let is_within_limit = domain_sids.len() <= DOMAIN_SIDS_MAX;
        is_within_limit.then_some(Self {
            domain_sids,
            ..self
        })
    }

    /// Returns the SIDs that a domain gave to the user: first the SID of the user, then those of
    /// groups. Empty for a local account.
    pub fn domain_sids(&self) -> &[Sid] {
        &self.domain_sids
    }

    /// Returns all SIDs of the user: S-1-22-1-uid, S-1-22-2-gid for each Unix group (the primary
    /// group first), the SIDs of a domain, then those of well-known groups: Everyone, Network,
    /// Authenticated Users and Users.
    pub fn sids(&self) -> impl Iterator<Item = Sid> + '_ {
        let groups = core::iter::once(self.gid).chain(self.groups.iter().copied());
        core::iter::once(Sid::unix_user(self.uid))
            .chain(groups.map(Sid::unix_group))
            .chain(self.domain_sids.iter().copied())
            .chain(self.logon.sids().iter().copied())
    }

    /// Returns whether an access control entry for this SID applies to the user: it is one of
    /// [`sids`](Self::sids).
    pub fn has_sid(&self, sid: &Sid) -> bool {
        self.sids().any(|own| own == *sid)
    }

    /// Returns whether the Unix user is root (uid 0), which the file system does not restrict.
    pub fn is_root(&self) -> bool {
        self.uid == 0
    }

    /// Returns whether the Unix user is in this group: as the primary or as a supplementary group.
    pub fn has_group(&self, gid: u32) -> bool {
        self.gid == gid || self.groups.contains(&gid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unix_ids_have_sids() {
        let token = Token::new(1000, 100, Vec::from([4, 24]));
        let expected = [
            Sid::unix_user(1000),
            Sid::unix_group(100),
            Sid::unix_group(4),
            Sid::unix_group(24),
        ];
        assert!(token.sids().take(4).eq(expected));
        assert!(token.has_sid(&Sid::unix_group(24)));
        assert!(!token.has_sid(&Sid::unix_user(100)));
        assert!(!token.has_sid(&Sid::unix_group(1000)));
    }

    #[test]
    fn the_logon_decides_about_well_known_groups() {
        let user = Token::new(1, 1, Vec::new());
        let has = |logon, sid| user.clone().with_logon(logon).has_sid(&sid);
        for logon in [Logon::Authenticated, Logon::Guest, Logon::Anonymous] {
            assert!(has(logon, Sid::EVERYONE) && has(logon, Sid::NETWORK));
            assert!(!has(logon, Sid::INTERACTIVE));
        }
        assert!(user.has_sid(&Sid::AUTHENTICATED_USERS) && user.has_sid(&Sid::BUILTIN_USERS));
        assert!(!has(Logon::Guest, Sid::AUTHENTICATED_USERS));
        assert!(has(Logon::Guest, Sid::BUILTIN_GUESTS));
        assert!(has(Logon::Anonymous, Sid::ANONYMOUS));
    }

    #[test]
    fn domain_sids_follow_and_have_a_limit() {
        let user = Sid::new(5, &[21, 1, 2, 3, 1104]).expect("a valid SID");
        let token = Token::new(1, 1, Vec::new());
        let with = |count| (token.clone()).with_domain_sids(alloc::vec![user; count]);
        let member = with(1).expect("one SID");
        assert!(member.has_sid(&user) && !token.has_sid(&user));
        assert_eq!(member.sids().nth(2), Some(user));
        assert!(with(DOMAIN_SIDS_MAX).is_some());
        assert_eq!(with(DOMAIN_SIDS_MAX + 1), None);
    }
}
