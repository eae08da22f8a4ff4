//! The configuration file of the user: `~/.config/smbeam/config.toml`.
//!
//! It has no passwords, but commands that print them. So only its owner may change it.

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toml_edit::{DocumentMut, Item, Table, value};

use crate::directory::user_file;
use crate::error::Error;

/// Maximum size of the file in bytes.
const MAX_BYTES: u64 = 1 << 20;
/// Permission bits that must be clear: changes by group and others.
const FORBIDDEN_MODE: u32 = 0o022;
/// Mode of a new file.
const NEW_MODE: u32 = 0o600;

/// The contents of the file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemotesFile {
    /// The tables `[remotes.NAME]`.
    #[serde(default)]
    remotes: BTreeMap<String, Remote>,
}

/// A named location on a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Remote {
    /// URL of a server, share or directory.
    pub url: String,
    /// User name, if the URL has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Domain of the user, if the URL has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// File with the password in its first line. `~/` is the home directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_file: Option<PathBuf>,
    /// Command for the shell that prints the password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_command: Option<String>,
    /// Connection options of the command line, such as `--encrypt`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

/// Whether a remote can have this name: characters that no URL and few paths have before a colon.
pub fn is_name(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(is_allowed)
}

/// Whether a text starts with a name and a colon as `NAME:path`, so that it can name a remote.
pub fn names_remote(text: &str) -> bool {
    text.split_once(':').is_some_and(|(name, _)| is_name(name))
}

impl RemotesFile {
    /// The path of the user's file: `~/.config/smbeam/config.toml`. `None` without a home
    /// directory.
    pub fn path() -> Option<PathBuf> {
        user_file("config.toml")
    }

    /// Reads the file of the user. A missing file has no remotes.
    ///
    /// # Errors
    /// Those of [`Self::load`].
    pub fn load_default() -> Result<Self, Error> {
        match Self::path() {
            Some(path) => Self::load(&path),
            None => Ok(Self::default()),
        }
    }

    /// Reads a file. A missing file has no remotes.
    ///
    /// # Errors
    /// The file cannot be read or has a mistake, or other users can change it.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let failed = |reason| failed(path, reason);
        let Some(text) = read(path).map_err(failed)? else {
            return Ok(Self::default());
        };
        let mut file: Self =
            toml::from_str(&text).map_err(|error| failed(reason(&error, &text)))?;
        if let Some(name) = file.remotes.keys().find(|name| !is_name(name)) {
            let reason = format!(
                "remotes.{name}: a name has only the characters a-z, A-Z, 0-9, `_`, `-` and `.`"
            );
            return Err(failed(reason));
        }
        let home = env::var_os("HOME").map(PathBuf::from);
        for remote in file.remotes.values_mut() {
            remote.password_file = remote.password_file.take().map(|file| {
                absolute(
                    &file,
                    home.as_deref(),
                    path.parent().unwrap_or(Path::new("")),
                )
            });
        }
        Ok(file)
    }

    /// The remote with this name.
    pub fn get(&self, name: &str) -> Option<&Remote> {
        self.remotes.get(name)
    }

    /// All remotes, by name.
    pub fn all(&self) -> impl Iterator<Item = (&str, &Remote)> {
        self.remotes
            .iter()
            .map(|(name, remote)| (name.as_str(), remote))
    }

    /// Adds or replaces a remote. Comments and the order of the file stay.
    ///
    /// # Errors
    /// The file cannot be read or written, or has a mistake.
    pub fn set(path: &Path, name: &str, remote: &Remote) -> Result<(), Error> {
        change(path, |document| {
            let remotes = document.entry("remotes").or_insert_with(implicit_table);
            let remotes = remotes.as_table_mut().ok_or("`remotes` is not a table")?;
            remotes.insert(name, Item::Table(remote.table()));
            Ok(())
        })
    }

    /// Removes a remote. Returns whether it existed.
    ///
    /// # Errors
    /// Those of [`Self::set`].
    pub fn remove(path: &Path, name: &str) -> Result<bool, Error> {
        let mut existed = false;
        change(path, |document| {
            let remotes = document.get_mut("remotes").and_then(Item::as_table_mut);
            existed = remotes.is_some_and(|remotes| remotes.remove(name).is_some());
            Ok(())
        })?;
        Ok(existed)
    }
}

impl Remote {
    fn table(&self) -> Table {
        let Self {
            url,
            user,
            domain,
            password_file,
            password_command,
            options,
        } = self;
        let mut table = Table::new();
        table.insert("url", value(url));
        let file = password_file
            .as_ref()
            .map(|path| path.display().to_string());
        for (key, text) in [
            ("user", user.as_ref()),
            ("domain", domain.as_ref()),
            ("password_file", file.as_ref()),
            ("password_command", password_command.as_ref()),
        ] {
            if let Some(text) = text {
                table.insert(key, value(text));
            }
        }
        if !options.is_empty() {
            let list: toml_edit::Array = options.iter().map(String::as_str).collect();
            table.insert("options", value(list));
        }
        table
    }
}

/// A table that has no line of its own, only its subtables.
fn implicit_table() -> Item {
    let mut table = Table::new();
    table.set_implicit(true);
    Item::Table(table)
}

/// The text of the file; `None` if it does not exist.
fn read(path: &Path) -> Result<Option<String>, String> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    check_owner_and_mode(metadata.uid(), metadata.mode())?;
    let mut text = String::new();
    let length = file.take(MAX_BYTES + 1).read_to_string(&mut text);
    match length.map_err(|error| error.to_string())? as u64 > MAX_BYTES {
        true => Err("the file has more than 1 MiB".into()),
        false => Ok(Some(text)),
    }
}

