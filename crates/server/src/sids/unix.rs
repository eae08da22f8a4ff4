//! The SIDs that contain a uid or gid, as Samba has them: `Unix User\NAME`, `Unix Group\NAME`.

use proto::account::KnownAccount;
use vfs::accounts::UnixAccount;
use wire::rpc::lsarpc::SidKind;
use wire::security::Sid;

use super::domain::{AccountName, Domain};
use crate::unix_account;

/// The domain of users. source3/lib/util_unixsids.c
const USERS: &str = "Unix User";
/// The domain of groups.
const GROUPS: &str = "Unix Group";

/// The users and groups of Unix.
#[derive(Debug)]
pub(super) struct UnixDomain;

impl Domain for UnixDomain {
    fn to_unix(&self, sid: &Sid) -> Option<UnixAccount> {
        UnixAccount::of_unix_sid(sid)
    }

    fn shown(&self, _: UnixAccount) -> Option<Sid> {
        None
    }

    fn describe(&self, sid: &Sid) -> Option<KnownAccount> {
        let account = UnixAccount::of_unix_sid(sid)?;
        Some(KnownAccount {
            sid: *sid,
            name: name_of(account)?,
            ..empty(account)
        })
    }

    /// A name without a domain is that of the user, if there is one.
    fn find(&self, name: &AccountName<'_>) -> Option<KnownAccount> {
        let of = |domain| name.may_be_of(domain);
        let user = of(USERS).then(|| unix_account::uid(name.name)).flatten();
        let group = || of(GROUPS).then(|| unix_account::gid(name.name)).flatten();
        let account = user.map(UnixAccount::User);
        let account = account.or_else(|| group().map(UnixAccount::Group))?;
        self.describe(&account.unix_sid())
    }
}

/// The name of an account of Unix.
pub(super) fn name_of(account: UnixAccount) -> Option<String> {
    match account {
        UnixAccount::User(uid) => unix_account::account_name(uid),
        UnixAccount::Group(gid) => unix_account::group_name(gid),
    }
}

fn empty(account: UnixAccount) -> KnownAccount {
    let (domain, kind) = match account {
        UnixAccount::User(_) => (USERS, SidKind::USER),
        UnixAccount::Group(_) => (GROUPS, SidKind::GROUP),
    };
    KnownAccount {
        sid: account.unix_sid(),
        domain: domain.to_owned(),
        name: String::new(),
        kind,
    }
}
