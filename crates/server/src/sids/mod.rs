//! SIDs and names of accounts.
//!
//! Every user and group of Unix has the SID S-1-22-1-uid or S-1-22-2-gid, which means the same on
//! every server with the same accounts, on Samba's too: the server gives it to new files, so that a
//! directory can move. Each of these accounts also has a SID in the domain of the server (`local`),
//! and one of a mapping file (`mapping`) if that has a line for it. All of them mean the account.
//!
//! [`Domain`] is the seam for further domains, such as that of a directory server.

mod domain;
mod local;
mod local_sid;
mod mapping;
mod unix;
mod well_known;

use std::path::Path;
use std::sync::Arc;

use proto::account::{AccountQuery, KnownAccount};
use vfs::accounts::{Accounts, UnixAccount};
use wire::security::Sid;

pub use self::domain::{AccountName, Domain};
use self::local::LocalDomain;
pub(crate) use self::local_sid::load as local_sid;
use self::mapping::Mapping;
pub use self::mapping::MappingError;
use self::unix::UnixDomain;
use self::well_known::WellKnown;

/// The domains of all accounts.
#[derive(Debug)]
pub(crate) struct Sids {
    /// The first domain that knows a SID or a name counts.
    domains: Vec<Arc<dyn Domain>>,
    local: Sid,
}

impl Sids {
    /// Makes the domains of a server with this NetBIOS name and this SID of its own domain, and
    /// `further` domains. Reads the mapping file, and looks up the accounts in it.
    ///
    /// # Errors
    /// The mapping file cannot be read, or a line of it is not valid.
    pub(crate) fn new(
        name: &str,
        local: Sid,
        mapping: Option<&Path>,
        further: Vec<Arc<dyn Domain>>,
    ) -> Result<Self, MappingError> {
        let mut domains: Vec<Arc<dyn Domain>> = vec![Arc::new(WellKnown)];
        if let Some(file) = mapping {
            domains.push(Arc::new(Mapping::load(file, name)?));
        }
        domains.extend(further);
        domains.push(Arc::new(UnixDomain));
        domains.push(Arc::new(LocalDomain::new(name, local)));
        Ok(Self { domains, local })
    }

    /// The SID of the domain of the server.
    pub(crate) fn local(&self) -> Sid {
        self.local
    }

    /// Translates SIDs or names. It may block.
    pub(crate) fn look_up(&self, query: &AccountQuery) -> Vec<Option<KnownAccount>> {
        match query {
            AccountQuery::Sids(sids) => sids.iter().map(|sid| self.describe(sid)).collect(),
            AccountQuery::Names(names) => names.iter().map(|name| self.find(name)).collect(),
        }
    }

    fn describe(&self, sid: &Sid) -> Option<KnownAccount> {
        let mut domains = self.domains.iter();
        domains.find_map(|domain| domain.describe(sid))
    }

    fn find(&self, name: &str) -> Option<KnownAccount> {
        let name = AccountName::parse(name)?;
        let mut domains = self.domains.iter();
        domains.find_map(|domain| domain.find(&name))
    }
}

impl Accounts for Sids {
    fn to_unix(&self, sid: &Sid) -> Option<UnixAccount> {
        let mut domains = self.domains.iter();
        domains.find_map(|domain| domain.to_unix(sid))
    }

    fn shown(&self, account: UnixAccount) -> Option<Sid> {
        let mut domains = self.domains.iter();
        domains.find_map(|domain| domain.shown(account))
    }
}

#[cfg(test)]
mod tests {
    use wire::rpc::lsarpc::SidKind;

    use super::*;

    fn sids() -> Sids {
        let local = "S-1-5-21-1-2-3".parse().expect("a SID");
        Sids::new("BEAM", local, None, Vec::new()).expect("no file")
    }

    fn name(sid: &str) -> Option<String> {
        let query = AccountQuery::Sids(vec![sid.parse().expect("a SID")]);
        let account = sids().look_up(&query).remove(0)?;
        Some(format!("{}\\{}", account.domain, account.name))
    }

    fn sid(name: &str) -> Option<String> {
        let query = AccountQuery::Names(vec![name.to_owned()]);
        let account = sids().look_up(&query).remove(0)?;
        Some(account.sid.to_string())
    }

