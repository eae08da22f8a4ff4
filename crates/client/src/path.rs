//! Paths within a share, in the form of a caller and of the protocol.

use wire::posix_name;

use crate::error::Error;

/// Longest component in UTF-16 units. \[MS-FSCC\] 2.1.5
const COMPONENT_UNITS_MAX: usize = 255;
/// Longest path in UTF-16 units, as on Windows.
const PATH_UNITS_MAX: usize = 32_760;

/// Converts `dir/file` or `dir\file`, relative to the share, to the name of a CREATE. The empty
/// path and `/` are the root.
pub(crate) fn to_wire(path: &str) -> Result<String, Error> {
    let invalid = |why| Error::InvalidName(path.to_owned(), why);
    let mut wire = String::with_capacity(path.len());
    for component in path.split(['/', '\\']) {
        if component.is_empty() || component == "." {
            continue;
        }
        check(component).map_err(invalid)?;
        if !wire.is_empty() {
            wire.push('\\');
        }
        wire.push_str(component);
    }
    if wire.encode_utf16().count() > PATH_UNITS_MAX {
        return Err(invalid("the path is too long"));
    }
    Ok(wire)
}

/// Converts `dir/file`, relative to the share, to the name of a CREATE with the SMB3 POSIX
/// extensions. It has `/` between components, as Samba and cifs.ko have it, and every other
/// character but NUL is a part of a name.
pub(crate) fn to_posix(path: &str) -> Result<String, Error> {
    let invalid = |why| Error::InvalidName(path.to_owned(), why);
    let mut wire = String::with_capacity(path.len());
    for component in path
        .split('/')
        .filter(|component| !matches!(*component, "" | "."))
    {
        if component == ".." {
            return Err(invalid("`..` is not allowed; write the path without it"));
        }
        if component.contains('\0') {
            return Err(invalid("it contains a NUL character"));
        }
        if component.encode_utf16().count() > COMPONENT_UNITS_MAX {
            return Err(invalid("a component is longer than 255 characters"));
        }
        if !wire.is_empty() {
            wire.push('/');
        }
        wire.push_str(component);
    }
    match wire.encode_utf16().count() > PATH_UNITS_MAX {
        true => Err(invalid("the path is too long")),
        false => Ok(wire),
    }
}

/// The path with which other opens name the file of a path of the SMB3 POSIX extensions, both in
/// the form of the protocol. `None` if no file can have it.
pub(crate) fn posix_to_mapped(path: &str) -> Option<String> {
    let names: Option<Vec<_>> = path.split('/').map(posix_name::to_mapped).collect();
    Some(names?.join("\\"))
}

/// Converts the path of a file and the name of a stream of it to the name of a CREATE.
pub(crate) fn to_wire_stream(path: &str, stream: &str) -> Result<String, Error> {
    let mut wire = to_wire(path)?;
    if !is_stream_name(stream) {
        let why = "the name of a stream has 1 to 255 characters without / \\ : and NUL";
        return Err(Error::InvalidName(stream.to_owned(), why));
    }
    wire.push(':');
    wire.push_str(stream);
    Ok(wire)
}

/// Whether a stream can have this name. \[MS-FSCC\] 2.1.5.3
pub(crate) fn is_stream_name(name: &str) -> bool {
    !name.is_empty()
        && !name.contains(['/', '\\', ':', '\0'])
        && name.encode_utf16().count() <= COMPONENT_UNITS_MAX
}

/// Refuses a component that [MS-FSCC] 2.1.5 excludes.
fn check(component: &str) -> Result<(), &'static str> {
    if component == ".." {
        return Err("`..` is not allowed; write the path without it");
    }
    if component.chars().any(|c| (c as u32) < 0x20) {
        return Err("it contains a control character");
    }
    if component.contains([':', '"', '<', '>', '|', '*', '?']) {
        return Err("it contains one of : \" < > | * ?");
    }
    if component.encode_utf16().count() > COMPONENT_UNITS_MAX {
        return Err("a component is longer than 255 characters");
    }
    Ok(())
}

/// Whether a name in a listing is a component, so that it cannot lead out of its directory.
pub(crate) fn is_component(name: &str) -> bool {
    is_posix_component(name) && !name.contains('\\')
}

/// Whether a name in a listing with the SMB3 POSIX extensions is a component.
pub(crate) fn is_posix_component(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_separators_will_do() {
        assert_eq!(to_wire("a/b\\c").expect("a path"), "a\\b\\c");
        assert_eq!(to_wire("//a//./b/").expect("a path"), "a\\b");
        assert_eq!(to_wire("").expect("the root"), "");
        assert_eq!(to_wire("/").expect("the root"), "");
    }

    #[test]
    fn what_no_server_has_is_refused_here() {
        for path in ["../x", "a/../b", "a\0b", "a:b", "what?", "a\nb"] {
            assert!(
                matches!(to_wire(path), Err(Error::InvalidName(..))),
                "{path}"
            );
        }
        assert!(to_wire(&"x".repeat(255)).is_ok());
        assert!(to_wire(&"x".repeat(256)).is_err());
        assert!(to_wire(&"x/".repeat(20_000)).is_err());
    }

    #[test]
    fn other_opens_have_other_names() {
        let mapped = posix_to_mapped("a:b/c\\d");
        assert_eq!(mapped.as_deref(), Some("a\u{f022}b\\c\u{f026}d"));
        assert_eq!(posix_to_mapped("a//b"), None);
    }

    #[test]
    fn posix_names_have_all_characters() {
        let wire = to_posix("/a\\b/./c:?\n*. /d ").expect("a path");
        assert_eq!(wire, "a\\b/c:?\n*. /d ");
        assert_eq!(to_posix("/").expect("the root"), "");
        for path in ["..", "a/../b", "a\0b"] {
            assert!(to_posix(path).is_err(), "{path:?}");
        }
        assert!(to_posix(&"x".repeat(256)).is_err());
        assert!(to_posix(&"x/".repeat(20_000)).is_err());
    }

    #[test]
    fn the_name_of_a_stream_follows_the_path() {
        let wire = to_wire_stream("a/b", "Zone.Identifier").expect("a stream");
        assert_eq!(wire, "a\\b:Zone.Identifier");
        assert_eq!(
            to_wire_stream("", "x*y\u{1}").expect("the root"),
            ":x*y\u{1}"
        );
        for stream in ["", "a:b", "a/b", "a\\b", "a\0"] {
            assert!(to_wire_stream("a", stream).is_err(), "{stream:?}");
        }
    }

    #[test]
    fn a_listed_name_stays_in_its_directory() {
        assert!(is_component("a..b"));
        for name in ["", ".", "..", "a/b", "..\\b", "a\0"] {
            assert!(!is_component(name), "{name}");
        }
    }
}
