//! Symbolic links in paths, which the client resolves when the server stops at them.
//!
//! A server that finds a symbolic link of Windows in the path of a CREATE answers with
//! STATUS_STOPPED_ON_SYMLINK and the target of the link. The client follows it within the share.
//! \[MS-SMB2\] 2.2.2.2.1, 3.2.5.7

use wire::Status;
use wire::error_response::{SymlinkError, SymlinkFlags};
use wire::upcase::upcased;

use crate::error::{Cause, Error};
use crate::path;

/// Maximum number of symbolic links that the client follows in one path, as Linux does. (7) path
/// resolution, ELOOP
const LINKS_MAX: u8 = 40;

/// The way along a path with symbolic links.
pub(crate) struct LinkWalk<'a> {
    place: Place<'a>,
    path: String,
    followed: u8,
}

impl<'a> LinkWalk<'a> {
    /// Starts in a place at a path in the form of a caller.
    ///
    /// # Errors
    /// The path is not valid.
    pub(crate) fn new(place: Place<'a>, path: &str) -> Result<Self, Error> {
        Ok(Self::at(place, path::to_wire(path)?))
    }

    /// Starts at a path in the form of the protocol, which may name a stream.
    pub(crate) fn at(place: Place<'a>, path: String) -> Self {
        Self {
            place,
            path,
            followed: 0,
        }
    }

    /// The path to open next, in the form of the protocol.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Whether the server stopped at a symbolic link with a target in the share. If so, the path
    /// leads through the target.
    pub(crate) fn follow(&mut self, cause: &Cause) -> bool {
        let Cause::StatusWith(Status::STOPPED_ON_SYMLINK, data) = cause else {
            return false;
        };
        let Ok(link) = SymlinkError::decode(data) else {
            return false;
        };
        let Some(next) = self.place.resolve(&self.path, &link) else {
            return false;
        };
        self.followed += 1;
        self.path = next;
        self.followed <= LINKS_MAX
    }
}

/// The share in which links stay: the names of its server and of itself.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) host: &'a str,
    pub(crate) share: &'a str,
}

impl Place<'_> {
    /// The path after a link in `path` is replaced by its target; `None` if that is not a path of
    /// the share.
    fn resolve(&self, path: &str, link: &SymlinkError<'_>) -> Option<String> {
        let units: Vec<u16> = path.encode_utf16().collect();
        let unparsed = usize::from(link.unparsed_path_length) / 2;
        let (before, rest) = units.split_at_checked(units.len().checked_sub(unparsed)?)?;
        let before = String::from_utf16(before).ok()?;
        let rest = String::from_utf16(rest).ok()?;
        let target = link.substitute_name.decode()?;
        let mut components: Vec<&str> = Vec::new();
        let target = match link.flags.contains(SymlinkFlags::RELATIVE) {
            true => {
                let link = before.trim_end_matches('\\');
                let directory = link
                    .rsplit_once('\\')
                    .map_or("", |(directory, _)| directory);
                components.extend(directory.split('\\').filter(|name| !name.is_empty()));
                target.as_str()
            }
            false => self.within(&target)?,
        };
        for component in target.split(['\\', '/']).chain(rest.split('\\')) {
            match component {
                "" | "." => {}
                ".." => drop(components.pop()?),
                component => components.push(component),
            }
        }
        let (last, directories) = components.split_last()?;
        // The path of a stream ends with its name.
        let (last, stream) = match last.split_once(':') {
            Some((file, stream)) => (file, Some(stream)),
            None => (*last, None),
        };
        let mut wire = path::to_wire(&[directories, &[last]].concat().join("\\")).ok()?;
        if let Some(stream) = stream {
            wire.push(':');
            wire.push_str(stream);
        }
        Some(wire)
    }

    /// The path from the root of the share in an absolute target; `None` if the target is
    /// elsewhere: on a volume of the server, or in another share.
    fn within<'t>(&self, target: &'t str) -> Option<&'t str> {
        let unc = target
            .strip_prefix(r"\??\UNC\")
            .or_else(|| target.strip_prefix(r"\\"))?;
        let (host, rest) = unc.split_once('\\')?;
        let (share, path) = rest.split_once('\\').unwrap_or((rest, ""));
        let is_here = upcased(host) == upcased(self.host) && upcased(share) == upcased(self.share);
        is_here.then_some(path)
    }
}

#[cfg(test)]
mod tests {
    use wire::Utf16;
    use wire::text::utf16;

    use super::*;

    const PLACE: Place<'static> = Place {
        host: "nas",
        share: "data",
    };

    /// Follows a link with `target` at the end of `before` in the path `before` + `rest`.
    fn follow(before: &str, rest: &str, target: &str) -> Option<String> {
        let name = utf16(target);
        let link = SymlinkError {
            unparsed_path_length: 2 * rest.encode_utf16().count() as u16,
            flags: match target.starts_with('\\') {
                true => SymlinkFlags::NONE,
                false => SymlinkFlags::RELATIVE,
            },
            substitute_name: Utf16(&name),
            print_name: Utf16(&name),
        };
        PLACE.resolve(&format!("{before}{rest}"), &link)
    }

    #[test]
    fn a_relative_target_starts_at_the_directory_of_the_link() {
        for (before, rest, target, expected) in [
            ("link", "", "file", "file"),
            ("a\\link", "", "file", "a\\file"),
            ("a\\link", "\\x\\y", "b\\c", "a\\b\\c\\x\\y"),
            ("a\\b\\link", "\\x", "..\\.\\c", "a\\c\\x"),
            ("a\\link", "", "../b/\u{FC}", "b\\\u{FC}"),
            ("a\\link", ":notes", "file", "a\\file:notes"),
        ] {
            assert_eq!(follow(before, rest, target).as_deref(), Some(expected));
        }
    }

    #[test]
    fn no_target_leads_out_of_the_share() {
        for target in [
            "..",
            "..\\..\\x",
            "\\etc\\passwd",
            "\\??\\C:\\x",
            "\\??\\UNC\\other\\data\\x",
            "\\\\nas\\other\\x",
            "\\??\\UNC\\nas\\data\\..\\x",
            "C:\\x",
            "a\\b:stream\\c",
        ] {
            assert_eq!(follow("a\\link", "", target), None, "{target}");
        }
        let inside = follow("a\\link", "\\y", "\\??\\UNC\\NAS\\Data\\x");
        assert_eq!(inside.as_deref(), Some("x\\y"));
    }

    #[test]
    fn a_wrong_length_is_no_path() {
        let name = utf16("x");
        let link = SymlinkError {
            unparsed_path_length: 100,
            flags: SymlinkFlags::RELATIVE,
            substitute_name: Utf16(&name),
            print_name: Utf16(&name),
        };
        assert_eq!(PLACE.resolve("a", &link), None);
    }
}
