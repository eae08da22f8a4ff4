//! The named remotes of the command line.
//!
//! The options of a command depend on its remotes, so this process keeps the remotes that it finds
//! while it parses arguments.

use std::sync::{Mutex, OnceLock};

use smbeam_client::{Url, UrlError};
use smbeam_profile::{Location, RemotesFile, is_one_session, names_remote};

use crate::mutex::lock;

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

/// The locations of the remotes that the command line names: the first one of each session.
static USED: Mutex<Vec<Location>> = Mutex::new(Vec::new());

/// The location for `NAME:path`; `None` if the text has another form, or no remote has this name.
pub(crate) fn resolve(text: &str) -> Result<Option<Url>, RemoteError> {
    if !names_remote(text) {
        return Ok(None);
    }
    let load = || RemotesFile::load_default().map_err(|error| error.to_string());
    let file = FILE.get_or_init(load).as_ref();
    let file = file.map_err(|reason| RemoteError::File(reason.clone()))?;
    let location = file.location(text).map_err(RemoteError::Url)?;
    Ok(location.map(remember))
}

fn remember(location: Location) -> Url {
    let url = location.url.clone();
    let mut used = lock(&USED);
    if !used.iter().any(|known| is_one_session(&known.url, &url)) {
        used.push(location);
    }
    url
}

/// The options of all remotes that the command line names.
pub(crate) fn used_options() -> Vec<String> {
    let used = lock(&USED);
    used.iter()
        .flat_map(|known| known.options.clone())
        .collect()
}

/// The location of a URL, with the source of the password if it is on the session of a remote.
pub(crate) fn location(url: &Url) -> Location {
    let used = lock(&USED);
    let remote = used.iter().find(|known| is_one_session(&known.url, url));
    Location {
        url: url.clone(),
        password: remote.and_then(|remote| remote.password.clone()),
        options: remote.map_or_else(Vec::new, |remote| remote.options.clone()),
    }
}

impl std::fmt::Display for RemoteError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(reason) => f.write_str(reason),
            Self::Url(error) => error.fmt(f),
        }
    }
}
