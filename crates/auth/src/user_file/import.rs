//! Adds accounts of other servers to the file.

use super::{UserFile, UserFileError};
use crate::smbpasswd::{Imported, SmbpasswdEntry};
use crate::users::{Account, USERS_MAX};

impl UserFile {
    /// Adds accounts of Samba and writes the file once. Existing accounts stay as they are, or get
    /// the imported password with `replaces`. The rules for passwords do not count, because only
    /// the hashes are known. Returns what became of each account, in the same order.
    ///
    /// # Errors
    /// Fails when the file would have more than [`USERS_MAX`] accounts, or cannot be read or
    /// written. The file then stays as it was.
    pub fn import(
        &mut self,
        entries: &[SmbpasswdEntry],
        replaces: bool,
    ) -> Result<Vec<Imported>, UserFileError> {
        let mut results = Vec::with_capacity(entries.len());
        self.change(|users| {
            for entry in entries {
                let SmbpasswdEntry {
                    name,
                    nt_hash,
                    is_disabled,
                } = entry;
                let is_full = users.len() >= USERS_MAX;
                let result = match users.find_mut(name) {
                    Some(account) if replaces => {
                        account.nt_hash = nt_hash.clone();
                        account.is_disabled = *is_disabled;
                        Imported::Replaced
                    }
                    Some(_) => Imported::Kept,
                    None if is_full => return Err(UserFileError::Full),
                    None => {
                        users.insert(Account {
                            name: name.clone(),
                            nt_hash: nt_hash.clone(),
                            unix: None,
                            is_disabled: *is_disabled,
                            app_passwords: Vec::new(),
                        });
                        Imported::Added
                    }
                };
                results.push(result);
            }
            Ok(())
        })?;
        Ok(results)
    }
}
