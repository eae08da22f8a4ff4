//! `users.toml`, the file of the accounts.
//!
//! ```toml
//! [[user]]
//! name = "alice"
//! nt_hash = "a4f49c406510bdcab6824ee7c30fd852"
//! unix = "alice"      # optional
//! disabled = false    # optional
//!
//! [[user.app_password]]
//! name = "phone"
//! nt_hash = "8846f7eaee8fb117ad06bdd830b7586c"
//! expires = 2030-01-31T12:00:00Z    # optional
//! shares = ["photos"]               # optional
//! read_only = false                 # optional
//!
//! [[group]]
//! name = "staff"
//! members = ["alice"]
//!
//! [password_rules]
//! min_length = 10        # optional
//! min_classes = 3        # optional
//! refuse_name = true     # optional
//! ```
//!
//! An NT hash is as secret as the password, so only the owner may be able to read the file.

mod app_passwords;
mod document;
mod error;
mod groups;
mod import;
mod rules;
mod write;

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use zeroize::Zeroizing;

use crate::names::hash_password;
use crate::users::{Account, USERS_MAX, Users};
use document::parse;
use error::FILE_LEN_MAX;
pub use error::UserFileError;
use write::{sibling, write};

/// The user file, a TOML file with the accounts of the server. The value also holds the accounts
/// from the last read or write of the file.
#[derive(Debug)]
pub struct UserFile {
    path: PathBuf,
    users: Arc<Users>,
    stamp: Stamp,
}

/// Identifies a version of the file: device, inode, length, and modification time in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct Stamp(u64, u64, u64, i128);

impl UserFile {
    /// Reads the user file at `path`. A missing file counts as empty; the first [`add`](Self::add)
    /// creates it.
    ///
    /// # Errors
    /// Fails when the file cannot be read, users other than its owner have permissions for it, it
    /// is longer than 4 MiB, or its contents are not valid.
    pub fn load(path: impl Into<PathBuf>) -> Result<Self, UserFileError> {
        let path = path.into();
        let (users, stamp) = read(&path)?;
        Ok(Self {
            path,
            users: Arc::new(users),
            stamp,
        })
    }

    /// Reads the file again if it has changed since the last read. Returns true if the file had
    /// changed.
    ///
    /// # Errors
    /// Fails when the changed file cannot be read or is not valid, as in [`load`](Self::load). The
    /// result of [`users`](Self::users) then stays unchanged. Fails too when the file has vanished
    /// or has become empty: its file system may be unmounted, or another program may write it.
    pub fn reload_if_changed(&mut self) -> Result<bool, UserFileError> {
        let found = stamp(&self.path)?;
        if found == self.stamp {
            return Ok(false);
        }
        if found == Stamp::default() {
            return Err(UserFileError::Vanished(self.path.clone()));
        }
        if found.is_empty() && !self.users.is_empty() {
            return Err(UserFileError::Emptied(self.path.clone()));
        }
        let (users, stamp) = read(&self.path)?;
        if stamp == Stamp::default() {
            return Err(UserFileError::Vanished(self.path.clone()));
        }
        (self.users, self.stamp) = (Arc::new(users), stamp);
        Ok(true)
    }

    /// The table of accounts from the last read or write of the file. Later changes of the file do
    /// not affect this table.
    pub fn users(&self) -> Arc<Users> {
        Arc::clone(&self.users)
    }

    /// Path of the user file, as passed to [`load`](Self::load).
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lists the accounts from the last read or write of the file, in the order of their upper-case
    /// names.
    pub fn list(&self) -> impl ExactSizeIterator<Item = &Account> {
        self.users.iter()
    }

    /// Adds an enabled account and writes the file. `unix` is the Unix account for the user's file
    /// access; `None` means the default account of the share.
    ///
    /// # Errors
    /// Fails when an account has the same name in upper or lower case, the file already has
    /// [`USERS_MAX`] accounts, the name or the password is not valid or breaks the rules of the
    /// file, or the file cannot be read or written.
    pub fn add(
        &mut self,
        name: &str,
        password: &str,
        unix: Option<&str>,
    ) -> Result<(), UserFileError> {
        let account = Account {
            unix: unix.map(Into::into),
            ..Account::new(name, password)?
        };
        self.change(|users| {
            users.rules.check(name, password)?;
            if users.len() >= USERS_MAX {
                return Err(UserFileError::Full);
            }
            users
                .insert(account)
                .then_some(())
                .ok_or_else(|| UserFileError::Exists(name.into()))
        })
    }

