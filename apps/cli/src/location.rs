//! Where a file is: a path of this machine, an `smb://` URL or a UNC name.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Bytes of a URL that is worth reading. A path of SMB has at most 32,767 characters.
/// \[MS-FSCC\] 2.1.5
const MAX_URL_BYTES: usize = 128 * 1024;

/// A path here or a path on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    /// On this machine.
    Local(PathBuf),
    /// On a server.
    Remote(Url),
}

/// `smb://[[domain;]user@]host[:port][/share[/path]]`, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Url {
    /// The domain of the user.
    pub(crate) domain: Option<String>,
    /// Who logs in.
    pub(crate) user: Option<String>,
    /// A name or an address; an address of IPv6 without its brackets.
    pub(crate) host: String,
    /// The port, where it is not the transport's own.
    pub(crate) port: Option<u16>,
    /// The share; none where the server as a whole is meant.
    pub(crate) share: Option<String>,
    /// The path within the share: components with `/` between them, none at its ends.
    pub(crate) path: String,
    /// Whether a `/` stands at its end: what is meant is a directory.
    pub(crate) is_directory: bool,
}

/// What is wrong with a URL or a UNC name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LocationError {
    /// `user:password@`: everybody who lists the processes would read it.
    Password,
    /// Nothing between `//` and `/`.
    NoHost,
    /// What stands behind the colon.
    Port,
    /// A `[` without its `]`, or something else than a port behind it.
    Brackets,
    /// A `%` without two hexadecimal digits.
    Percent,
    /// What the percent signs say is no UTF-8.
    NotUtf8,
    /// A NUL.
    Nul,
    /// A `\` or an encoded `/` within a component.
    Separator,
    /// `..`, which SMB does not know.
    Parent,
    /// Longer than any path can be.
    TooLong,
    /// Another scheme.
    Scheme,
    /// A path of this machine where one on a server is wanted.
    Local,
}

impl Location {
    /// Reads what stands on a command line. What has no scheme and does not begin as a UNC name is
    /// a path of this machine.
    pub(crate) fn parse(text: &str) -> Result<Self, LocationError> {
        if text.len() > MAX_URL_BYTES {
            return Err(LocationError::TooLong);
        }
        if let Some(rest) = after_scheme(text) {
            return Url::after_scheme(rest).map(Self::Remote);
        }
        if let Some(rest) = text.strip_prefix("//") {
            return Url::unc(rest).map(Self::Remote);
        }
        if let Some(rest) = text.strip_prefix("\\\\") {
            return Url::unc(&rest.replace('\\', "/")).map(Self::Remote);
        }
        match text.split_once("://") {
            Some((scheme, _)) if is_scheme(scheme) => Err(LocationError::Scheme),
            _ => Ok(Self::Local(PathBuf::from(text))),
        }
    }
}

impl Location {
    /// Whether it is `-`: standard input or output. A file of this name is `./-`.
    pub(crate) fn is_stream(&self) -> bool {
        matches!(self, Self::Local(path) if path.as_os_str() == "-")
    }

    /// Whether a `/` stands at its end: what is meant is a directory.
    pub(crate) fn names_a_directory(&self) -> bool {
        match self {
            Self::Local(path) => path.as_os_str().as_encoded_bytes().ends_with(b"/"),
            Self::Remote(url) => url.is_directory && !url.path.is_empty(),
        }
    }
}

impl FromStr for Location {
    type Err = LocationError;

    fn from_str(text: &str) -> Result<Self, LocationError> {
        Self::parse(text)
    }
}

impl FromStr for Url {
    type Err = LocationError;

    fn from_str(text: &str) -> Result<Self, LocationError> {
        match Location::parse(text)? {
            Location::Remote(url) => Ok(url),
            Location::Local(_) => Err(LocationError::Local),
        }
    }
}

