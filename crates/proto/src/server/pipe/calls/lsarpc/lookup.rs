//! Translations of SIDs and names: the query for the driver, and the results for the client.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use wire::Status;
use wire::rpc::lsarpc::{
    LookupNamesResponse, LookupSidsResponse, NamesVersion, ReferencedDomain, SidKind, SidsVersion,
    TranslatedName, TranslatedSid,
};
use wire::security::Sid;

use super::super::Called;
use crate::account::{AccountQuery, KnownAccount};

/// Maximum length of a name of an account or a domain in bytes, with its domain. Longer names have
/// no translation.
const NAME_MAX: usize = 512;
/// The last place to look in. \[MS-LSAT\] 2.2.16
const LEVEL_MAX: u16 = 7;

/// A call that waits for the driver.
#[derive(Debug)]
pub(in crate::server::pipe) enum Lookup {
    /// The names of these SIDs.
    Sids(Vec<Sid>, SidsVersion),
    /// The SIDs of names.
    Names(NamesVersion),
}

/// Starts a call for the names of SIDs.
pub(super) fn sids(sids: Vec<Sid>, level: u16, version: SidsVersion) -> Called {
    let lookup = Lookup::Sids(sids.clone(), version);
    start(AccountQuery::Sids(sids), level, lookup)
}

/// Starts a call for the SIDs of names.
pub(super) fn names(mut names: Vec<String>, level: u16, version: NamesVersion) -> Called {
    // No account has an empty name.
    for name in names.iter_mut().filter(|name| name.len() > NAME_MAX) {
        name.clear();
    }
    start(AccountQuery::Names(names), level, Lookup::Names(version))
}

fn start(query: AccountQuery, level: u16, lookup: Lookup) -> Called {
    if !(1..=LEVEL_MAX).contains(&level) {
        return Called::Done(lookup.fail(Status::INVALID_PARAMETER));
    }
    Called::LookUp(query, lookup)
}

impl Lookup {
    /// The results of a call that fails.
    pub(in crate::server::pipe) fn fail(self, status: Status) -> Vec<u8> {
        match self {
            Self::Sids(_, version) => encode_names(Vec::new(), Vec::new(), 0, status, version),
            Self::Names(version) => encode_sids(Vec::new(), Vec::new(), 0, status, version),
        }
    }

    /// The results of a call: a translation for each SID or name of the query.
    pub(in crate::server::pipe) fn finish(self, found: Vec<Option<KnownAccount>>) -> Vec<u8> {
        let fits = |account: &KnownAccount| account.domain.len() + account.name.len() <= NAME_MAX;
        let found: Vec<_> = found.into_iter().map(|found| found.filter(fits)).collect();
        let mapped = found.iter().flatten().count();
        let status = match mapped {
            0 if !found.is_empty() => Status::NONE_MAPPED,
            _ if mapped < found.len() => Status::SOME_NOT_MAPPED,
            _ => Status::SUCCESS,
        };
        let mapped = u32::try_from(mapped).expect("a call has a limit");
        let mut domains = Domains::default();
        match self {
            Self::Sids(sids, version) => {
                let pairs = sids.iter().zip(found);
                let names = pairs.map(|(sid, found)| domains.name_of(sid, found));
                let names = names.collect();
                encode_names(domains.0, names, mapped, status, version)
            }
            Self::Names(version) => {
                let sids = found.iter().map(|found| domains.sid_of(found.as_ref()));
                let sids = sids.collect();
                encode_sids(domains.0, sids, mapped, status, version)
            }
        }
    }
}

fn encode_names(
    domains: Vec<ReferencedDomain>,
    names: Vec<TranslatedName>,
    mapped_count: u32,
    status: Status,
    version: SidsVersion,
) -> Vec<u8> {
    let response = LookupSidsResponse {
        domains,
        names,
        mapped_count,
        status,
    };
    response.encode(version)
}

fn encode_sids(
    domains: Vec<ReferencedDomain>,
    sids: Vec<TranslatedSid>,
    mapped_count: u32,
    status: Status,
    version: NamesVersion,
) -> Vec<u8> {
    let response = LookupNamesResponse {
        domains,
        sids,
        mapped_count,
        status,
    };
    response.encode(version)
}

