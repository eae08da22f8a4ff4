//! Changes the rules for passwords in the file.

use super::{UserFile, UserFileError};
use crate::password_rules::PasswordRules;

impl UserFile {
    /// Changes the rules for new passwords and writes the file. Present passwords stay.
    ///
    /// # Errors
    /// Fails when a value is not valid, or the file cannot be read or written.
    pub fn set_rules(
        &mut self,
        change: impl FnOnce(&mut PasswordRules),
    ) -> Result<(), UserFileError> {
        self.change(|users| {
            change(&mut users.rules);
            users.rules.check_values().map_err(UserFileError::Rules)
        })
    }
}
