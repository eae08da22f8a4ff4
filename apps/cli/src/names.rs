//! Which names may cross between this machine and a server.
//!
//! A server may lie: what it calls the name of a file must not lead anywhere else than into the
//! directory that was asked for. And what Linux takes for a name may be none in SMB.

use std::ffi::OsStr;
use std::fmt;

/// Bytes of a name that Linux takes. limits.h, NAME_MAX
pub(crate) const MAX_LOCAL_BYTES: usize = 255;
/// UTF-16 units of a component. \[MS-FSCC\] 2.1.5.2
const MAX_REMOTE_UNITS: usize = 255;
/// What no component may hold. \[MS-FSCC\] 2.1.5.2
const FORBIDDEN: [char; 9] = ['"', '\\', '/', ':', '|', '<', '>', '*', '?'];

/// Why a name stays where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameError {
    /// Empty, `.` or `..`: not a file in this directory.
    NotAName,
    /// It would lead into another directory.
    Separator(char),
    /// It ends where it should not.
    Nul,
    /// Not a character of SMB.
    Forbidden(char),
    /// A dot or a blank at the end, which Windows drops: another file might be meant.
    Tail(char),
    /// Longer than the other side takes.
    TooLong,
    /// Bytes that are no text.
    NotUtf8,
}

/// A name that a server told: one component, to be made or found in a directory of this machine.
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

/// A name of this machine, to be made or found on a server.
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

/// What names are compared by where one of the sides does not care for case.
pub(crate) fn folded(name: &str) -> String {
    name.chars().flat_map(char::to_uppercase).collect()
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAName => f.write_str("not the name of a file"),
            Self::Separator(c) => write!(f, "the name leads out of its directory: it holds `{c}`"),
            Self::Nul => f.write_str("the name holds a NUL"),
            Self::Forbidden(c) => write!(
                f,
                "SMB has no names with `{}`; rename the file",
                c.escape_default()
            ),
            Self::Tail(c) => write!(f, "a name of SMB does not end in `{c}`; rename the file"),
            Self::TooLong => f.write_str("the name is too long for the other side"),
            Self::NotUtf8 => f.write_str("the name is no UTF-8; rename the file"),
        }
    }
}

impl std::error::Error for NameError {}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    #[test]
    fn a_lying_server_leads_nowhere_else() {
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
    fn what_smb_has_no_names_for_is_told() {
        for c in FORBIDDEN.into_iter().chain(['\u{1}', '\n']) {
            let name = format!("a{c}b");
            let told = to_server(OsStr::new(&name));
            assert_eq!(told, Err(NameError::Forbidden(c)));
        }
        assert_eq!(to_server(OsStr::new("a.")), Err(NameError::Tail('.')));
        assert_eq!(to_server(OsStr::new("a ")), Err(NameError::Tail(' ')));
        let raw = OsStr::from_bytes(b"a\xff");
        assert_eq!(to_server(raw), Err(NameError::NotUtf8));
        // 128 characters outside of the basic plane are 256 units.
        let long = "\u{1f600}".repeat(128);
        assert_eq!(to_server(OsStr::new(&long)), Err(NameError::TooLong));
        for name in ["a.b", ".profile", "\u{e4}\u{1f600}", "a b"] {
            assert_eq!(to_server(OsStr::new(name)), Ok(name));
        }
    }

    #[test]
    fn case_does_not_matter_where_it_does_not_matter() {
        assert_eq!(folded("Stra\u{df}e"), folded("STRASSE"));
        assert_eq!(folded("\u{c4}b"), folded("\u{e4}B"));
    }
}
