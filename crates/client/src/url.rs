//! `smb://` URLs and UNC names.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use crate::options::Credentials;

/// Longest URL that is parsed, in bytes. An SMB path has at most 32,767 characters.
/// \[MS-FSCC\] 2.1.5
const MAX_URL_BYTES: usize = 128 * 1024;

/// The location of a server, a share, or a file on a share.
///
/// Parsed from an `smb://[[domain;]user@]host[:port][/share[/path]]` URL or a UNC name
/// (`\\host\share\path` or `//host/share/path`). Its `Display` form is a URL of the same location.
///
/// ```
/// use smbeam_client::Url;
///
/// let url: Url = "smb://alice@nas.example/photos/2026/sea.jpg".parse()?;
/// assert_eq!(url.host, "nas.example");
/// assert_eq!(url.share.as_deref(), Some("photos"));
/// assert_eq!(url.path, "2026/sea.jpg");
/// # Ok::<(), smbeam_client::UrlError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Url {
    /// Domain of the user, from `domain;user@`; `None` if the URL has none.
    pub domain: Option<String>,
    /// Name of the user that logs in; `None` if the URL has none.
    pub user: Option<String>,
    /// Name or IP address of the server, never empty. An IPv6 address has no brackets. A link-local
    /// address may end with its zone (a network interface of this machine): `fe80::1%eth0`.
    pub host: String,
    /// Port of the server; `None` stands for the default port of the transport.
    pub port: Option<u16>,
    /// Name of the share; `None` if the URL names only the server.
    pub share: Option<String>,
    /// Path within the share: components separated by `/`, without a leading or trailing `/`. Empty
    /// for the root of the share.
    pub path: String,
    /// Whether the URL ends in `/` or has no path. Such a URL names a directory and not a file.
    pub is_directory: bool,
}

/// The reason why a text is not a URL of an SMB server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UrlError {
    /// The URL has a password (`user:password@`). Other users could read it from the process list.
    Password,
    /// The host is empty: nothing between `//` and the next `/`.
    NoHost,
    /// The text behind the colon of the host is not a port number from 1 to 65535.
    Port,
    /// A `[` lacks its `]`, or something other than a port follows the `]`.
    Brackets,
    /// Two hexadecimal digits are missing behind a `%`.
    Percent,
    /// The percent-encoded bytes are not UTF-8.
    NotUtf8,
    /// A component has a NUL character, encoded or not.
    Nul,
    /// A component has a `\` or an encoded `/`.
    Separator,
    /// A component is `..`, which SMB does not have.
    Parent,
    /// The URL is longer than 128 KiB, which no path of SMB needs.
    TooLong,
    /// The scheme of the URL is not `smb`.
    Scheme,
    /// The text is neither a URL nor a UNC name, for example a path of this machine.
    Local,
}

impl Url {
    /// Parses a URL or a UNC name. Returns `None` if the text has neither form and can be a path of
    /// this machine.
    ///
    /// # Errors
    /// The text has a scheme or starts as a UNC name, but is not well formed.
    pub fn parse(text: &str) -> Result<Option<Self>, UrlError> {
        if text.len() > MAX_URL_BYTES {
            return Err(UrlError::TooLong);
        }
        if let Some(rest) = after_scheme(text) {
            return Self::from_authority(rest).map(Some);
        }
        if let Some(rest) = text.strip_prefix("//") {
            return Self::unc(rest).map(Some);
        }
        if let Some(rest) = text.strip_prefix("\\\\") {
            return Self::unc(&rest.replace('\\', "/")).map(Some);
        }
        match text.split_once("://") {
            Some((scheme, _)) if is_scheme(scheme) => Err(UrlError::Scheme),
            _ => Ok(None),
        }
    }

    /// Returns a URL with the server, share and user of this URL, and with the given `path` in the
    /// share.
    #[must_use]
    pub fn with_path(&self, path: &str) -> Self {
        Self {
            path: path.to_owned(),
            is_directory: false,
            ..self.clone()
        }
    }

    /// Returns the last component of the path: the name of the file or directory. Empty for the
    /// root of a share.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Returns the credentials of the user in the URL with this password; anonymous credentials if
    /// the URL has no user.
    pub fn credentials(&self, password: &str) -> Credentials {
        match &self.user {
            Some(user) => Credentials::new(self.domain.as_deref(), user, password),
            None => Credentials::anonymous(),
        }
    }

