//! Rules for file names that pass between this machine and a server.
//!
//! A hostile server can return any name. A name must not lead out of the directory that the command
//! works on. And Linux allows names that SMB does not: they have another form on a server (see
//! [`NameMapping`]).

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;

use wire::file_name::NameMapping;

/// Maximum length of a name on Linux, in bytes. limits.h, NAME_MAX
pub(crate) const MAX_LOCAL_BYTES: usize = 255;
/// Maximum length of a component in SMB, in UTF-16 units. \[MS-FSCC\] 2.1.5.2
const MAX_REMOTE_UNITS: usize = 255;
/// Characters that SMB does not allow in a component. \[MS-FSCC\] 2.1.5.2
const FORBIDDEN: [char; 9] = ['"', '\\', '/', ':', '|', '<', '>', '*', '?'];

/// Why a name is not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameError {
    /// Empty, `.` or `..`.
    NotAName,
    /// A path separator, which would lead into another directory.
    Separator(char),
    /// A NUL character, which ends a name on Linux.
    Nul,
    /// A character that SMB does not allow.
    Forbidden(char),
    /// A dot or space at the end. Windows drops it and would use another file.
    Tail(char),
    /// Longer than the limit of the target.
    TooLong,
    /// Not valid UTF-8.
    NotUtf8,
    /// A code point of the mapping that does not stand for a local name.
    NotMapped,
}

/// How names pass between this machine and a server. A name of a listing, local or not, is a name
/// of SMB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LocalNames {
    /// Local names that SMB cannot carry are mapped. docs/names.md has the table.
    #[default]
    Mapped,
    /// Names stay as they are. A name that one side does not allow is an error.
    Literal,
}

impl LocalNames {
    /// Parses the value of `--map-names`.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        match text {
            "yes" => Ok(Self::Mapped),
            "no" => Ok(Self::Literal),
            _ => Err("want yes or no"),
        }
    }

    /// The name on a server for a local file with this name.
    pub(crate) fn to_server(self, local: &OsStr) -> Result<Cow<'_, str>, NameError> {
        let text = || local.to_str().ok_or(NameError::NotUtf8);
        match self {
            Self::Mapped => match NameMapping::Map.to_wire(local.as_bytes()) {
                Some(name) => Ok(name),
                None => text().map(Cow::Borrowed),
            },
            Self::Literal => text().map(Cow::Borrowed),
        }
    }

    /// The local name for a file with this name on a server. It is a single component.
    pub(crate) fn to_local(self, name: &str) -> Result<Cow<'_, OsStr>, NameError> {
        let bytes = match self {
            Self::Literal => Cow::Borrowed(from_server(name)?.as_bytes()),
            Self::Mapped => {
                let name = from_server(name)?;
                NameMapping::Map.to_disk(name).ok_or(NameError::NotMapped)?
            }
        };
        if bytes.len() > MAX_LOCAL_BYTES {
            return Err(NameError::TooLong);
        }
        Ok(match bytes {
            Cow::Borrowed(bytes) => Cow::Borrowed(OsStr::from_bytes(bytes)),
            Cow::Owned(bytes) => Cow::Owned(OsStr::from_bytes(&bytes).to_owned()),
        })
    }
}

/// Checks a name from a server before its use in a path: it must be a single component.
pub(crate) fn from_server(name: &str) -> Result<&str, NameError> {
    if matches!(name, "" | "." | "..") {
        return Err(NameError::NotAName);
    }
    if let Some(c) = name.chars().find(|c| matches!(c, '/' | '\\')) {
        return Err(NameError::Separator(c));
    }
    if name.contains('\0') {
        return Err(NameError::Nul);
    }
    Ok(name)
}

/// Checks a local name before its use on a server.
pub(crate) fn to_server(name: &OsStr) -> Result<&str, NameError> {
    let name = name.to_str().ok_or(NameError::NotUtf8)?;
    if matches!(name, "" | "." | "..") {
        return Err(NameError::NotAName);
    }
    let is_forbidden = |c: &char| FORBIDDEN.contains(c) || *c < ' ';
    if let Some(c) = name.chars().find(is_forbidden) {
        return Err(NameError::Forbidden(c));
    }
    if let Some(c) = name.chars().next_back().filter(|c| matches!(c, '.' | ' ')) {
        return Err(NameError::Tail(c));
    }
    if name.encode_utf16().count() > MAX_REMOTE_UNITS {
        return Err(NameError::TooLong);
    }
    Ok(name)
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAName => f.write_str("not a valid file name"),
            Self::Separator(c) => {
                write!(f, "the name contains `{c}` and leads out of its directory")
            }
            Self::Nul => f.write_str("the name contains a NUL character"),
            Self::Forbidden(c) => write!(
                f,
                "SMB does not allow `{}` in a name; rename the file",
                c.escape_default()
            ),
            Self::Tail(c) => write!(
                f,
                "SMB does not allow a name that ends in `{c}`; rename the file"
            ),
            Self::TooLong => f.write_str("the name is too long for the target"),
            Self::NotUtf8 => f.write_str("the name is not valid UTF-8; rename the file"),
            Self::NotMapped => f.write_str(
                "the name has code points that stand for reserved characters, but no local name \
                 leads to it; --map-names=no keeps names as they are",
            ),
        }
    }
}