fn after_scheme(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_at_checked("smb://".len())?;
    scheme.eq_ignore_ascii_case("smb://").then_some(rest)
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

impl Url {
    fn after_scheme(text: &str) -> Result<Self, LocationError> {
        let (authority, path) = text.split_once('/').unwrap_or((text, ""));
        let (login, host) = match authority.rsplit_once('@') {
            Some((login, host)) => (Some(login), host),
            None => (None, authority),
        };
        let (domain, user) = login.map_or(Ok((None, None)), login_of)?;
        let (host, port) = host_and_port(host)?;
        let components = path.split('/').map(decode).collect::<Result<Vec<_>, _>>()?;
        Self {
            domain,
            user,
            host,
            port,
            share: None,
            path: String::new(),
            is_directory: path.ends_with('/') || path.is_empty(),
        }
        .below(&components)
    }

    /// `host/share/path`, in which nothing is encoded.
    fn unc(text: &str) -> Result<Self, LocationError> {
        let (authority, path) = text.split_once('/').unwrap_or((text, ""));
        if authority.contains('@') {
            // Windows' own `host@port`; a login does not stand in a UNC name.
            return Err(LocationError::Port);
        }
        let (host, port) = host_and_port(authority)?;
        let components: Vec<_> = path.split('/').map(str::to_owned).collect();
        Self {
            domain: None,
            user: None,
            host,
            port,
            share: None,
            path: String::new(),
            is_directory: path.ends_with('/') || path.is_empty(),
        }
        .below(&components)
    }

    fn below(mut self, components: &[String]) -> Result<Self, LocationError> {
        if components.iter().any(|name| name.contains('\0')) {
            return Err(LocationError::Nul);
        }
        if components.iter().any(|name| name.contains(['/', '\\'])) {
            return Err(LocationError::Separator);
        }
        if components.iter().any(|name| name == "..") {
            return Err(LocationError::Parent);
        }
        let mut names = components
            .iter()
            .filter(|name| !name.is_empty() && *name != ".");
        self.share = names.next().cloned();
        self.path = names.map(String::as_str).collect::<Vec<_>>().join("/");
        Ok(self)
    }

    /// The same server, share and user; another path.
    pub(crate) fn with_path(&self, path: &str) -> Self {
        Self {
            path: path.to_owned(),
            is_directory: false,
            ..self.clone()
        }
    }

    /// The last component; empty for the root of a share.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

/// `[domain;]user`, of which both may be encoded.
fn login_of(text: &str) -> Result<(Option<String>, Option<String>), LocationError> {
    if text.contains(':') {
        return Err(LocationError::Password);
    }
    let (domain, user) = match text.split_once(';') {
        Some((domain, user)) => (Some(decode(domain)?), user),
        None => (None, text),
    };
    let user = decode(user)?;
    Ok((domain, (!user.is_empty()).then_some(user)))
}

fn host_and_port(text: &str) -> Result<(String, Option<u16>), LocationError> {
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']').ok_or(LocationError::Brackets)?;
        let port = match rest {
            "" => None,
            _ => Some(rest.strip_prefix(':').ok_or(LocationError::Brackets)?),
        };
        (host.to_owned(), port)
    } else {
        match text.split_once(':') {
            Some((host, port)) => (decode(host)?, Some(port)),
            None => (decode(text)?, None),
        }
    };
    if host.is_empty() {
        return Err(LocationError::NoHost);
    }
    if host.contains('\0') {
        return Err(LocationError::Nul);
    }
    let port = match port {
        None | Some("") => None,
        Some(port) => Some(port.parse().map_err(|_| LocationError::Port)?),
    };
    if port == Some(0) {
        return Err(LocationError::Port);
    }
    Ok((host, port))
}

/// Takes the percent signs out. RFC 3986, 2.1
fn decode(text: &str) -> Result<String, LocationError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = rest.get(..2).ok_or(LocationError::Percent)?;
        let digit = |byte: u8| char::from(byte).to_digit(16).ok_or(LocationError::Percent);
        // Two hexadecimal digits are at most 255.
        bytes.push((digit(digits[0])? * 16 + digit(digits[1])?) as u8);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).map_err(|_| LocationError::NotUtf8)
}

