//! SIDs of accounts of Unix: which users and groups the SIDs in security descriptors stand for.
//!
//! Every user and group of Unix has the SID S-1-22-1-uid or S-1-22-2-gid. An account can have
//! further SIDs, such as those of a domain. Descriptors are stored as clients send them; each check
//! replaces the further SIDs by those of Unix first, so that all of them mean the same.

use std::borrow::Cow;
use std::fmt;

use wire::security::{Ace, Acl, SecurityDescriptor, Sid};

/// A user or group of Unix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnixAccount {
    /// The user with this uid.
    User(u32),
    /// The group with this gid.
    Group(u32),
}

impl UnixAccount {
    /// Returns the account in a SID S-1-22-1-uid or S-1-22-2-gid, or in the SIDs that NFS services
    /// of Windows use; `None` for another SID.
    pub fn of_unix_sid(sid: &Sid) -> Option<Self> {
        let user = sid.to_unix_user().map(Self::User);
        user.or_else(|| sid.to_unix_group().map(Self::Group))
    }

    /// Returns the SID S-1-22-1-uid or S-1-22-2-gid of the account.
    pub fn unix_sid(self) -> Sid {
        match self {
            Self::User(uid) => Sid::unix_user(uid),
            Self::Group(gid) => Sid::unix_group(gid),
        }
    }
}

/// The further SIDs of accounts of Unix. The functions must not block: each check of an access
/// calls them.
pub trait Accounts: fmt::Debug + Send + Sync {
    /// Returns the account that a SID stands for; `None` for a SID without one. The caller does not
    /// ask for SIDs that contain a uid or gid.
    fn to_unix(&self, sid: &Sid) -> Option<UnixAccount>;

    /// Returns the SID that the server shows for an account instead of S-1-22-1-uid or
    /// S-1-22-2-gid, and gives to its new files; `None` if it shows that one.
    fn shown(&self, account: UnixAccount) -> Option<Sid>;
}

/// No account has further SIDs.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnixAccounts;

impl Accounts for UnixAccounts {
    fn to_unix(&self, _: &Sid) -> Option<UnixAccount> {
        None
    }

    fn shown(&self, _: UnixAccount) -> Option<Sid> {
        None
    }
}

/// The descriptor with the SIDs of Unix, for checks.
pub(crate) fn with_unix_sids<'a>(
    accounts: &dyn Accounts,
    descriptor: &'a SecurityDescriptor,
) -> Cow<'a, SecurityDescriptor> {
    replaced(descriptor, |sid| match UnixAccount::of_unix_sid(sid) {
        Some(_) => None,
        None => accounts.to_unix(sid).map(UnixAccount::unix_sid),
    })
}

/// The descriptor with the SIDs that the server shows instead of those of Unix.
pub(crate) fn with_shown_sids(
    accounts: &dyn Accounts,
    descriptor: &SecurityDescriptor,
) -> SecurityDescriptor {
    let shown = |sid: &Sid| accounts.shown(UnixAccount::of_unix_sid(sid)?);
    replaced(descriptor, shown).into_owned()
}

/// The descriptor with other SIDs of owner, group and DACL. A list that grows too long stays.
fn replaced(
    descriptor: &SecurityDescriptor,
    other: impl Fn(&Sid) -> Option<Sid>,
) -> Cow<'_, SecurityDescriptor> {
    let entries = || descriptor.dacl.iter().flat_map(Acl::aces);
    let of_entries = entries().filter_map(|ace| match ace {
        Ace::Basic { sid, .. } => Some(sid),
        Ace::Other { .. } => None,
    });
    let mut sids = of_entries.chain(&descriptor.owner).chain(&descriptor.group);
    if !sids.any(|sid| other(sid).is_some()) {
        return Cow::Borrowed(descriptor);
    }
    let mut result = descriptor.clone();
    let replace = |sid: &mut Sid| *sid = other(sid).unwrap_or(*sid);
    result.owner.as_mut().map(replace);
    result.group.as_mut().map(replace);
    if let Some(dacl) = &descriptor.dacl {
        let mut list = Acl::new();
        let fits = dacl.aces().iter().all(|ace| {
            let mut ace = ace.clone();
            if let Ace::Basic { sid, .. } = &mut ace {
                replace(sid);
            }
            list.push(ace)
        });
        if fits {
            result.dacl = Some(list);
        }
    }
    Cow::Owned(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The user 7 has a SID of a domain.
    #[derive(Debug)]
    struct Domain;

    const OF_DOMAIN: &str = "S-1-5-21-1-2-3-1007";

    impl Accounts for Domain {
        fn to_unix(&self, sid: &Sid) -> Option<UnixAccount> {
            (sid.to_string() == OF_DOMAIN).then_some(UnixAccount::User(7))
        }

        fn shown(&self, account: UnixAccount) -> Option<Sid> {
            let sid = OF_DOMAIN.parse().expect("a SID");
            (account == UnixAccount::User(7)).then_some(sid)
        }
    }

    fn text(descriptor: &SecurityDescriptor) -> String {
        descriptor.to_sddl().expect("printable")
    }

    #[test]
    fn sids_of_domains_are_replaced_for_checks_and_for_clients() {
        let of_domain = format!("O:{OF_DOMAIN}G:BAD:(A;;FA;;;{OF_DOMAIN})(A;;FR;;;WD)");
        let of_unix = of_domain.replace(OF_DOMAIN, "S-1-22-1-7");
        let descriptor = of_domain.parse().expect("SDDL");
        let checked = with_unix_sids(&Domain, &descriptor);
        assert_eq!(text(&checked), of_unix);
        assert_eq!(text(&with_shown_sids(&Domain, &checked)), of_domain);
    }

    #[test]
    fn other_descriptors_are_not_copied() {
        let descriptor = "O:BAG:BAD:(A;;FR;;;WD)".parse().expect("SDDL");
        let checked = with_unix_sids(&Domain, &descriptor);
        assert!(matches!(checked, Cow::Borrowed(_)));
        assert!(matches!(
            with_unix_sids(&UnixAccounts, &descriptor),
            Cow::Borrowed(_)
        ));
    }

    #[test]
    fn sids_with_ids_of_unix_are_read() {
        let of = |text: &str| UnixAccount::of_unix_sid(&text.parse().expect("a SID"));
        assert_eq!(of("S-1-22-1-7"), Some(UnixAccount::User(7)));
        assert_eq!(of("S-1-22-2-7"), Some(UnixAccount::Group(7)));
        assert_eq!(of("S-1-5-32-544"), None);
    }
}
