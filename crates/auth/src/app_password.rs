//! App passwords: additional passwords of an account, such as one for each device.

use crate::login::{AppPasswordRights, FileTime};
use crate::names::{APP_PASSWORD_SHARES_MAX, NameError, check_name};
use crate::ntlm::keys::NtHash;

/// Maximum number of app passwords of one account. A login tries all of them.
pub const APP_PASSWORDS_MAX: usize = 16;

/// Number of characters in a generated password. 25 characters of 32 have 125 bits.
const CHARACTERS: usize = 25;

/// Characters between two hyphens of a generated password.
const CHARACTERS_PER_GROUP: usize = 5;

/// An additional password of an account, which can expire and have fewer rights than the account.
/// The user name of a login with it is that of the account.
#[derive(Clone, Debug)]
pub struct AppPassword {
    /// Name and rights of the password.
    pub rights: AppPasswordRights,
    /// NT hash (MD4) of the password, which is as secret as the password.
    pub nt_hash: NtHash,
    /// The time from which the password does not count; `None` if it does not expire. Whole
    /// seconds.
    pub expires: Option<FileTime>,
}

impl AppPassword {
    /// Returns true if the password does not count at this time.
    pub fn has_expired(&self, now: FileTime) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    /// Checks the name, the number of shares and the expiry.
    ///
    /// # Errors
    /// As [`AppPasswordRights::check`], and when the password expires after the year 9999.
    pub(crate) fn check(&self) -> Result<(), NameError> {
        self.rights.check()?;
        let expires = self.expires.map(FileTime::to_unix);
        match expires.is_none_or(|expires| jiff::Timestamp::from_second(expires).is_ok()) {
            true => Ok(()),
            false => Err(NameError::LateExpiry),
        }
    }

    /// Whether two versions of the password accept the same logins with the same rights.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let Self {
            rights,
            nt_hash,
            expires,
        } = other;
        self.rights == *rights
            && *self.nt_hash.to_hex() == *nt_hash.to_hex()
            && self.expires == *expires
    }
}

impl AppPasswordRights {
    /// Checks the name of the password and the number of its shares.
    ///
    /// # Errors
    /// Fails when the name is blank, too long or has a forbidden character, or there are more than
    /// [`APP_PASSWORD_SHARES_MAX`] shares.
    pub(crate) fn check(&self) -> Result<(), NameError> {
        check_name(&self.name)?;
        match self.shares.len() {
            0..=APP_PASSWORD_SHARES_MAX => Ok(()),
            _ => Err(NameError::ManyShares),
        }
    }
}

/// Makes a random password with 125 bits of the operating system, such as
/// `k4m2z-pq7fa-...`, of characters from `a` to `z` and the digits 2 to 7.
pub fn random_password() -> zeroize::Zeroizing<String> {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut random = zeroize::Zeroizing::new([0; CHARACTERS]);
    getrandom::fill(&mut random[..]).expect("the system has random numbers");
    let mut password = zeroize::Zeroizing::new(String::with_capacity(2 * CHARACTERS));
    for (index, byte) in random.iter().enumerate() {
        if index > 0 && index.is_multiple_of(CHARACTERS_PER_GROUP) {
            password.push('-');
        }
        password.push(char::from(ALPHABET[usize::from(byte % 32)]));
    }
    password
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_passwords_have_five_groups_and_differ() {
        let (one, other) = (random_password(), random_password());
        assert_ne!(*one, *other);
        let groups: Vec<&str> = one.split('-').collect();
        assert_eq!(groups.len(), 5);
        let is_letter = |c: char| c.is_ascii_lowercase() || ('2'..='7').contains(&c);
        for group in groups {
            assert!(group.len() == 5 && group.chars().all(is_letter), "{group}");
        }
    }
}
