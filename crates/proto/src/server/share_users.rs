//! The lists of a share that decide which users may connect to it, and which of them may write.

use alloc::string::String;
use alloc::vec::Vec;

use wire::upcase::is_same_name;

use crate::login::Account;
use crate::report::ShareRefusal;

/// A user or a group in a list of a share. Comparisons ignore the case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Principal {
    /// The account of this name.
    User(String),
    /// The members of the group of this name, without the `@` of the configuration.
    Group(String),
}

impl Principal {
    /// Returns true if the entry names the account or one of its groups.
    fn matches(&self, account: &Account) -> bool {
        match self {
            Self::User(name) => is_same_name(name, &account.name),
            Self::Group(name) => {
                let mut groups = account.groups.iter();
                groups.any(|group| is_same_name(group, name))
            }
        }
    }
}

/// The lists of users of a share, with the rules of Samba (smb.conf(5): `valid users`, `invalid
/// users`, `read list`, `write list`). They concern named accounts: guests need the field `guest`
/// of the share, and have its `read_only`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShareUsers {
    /// The users that may connect. `None` permits every named account.
    pub valid: Option<Vec<Principal>>,
    /// The users that may not connect, even if `valid` has them.
    pub invalid: Vec<Principal>,
    /// The users that only read. They need the permission to connect, too.
    pub read: Vec<Principal>,
    /// The users that read and write, even if the share is read-only or `read` has them. They need
    /// the permission to connect, too.
    pub write: Vec<Principal>,
}

impl ShareUsers {
    /// Checks whether a named account may connect.
    ///
    /// # Errors
    /// The reason why it may not.
    pub fn admit(&self, account: &Account) -> Result<(), ShareRefusal> {
        if lists(&self.invalid, account) {
            return Err(ShareRefusal::InvalidUser);
        }
        match &self.valid {
            Some(valid) if !lists(valid, account) => Err(ShareRefusal::NotListed),
            Some(_) | None => Ok(()),
        }
    }

    /// Returns true if a named account that may connect only reads. `read_only` is the value of the
    /// share.
    pub fn is_reader(&self, account: &Account, read_only: bool) -> bool {
        let is_writer = lists(&self.write, account);
        !is_writer && (read_only || lists(&self.read, account))
    }
}

fn lists(list: &[Principal], account: &Account) -> bool {
    list.iter().any(|principal| principal.matches(account))
}

#[cfg(test)]
mod tests {
    use alloc::sync::Arc;

    use super::*;
    use crate::login::{AccountKind, AccountsRevision};
    use crate::token::Token;

    fn account(name: &str, groups: &[&str]) -> Account {
        Account {
            name: name.into(),
            kind: AccountKind::Named,
            token: Arc::new(Token::new(1000, 1000, Vec::new())),
            revision: AccountsRevision::default(),
            groups: groups.iter().map(|group| (*group).into()).collect(),
            app_password: None,
        }
    }

    fn list(texts: &[&str]) -> Vec<Principal> {
        let principal = |text: &&str| match text.strip_prefix('@') {
            Some(group) => Principal::Group(group.into()),
            None => Principal::User((*text).into()),
        };
        texts.iter().map(principal).collect()
    }

    #[test]
    fn the_list_of_refused_users_decides_before_the_list_of_users() {
        let users = ShareUsers {
            valid: Some(list(&["alice", "@Staff"])),
            invalid: list(&["@visitors", "carol"]),
            ..ShareUsers::default()
        };
        for (name, groups, expected) in [
            ("Alice", &[][..], Ok(())),
            ("bob", &["staff"][..], Ok(())),
            ("bob", &[], Err(ShareRefusal::NotListed)),
            ("staff", &[], Err(ShareRefusal::NotListed)),
            ("alice", &["visitors"], Err(ShareRefusal::InvalidUser)),
            ("CAROL", &["staff"], Err(ShareRefusal::InvalidUser)),
        ] {
            assert_eq!(users.admit(&account(name, groups)), expected, "{name}");
        }
        let any = ShareUsers::default();
        assert_eq!(any.admit(&account("bob", &[])), Ok(()));
        let none = ShareUsers {
            valid: Some(Vec::new()),
            ..ShareUsers::default()
        };
        let refused = none.admit(&account("bob", &[]));
        assert_eq!(refused, Err(ShareRefusal::NotListed));
    }

    #[test]
    fn the_list_of_writers_decides_before_the_list_of_readers() {
        let users = ShareUsers {
            read: list(&["alice", "@readers"]),
            write: list(&["@writers", "dora"]),
            ..ShareUsers::default()
        };
        for (name, groups, of_writable, of_read_only) in [
            ("alice", &[][..], true, true),
            ("bob", &["readers"][..], true, true),
            ("bob", &[], false, true),
            ("bob", &["readers", "writers"], false, false),
            ("dora", &[], false, false),
        ] {
            let account = account(name, groups);
            assert_eq!(users.is_reader(&account, false), of_writable, "{name}");
            assert_eq!(users.is_reader(&account, true), of_read_only, "{name}");
        }
    }
}
