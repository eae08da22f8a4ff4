//! Names and passwords of accounts: which ones are valid.

use std::fmt;

use crate::ntlm::keys::NtHash;

/// Maximum length of a user name in UTF-16 code units. The value exceeds the 20 units of [MS-SAMR]
/// 3.1.1.6, because current clients send longer names.
pub const USER_NAME_LEN_MAX: usize = 256;

/// Maximum length of a password in UTF-16 code units; the limit of Windows is the same.
pub const PASSWORD_LEN_MAX: usize = 256;

/// Maximum number of shares that one app password names.
pub const APP_PASSWORD_SHARES_MAX: usize = 64;

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
    /// The password has fewer characters than this minimum of the rules.
    ShortPassword(u32),
    /// The password has characters of fewer classes than this minimum of the rules.
    FewClasses(u32),
    /// The password contains the user name, which the rules refuse.
    PasswordHasName,
    /// The app password has more than [`APP_PASSWORD_SHARES_MAX`] shares.
    ManyShares,
    /// The app password expires after the year 9999, which a file of users cannot express.
    LateExpiry,
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
            Self::ShortPassword(min) => write!(
                f,
                "the password has fewer than {min} characters (password_rules.min_length)"
            ),
            Self::FewClasses(min) => write!(
                f,
                "the password needs {min} of these classes: lower case, upper case, digits, \
                 others (password_rules.min_classes)"
            ),
            Self::PasswordHasName => {
                f.write_str("the password contains the user name (password_rules.refuse_name)")
            }
            Self::LateExpiry => f.write_str("an app password expires in the year 9999 or earlier"),
            Self::ManyShares => {
                write!(
                    f,
                    "an app password names at most {APP_PASSWORD_SHARES_MAX} shares"
                )
            }
        }
    }
}

impl std::error::Error for NameError {}
