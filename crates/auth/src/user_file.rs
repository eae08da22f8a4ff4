//! `users.toml`: accounts on disk.
//!
//! ```toml
//! [[user]]
//! name = "alice"
//! nt_hash = "a4f49c406510bdcab6824ee7c30fd852"
//! unix = "alice"      # optional
//! disabled = false    # optional
//! ```
//!
//! An NT hash is as good as the password, so the file must be readable by its owner only.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use toml::Spanned;
use zeroize::Zeroizing;

use crate::ntlm::keys::NtHash;
use crate::users::{Account, NameError, USERS_MAX, Users, check_name, hash_password};

/// Bytes of the file: room for [`USERS_MAX`] accounts with long names.
const FILE_LEN_MAX: u64 = 4 << 20;

/// The file of users, and what it last held.
#[derive(Debug)]
pub struct UserFile {
    path: PathBuf,
    users: Arc<Users>,
    stamp: Stamp,
}

/// What changes when somebody writes the file: device, inode, length, and time in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct Stamp(u64, u64, u64, i128);

/// What is wrong with the file, or with a change to it.
#[derive(Debug)]
pub enum UserFileError {
    /// The system says no.
    Io(PathBuf, io::Error),
    /// Others than the owner can read the file: its mode.
    Readable(PathBuf, u32),
    /// The file is longer than any file of users.
    TooLong(PathBuf),
    /// It is no TOML, or has keys that are unknown or missing: what the parser says.
    Syntax(PathBuf, String),
    /// One value is wrong: line (1-based), key, why.
    Value(PathBuf, usize, &'static str, String),
    /// There is an account with this name.
    Exists(String),
    /// There is no account with this name.
    Unknown(String),
    /// There are [`USERS_MAX`] accounts.
    Full,
    /// The name or the password cannot be that of an account.
    Name(NameError),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    user: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: Spanned<String>,
    nt_hash: Spanned<String>,
    unix: Option<String>,
    #[serde(default)]
    disabled: bool,
}

impl UserFile {
    /// Reads the file. One that does not exist holds nobody, and comes into being with the first
    /// [`add`](Self::add).
    ///
    /// # Errors
    /// When it cannot be read, others can read it, or it makes no sense.
    pub fn load(path: impl Into<PathBuf>) -> Result<Self, UserFileError> {
        let path = path.into();
        let (users, stamp) = read(&path)?;
        Ok(Self {
            path,
            users: Arc::new(users),
            stamp,
        })
    }

    /// Reads the file again if it has changed; tells whether it had.
    ///
    /// # Errors
    /// As [`load`](Self::load); the accounts stay as they were.
    pub fn reload_if_changed(&mut self) -> Result<bool, UserFileError> {
        if stamp(&self.path)? == self.stamp {
            return Ok(false);
        }
        let (users, stamp) = read(&self.path)?;
        (self.users, self.stamp) = (Arc::new(users), stamp);
        Ok(true)
    }

    /// The accounts, to share with a [`Realm`](crate::Realm).
    pub fn users(&self) -> Arc<Users> {
        Arc::clone(&self.users)
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All accounts, by name.
    pub fn list(&self) -> impl ExactSizeIterator<Item = &Account> {
        self.users.iter()
    }

    /// Adds an account.
    ///
    /// # Errors
    /// When there is one with that name already, whatever its case, or the name or the password
    /// cannot be that of an account, or the file cannot be written.
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
            if users.len() >= USERS_MAX {
                return Err(UserFileError::Full);
            }
            users
                .insert(account)
                .then_some(())
                .ok_or_else(|| UserFileError::Exists(name.into()))
        })
    }

    /// Gives an account another password.
    ///
    /// # Errors
    /// When there is no such account, or the password is empty or too long, or the file cannot
    /// be written.
    pub fn set_password(&mut self, name: &str, password: &str) -> Result<(), UserFileError> {
        let nt_hash = hash_password(password)?;
        self.change(|users| {
            let account = users
                .find_mut(name)
                .ok_or_else(|| UserFileError::Unknown(name.into()))?;
            account.nt_hash = nt_hash;
            Ok(())
        })
    }

    /// Lets an account in or keeps it out.
    ///
    /// # Errors
    /// When there is no such account, or the file cannot be written.
    pub fn set_disabled(&mut self, name: &str, is_disabled: bool) -> Result<(), UserFileError> {
        self.change(|users| {
            let account = users
                .find_mut(name)
                .ok_or_else(|| UserFileError::Unknown(name.into()))?;
            account.is_disabled = is_disabled;
            Ok(())
        })
    }

    /// Takes an account out.
    ///
    /// # Errors
    /// When there is no such account, or the file cannot be written.
    pub fn remove(&mut self, name: &str) -> Result<(), UserFileError> {
        self.change(|users| match users.remove(name) {
            Some(_) => Ok(()),
            None => Err(UserFileError::Unknown(name.into())),
        })
    }

    /// Changes what the file holds now, not what it held when it was loaded, with other writers
    /// locked out.
    fn change(
        &mut self,
        change: impl FnOnce(&mut Users) -> Result<(), UserFileError>,
    ) -> Result<(), UserFileError> {
        let _lock = self.lock()?;
        let (mut users, _) = read(&self.path)?;
        change(&mut users)?;
        write(&self.path, &users).map_err(|error| UserFileError::Io(self.path.clone(), error))?;
        (self.users, self.stamp) = (Arc::new(users), stamp(&self.path)?);
        Ok(())
    }

    /// The lock has a file of its own, because the file of users is replaced while it is held.
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

