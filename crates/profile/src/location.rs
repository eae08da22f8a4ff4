//! A location on a server, with what a named remote adds to its URL.

use std::path::PathBuf;

use smbeam_client::{Url, UrlError};

use crate::error::Error;
use crate::remotes_file::{Remote, RemotesFile, names_remote};

/// A location on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The URL. It has the user of the remote if it has none of its own.
    pub url: Url,
    /// The source of the password, if a remote names one.
    pub password: Option<PasswordSource>,
    /// Connection options of the remote in the form of the command line, such as `--channels=2`.
    /// [`ConnectOptions::set_arguments`](crate::ConnectOptions::set_arguments) applies them.
    pub options: Vec<String>,
}

/// The source of the password of a remote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PasswordSource {
    /// The first line of a file.
    File(PathBuf),
    /// The first line that a command for the shell prints.
    Command(String),
}

impl Location {
    /// Parses a URL, a UNC name, or `NAME:path` for a remote of the user's file
    /// ([`RemotesFile::path`]). Only the last form reads the file.
    ///
    /// # Errors
    /// The text has another form, or no remote has the name; the file cannot be used.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let wrong = |error| Error::location(text, error);
        if let Some(url) = Url::parse(text).map_err(wrong)? {
            return Ok(url.into());
        }
        let remote = match names_remote(text) {
            true => RemotesFile::load_default()?.location(text).map_err(wrong)?,
            false => None,
        };
        remote.ok_or_else(|| wrong(UrlError::Local))
    }
}

impl RemotesFile {
    /// The location for `NAME:path`; `None` if the text has another form, or no remote has this
    /// name.
    ///
    /// # Errors
    /// The URL of the remote, or the path, is not valid.
    pub fn location(&self, text: &str) -> Result<Option<Location>, UrlError> {
        let named = text.split_once(':');
        let found = named.and_then(|(name, path)| Some((self.get(name)?, path)));
        found.map(|(remote, path)| below(remote, path)).transpose()
    }
}

/// The location of `path` below the URL of a remote. In the path, nothing is encoded.
fn below(remote: &Remote, path: &str) -> Result<Location, UrlError> {
    let encoded: String = path.replace('%', "%25");
    let text = match path {
        "" => remote.url.clone(),
        _ => format!(
            "{}/{}",
            remote.url.trim_end_matches('/'),
            encoded.trim_start_matches('/')
        ),
    };
    let mut url: Url = text.parse()?;
    if url.user.is_none() {
        url.user.clone_from(&remote.user);
    }
    if url.domain.is_none() {
        url.domain.clone_from(&remote.domain);
    }
    Ok(Location {
        url,
        password: password_source(remote),
        options: remote.options.clone(),
    })
}

fn password_source(remote: &Remote) -> Option<PasswordSource> {
    let file = remote.password_file.clone().map(PasswordSource::File);
    let command = || remote.password_command.clone().map(PasswordSource::Command);
    file.or_else(command)
}

/// A location without a remote.
impl From<Url> for Location {
    fn from(url: Url) -> Self {
        Self {
            url,
            password: None,
            options: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_url_and_a_unc_name_need_no_remote() {
        for text in ["smb://alice@nas/data/a", "//nas/data/a"] {
            let location = Location::parse(text).expect("a location");
            assert_eq!(location.url.path, "a");
            assert!(location.password.is_none() && location.options.is_empty());
        }
    }

    #[test]
    fn a_remote_has_a_location() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("config.toml");
        let text = "[remotes.nas]\nurl = \"smb://nas/data/photos\"\nuser = \"alice\"\n\
            password_file = \"p\"\noptions = [\"--encrypt\"]\n\
            [remotes.two]\nurl = \"smb://bob@two\"\nuser = \"alice\"\n\
            password_command = \"pass\"\n";
        std::fs::write(&path, text).expect("a file");
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("a mode");
        let file = RemotesFile::load(&path).expect("a file");
        let location = |text: &str| file.location(text).map(|it| it.expect("a remote"));
        let shown = |text: &str| location(text).expect("a location").url.to_string();
        assert_eq!(shown("nas:"), "smb://alice@nas/data/photos");
        assert_eq!(
            shown("nas:a/b%20c"),
            "smb://alice@nas/data/photos/a/b%2520c"
        );
        assert_eq!(shown("nas:/*.jpg"), "smb://alice@nas/data/photos/*.jpg");
        assert_eq!(shown("two:x"), "smb://bob@two/x");
        assert_eq!(location("nas:a/../.."), Err(UrlError::Parent));
        let nas = location("nas:").expect("a location");
        assert_eq!(nas.options, ["--encrypt"]);
        let source = PasswordSource::File(path.with_file_name("p"));
        assert_eq!(nas.password, Some(source));
        let source = PasswordSource::Command("pass".to_owned());
        assert_eq!(location("two:").expect("one").password, Some(source));
        for other in ["other:", "nas", "./nas:a"] {
            assert_eq!(file.location(other), Ok(None));
        }
    }

    #[test]
    fn an_error_names_the_text_without_the_password() {
        let error = Location::parse("smb://alice:secret@nas/x").expect_err("a password");
        let shown = error.to_string();
        assert!(
            shown.starts_with("smb://alice:***@nas/x: a URL must not"),
            "{shown}"
        );
        let error = Location::parse("/tmp/x").expect_err("a local path");
        assert!(
            matches!(
                error,
                Error::Location {
                    error: UrlError::Local,
                    ..
                }
            ),
            "{error}"
        );
    }
}
