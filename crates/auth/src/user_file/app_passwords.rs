//! Changes the app passwords of the accounts in the file.

use super::{UserFile, UserFileError, find_mut};
use crate::app_password::{APP_PASSWORDS_MAX, AppPassword};

impl UserFile {
    /// Adds an app password to the account `user` and writes the file.
    ///
    /// # Errors
    /// Fails when no account has this name, it has an app password of the same name or
    /// [`APP_PASSWORDS_MAX`] of them, the name of the app password or the number of its shares is
    /// not valid, or the file cannot be read or written.
    pub fn add_app_password(
        &mut self,
        user: &str,
        password: AppPassword,
    ) -> Result<(), UserFileError> {
        password.check()?;
        self.change(|users| {
            let account = find_mut(users, user)?;
            if account.app_password(&password.rights.name).is_some() {
                let name = password.rights.name;
                return Err(UserFileError::AppPasswordExists(user.into(), name));
            }
            if account.app_passwords.len() >= APP_PASSWORDS_MAX {
                return Err(UserFileError::AppPasswordsFull(user.into()));
            }
            account.app_passwords.push(password);
            Ok(())
        })
    }

    /// Removes the app password `name` of the account `user` and writes the file.
    ///
    /// # Errors
    /// Fails when no account has this name, it has no app password of this name, or the file cannot
    /// be read or written.
    pub fn remove_app_password(&mut self, user: &str, name: &str) -> Result<(), UserFileError> {
        self.change(|users| {
            let account = find_mut(users, user)?;
            if account.app_password(name).is_none() {
                return Err(UserFileError::UnknownAppPassword(user.into(), name.into()));
            }
            let passwords = &mut account.app_passwords;
            passwords.retain(|password| password.rights.name != name);
            Ok(())
        })
    }
}