fn stamp(path: &Path) -> Result<Stamp, UserFileError> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(Stamp::new(&metadata)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Stamp::default()),
        Err(error) => Err(UserFileError::Io(path.into(), error)),
    }
}

impl Stamp {
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
    let mut content = Zeroizing::new(String::new());
    file.take(FILE_LEN_MAX + 1)
        .read_to_string(&mut content)
        .map_err(io)?;
    if content.len() as u64 > FILE_LEN_MAX {
        return Err(UserFileError::TooLong(path.into()));
    }
    Ok((parse(path, &content)?, Stamp::new(&metadata)))
}

fn parse(path: &Path, content: &str) -> Result<Users, UserFileError> {
    let document: Document = toml::from_str(content).map_err(|error| {
        let line = error.span().map_or(0, |span| line_of(content, span.start));
        UserFileError::Syntax(path.into(), format!("line {line}: {}", error.message()))
    })?;
    let mut users = Users::default();
    for Entry {
        name,
        nt_hash,
        unix,
        disabled,
    } in document.user
    {
        let wrong = |at: usize, key, why: String| {
            UserFileError::Value(path.into(), line_of(content, at), key, why)
        };
        let (name_at, hash_at) = (name.span().start, nt_hash.span().start);
        let name = name.into_inner();
        check_name(&name).map_err(|error| wrong(name_at, "name", error.to_string()))?;
        let nt_hash = Zeroizing::new(nt_hash.into_inner());
        let nt_hash = NtHash::from_hex(&nt_hash)
            .ok_or_else(|| wrong(hash_at, "nt_hash", "not 32 hexadecimal digits".into()))?;
        if users.len() >= USERS_MAX {
            return Err(wrong(
                name_at,
                "name",
                format!("more than {USERS_MAX} users"),
            ));
        }
        if !users.insert(Account {
            name,
            nt_hash,
            unix,
            is_disabled: disabled,
        }) {
            return Err(wrong(name_at, "name", "the user is there twice".into()));
        }
    }
    Ok(users)
}

/// 1-based.
fn line_of(content: &str, at: usize) -> usize {
    content.as_bytes()[..at.min(content.len())]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
        + 1
}

/// Replaces the file, so that a reader sees the old or the new one whole, and a crash keeps one
/// of them.
fn write(path: &Path, users: &Users) -> io::Result<()> {
    let temporary = sibling(path, ".new");
    // The lock is held: what is there is left of a crash.
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)?;
    file.write_all(format(users).as_bytes())?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

fn format(users: &Users) -> Zeroizing<String> {
    let quoted = |text: &str| toml::Value::String(text.into()).to_string();
    let mut content = Zeroizing::new(String::from(
        "# Written by `smbeam user`. An NT hash is as good as the password: keep this secret.\n",
    ));
    for Account {
        name,
        nt_hash,
        unix,
        is_disabled,
    } in users.iter()
    {
        content.push_str(&format!("\n[[user]]\nname = {}\n", quoted(name)));
        content.push_str(&format!("nt_hash = \"{}\"\n", nt_hash.to_hex().as_str()));
        if let Some(unix) = unix {
            content.push_str(&format!("unix = {}\n", quoted(unix)));
        }
        if *is_disabled {
            content.push_str("disabled = true\n");
        }
    }
    content
}

fn sibling(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

impl From<NameError> for UserFileError {
    fn from(error: NameError) -> Self {
        Self::Name(error)
    }
}

impl fmt::Display for UserFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Readable(path, mode) => write!(
                f,
                "{path}: mode {mode:04o} lets others read the password hashes; \
                 run: chmod 600 {path}",
                path = path.display()
            ),
            Self::TooLong(path) => {
                write!(f, "{}: longer than {FILE_LEN_MAX} bytes", path.display())
            }
            Self::Syntax(path, why) => write!(f, "{}: {why}", path.display()),
            Self::Value(path, line, key, why) => {
                write!(f, "{}: line {line}: {key}: {why}", path.display())
            }
            Self::Exists(name) => write!(f, "user {name} exists already"),
            Self::Unknown(name) => write!(f, "there is no user {name}"),
            Self::Full => write!(f, "there are {USERS_MAX} users already"),
            Self::Name(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for UserFileError {}