    /// Returns the path with the characters percent-encoded that would mislead a reader or a
    /// terminal: `%` and control characters. The other characters remain unchanged.
    pub fn encode(text: &str) -> String {
        encode_with(text, "")
    }

    /// Returns `text` with `***` in place of the password of a URL, for messages. Text without a
    /// password, such as a path of this machine, is unchanged. The text need not be a valid URL.
    pub fn without_password(text: &str) -> Cow<'_, str> {
        match password(text) {
            Some(Range { start, end }) => {
                Cow::Owned(format!("{}***{}", &text[..start], &text[end..]))
            }
            None => Cow::Borrowed(text),
        }
    }

    fn from_authority(text: &str) -> Result<Self, UrlError> {
        let (authority, path) = text.split_once('/').unwrap_or((text, ""));
        let (login, host) = match authority.rsplit_once('@') {
            Some((login, host)) => (Some(login), host),
            None => (None, authority),
        };
        let (domain, user) = login.map_or(Ok((None, None)), domain_and_user)?;
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
        .with_components(&components)
    }

    /// Parses `host/share/path`, in which nothing is encoded.
    fn unc(text: &str) -> Result<Self, UrlError> {
        let (authority, path) = text.split_once('/').unwrap_or((text, ""));
        if authority.contains('@') {
            // Windows has `host@port`; a UNC name has no user.
            return Err(UrlError::Port);
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
        .with_components(&components)
    }

    fn with_components(mut self, components: &[String]) -> Result<Self, UrlError> {
        if components.iter().any(|name| name.contains('\0')) {
            return Err(UrlError::Nul);
        }
        if components.iter().any(|name| name.contains(['/', '\\'])) {
            return Err(UrlError::Separator);
        }
        if components.iter().any(|name| name == "..") {
            return Err(UrlError::Parent);
        }
        let mut names = components
            .iter()
            .filter(|name| !name.is_empty() && *name != ".");
        self.share = names.next().cloned();
        self.path = names.map(String::as_str).collect::<Vec<_>>().join("/");
        Ok(self)
    }
}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        Self::parse(text)?.ok_or(UrlError::Local)
    }
}

fn after_scheme(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_at_checked("smb://".len())?;
    scheme.eq_ignore_ascii_case("smb://").then_some(rest)
}

/// Position of a password: between the first `:` and the last `@` behind the slashes. A password
/// may have any character, so the `:` of a port is the only exception.
fn password(text: &str) -> Option<Range<usize>> {
    let (begin, separator) = match text.find("://") {
        Some(scheme) => (scheme + 3, '/'),
        None if text.starts_with("//") => (2, '/'),
        None if text.starts_with("\\\\") => (2, '\\'),
        None => return None,
    };
    let rest = &text[begin..];
    let (colon, at) = (rest.find(':')?, rest.rfind('@')?);
    let authority = rest.split(separator).next().unwrap_or_default();
    let port = authority.get(colon + 1..).unwrap_or_default();
    let is_port = port.chars().all(|digit| digit.is_ascii_digit());
    let is_host = !authority.contains('@') && (authority.starts_with('[') || is_port);
    (colon < at && !is_host).then(|| begin + colon + 1..begin + at)
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

/// Parses `[domain;]user` or `domain\user`; both parts may be percent-encoded, and the `\` too.
fn domain_and_user(text: &str) -> Result<(Option<String>, Option<String>), UrlError> {
    if text.contains(':') {
        return Err(UrlError::Password);
    }
    let (domain, user) = match text.split_once(';') {
        Some((domain, user)) => (Some(decode(domain)?), user),
        None => (None, text),
    };
    let user = decode(user)?;
    let (domain, user) = match user.split_once('\\') {
        Some((before, user)) if domain.is_none() => (Some(before.to_owned()), user.to_owned()),
        _ => (domain, user),
    };
    Ok((domain, (!user.is_empty()).then_some(user)))
}

fn host_and_port(text: &str) -> Result<(String, Option<u16>), UrlError> {
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']').ok_or(UrlError::Brackets)?;
        let port = match rest {
            "" => None,
            _ => Some(rest.strip_prefix(':').ok_or(UrlError::Brackets)?),
        };
        (with_zone(host)?, port)
    } else {
        match text.split_once(':') {
            Some((host, port)) => (decode(host)?, Some(port)),
            None => (decode(text)?, None),
        }
    };
    if host.is_empty() {
        return Err(UrlError::NoHost);
    }
    if host.contains('\0') {
        return Err(UrlError::Nul);
    }
    let port = match port {
        None | Some("") => None,
        Some(port) => Some(port.parse().map_err(|_| UrlError::Port)?),
    };
    if port == Some(0) {
        return Err(UrlError::Port);
    }
    Ok((host, port))
}

