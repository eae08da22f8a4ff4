//! A domain: a set of accounts with SIDs and names.

use std::fmt;

use proto::account::KnownAccount;
use vfs::accounts::UnixAccount;
use wire::security::Sid;
use wire::upcase::is_same_name;

/// A set of accounts with SIDs and names, such as the accounts of a directory server.
pub trait Domain: fmt::Debug + Send + Sync {
    /// Returns the account of Unix that a SID stands for; `None` for a SID of another domain or
    /// without an account. Each check of an access asks: the function must not block.
    fn to_unix(&self, sid: &Sid) -> Option<UnixAccount>;

    /// Returns the SID that the server gives to new files of an account and shows for it; `None` if
    /// the domain leaves that to others. Must not block.
    fn shown(&self, account: UnixAccount) -> Option<Sid>;

    /// Returns the account of a SID, with its name; `None` if the domain does not know it. May
    /// block.
    fn describe(&self, sid: &Sid) -> Option<KnownAccount>;

    /// Returns the account of a name; `None` if the domain does not know it. May block.
    fn find(&self, name: &AccountName<'_>) -> Option<KnownAccount>;
}

/// The name of an account that a client asks for: `name` or `DOMAIN\name`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountName<'a> {
    /// The domain; `None` if the client leaves it open.
    pub domain: Option<&'a str>,
    /// The name without the domain; empty for the domain itself.
    pub name: &'a str,
}

impl<'a> AccountName<'a> {
    /// Parses a name. `None` for an empty name, and for one with several separators.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let (domain, name) = match text.split_once('\\') {
            Some((domain, name)) => (Some(domain), name),
            None => (None, text),
        };
        let is_empty = name.is_empty() && domain.unwrap_or_default().is_empty();
        let is_valid = !is_empty && !name.contains('\\');
        is_valid.then_some(Self { domain, name })
    }

    /// Returns whether this is the account `name` of `domain`, with the domain or without it, in
    /// any case.
    pub fn is(&self, domain: &str, name: &str) -> bool {
        self.may_be_of(domain) && is_same_name(self.name, name)
    }

    /// Returns whether this is the name of the domain itself.
    pub fn is_domain(&self, domain: &str) -> bool {
        match self.domain {
            Some(asked) => self.name.is_empty() && is_same_name(asked, domain),
            None => is_same_name(self.name, domain),
        }
    }

    /// Returns whether an account of `domain` can have the name: it has no other domain.
    pub fn may_be_of(&self, domain: &str) -> bool {
        self.domain.is_none_or(|asked| is_same_name(asked, domain))
    }
}
