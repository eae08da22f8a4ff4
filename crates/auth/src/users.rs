//! The table of accounts, looked up without regard to case.

use std::collections::BTreeMap;
use std::fmt;

use crate::ntlm::keys::{NtHash, upper_case};

/// Accounts in one table. A limit against a runaway script, far above what a file is good for.
pub const USERS_MAX: usize = 10_000;

/// UTF-16 units of a user's name. [MS-SAMR] 3.1.1.6 has 20 for old clients; new ones send more.
pub const USER_NAME_LEN_MAX: usize = 256;

/// UTF-16 units of a password, as in Windows.
pub const PASSWORD_LEN_MAX: usize = 256;

/// One account.
#[derive(Clone, Debug)]
pub struct Account {
    /// As its owner spells it.
    pub name: String,
    /// What its password hashes to.
    pub nt_hash: NtHash,
    /// The Unix account that it acts as; `None` lets the share decide.
    pub unix: Option<String>,
    /// Whether it may not come in for now.
    pub is_disabled: bool,
}

/// Accounts by name.
#[derive(Clone, Debug, Default)]
pub struct Users {
    by_name: BTreeMap<String, Account>,
}

/// Why a name or a password cannot be that of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameError {
    /// Empty.
    EmptyName,
    /// Longer than [`USER_NAME_LEN_MAX`].
    LongName,
    /// Has a character that Windows does not allow in names.
    Character(char),
    /// Empty passwords are refused: anybody could be that user.
    EmptyPassword,
    /// Longer than [`PASSWORD_LEN_MAX`].
    LongPassword,
}

impl Account {
    /// An enabled account.
    ///
    /// # Errors
    /// When the name or the password cannot be that of an account.
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
    /// Adds an account; `false` (and no change) when one with the same name, whatever its case,
    /// is there already.
    pub fn insert(&mut self, account: Account) -> bool {
        let key = upper_case(&account.name);
        if self.by_name.contains_key(&key) {
            return false;
        }
        self.by_name.insert(key, account);
        true
    }

    /// The account with this name, in any case.
    pub fn find(&self, name: &str) -> Option<&Account> {
        self.by_name.get(&upper_case(name))
    }

    /// The same, to change it. Changing its name would lose it.
    pub(crate) fn find_mut(&mut self, name: &str) -> Option<&mut Account> {
        self.by_name.get_mut(&upper_case(name))
    }

    /// Takes an account out.
    pub fn remove(&mut self, name: &str) -> Option<Account> {
        self.by_name.remove(&upper_case(name))
    }

    /// All accounts, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Account> {
        self.by_name.values()
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }
}

/// What no name may contain, besides control characters. [MS-SAMR] 3.1.1.6
const FORBIDDEN: &str = "\"/\\[]:;|=,+*?<>";

pub(crate) fn check_name(name: &str) -> Result<(), NameError> {
    if name.trim().is_empty() {
        return Err(NameError::EmptyName);
    }
    if name.encode_utf16().count() > USER_NAME_LEN_MAX {
        return Err(NameError::LongName);
    }
    let forbidden = |letter: &char| letter.is_control() || FORBIDDEN.contains(*letter);
    match name.chars().find(forbidden) {
        Some(letter) => Err(NameError::Character(letter)),
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
            Self::Character(letter) => write!(f, "the name may not contain {letter:?}"),
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
