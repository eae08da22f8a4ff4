//! The table of accounts and their groups. Names are compared without regard to case.

use std::collections::BTreeMap;
use std::fmt;

use wire::upcase::upcased;

use crate::app_password::AppPassword;
use crate::groups::Group;
use crate::login::FileTime;
use crate::names::{NameError, check_name, hash_password};
use crate::ntlm::keys::NtHash;
use crate::password_rules::PasswordRules;

/// Maximum number of accounts in a user file. [`UserFile`](crate::UserFile) refuses further
/// accounts.
pub const USERS_MAX: usize = 10_000;

/// One account of the user file, which lets a client log in with a name and a password.
#[derive(Clone, Debug)]
pub struct Account {
    /// User name of the account, as entered by the administrator. Comparisons ignore the case.
    pub name: String,
    /// NT hash (MD4) of the password, which is as secret as the password.
    pub nt_hash: NtHash,
    /// Name of the Unix account for the user's file access; `None` means the default account of the
    /// share.
    pub unix: Option<String>,
    /// Whether the account is disabled: every login then fails.
    pub is_disabled: bool,
    /// Additional passwords, at most [`APP_PASSWORDS_MAX`](crate::APP_PASSWORDS_MAX), in the order
    /// of their creation.
    pub app_passwords: Vec<AppPassword>,
}

/// A table of accounts, with their groups. The user name is the key, and comparisons ignore the
/// case.
#[derive(Clone, Debug, Default)]
pub struct Users {
    by_name: BTreeMap<String, Account>,
    groups: BTreeMap<String, Group>,
    /// The rules for new passwords.
    pub rules: PasswordRules,
}

/// A change of an account that makes earlier logins invalid, so that a server can end their
/// sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountChange {
    /// The account was removed, or its name has other upper-case and lower-case characters.
    Removed,
    /// The account was disabled.
    Disabled,
    /// The password was changed.
    Password,
    /// The Unix account for file access was changed.
    UnixAccount,
    /// The account left a group of the file.
    LeftGroup,
    /// An app password was removed, or its expiry or rights were changed.
    AppPassword,
    /// An app password expired.
    AppPasswordExpired,
}

/// The logins that a change of the accounts makes invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedLogins {
    /// Name of the account, as before the change.
    pub account: String,
    /// Name of the app password of the logins; `None` for all logins of the account.
    pub app_password: Option<String>,
    /// What changed.
    pub change: AccountChange,
}

impl fmt::Display for AccountChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Removed => "the account was removed",
            Self::Disabled => "the account was disabled",
            Self::Password => "the password was changed",
            Self::UnixAccount => "the Unix account was changed",
            Self::LeftGroup => "the account left a group",
            Self::AppPassword => "the app password was removed or changed",
            Self::AppPasswordExpired => "the app password expired",
        })
    }
}

impl Account {
    /// The change after which logins of this account no longer count; `None` if they still do.
    fn change_to(&self, new: &Self) -> Option<AccountChange> {
        if new.is_disabled && !self.is_disabled {
            Some(AccountChange::Disabled)
        } else if *new.nt_hash.to_hex() != *self.nt_hash.to_hex() {
            Some(AccountChange::Password)
        } else if new.unix != self.unix {
            Some(AccountChange::UnixAccount)
        } else {
            None
        }
    }

    /// Creates an enabled account without a Unix account, and hashes the password.
    ///
    /// # Errors
    /// Fails when the name is blank, too long or has a forbidden character, or the password is
    /// empty or too long.
    pub fn new(name: &str, password: &str) -> Result<Self, NameError> {
        check_name(name)?;
        let nt_hash = hash_password(password)?;
        Ok(Self {
            name: name.into(),
            nt_hash,
            unix: None,
            is_disabled: false,
            app_passwords: Vec::new(),
        })
    }

    /// Returns the app password of this name, with respect to the case; `None` if there is none.
    pub fn app_password(&self, name: &str) -> Option<&AppPassword> {
        let mut passwords = self.app_passwords.iter();
        passwords.find(|password| password.rights.name == name)
    }

    /// The app passwords of this account with logins that no longer count in the version `new`.
    fn changed_app_passwords<'a>(&'a self, new: &'a Self) -> impl Iterator<Item = &'a AppPassword> {
        self.app_passwords.iter().filter(|old| {
            let name = &old.rights.name;
            !new.app_password(name).is_some_and(|new| new.is_same(old))
        })
    }
}