fn check_owner_and_mode(uid: u32, mode: u32) -> Result<(), String> {
    let own = rustix::process::geteuid().as_raw();
    if uid != own && uid != 0 {
        return Err(format!("the file belongs to another user (user id {uid})"));
    }
    if mode & FORBIDDEN_MODE != 0 {
        let mode = mode & 0o7777;
        return Err(format!(
            "other users can change the commands in it (mode {mode:04o}): run chmod 600 on it"
        ));
    }
    Ok(())
}

/// The error with its line number.
fn reason(error: &toml::de::Error, text: &str) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before.map_or(1, |before| before.matches('\n').count() + 1);
    format!("line {line}: {}", error.message())
}

/// A path of the file: relative to the home directory with `~/`, else to the directory of the file.
fn absolute(path: &Path, home: Option<&Path>, directory: &Path) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(below), Some(home)) => home.join(below),
        _ => directory.join(path),
    }
}

fn failed(path: &Path, reason: String) -> Error {
    let path = path.to_owned();
    Error::File { path, reason }
}

/// Changes the file. The new one replaces the old one as a whole.
fn change(
    path: &Path,
    edit: impl FnOnce(&mut DocumentMut) -> Result<(), String>,
) -> Result<(), Error> {
    let failed = |reason| failed(path, reason);
    let text = read(path).map_err(failed)?.unwrap_or_default();
    let parsed = text.parse::<DocumentMut>();
    let mut document = parsed.map_err(|error| failed(error.message().to_owned()))?;
    edit(&mut document).map_err(failed)?;
    write(path, &document.to_string()).map_err(|error| failed(error.to_string()))
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)?;
    }
    // A link stays, and its target is replaced.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mode = fs::metadata(&path).map_or(NEW_MODE, |metadata| metadata.mode());
    let new = path.with_extension(format!("toml.{}.new", std::process::id()));
    let written = File::options()
        .write(true)
        .create_new(true)
        .mode(NEW_MODE)
        .open(&new)
        .and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.set_permissions(Permissions::from_mode(mode & 0o7777))?;
            file.sync_all()
        });
    let replaced = written.and_then(|()| fs::rename(&new, &path));
    if replaced.is_err() {
        let _ = fs::remove_file(&new);
    }
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# mine\n[remotes.nas]\nurl = \"smb://nas/data/photos\" # all\n\
        user = \"alice\"\npassword_file = \"p\"\noptions = [\"--encrypt\"]\n";

    fn with_file(text: &str, mode: u32, test: impl FnOnce(&Path)) {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("config.toml");
        fs::write(&path, text).expect("a file");
        fs::set_permissions(&path, Permissions::from_mode(mode)).expect("a mode");
        test(&path);
    }

    #[test]
    fn changes_keep_comments() {
        with_file(TEXT, 0o600, |path| {
            let new = Remote {
                url: "smb://other/x".into(),
                password_command: Some("pass show \"x\"".into()),
                options: vec!["--channels=2".into()],
                ..Remote::default()
            };
            RemotesFile::set(path, "two", &new).expect("added");
            let text = fs::read_to_string(path).expect("a file");
            assert!(
                text.starts_with("# mine\n") && text.contains("# all"),
                "{text}"
            );
            let file = RemotesFile::load(path).expect("a file");
            assert_eq!(file.get("two"), Some(&new));
            let names: Vec<_> = file.all().map(|(name, _)| name.to_owned()).collect();
            assert_eq!(names, ["nas", "two"]);
            assert!(RemotesFile::remove(path, "nas").expect("removed"));
            assert!(!RemotesFile::remove(path, "nas").expect("none"));
            let file = RemotesFile::load(path).expect("a file");
            assert_eq!(file.all().count(), 1);
        });
    }

    #[test]
    fn a_missing_file_is_created() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a/config.toml");
        assert_eq!(RemotesFile::load(&path).expect("empty").all().count(), 0);
        let remote = Remote {
            url: "smb://nas".into(),
            ..Remote::default()
        };
        RemotesFile::set(&path, "nas", &remote).expect("added");
        let mode = fs::metadata(&path).expect("a file").mode();
        assert_eq!(mode & 0o777, NEW_MODE);
        assert_eq!(
            RemotesFile::load(&path).expect("a file").get("nas"),
            Some(&remote)
        );
    }

    #[test]
    fn a_file_that_is_not_safe_or_not_valid_is_refused() {
        with_file(TEXT, 0o666, |path| {
            let error = RemotesFile::load(path).expect_err("refused").to_string();
            assert!(error.contains("chmod 600"), "{error}");
        });
        for (text, wanted) in [
            ("[remotes.a]\nurl = \"x\"\nurll = 1\n", "line 3"),
            ("[remotes.\"a b\"]\nurl = \"smb://x\"\n", "a b"),
            ("[remotes.a]\nuser = \"x\"\n", "url"),
        ] {
            with_file(text, 0o600, |path| {
                let error = RemotesFile::load(path).expect_err("refused").to_string();
                assert!(error.contains(wanted), "{error}");
            });
        }
    }

    #[test]
    fn names_are_not_paths_and_not_urls() {
        assert!(is_name("nas") && is_name("nas-2.home_x"));
        for text in ["", ".", "./a", "a/b", "-a", "a b", "\u{e4}"] {
            assert!(!is_name(text), "{text}");
        }
    }
}
