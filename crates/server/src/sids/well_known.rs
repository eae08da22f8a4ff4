//! Users and groups that exist on every computer.

use proto::account::KnownAccount;
use vfs::accounts::UnixAccount;
use wire::rpc::lsarpc::SidKind;
use wire::security::{Sid, WELL_KNOWN, WellKnownSid};

use super::domain::{AccountName, Domain};

/// The domains of well-known accounts with a name, and an account of each.
const DOMAINS: [(&str, Sid); 2] = [
    ("BUILTIN", Sid::BUILTIN_USERS),
    ("NT AUTHORITY", Sid::LOCAL_SYSTEM),
];

/// The users and groups that exist on every computer. The server knows them by its rules, so none
/// is an account of Unix.
#[derive(Debug)]
pub(super) struct WellKnown;

impl Domain for WellKnown {
    fn to_unix(&self, _: &Sid) -> Option<UnixAccount> {
        None
    }

    fn shown(&self, _: UnixAccount) -> Option<Sid> {
        None
    }

    fn describe(&self, sid: &Sid) -> Option<KnownAccount> {
        let known = WELL_KNOWN.iter().find(|known| known.sid == *sid);
        known.map(account).or_else(|| {
            let mut domains = DOMAINS.iter();
            let found = domains.find(|(_, account)| account.domain() == Some(*sid));
            found.map(|(name, _)| domain(name, *sid))
        })
    }

    fn find(&self, name: &AccountName<'_>) -> Option<KnownAccount> {
        let mut known = WELL_KNOWN.iter();
        let known = known.find(|known| name.is(known.domain, known.name));
        known.map(account).or_else(|| {
            let found = DOMAINS.iter().find(|(domain, _)| name.is_domain(domain));
            found.and_then(|(name, account)| Some(domain(name, account.domain()?)))
        })
    }
}

fn account(known: &WellKnownSid) -> KnownAccount {
    let is_alias = known.sid.domain() == Sid::BUILTIN_USERS.domain();
    KnownAccount {
        sid: known.sid,
        domain: known.domain.to_owned(),
        name: known.name.to_owned(),
        kind: match is_alias {
            true => SidKind::ALIAS,
            false => SidKind::WELL_KNOWN_GROUP,
        },
    }
}

fn domain(name: &str, sid: Sid) -> KnownAccount {
    KnownAccount {
        sid,
        domain: name.to_owned(),
        name: String::new(),
        kind: SidKind::DOMAIN,
    }
}
