//! Rules for the passwords that users choose.

use wire::upcase::upcased;

use crate::names::{NameError, PASSWORD_LEN_MAX};

/// Number of the classes of characters: lower case, upper case, digits, others.
pub const CLASSES_MAX: u32 = 4;

/// The rules for passwords of a user file. They hold for new passwords of accounts, not for
/// generated or imported ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PasswordRules {
    /// Minimum number of characters, up to [`PASSWORD_LEN_MAX`].
    pub min_length: u32,
    /// Minimum number of the classes of characters that a password has, up to [`CLASSES_MAX`]:
    /// lower case, upper case, digits, and others.
    pub min_classes: u32,
    /// Whether a password may not contain the user name, in upper or lower case.
    pub refuse_name: bool,
}

impl PasswordRules {
    /// Returns true if the rules permit every password.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Checks the values of the rules.
    ///
    /// # Errors
    /// The text says which value is too large, and the maximum.
    pub(crate) fn check_values(&self) -> Result<(), String> {
        let length_max = u32::try_from(PASSWORD_LEN_MAX).unwrap_or(u32::MAX);
        if self.min_length > length_max {
            return Err(format!(
                "min_length: {} is over {length_max}",
                self.min_length
            ));
        }
        if self.min_classes > CLASSES_MAX {
            return Err(format!(
                "min_classes: {} is over {CLASSES_MAX}",
                self.min_classes
            ));
        }
        Ok(())
    }

    /// Checks a new password of the account `name`.
    ///
    /// # Errors
    /// Fails when the password breaks a rule.
    pub fn check(&self, name: &str, password: &str) -> Result<(), NameError> {
        let length = u32::try_from(password.chars().count()).unwrap_or(u32::MAX);
        if length < self.min_length {
            return Err(NameError::ShortPassword(self.min_length));
        }
        if classes(password) < self.min_classes {
            return Err(NameError::FewClasses(self.min_classes));
        }
        match self.refuse_name && upcased(password).contains(&upcased(name)) {
            true => Err(NameError::PasswordHasName),
            false => Ok(()),
        }
    }
}

/// The number of the classes of characters in a password.
fn classes(password: &str) -> u32 {
    let is_other = |c: char| !c.is_lowercase() && !c.is_uppercase() && !c.is_numeric();
    let classes = [
        char::is_lowercase,
        char::is_uppercase,
        char::is_numeric,
        is_other,
    ];
    let found = classes
        .iter()
        .filter(|is_of_class| password.chars().any(is_of_class));
    u32::try_from(found.count()).unwrap_or(CLASSES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_break_rules() {
        let rules = PasswordRules {
            min_length: 8,
            min_classes: 3,
            refuse_name: true,
        };
        for (password, expected) in [
            ("abcDEF1", Err(NameError::ShortPassword(8))),
            ("\u{e4}\u{f6}\u{fc}D1234", Ok(())),
            ("abcdefgh1", Err(NameError::FewClasses(3))),
            ("abcdefg-1", Ok(())),
            ("xx-ALIce-1", Err(NameError::PasswordHasName)),
        ] {
            assert_eq!(rules.check("alice", password), expected, "{password}");
        }
        assert_eq!(PasswordRules::default().check("alice", "alice"), Ok(()));
    }
}