/// Decodes the zone of an IPv6 address: `%25eth0`, and `%eth0` as people and other programs write
/// it. RFC 6874, 2 and 3
fn with_zone(address: &str) -> Result<String, UrlError> {
    match address.split_once('%') {
        None => Ok(address.to_owned()),
        Some((address, zone)) => {
            let encoded = zone.strip_prefix("25").filter(|zone| !zone.is_empty());
            let zone = encoded.map_or_else(|| Ok(zone.to_owned()), decode)?;
            Ok(format!("{address}%{zone}"))
        }
    }
}

/// Decodes percent-encoded bytes. RFC 3986, 2.1
fn decode(text: &str) -> Result<String, UrlError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = rest.get(..2).ok_or(UrlError::Percent)?;
        let digit = |byte: u8| char::from(byte).to_digit(16).ok_or(UrlError::Percent);
        // Two hexadecimal digits are at most 255.
        bytes.push((digit(digits[0])? * 16 + digit(digits[1])?) as u8);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).map_err(|_| UrlError::NotUtf8)
}

/// Encodes a user or a domain, which other parts of the URL follow.
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
            // The zone of an address follows an encoded `%`. RFC 6874, 2
            write!(f, "[{}]", Self::encode(&self.host))?;
        } else {
            f.write_str(&Self::encode(&self.host))?;
        }
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        if let Some(share) = &self.share {
            write!(f, "/{}", Self::encode(share))?;
        }
        if !self.path.is_empty() {
            write!(f, "/{}", Self::encode(&self.path))?;
        }
        Ok(())
    }
}

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Password => {
                "a URL must not contain a password, because other users can read it from the \
                 process list: remove the part between `:` and `@`"
            }
            Self::NoHost => "the host is missing: write smb://[user@]host/share/path",
            Self::Port => "the port is not valid: write host:port with a number from 1 to 65535",
            Self::Brackets => "an IPv6 address is written [address] or [address]:port",
            Self::Percent => "two hexadecimal digits must follow a %; write %25 for a % itself",
            Self::NotUtf8 => "the percent-encoded bytes are not UTF-8",
            Self::Nul => "a name cannot contain a NUL character",
            Self::Separator => "a component of a URL cannot contain a \\ or an encoded /",
            Self::Parent => "a path on a server cannot contain `..`",
            Self::TooLong => "the URL is longer than any path can be",
            Self::Scheme => "the scheme must be smb://; write ./ before a local path with ://",
            Self::Local => "this is not a location on a server: write smb://[user@]host/share/path",
        })
    }
}

