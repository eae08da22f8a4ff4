//! Rules for file names that pass between this machine and a server.
//!
//! A hostile server can return any name. A name must not lead out of the directory that the command
//! works on. And Linux allows names that SMB does not.

use std::ffi::OsStr;
use std::fmt;

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
}

/// Checks a name from a server before its use on this machine: it must be a single component.
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
    if name.len() > MAX_LOCAL_BYTES {
        return Err(NameError::TooLong);
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
        }
    }
}

impl std::error::Error for NameError {}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;

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
        assert_eq!(from_server(&"x".repeat(256)), Err(NameError::TooLong));
        for name in ["...", " ", "a:b", "\u{202e}x", "-rf", "~", "$HOME"] {
            assert_eq!(from_server(name), Ok(name));
        }
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
