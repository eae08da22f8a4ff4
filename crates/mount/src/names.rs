//! Names of the kernel and names of SMB.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use fuser::Errno;
use wire::file_name::NameMapping;
use wire::posix_name;

/// Largest name in bytes. limits.h, NAME_MAX
pub(crate) const NAME_MAX: usize = 255;

/// Start of the names of removed files that are open. Listings of this mount do not show them.
pub(crate) const ASIDE: &str = ".smbeam-removed-";

/// The form of names on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    /// Characters that SMB does not carry are mapped, as docs/names.md describes.
    Mapped,
    /// Names of the SMB3 POSIX extensions: every character stands for itself.
    Exact,
}

impl Names {
    /// Returns the name on the server for a name of the kernel.
    ///
    /// # Errors
    /// ENAMETOOLONG for a name of more than 255 bytes.
    pub(crate) fn to_server(self, name: &OsStr) -> Result<String, Errno> {
        if name.len() > NAME_MAX {
            return Err(Errno::ENAMETOOLONG);
        }
        let name = match self {
            Self::Mapped => NameMapping::Map.to_wire(name.as_bytes()),
            Self::Exact => Some(posix_name::from_disk(name.as_bytes())),
        };
        let name = name.ok_or(Errno::EINVAL)?.into_owned();
        match name.as_str() {
            // The kernel resolves these itself.
            "" | "." | ".." => Err(Errno::EINVAL),
            _ => Ok(name),
        }
    }

    /// Returns the name for the kernel of a file that the server lists as `name`: one component.
    /// `None` if the kernel could not use it.
    pub(crate) fn to_kernel(self, name: &str) -> Option<OsString> {
        let bytes = match self {
            Self::Mapped if name.contains(['/', '\\', '\0']) => None,
            Self::Mapped => NameMapping::Map.to_disk(name),
            Self::Exact => posix_name::to_disk(name),
        }?;
        (bytes.len() <= NAME_MAX).then(|| OsString::from_vec(bytes.into_owned()))
    }

    /// Whether a file that the server lists as `name` was removed, and is still open.
    pub(crate) fn is_removed(self, name: &str) -> bool {
        self == Self::Mapped && name.starts_with(ASIDE)
    }
}

/// Appends a component to a path of the share.
pub(crate) fn join(directory: &str, name: &str) -> String {
    match directory {
        "" => name.to_owned(),
        directory => format!("{directory}/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_of_a_server_leads_out_of_its_directory() {
        for name in [
            "",
            ".",
            "..",
            "a/b",
            "..\\b",
            "a\0",
            "\u{f029}\u{f029}",
            "\u{efae}\u{efaf}",
        ] {
            for names in [Names::Mapped, Names::Exact] {
                let seen = names.to_kernel(name);
                let is_safe = seen.as_deref().map(OsStr::as_bytes).is_none_or(|seen| {
                    !matches!(seen, b"" | b"." | b"..") && !seen.contains(&b'/')
                });
                assert!(is_safe, "{name:?} {seen:?}");
            }
        }
        let mapped = Names::Mapped.to_kernel("a\u{f022}b");
        assert_eq!(mapped.as_deref(), Some("a:b".as_ref()));
        let exact = Names::Exact.to_kernel("a\\b:");
        assert_eq!(exact.as_deref(), Some("a\\b:".as_ref()));
    }

    #[test]
    fn names_of_the_kernel_are_mapped_or_exact() {
        let of = |names: Names| names.to_server("a:b".as_ref());
        assert_eq!(of(Names::Mapped).as_deref(), Ok("a\u{f022}b"));
        assert_eq!(of(Names::Exact).as_deref(), Ok("a:b"));
        let long = "x".repeat(NAME_MAX + 1);
        let long = Names::Exact.to_server(long.as_ref());
        assert_eq!(long, Err(Errno::ENAMETOOLONG));
        assert_eq!(join(&join("", "a"), "b"), "a/b");
    }
}