    /// Changes the password of an account and writes the file.
    ///
    /// # Errors
    /// Fails when no account has this name, the password is empty, too long or breaks the rules of
    /// the file, or the file cannot be read or written.
    pub fn set_password(&mut self, name: &str, password: &str) -> Result<(), UserFileError> {
        let nt_hash = hash_password(password)?;
        self.change(|users| {
            users.rules.check(name, password)?;
            find_mut(users, name)?.nt_hash = nt_hash;
            Ok(())
        })
    }

    /// Disables or enables an account and writes the file. Logins of a disabled account fail.
    ///
    /// # Errors
    /// Fails when no account has this name, or the file cannot be read or written.
    pub fn set_disabled(&mut self, name: &str, is_disabled: bool) -> Result<(), UserFileError> {
        self.change(|users| {
            find_mut(users, name)?.is_disabled = is_disabled;
            Ok(())
        })
    }

    /// Removes an account and writes the file.
    ///
    /// # Errors
    /// Fails when no account has this name, or the file cannot be read or written.
    pub fn remove(&mut self, name: &str) -> Result<(), UserFileError> {
        self.change(|users| match users.remove(name) {
            Some(_) => Ok(()),
            None => Err(UserFileError::Unknown(name.into())),
        })
    }

    /// Reads the current file, applies `change` to its accounts and replaces the file, all under
    /// the lock that other writers wait for.
    fn change(
        &mut self,
        change: impl FnOnce(&mut Users) -> Result<(), UserFileError>,
    ) -> Result<(), UserFileError> {
        let _lock = self.lock()?;
        let (mut users, _) = read(&self.path)?;
        change(&mut users)?;
        write(&self.path, &users)?;
        (self.users, self.stamp) = (Arc::new(users), stamp(&self.path)?);
        Ok(())
    }

    /// Locks a separate file, because a change replaces the user file while the lock is held.
    fn lock(&self) -> Result<File, UserFileError> {
        let path = sibling(&self.path, ".lock");
        let lock = || {
            let file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .open(&path)?;
            file.lock()?;
            Ok(file)
        };
        lock().map_err(|error| UserFileError::Io(path.clone(), error))
    }
}

/// The account of this name, to change it.
fn find_mut<'a>(users: &'a mut Users, name: &str) -> Result<&'a mut Account, UserFileError> {
    let account = users.find_mut(name);
    account.ok_or_else(|| UserFileError::Unknown(name.into()))
}

fn stamp(path: &Path) -> Result<Stamp, UserFileError> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(Stamp::new(&metadata)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Stamp::default()),
        Err(error) => Err(UserFileError::Io(path.into(), error)),
    }
}

impl Stamp {
    /// Whether the file has no bytes.
    fn is_empty(self) -> bool {
        self.2 == 0
    }

    fn new(metadata: &fs::Metadata) -> Self {
        let time = i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
        Self(metadata.dev(), metadata.ino(), metadata.len(), time)
    }
}

fn read(path: &Path) -> Result<(Users, Stamp), UserFileError> {
    let io = |error| UserFileError::Io(path.into(), error);
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Ok((Users::default(), Stamp::default()));
        }
        opened => opened.map_err(io)?,
    };
    let metadata = file.metadata().map_err(io)?;
    if metadata.mode() & 0o077 != 0 {
        return Err(UserFileError::Readable(
            path.into(),
            metadata.mode() & 0o7777,
        ));
    }
    let owner = metadata.uid();
    if !is_trusted(owner, rustix::process::geteuid().as_raw()) {
        return Err(UserFileError::ForeignOwner(path.into(), owner));
    }
    let mut content = Zeroizing::new(String::new());
    file.take(FILE_LEN_MAX + 1)
        .read_to_string(&mut content)
        .map_err(io)?;
    if content.len() as u64 > FILE_LEN_MAX {
        return Err(UserFileError::TooLong(path.into()));
    }
    Ok((parse(path, &content)?, Stamp::new(&metadata)))
}

/// Whether a file of the owner can decide about accounts for a process of the user `process`: as
/// sshd has it for authorized_keys (StrictModes in sshd_config(5)).
fn is_trusted(owner: u32, process: u32) -> bool {
    owner == 0 || owner == process
}
