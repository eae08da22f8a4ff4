//! The table of accounts. Names are compared without regard to case.

use std::collections::BTreeMap;
use std::fmt;

use wire::upcase::upcased;

use crate::ntlm::keys::NtHash;

/// Maximum number of accounts in a user file. [`UserFile`](crate::UserFile) refuses further
/// accounts.
pub const USERS_MAX: usize = 10_000;

/// Maximum length of a user name in UTF-16 code units. The value exceeds the 20 units of [MS-SAMR]
/// 3.1.1.6, because current clients send longer names.
pub const USER_NAME_LEN_MAX: usize = 256;

/// Maximum length of a password in UTF-16 code units; the limit of Windows is the same.
pub const PASSWORD_LEN_MAX: usize = 256;

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
}

/// A table of accounts. The user name is the key, and comparisons ignore the case.
#[derive(Clone, Debug, Default)]
pub struct Users {
    by_name: BTreeMap<String, Account>,
}

/// Why a user name or a password is not valid for an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameError {
    /// The name is empty or has white space only.
    EmptyName,
    /// The name is longer than [`USER_NAME_LEN_MAX`] UTF-16 code units.
    LongName,
    /// The name contains this character: a control character, or one that Windows forbids in user
    /// names. [MS-SAMR] 3.1.1.6
    Character(char),
    /// The password of the account is empty, which the server does not accept.
    EmptyPassword,
    /// The password is longer than [`PASSWORD_LEN_MAX`] UTF-16 code units.
    LongPassword,
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
}

impl fmt::Display for AccountChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Removed => "the account was removed",
            Self::Disabled => "the account was disabled",
            Self::Password => "the password was changed",
            Self::UnixAccount => "the Unix account was changed",
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
        })
    }
}

impl Users {
    /// Compares this table with the older table `earlier`. Returns the name (as in `earlier`) and
    /// the change of each account of `earlier` that was removed, disabled, or has a new password or
    /// Unix account. A server can then end the sessions of these accounts.
    pub fn changes_since(&self, earlier: &Self) -> Vec<(String, AccountChange)> {
        let changed = |(key, old): (&String, &Account)| {
            let change = match self.by_name.get(key) {
                Some(new) if new.name == old.name => old.change_to(new)?,
                _ => AccountChange::Removed,
            };
            Some((old.name.clone(), change))
        };
        earlier.by_name.iter().filter_map(changed).collect()
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

    /// Removes the account with this user name, in upper or lower case, and returns it; `None` when
    /// the table has none.
    pub fn remove(&mut self, name: &str) -> Option<Account> {
        self.by_name.remove(&upcased(name))
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

/// Characters that Windows forbids in user names, besides control characters. [MS-SAMR] 3.1.1.6
const FORBIDDEN: &str = "\"/\\[]:;|=,+*?<>";

pub(crate) fn check_name(name: &str) -> Result<(), NameError> {
    if name.trim().is_empty() {
        return Err(NameError::EmptyName);
    }
    if name.encode_utf16().count() > USER_NAME_LEN_MAX {
        return Err(NameError::LongName);
    }
    let forbidden = |ch: &char| ch.is_control() || FORBIDDEN.contains(*ch);
    match name.chars().find(forbidden) {
        Some(ch) => Err(NameError::Character(ch)),
        None => Ok(()),
    }
}

pub(crate) fn hash_password(password: &str) -> Result<NtHash, NameError> {
    match password.encode_utf16().count() {
        0 => Err(NameError::EmptyPassword),
        1..=PASSWORD_LEN_MAX => Ok(NtHash::from_password(password)),
        _ => Err(NameError::LongPassword),
    }
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyName => f.write_str("the name is empty"),
            Self::LongName => write!(f, "the name is longer than {USER_NAME_LEN_MAX} characters"),
            Self::Character(ch) => write!(f, "the name may not contain {ch:?}"),
            Self::EmptyPassword => f.write_str("the password is empty"),
            Self::LongPassword => {
                write!(
                    f,
                    "the password is longer than {PASSWORD_LEN_MAX} characters"
                )
            }
        }
    }
}

impl std::error::Error for NameError {}
