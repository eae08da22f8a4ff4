//! The domain of the server: every user and group of Unix is an account of it, too.
//!
//! The last number of a SID contains the uid or gid, as Samba computes it without a database:
//! 1000 + 2 uid for users, 1001 + 2 gid for groups. ("algorithmic rid base", smb.conf(5)). So the
//! SIDs are the same after a restart, and on every server with the same SID of its domain.

use proto::account::KnownAccount;
use vfs::accounts::UnixAccount;
use wire::rpc::lsarpc::SidKind;
use wire::security::Sid;

use super::domain::{AccountName, Domain};
use super::unix::name_of;
use crate::unix_account;

/// The number of the user with uid 0. Lower ones are well-known accounts of Windows.
const BASE: u32 = 1_000;

/// The domain of the server.
#[derive(Debug)]
pub(super) struct LocalDomain {
    name: String,
    sid: Sid,
}

impl LocalDomain {
    /// Makes the domain of a server with this NetBIOS name.
    pub(super) fn new(name: &str, sid: Sid) -> Self {
        Self {
            name: name.to_owned(),
            sid,
        }
    }

    /// The SID of an account; `None` if its number is too large.
    fn sid_of(&self, account: UnixAccount) -> Option<Sid> {
        let (id, kind) = match account {
            UnixAccount::User(uid) => (uid, 0),
            UnixAccount::Group(gid) => (gid, 1),
        };
        let rid = id.checked_mul(2)?.checked_add(BASE + kind)?;
        self.sid.with_rid(rid)
    }
}

impl Domain for LocalDomain {
    fn to_unix(&self, sid: &Sid) -> Option<UnixAccount> {
        if sid.domain() != Some(self.sid) {
            return None;
        }
        let offset = sid.sub_authorities().last()?.checked_sub(BASE)?;
        Some(match offset % 2 {
            0 => UnixAccount::User(offset / 2),
            _ => UnixAccount::Group(offset / 2),
        })
    }

    /// New files have the SIDs of Unix, which other servers with the same directory know.
    fn shown(&self, _: UnixAccount) -> Option<Sid> {
        None
    }

    fn describe(&self, sid: &Sid) -> Option<KnownAccount> {
        let account = |name, kind| KnownAccount {
            sid: *sid,
            domain: self.name.clone(),
            name,
            kind,
        };
        if *sid == self.sid {
            return Some(account(String::new(), SidKind::DOMAIN));
        }
        let unix = self.to_unix(sid)?;
        let kind = match unix {
            UnixAccount::User(_) => SidKind::USER,
            UnixAccount::Group(_) => SidKind::ALIAS,
        };
        Some(account(name_of(unix)?, kind))
    }

    fn find(&self, name: &AccountName<'_>) -> Option<KnownAccount> {
        if name.is_domain(&self.name) {
            return self.describe(&self.sid);
        }
        if !name.may_be_of(&self.name) {
            return None;
        }
        let user = unix_account::uid(name.name).map(UnixAccount::User);
        let group = || unix_account::gid(name.name).map(UnixAccount::Group);
        let account = user.or_else(group)?;
        self.describe(&self.sid_of(account)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_accounts_are_distinct() {
        let domain = LocalDomain::new("BEAM", "S-1-5-21-1-2-3".parse().expect("a SID"));
        for id in [0, 1, 2001, 65_534, 2_147_482_647] {
            for account in [UnixAccount::User(id), UnixAccount::Group(id)] {
                let sid = domain.sid_of(account).expect("a small number");
                assert_eq!(domain.to_unix(&sid), Some(account));
            }
        }
        assert_eq!(domain.sid_of(UnixAccount::User(u32::MAX / 2)), None);
        assert_eq!(domain.sid_of(UnixAccount::Group(u32::MAX - 1)), None);
    }
}