/// Writes text so that [`decode`] reads it again: what would mislead a reader or a terminal is
/// encoded, the rest stands as it is.
pub(crate) fn encode(text: &str) -> String {
    encode_with(text, "")
}

/// The same for a user or a domain, behind which other things stand.
fn encode_login(text: &str) -> String {
    encode_with(text, "@;:/\\")
}

fn encode_with(text: &str, more: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '%' || c.is_control() || more.contains(c) {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                encoded.push_str(&format!("%{byte:02X}"));
            }
        } else {
            encoded.push(c);
        }
    }
    encoded
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("smb://")?;
        if let Some(user) = &self.user {
            if let Some(domain) = &self.domain {
                write!(f, "{};", encode_login(domain))?;
            }
            write!(f, "{}@", encode_login(user))?;
        }
        if self.host.contains(':') {
            write!(f, "[{}]", self.host)?;
        } else {
            f.write_str(&encode(&self.host))?;
        }
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        if let Some(share) = &self.share {
            write!(f, "/{}", encode(share))?;
        }
        if !self.path.is_empty() {
            write!(f, "/{}", encode(&self.path))?;
        }
        Ok(())
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(path) => f.write_str(&shown(path)),
            Self::Remote(url) => url.fmt(f),
        }
    }
}

/// A local path for a reader: what a terminal would obey is escaped.
pub(crate) fn shown(path: &Path) -> String {
    let text = path.to_string_lossy();
    if text.chars().any(char::is_control) {
        return text.escape_debug().to_string();
    }
    text.into_owned()
}

impl fmt::Display for LocationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Password => {
                "a password does not belong into a URL, where others can read it: \
                 let smbeam ask for it, or give --password-file, SMBEAM_PASSWORD or \
                 ~/.config/smbeam/credentials.toml"
            }
            Self::NoHost => "no host is named: want smb://[user@]host/share/path",
            Self::Port => "not a port: want host:port with a number from 1 to 65535",
            Self::Brackets => "an address of IPv6 is written [address] or [address]:port",
            Self::Percent => "a % is followed by two hexadecimal digits; % itself is %25",
            Self::NotUtf8 => "what the % stand for is no UTF-8",
            Self::Nul => "a name cannot hold a NUL",
            Self::Separator => "a component of a URL cannot hold a \\ or an encoded /",
            Self::Parent => "`..` does not stand in a path on a server",
            Self::TooLong => "longer than any path can be",
            Self::Local => "not on a server: want smb://[user@]host/share/path",
            Self::Scheme => "only smb:// is known; a local path with :// begins with ./",
        })
    }
}