impl Users {
    /// Compares this table with the older table `earlier`. Returns the logins of `earlier` that no
    /// longer count: of accounts that were removed or disabled, have a new password or Unix
    /// account, or left a group, and of app passwords that were removed or changed. A server can
    /// then end the sessions of these logins.
    pub fn changes_since(&self, earlier: &Self) -> Vec<ChangedLogins> {
        let mut changes = Vec::new();
        for (key, old) in &earlier.by_name {
            let new = self.by_name.get(key).filter(|new| new.name == old.name);
            let change = match new {
                Some(new) => old.change_to(new),
                None => Some(AccountChange::Removed),
            };
            let has_left = || self.has_left_group(earlier, key);
            let change = change.or_else(|| has_left().then_some(AccountChange::LeftGroup));
            if let Some(change) = change {
                changes.push(ChangedLogins::of_account(old, change));
            } else if let Some(new) = new {
                let passwords = old.changed_app_passwords(new);
                let change = AccountChange::AppPassword;
                changes.extend(
                    passwords.map(|password| ChangedLogins::of_password(old, password, change)),
                );
            }
        }
        changes
    }

    /// Returns the logins with app passwords that expired after `from` and no later than `to`.
    pub fn expired_between(&self, from: FileTime, to: FileTime) -> Vec<ChangedLogins> {
        let expires = |password: &&AppPassword| {
            let expires = password.expires;
            expires.is_some_and(|expires| from < expires && expires <= to)
        };
        let expired = self.by_name.values().flat_map(|account| {
            let passwords = account.app_passwords.iter().filter(expires);
            let change = AccountChange::AppPasswordExpired;
            passwords.map(move |password| ChangedLogins::of_password(account, password, change))
        });
        expired.collect()
    }

    /// Whether the account of this upper-case name has left a group of the table `earlier`.
    fn has_left_group(&self, earlier: &Self, account: &str) -> bool {
        let mut groups = earlier.groups.iter();
        groups.any(|(key, group)| {
            let now = self.groups.get(key);
            group.has(account) && !now.is_some_and(|group| group.has(account))
        })
    }

    /// Adds an empty group and returns true. Returns false, without a change, when the table
    /// already has a group with the same name in upper or lower case.
    pub fn insert_group(&mut self, group: Group) -> bool {
        let key = upcased(&group.name);
        if self.groups.contains_key(&key) {
            return false;
        }
        self.groups.insert(key, group);
        true
    }

    /// Returns the group with this name, in upper or lower case; `None` when the table has none.
    pub fn find_group(&self, name: &str) -> Option<&Group> {
        self.groups.get(&upcased(name))
    }

    /// As [`find_group`](Self::find_group), to change the members.
    pub(crate) fn find_group_mut(&mut self, name: &str) -> Option<&mut Group> {
        self.groups.get_mut(&upcased(name))
    }

    /// Removes the group with this name, in upper or lower case. Returns false if there is none.
    pub(crate) fn remove_group(&mut self, name: &str) -> bool {
        self.groups.remove(&upcased(name)).is_some()
    }

    /// Iterates over all groups, in the order of their upper-case names.
    pub fn groups(&self) -> impl ExactSizeIterator<Item = &Group> {
        self.groups.values()
    }

    /// Adds an account and returns true. Returns false, without a change, when the table already
    /// has an account with the same name in upper or lower case. The table itself has no maximum
    /// size.
    pub fn insert(&mut self, account: Account) -> bool {
        let key = upcased(&account.name);
        if self.by_name.contains_key(&key) {
            return false;
        }
        self.by_name.insert(key, account);
        true
    }

    /// Returns the account with this user name, in upper or lower case; `None` when the table has
    /// none.
    pub fn find(&self, name: &str) -> Option<&Account> {
        self.by_name.get(&upcased(name))
    }

    /// As [`find`](Self::find), to change the account. The caller must not change its name, which
    /// is the key of the table.
    pub(crate) fn find_mut(&mut self, name: &str) -> Option<&mut Account> {
        self.by_name.get_mut(&upcased(name))
    }

    /// Removes the account with this user name, in upper or lower case, also from its groups, and
    /// returns it; `None` when the table has none.
    pub fn remove(&mut self, name: &str) -> Option<Account> {
        let account = self.by_name.remove(&upcased(name))?;
        for group in self.groups.values_mut() {
            group.remove(name);
        }
        Some(account)
    }

    /// Iterates over all accounts, in the order of their upper-case names.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Account> {
        self.by_name.values()
    }

    /// Returns the number of accounts in the table.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Returns whether the table has no accounts.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }
}

impl ChangedLogins {
    fn of_account(account: &Account, change: AccountChange) -> Self {
        Self {
            account: account.name.clone(),
            app_password: None,
            change,
        }
    }

    fn of_password(account: &Account, password: &AppPassword, change: AccountChange) -> Self {
        Self {
            account: account.name.clone(),
            app_password: Some(password.rights.name.clone()),
            change,
        }
    }
}
