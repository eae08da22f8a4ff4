//! The changes of accounts, for logins that are in progress at the change.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::String;

use crate::login::{Account, AccountKind, AccountsRevision, LoginScope};

/// Maximum number of remembered changes. Beyond it, logins of any account that are in progress
/// fail, and clients log in again.
const CHANGES_MAX: usize = 16_384;

/// Names of an account and, if the change concerns one only, of its app password.
type Key = (String, Option<String>);

/// The changes of accounts, for logins that are in progress at the change.
#[derive(Debug, Default)]
pub(crate) struct AccountChanges {
    /// The first version of the accounts in which the last login of each changed account counts.
    since: BTreeMap<Key, AccountsRevision>,
    /// The same for accounts that are not in the table.
    since_for_others: AccountsRevision,
}

impl AccountChanges {
    /// Notes that these logins count from this version of the accounts on.
    pub(crate) fn note(&mut self, scope: LoginScope<'_>, revision: AccountsRevision) {
        let key = match scope {
            LoginScope::Account(name) => (name.to_owned(), None),
            LoginScope::AppPassword(name, password) => (name.to_owned(), Some(password.to_owned())),
        };
        if self.since.len() >= CHANGES_MAX && !self.since.contains_key(&key) {
            let latest = self.since.values().copied().max().unwrap_or_default();
            self.since_for_others = latest.max(self.since_for_others);
            self.since.clear();
        }
        let since = self.since.entry(key).or_default();
        *since = revision.max(*since);
    }

    /// Returns true if a login of the account was in progress when the account changed, or its app
    /// password.
    pub(crate) fn is_outdated(&self, account: &Account) -> bool {
        let since = |password: Option<&str>| {
            let key = (account.name.clone(), password.map(ToOwned::to_owned));
            self.since.get(&key).copied()
        };
        let password = account.app_password.as_ref();
        let of_password = password.and_then(|password| since(Some(&password.name)));
        let since = since(None)
            .max(of_password)
            .unwrap_or(self.since_for_others);
        account.kind == AccountKind::Named && account.revision < since
    }
}

#[cfg(test)]
mod tests {
    use alloc::sync::Arc;
    use alloc::vec::Vec;

    use super::*;
    use crate::login::AppPassword;
    use crate::token::Token;

    fn account(name: &str, revision: u64) -> Account {
        Account {
            name: name.into(),
            kind: AccountKind::Named,
            token: Arc::new(Token::new(1000, 1000, Vec::new())),
            revision: AccountsRevision(revision),
            groups: Arc::default(),
            app_password: None,
        }
    }

    #[test]
    fn a_change_concerns_earlier_logins_of_its_account() {
        let mut changes = AccountChanges::default();
        changes.note(LoginScope::Account("alice"), AccountsRevision(3));
        changes.note(LoginScope::Account("alice"), AccountsRevision(2));
        assert!(changes.is_outdated(&account("alice", 2)));
        assert!(!changes.is_outdated(&account("alice", 3)));
        assert!(!changes.is_outdated(&account("bob", 0)));
        let guest = Account {
            kind: AccountKind::Guest,
            ..account("alice", 2)
        };
        assert!(!changes.is_outdated(&guest));
    }

    #[test]
    fn a_change_of_an_app_password_concerns_its_logins_only() {
        let mut changes = AccountChanges::default();
        let scope = LoginScope::AppPassword("alice", "phone");
        changes.note(scope, AccountsRevision(3));
        let with = |name: &str| Account {
            app_password: Some(Arc::new(AppPassword {
                name: name.into(),
                shares: Vec::new(),
                read_only: false,
            })),
            ..account("alice", 2)
        };
        assert!(changes.is_outdated(&with("phone")));
        assert!(!changes.is_outdated(&with("tablet")));
        assert!(!changes.is_outdated(&account("alice", 2)));
        changes.note(LoginScope::Account("alice"), AccountsRevision(3));
        assert!(changes.is_outdated(&with("tablet")));
    }

    #[test]
    fn changes_have_a_limit_and_none_is_lost() {
        let mut changes = AccountChanges::default();
        for number in 0..=CHANGES_MAX as u64 {
            let name = alloc::format!("user{number}");
            changes.note(LoginScope::Account(&name), AccountsRevision(number));
        }
        assert!(changes.since.len() <= CHANGES_MAX);
        assert!(changes.is_outdated(&account("user7", 6)));
        let last = CHANGES_MAX as u64;
        assert!(!changes.is_outdated(&account("bob", last)));
        assert!(changes.is_outdated(&account(&alloc::format!("user{last}"), last - 1)));
    }
}