impl std::error::Error for LocationError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        match Location::parse(text) {
            Ok(Location::Remote(url)) => url,
            other => panic!("{text}: {other:?}"),
        }
    }

    fn error(text: &str) -> LocationError {
        Location::parse(text).expect_err(text)
    }

    #[test]
    fn a_url_has_all_its_parts() {
        let url = url("smb://WORK;alice@nas:4455/data/a/b.txt");
        assert_eq!(url.domain.as_deref(), Some("WORK"));
        assert_eq!(url.user.as_deref(), Some("alice"));
        assert_eq!(url.host, "nas");
        assert_eq!(url.port, Some(4455));
        assert_eq!(url.share.as_deref(), Some("data"));
        assert_eq!(url.path, "a/b.txt");
        assert_eq!(url.name(), "b.txt");
        assert!(!url.is_directory);
        assert_eq!(url.to_string(), "smb://WORK;alice@nas:4455/data/a/b.txt");
    }

    #[test]
    fn a_url_may_lack_most_of_them() {
        let url = url("SMB://nas");
        assert_eq!((url.user, url.share), (None, None));
        assert!(url.path.is_empty() && url.is_directory);
    }

    #[test]
    fn an_address_of_ipv6_stands_in_brackets() {
        let url = url("smb://[fe80::1]:445/data");
        assert_eq!(url.host, "fe80::1");
        assert_eq!(url.port, Some(445));
        assert_eq!(url.to_string(), "smb://[fe80::1]:445/data");
        assert_eq!(error("smb://[fe80::1/data"), LocationError::Brackets);
        assert_eq!(error("smb://[fe80::1]445/data"), LocationError::Brackets);
    }

    #[test]
    fn percent_signs_are_read_and_written() {
        let url = url("smb://al%40ice@nas/d%20a/100%25/x");
        assert_eq!(url.user.as_deref(), Some("al@ice"));
        assert_eq!(url.share.as_deref(), Some("d a"));
        assert_eq!(url.path, "100%/x");
        assert_eq!(url.to_string(), "smb://al%40ice@nas/d a/100%25/x");
        assert_eq!(error("smb://nas/d/a%2Fb"), LocationError::Separator);
        assert_eq!(error("smb://nas/d/a%5C..%5Cb"), LocationError::Separator);
        assert_eq!(error("smb://nas/d/a\\b"), LocationError::Separator);
        assert_eq!(error("smb://nas/d/%2"), LocationError::Percent);
        assert_eq!(error("smb://nas/d/%zz"), LocationError::Percent);
        assert_eq!(error("smb://nas/d/%+1"), LocationError::Percent);
        assert_eq!(error("smb://nas/d/%ff"), LocationError::NotUtf8);
        assert_eq!(error("smb://nas/d/%00"), LocationError::Nul);
    }

    #[test]
    fn what_is_shown_reads_the_same_again() {
        for text in [
            "smb://nas/data/a b/c%25d",
            "smb://W;u@[::1]:4455/data/\u{e4}\u{1f600}",
            "smb://nas/data/a%0Ab",
            "smb://nas",
        ] {
            let once = url(text);
            let again = url(&once.to_string());
            assert_eq!((&once.path, &once.share), (&again.path, &again.share));
            assert_eq!((once.user, once.port), (again.user, again.port));
        }
    }

    #[test]
    fn a_unc_name_is_taken_literally() {
        for text in ["\\\\nas\\data\\a%20b\\c", "//nas/data/a%20b/c"] {
            let url = url(text);
            assert_eq!(url.host, "nas");
            assert_eq!(url.share.as_deref(), Some("data"));
            assert_eq!(url.path, "a%20b/c");
        }
        assert_eq!(error("\\\\"), LocationError::NoHost);
    }

    #[test]
    fn a_password_is_refused() {
        assert_eq!(
            error("smb://alice:secret@nas/data"),
            LocationError::Password
        );
        let message = LocationError::Password.to_string();
        assert!(message.contains("--password-file"), "{message}");
    }

    #[test]
    fn what_is_no_url_is_local() {
        for text in ["a/b", "/tmp/x", "./smb:/x", "C:\\x", "a:b", "./x://y"] {
            let local = Location::Local(PathBuf::from(text));
            assert_eq!(Location::parse(text), Ok(local));
        }
        assert_eq!(error("http://nas/data"), LocationError::Scheme);
    }

    #[test]
    fn a_wrong_host_or_port_is_told() {
        assert_eq!(error("smb:///data"), LocationError::NoHost);
        assert_eq!(error("smb://nas:x/data"), LocationError::Port);
        assert_eq!(error("smb://nas:0/data"), LocationError::Port);
        assert_eq!(error("smb://nas:65536/data"), LocationError::Port);
        assert_eq!(error("smb://nas/data/../x"), LocationError::Parent);
        assert_eq!(error("smb://nas/data/%2e%2e/x"), LocationError::Parent);
    }

    #[test]
    fn superfluous_slashes_are_dropped() {
        let url = url("smb://nas//data//a/./b/");
        assert_eq!(url.path, "a/b");
        assert!(url.is_directory);
    }
}
