//! The location of a file: a path of this machine, or a location on a server.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::builder::{
    OsStringValueParser, TryMapValueParser, TypedValueParser as _, ValueParserFactory,
};
pub(crate) use smbeam_client::Url;
use smbeam_client::UrlError;

use crate::remotes::{self, RemoteError};

/// A local path, or a location on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    /// A path of this machine.
    Local(PathBuf),
    /// A location on a server.
    Remote(Url),
}

/// The reason why an argument is not a location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LocationError {
    /// It is not a valid URL.
    Url(UrlError),
    /// It names a remote, and that has no location.
    Remote(RemoteError),
}

impl Location {
    /// Parses an argument of the command line. Text without a scheme that is not a UNC name and
    /// does not start with the name of a remote is a local path.
    pub(crate) fn parse(text: &str) -> Result<Self, LocationError> {
        if let Some(url) = Url::parse(text).map_err(LocationError::Url)? {
            return Ok(Self::Remote(url));
        }
        let remote = remotes::resolve(text).map_err(LocationError::Remote)?;
        let local = || Self::Local(PathBuf::from(text));
        Ok(remote.map_or_else(local, Self::Remote))
    }

    /// Whether it is `-`: standard input or output. `./-` is a file of this name.
    pub(crate) fn is_stream(&self) -> bool {
        matches!(self, Self::Local(path) if path.as_os_str() == "-")
    }

    /// Whether it ends in `/`, so that it can only be a directory.
    pub(crate) fn names_a_directory(&self) -> bool {
        match self {
            Self::Local(path) => path.as_os_str().as_encoded_bytes().ends_with(b"/"),
            Self::Remote(url) => url.is_directory && !url.path.is_empty(),
        }
    }
}

/// Parses an argument that is a location. A local path need not be UTF-8.
impl ValueParserFactory for Location {
    type Parser = TryMapValueParser<OsStringValueParser, Parse>;

    fn value_parser() -> Self::Parser {
        let parse: Parse = |text| match text.to_str() {
            Some(text) => Self::parse(text),
            None => Ok(Self::Local(text.into())),
        };
        OsStringValueParser::new().try_map(parse)
    }
}

/// Parses an argument.
type Parse = fn(OsString) -> Result<Location, LocationError>;

impl FromStr for Location {
    type Err = LocationError;

    fn from_str(text: &str) -> Result<Self, LocationError> {
        Self::parse(text)
    }
}

/// Parses an argument that must be a location on a server.
pub(crate) fn url(text: &str) -> Result<Url, LocationError> {
    match Location::parse(text)? {
        Location::Remote(url) => Ok(url),
        Location::Local(_) => Err(LocationError::Url(UrlError::Local)),
    }
}

/// Parses an argument that must be a URL or a UNC name, and not the name of a remote.
pub(crate) fn plain_url(text: &str) -> Result<Url, LocationError> {
    text.parse().map_err(LocationError::Url)
}

/// Percent-encodes a path for display: see [`Url::encode`].
pub(crate) fn encode(text: &str) -> String {
    Url::encode(text)
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(path) => f.write_str(&shown(path)),
            Self::Remote(url) => url.fmt(f),
        }
    }
}

/// A local path for display: control characters and bytes that are not UTF-8 are escaped.
pub(crate) fn shown(path: &Path) -> String {
    let bytes = path.as_os_str().as_encoded_bytes();
    let Some(text) = path.to_str() else {
        return bytes.escape_ascii().to_string();
    };
    if text.chars().any(char::is_control) {
        return text.escape_debug().to_string();
    }
    text.to_owned()
}

impl fmt::Display for LocationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = match self {
            Self::Url(error) => error,
            Self::Remote(error) => return error.fmt(f),
        };
        error.fmt(f)?;
        match error {
            UrlError::Password => f.write_str(
                "; let smbeam ask for the password, or give --password-file, SMBEAM_PASSWORD or \
                 ~/.config/smbeam/credentials.toml",
            ),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for LocationError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_refused_with_the_ways_to_give_one() {
        let error = Location::parse("smb://alice:secret@nas/data").expect_err("refused");
        assert_eq!(error, LocationError::Url(UrlError::Password));
        assert!(error.to_string().contains("--password-file"), "{error}");
    }

    #[test]
    fn a_local_path_need_not_be_utf8() {
        use std::os::unix::ffi::OsStringExt as _;

        use clap::Parser as _;

        #[derive(Debug, clap::Parser)]
        struct Line {
            location: Location,
        }

        let path = OsString::from_vec(b"a/\xe4".to_vec());
        let line = Line::try_parse_from(["x".into(), path.clone()]).expect("a path");
        assert_eq!(line.location, Location::Local(path.into()));
        assert_eq!(line.location.to_string(), "a/\\xe4");
        assert!(Line::try_parse_from(["x", "smb://"]).is_err());
    }

    #[test]
    fn an_argument_without_a_scheme_is_local() {
        for text in ["a/b", "/tmp/x", "./smb:/x", "C:\\x", "a:b", "./x://y"] {
            let local = Location::Local(PathBuf::from(text));
            assert_eq!(Location::parse(text), Ok(local));
        }
        assert!(matches!(
            Location::parse("smb://nas/data"),
            Ok(Location::Remote(_))
        ));
    }
}