    /// Every system has the user and the group root.
    #[test]
    fn accounts_have_names_in_both_directions() {
        for (of, text) in [
            ("S-1-1-0", "\\Everyone"),
            ("S-1-5-32-544", "BUILTIN\\Administrators"),
            ("S-1-5-18", "NT AUTHORITY\\SYSTEM"),
            ("S-1-22-1-0", "Unix User\\root"),
            ("S-1-22-2-0", "Unix Group\\root"),
            ("S-1-5-21-1-2-3-1000", "BEAM\\root"),
            ("S-1-5-21-1-2-3", "BEAM\\"),
            ("S-1-5-32", "BUILTIN\\"),
        ] {
            assert_eq!(name(of).as_deref(), Some(text), "{of}");
            let text = text.trim_matches('\\');
            assert_eq!(sid(text).as_deref(), Some(of), "{text}");
            assert_eq!(sid(&text.to_lowercase()).as_deref(), Some(of), "{text}");
        }
        assert_eq!(sid("root").as_deref(), Some("S-1-22-1-0"));
        assert_eq!(sid("administrators").as_deref(), Some("S-1-5-32-544"));
        assert_eq!(name("S-1-5-21-1-2-3-1001").as_deref(), Some("BEAM\\root"));
    }

    #[test]
    fn strangers_have_no_names() {
        for of in [
            "S-1-5-21-1-2-4-1000",
            "S-1-22-1-4294967294",
            "S-1-22-3-0",
            "S-1-5-21-1-2-3-7",
        ] {
            assert_eq!(name(of), None, "{of}");
        }
        for text in [
            "",
            "\\",
            "a\\b\\c",
            "no such account",
            "NOWHERE\\root",
            "BUILTIN\\root",
        ] {
            assert_eq!(sid(text), None, "{text}");
        }
    }

    #[test]
    fn sids_of_the_own_domain_stand_for_accounts_of_unix() {
        let sids = sids();
        let to_unix = |text: &str| sids.to_unix(&text.parse().expect("a SID"));
        assert_eq!(
            to_unix("S-1-5-21-1-2-3-5002"),
            Some(UnixAccount::User(2001))
        );
        assert_eq!(
            to_unix("S-1-5-21-1-2-3-5003"),
            Some(UnixAccount::Group(2001))
        );
        assert_eq!(to_unix("S-1-5-21-1-2-3-500"), None);
        assert_eq!(to_unix("S-1-5-21-1-2-4-5002"), None);
        assert_eq!(to_unix("S-1-5-32-544"), None);
        assert_eq!(sids.shown(UnixAccount::User(2001)), None);
    }

    #[test]
    fn a_domain_comes_before_the_own_accounts() {
        #[derive(Debug)]
        struct Corp;
        impl Domain for Corp {
            fn to_unix(&self, sid: &Sid) -> Option<UnixAccount> {
                (sid.to_string() == "S-1-5-21-7-7-7-500").then_some(UnixAccount::User(0))
            }
            fn shown(&self, account: UnixAccount) -> Option<Sid> {
                let sid = "S-1-5-21-7-7-7-500".parse().ok();
                sid.filter(|_| account == UnixAccount::User(0))
            }
            fn describe(&self, sid: &Sid) -> Option<KnownAccount> {
                self.to_unix(sid)?;
                Some(KnownAccount {
                    sid: *sid,
                    domain: "CORP".into(),
                    name: "chief".into(),
                    kind: SidKind::USER,
                })
            }
            fn find(&self, name: &AccountName<'_>) -> Option<KnownAccount> {
                name.is("CORP", "chief").then(|| {
                    let sid = "S-1-5-21-7-7-7-500".parse().expect("a SID");
                    self.describe(&sid).expect("it is known")
                })
            }
        }
        let local = "S-1-5-21-1-2-3".parse().expect("a SID");
        let sids = Sids::new("BEAM", local, None, vec![Arc::new(Corp)]).expect("no file");
        let found = sids.find("corp\\CHIEF").expect("an account");
        assert_eq!(found.name, "chief");
        assert_eq!(sids.shown(UnixAccount::User(0)), Some(found.sid));
        assert_eq!(sids.to_unix(&found.sid), Some(UnixAccount::User(0)));
    }
}
