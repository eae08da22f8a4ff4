//! Changes the groups of the file.

use super::{UserFile, UserFileError};
use crate::groups::{GROUPS_MAX, Group};
use crate::names::check_name;
use crate::users::Users;

impl UserFile {
    /// Adds a group without members and writes the file.
    ///
    /// # Errors
    /// Fails when a group has the same name in upper or lower case, the file already has
    /// [`GROUPS_MAX`] groups, the name is not valid, or the file cannot be read or written.
    pub fn add_group(&mut self, name: &str) -> Result<(), UserFileError> {
        check_name(name)?;
        self.change(|users| {
            if users.groups().len() >= GROUPS_MAX {
                return Err(UserFileError::GroupsFull);
            }
            let is_new = users.insert_group(Group::new(name));
            is_new
                .then_some(())
                .ok_or_else(|| UserFileError::GroupExists(name.into()))
        })
    }

    /// Removes a group and writes the file.
    ///
    /// # Errors
    /// Fails when no group has this name, or the file cannot be read or written.
    pub fn remove_group(&mut self, name: &str) -> Result<(), UserFileError> {
        self.change(|users| {
            let was_found = users.remove_group(name);
            was_found
                .then_some(())
                .ok_or_else(|| UserFileError::UnknownGroup(name.into()))
        })
    }

    /// Adds accounts to a group and writes the file. Accounts that are members stay.
    ///
    /// # Errors
    /// Fails when no group or no account has one of these names, or the file cannot be read or
    /// written. The file then stays as it was.
    pub fn add_members(&mut self, group: &str, users: &[String]) -> Result<(), UserFileError> {
        self.change(|table| {
            for user in users {
                let account = table.find(user);
                let account = account.ok_or_else(|| UserFileError::Unknown(user.clone()))?;
                let name = account.name.clone();
                find_group(table, group)?.insert(&name);
            }
            Ok(())
        })
    }

    /// Removes accounts from a group and writes the file.
    ///
    /// # Errors
    /// Fails when no group has this name, one of the accounts is not a member, or the file cannot
    /// be read or written. The file then stays as it was.
    pub fn remove_members(&mut self, group: &str, users: &[String]) -> Result<(), UserFileError> {
        self.change(|table| {
            let found = find_group(table, group)?;
            match users.iter().find(|user| !found.remove(user)) {
                Some(user) => Err(UserFileError::NotMember(user.clone(), group.into())),
                None => Ok(()),
            }
        })
    }
}

fn find_group<'a>(users: &'a mut Users, name: &str) -> Result<&'a mut Group, UserFileError> {
    let group = users.find_group_mut(name);
    group.ok_or_else(|| UserFileError::UnknownGroup(name.into()))
}