impl std::error::Error for NameError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_hostile_server_are_refused() {
        for (name, error) in [
            ("", NameError::NotAName),
            (".", NameError::NotAName),
            ("..", NameError::NotAName),
            ("../x", NameError::Separator('/')),
            ("/etc/passwd", NameError::Separator('/')),
            ("a/b", NameError::Separator('/')),
            ("..\\x", NameError::Separator('\\')),
            ("C:\\x", NameError::Separator('\\')),
            ("x\0", NameError::Nul),
        ] {
            assert_eq!(from_server(name), Err(error), "{name:?}");
        }
        for name in ["...", " ", "a:b", "\u{202e}x", "-rf", "~", "$HOME"] {
            assert_eq!(from_server(name), Ok(name));
        }
    }

    #[test]
    fn local_names_have_a_form_on_servers_that_leads_back() {
        for (local, name) in [
            (&b"a:b?.txt"[..], "a\u{f022}b\u{f025}.txt"),
            (b"dot.", "dot\u{f029}"),
            (b"back\\slash", "back\u{f026}slash"),
            (b"\xe4", "\u{efe4}"),
            ("\u{f022}".as_bytes(), "\u{efef}\u{ef80}\u{efa2}"),
            (b"plain", "plain"),
            (&[b':'; 255], &"\u{f022}".repeat(255)),
        ] {
            let local = OsStr::from_bytes(local);
            assert_eq!(LocalNames::Mapped.to_server(local).as_deref(), Ok(name));
            assert_eq!(to_server(OsStr::new(name)), Ok(name));
            assert_eq!(LocalNames::Mapped.to_local(name).as_deref(), Ok(local));
        }
        let literal = LocalNames::Literal;
        assert_eq!(literal.to_local(&"x".repeat(256)), Err(NameError::TooLong));
        assert_eq!(
            literal.to_local("a\u{f022}b").as_deref(),
            Ok(OsStr::new("a\u{f022}b"))
        );
        assert_eq!(
            literal.to_server(OsStr::from_bytes(b"\xe4")),
            Err(NameError::NotUtf8)
        );
        assert_eq!(literal.to_server(OsStr::new("a:b")).as_deref(), Ok("a:b"));
    }

    #[test]
    fn mapped_names_of_a_hostile_server_are_refused() {
        for (name, error) in [
            ("..", NameError::NotAName),
            ("a/b", NameError::Separator('/')),
            ("..\\x", NameError::Separator('\\')),
            ("x\0", NameError::Nul),
            // They would be `.` and `..`.
            ("\u{f029}", NameError::NotMapped),
            (".\u{f029}", NameError::NotMapped),
            ("a\u{f028}b", NameError::NotMapped),
        ] {
            assert_eq!(LocalNames::Mapped.to_local(name), Err(error), "{name:?}");
        }
        let long = "\u{4e00}".repeat(86);
        assert_eq!(LocalNames::Mapped.to_local(&long), Err(NameError::TooLong));
    }

    #[test]
    fn names_that_smb_does_not_allow_are_refused() {
        for c in FORBIDDEN.into_iter().chain(['\u{1}', '\n']) {
            let name = format!("a{c}b");
            let checked = to_server(OsStr::new(&name));
            assert_eq!(checked, Err(NameError::Forbidden(c)));
        }
        assert_eq!(to_server(OsStr::new("a.")), Err(NameError::Tail('.')));
        assert_eq!(to_server(OsStr::new("a ")), Err(NameError::Tail(' ')));
        let raw = OsStr::from_bytes(b"a\xff");
        assert_eq!(to_server(raw), Err(NameError::NotUtf8));
        // 128 characters outside of the Basic Multilingual Plane are 256 UTF-16 units.
        let long = "\u{1f600}".repeat(128);
        assert_eq!(to_server(OsStr::new(&long)), Err(NameError::TooLong));
        for name in ["a.b", ".profile", "\u{e4}\u{1f600}", "a b"] {
            assert_eq!(to_server(OsStr::new(name)), Ok(name));
        }
    }
}