/// The list of domains of a response.
#[derive(Default)]
struct Domains(Vec<ReferencedDomain>);

impl Domains {
    fn name_of(&mut self, sid: &Sid, found: Option<KnownAccount>) -> TranslatedName {
        match found {
            Some(account) => TranslatedName {
                kind: account.kind,
                domain: Some(self.index_of(&account)),
                name: account.name,
            },
            // As Windows and Samba: the name is the SID.
            None => TranslatedName {
                kind: SidKind::UNKNOWN,
                name: sid.to_string(),
                domain: None,
            },
        }
    }

    fn sid_of(&mut self, found: Option<&KnownAccount>) -> TranslatedSid {
        TranslatedSid {
            kind: found.map_or(SidKind::UNKNOWN, |found| found.kind),
            sid: found.map(|found| found.sid),
            domain: found.map(|found| self.index_of(found)),
        }
    }

    /// The index of the domain of an account. The list gets it if it is not there yet.
    fn index_of(&mut self, account: &KnownAccount) -> u32 {
        let sid = match account.kind {
            SidKind::DOMAIN => account.sid,
            _ => account.sid.domain().unwrap_or(account.sid),
        };
        let known = self.0.iter().position(|domain| domain.sid == sid);
        let index = known.unwrap_or_else(|| {
            let name = account.domain.clone();
            self.0.push(ReferencedDomain { name, sid });
            self.0.len() - 1
        });
        u32::try_from(index).expect("a call has a limit")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(sid: Sid, domain: &str, name: &str) -> Option<KnownAccount> {
        Some(KnownAccount {
            sid,
            domain: domain.into(),
            name: name.into(),
            kind: SidKind::ALIAS,
        })
    }

    #[test]
    fn accounts_of_one_domain_share_its_entry() {
        let sids = [
            Sid::BUILTIN_USERS,
            Sid::unix_user(7),
            Sid::BUILTIN_ADMINISTRATORS,
            Sid::EVERYONE,
        ];
        let lookup = Lookup::Sids(sids.to_vec(), SidsVersion::Two);
        let found = Vec::from([
            account(sids[0], "BUILTIN", "Users"),
            None,
            account(sids[2], "BUILTIN", "Administrators"),
            account(sids[3], "", "Everyone"),
        ]);
        let stub = lookup.finish(found);
        let response = LookupSidsResponse::decode(&stub, SidsVersion::Two).expect("a response");
        assert_eq!(response.status, Status::SOME_NOT_MAPPED);
        assert_eq!(response.mapped_count, 3);
        let domains: Vec<_> = response
            .domains
            .iter()
            .map(|domain| &*domain.name)
            .collect();
        assert_eq!(domains, ["BUILTIN", ""]);
        let indices: Vec<_> = response.names.iter().map(|name| name.domain).collect();
        assert_eq!(indices, [Some(0), None, Some(0), Some(1)]);
        assert_eq!(response.names[1].name, "S-1-22-1-7");
    }

    #[test]
    fn whole_sids_are_those_of_domain_and_number() {
        for version in [NamesVersion::One, NamesVersion::Two, NamesVersion::Three] {
            let found = Vec::from([account(Sid::BUILTIN_USERS, "BUILTIN", "Users"), None]);
            let stub = Lookup::Names(version).finish(found);
            let response = LookupNamesResponse::decode(&stub, version).expect("a response");
            assert_eq!(response.sids[0].sid, Some(Sid::BUILTIN_USERS));
            assert_eq!(response.sids[1].kind, SidKind::UNKNOWN);
            assert_eq!(response.sids[1].sid, None);
        }
    }

    #[test]
    fn nothing_found_is_an_error_and_nothing_asked_is_none() {
        let status = |found| {
            let stub = Lookup::Names(NamesVersion::One).finish(found);
            let response = LookupNamesResponse::decode(&stub, NamesVersion::One);
            response.expect("a response").status
        };
        assert_eq!(status(Vec::from([None])), Status::NONE_MAPPED);
        assert_eq!(status(Vec::new()), Status::SUCCESS);
        let long = "x".repeat(NAME_MAX + 1);
        assert_eq!(
            status(Vec::from([account(Sid::EVERYONE, "", &long)])),
            Status::NONE_MAPPED
        );
    }
}
