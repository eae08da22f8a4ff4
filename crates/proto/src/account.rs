//! Look-ups of accounts: the vocabulary between the core and its driver for the names of SIDs.

use alloc::string::String;
use alloc::vec::Vec;

use wire::rpc::lsarpc::SidKind;
use wire::security::Sid;

/// A request for the translation of SIDs or of names. The driver asks the system, which may block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccountQuery {
    /// Translate these SIDs into names.
    Sids(Vec<Sid>),
    /// Translate these names into SIDs. A name has the form `name` or `DOMAIN\name`, in any case.
    Names(Vec<String>),
}

impl AccountQuery {
    /// Returns the number of SIDs or names: the driver returns the same number of translations.
    pub fn len(&self) -> usize {
        match self {
            Self::Sids(sids) => sids.len(),
            Self::Names(names) => names.len(),
        }
    }

    /// Returns whether the query has no SIDs and no names.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// An account that the driver found: a user, a group or a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownAccount {
    /// SID of the account.
    pub sid: Sid,
    /// Name of the domain of the account, such as `BUILTIN`; may be empty. For a domain, its name.
    pub domain: String,
    /// Name of the account without the domain; empty for a domain.
    pub name: String,
    /// Kind of the account.
    pub kind: SidKind,
}
