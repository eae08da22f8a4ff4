//! Named remotes: `NAME:path` stands for a location on a server. The user's configuration file has
//! the names.

mod file;

use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};

use smbeam_client::{Url, UrlError};

pub(crate) use file::{Remote, RemotesFile, is_name};

use crate::mutex::lock;
use crate::session_key::is_one_session;

/// Why a text with the name of a remote is no location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RemoteError {
    /// The configuration file cannot be used.
    File(String),
    /// The URL of the remote, or the path behind its name, is not valid.
    Url(UrlError),
}

/// The configuration file of the user, after its first use.
static FILE: OnceLock<Result<RemotesFile, String>> = OnceLock::new();

/// The remotes that the command line names, with their URLs.
static USED: Mutex<Vec<(Url, Remote)>> = Mutex::new(Vec::new());

/// The location for `NAME:path`; `None` if the text has another form, or no remote has this name.
pub(crate) fn resolve(text: &str) -> Option<Result<Url, RemoteError>> {
    let (name, path) = text.split_once(':')?;
    if !is_name(name) {
        return None;
    }
    let file = match FILE.get_or_init(RemotesFile::load_default) {
        Ok(file) => file,
        Err(reason) => return Some(Err(RemoteError::File(reason.clone()))),
    };
    let remote = file.get(name)?;
    let location = remote.location(path);
    Some(location.inspect(|url| remember(url, remote)))
}

fn remember(url: &Url, remote: &Remote) {
    let mut used = lock(&USED);
    if !used.iter().any(|(known, _)| is_one_session(known, url)) {
        used.push((url.clone(), remote.clone()));
    }
}

/// The options of all remotes that the command line names.
pub(crate) fn used_options() -> Vec<String> {
    let used = lock(&USED);
    let options = used.iter().flat_map(|(_, remote)| remote.options.clone());
    options.collect()
}

/// The source of the password for a server that a remote names.
pub(crate) enum PasswordSource {
    /// The first line of a file.
    File(PathBuf),
    /// The first line that a command prints.
    Command(String),
}

/// The source of the password for the session of `url`, if a remote has one.
pub(crate) fn password_source(url: &Url) -> Option<PasswordSource> {
    let used = lock(&USED);
    let (_, remote) = used.iter().find(|(known, _)| is_one_session(known, url))?;
    let file = remote.password_file.clone().map(PasswordSource::File);
    let command = || remote.password_command.clone().map(PasswordSource::Command);
    file.or_else(command)
}

impl std::fmt::Display for RemoteError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(reason) => f.write_str(reason),
            Self::Url(error) => error.fmt(f),
        }
    }
}