impl std::error::Error for UrlError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        text.parse().expect(text)
    }

    fn error(text: &str) -> UrlError {
        Url::parse(text).expect_err(text)
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
        assert_eq!(error("smb://[fe80::1/data"), UrlError::Brackets);
        assert_eq!(error("smb://[fe80::1]445/data"), UrlError::Brackets);
    }

    #[test]
    fn a_link_local_address_has_a_zone() {
        for text in [
            "smb://[fe80::1%25eth0]:445/data",
            "smb://[fe80::1%eth0]:445/data",
        ] {
            let url = url(text);
            assert_eq!(url.host, "fe80::1%eth0");
            assert_eq!(url.to_string(), "smb://[fe80::1%25eth0]:445/data");
        }
        assert_eq!(url("smb://[fe80::1%252]/data").host, "fe80::1%2");
        assert_eq!(url("smb://[fe80::1%25]/data").host, "fe80::1%25");
        assert_eq!(url("smb://[fe80::1%25a%2Db]/data").host, "fe80::1%a-b");
        assert_eq!(url("//[fe80::1%eth0]/data").host, "fe80::1%eth0");
        assert_eq!(error("smb://[fe80::1%25a%zz]/data"), UrlError::Percent);
        assert_eq!(error("smb://[fe80::1%25a%00]/data"), UrlError::Nul);
    }

    #[test]
    fn percent_signs_are_read_and_written() {
        let url = url("smb://al%40ice@nas/d%20a/100%25/x");
        assert_eq!(url.user.as_deref(), Some("al@ice"));
        assert_eq!(url.share.as_deref(), Some("d a"));
        assert_eq!(url.path, "100%/x");
        assert_eq!(url.to_string(), "smb://al%40ice@nas/d a/100%25/x");
        assert_eq!(error("smb://nas/d/a%2Fb"), UrlError::Separator);
        assert_eq!(error("smb://nas/d/a%5C..%5Cb"), UrlError::Separator);
        assert_eq!(error("smb://nas/d/a\\b"), UrlError::Separator);
        assert_eq!(error("smb://nas/d/%2"), UrlError::Percent);
        assert_eq!(error("smb://nas/d/%zz"), UrlError::Percent);
        assert_eq!(error("smb://nas/d/%+1"), UrlError::Percent);
        assert_eq!(error("smb://nas/d/%ff"), UrlError::NotUtf8);
        assert_eq!(error("smb://nas/d/%00"), UrlError::Nul);
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
        assert_eq!(error("\\\\"), UrlError::NoHost);
    }

    #[test]
    fn a_wrong_host_or_port_is_told() {
        assert_eq!(error("smb:///data"), UrlError::NoHost);
        assert_eq!(error("smb://nas:x/data"), UrlError::Port);
        assert_eq!(error("smb://nas:0/data"), UrlError::Port);
        assert_eq!(error("smb://nas:65536/data"), UrlError::Port);
        assert_eq!(error("smb://nas/data/../x"), UrlError::Parent);
        assert_eq!(error("smb://nas/data/%2e%2e/x"), UrlError::Parent);
    }

    #[test]
    fn superfluous_slashes_are_dropped() {
        let url = url("smb://nas//data//a/./b/");
        assert_eq!(url.path, "a/b");
        assert!(url.is_directory);
    }

    #[test]
    fn a_password_is_refused() {
        assert_eq!(error("smb://alice:secret@nas/data"), UrlError::Password);
    }

    #[test]
    fn a_domain_may_stand_before_a_backslash() {
        for text in [
            "smb://W%5Calice@nas/d",
            "smb://W%5calice@nas/d",
            "smb://W\\alice@nas/d",
        ] {
            let url = url(text);
            assert_eq!(url.domain.as_deref(), Some("W"), "{text}");
            assert_eq!(url.user.as_deref(), Some("alice"), "{text}");
            assert_eq!(url.to_string(), "smb://W;alice@nas/d");
        }
        let url = url("smb://W;a%5Cb@nas");
        assert_eq!(
            (url.domain.as_deref(), url.user.as_deref()),
            (Some("W"), Some("a\\b"))
        );
    }

    #[test]
    fn a_password_is_hidden_in_messages() {
        for (text, shown) in [
            ("smb://alice:secret@nas/data", "smb://alice:***@nas/data"),
            ("smb://alice:se/cr@t:1@nas/data", "smb://alice:***@nas/data"),
            ("smb://:secret@nas", "smb://:***@nas"),
            ("smb://W;a:secret@[::1]:445/d", "smb://W;a:***@[::1]:445/d"),
            ("smb://alice:445@nas/x", "smb://alice:***@nas/x"),
            ("http://alice:secret@nas", "http://alice:***@nas"),
            ("//alice:secret@nas/data", "//alice:***@nas/data"),
            ("smb://W\\a:secret@nas/d", "smb://W\\a:***@nas/d"),
            ("--compare=smb://a:secret@nas", "--compare=smb://a:***@nas"),
        ] {
            assert_eq!(Url::without_password(text), shown);
        }
        for text in [
            "smb://alice@nas:445/a:b",
            "smb://nas:445/a@b",
            "smb://[fe80::1]/a@b",
            "//nas/data/a@b:c",
            "C:/a@b",
            "a:b@c",
        ] {
            assert_eq!(Url::without_password(text), text);
        }
    }

    #[test]
    fn a_path_of_this_machine_is_not_a_url() {
        for text in ["a/b", "/tmp/x", "./smb:/x", "C:\\x", "a:b", "./x://y"] {
            assert_eq!(Url::parse(text), Ok(None));
            assert_eq!(text.parse::<Url>(), Err(UrlError::Local));
        }
        assert_eq!(error("http://nas/data"), UrlError::Scheme);
    }
}
