//! Names of the kernel and names of SMB.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use fuser::Errno;
use wire::file_name::NameMapping;

/// Largest name in bytes. limits.h, NAME_MAX
pub(crate) const NAME_MAX: usize = 255;

/// Start of the names of removed files that are open. Listings of this mount do not show them.
pub(crate) const ASIDE: &str = ".smbeam-removed-";

/// Returns the name on the server for a name of the kernel. Characters that SMB does not carry are
/// mapped, as docs/names.md describes.
///
/// # Errors
/// ENAMETOOLONG for a name of more than 255 bytes.
pub(crate) fn to_server(name: &OsStr) -> Result<String, Errno> {
    if name.len() > NAME_MAX {
        return Err(Errno::ENAMETOOLONG);
    }
    let mapped = NameMapping::Map.to_wire(name.as_bytes());
    let mapped = mapped.ok_or(Errno::EINVAL)?.into_owned();
    match mapped.as_str() {
        // The kernel resolves these itself.
        "" | "." | ".." => Err(Errno::EINVAL),
        _ => Ok(mapped),
    }
}

/// Returns the name for the kernel of a file that the server lists as `name`: one component.
/// `None` if the kernel could not use it.
pub(crate) fn to_kernel(name: &str) -> Option<OsString> {
    if name.contains(['/', '\\', '\0']) {
        return None;
    }
    let bytes = NameMapping::Map.to_disk(name)?;
    (bytes.len() <= NAME_MAX).then(|| OsString::from_vec(bytes.into_owned()))
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
        for name in ["", ".", "..", "a/b", "..\\b", "a\0", "\u{f029}\u{f029}"] {
            let seen = to_kernel(name);
            let is_safe = seen.as_deref().is_none_or(|seen| {
                !matches!(seen.as_bytes(), b"" | b"." | b"..") && !seen.as_bytes().contains(&b'/')
            });
            assert!(is_safe, "{name:?} {seen:?}");
        }
        assert_eq!(to_kernel("a\u{f022}b").as_deref(), Some("a:b".as_ref()));
    }

    #[test]
    fn names_of_the_kernel_are_mapped() {
        assert_eq!(to_server("a:b".as_ref()).as_deref(), Ok("a\u{f022}b"));
        let long = "x".repeat(NAME_MAX + 1);
        assert_eq!(to_server(long.as_ref()), Err(Errno::ENAMETOOLONG));
        assert_eq!(join(&join("", "a"), "b"), "a/b");
    }
}
