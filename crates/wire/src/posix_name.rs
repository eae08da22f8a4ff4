//! Names of Linux files in the SMB3 POSIX extensions.
//!
//! An open with the POSIX create context names a file by its Linux name in UTF-16: every character
//! but `/` and NUL stands for itself. UTF-16 cannot carry bytes that are not UTF-8. They become
//! U+EF80 to U+EFFF as in [`file_name`](crate::file_name), and a literal code point of that range
//! becomes its three bytes. So every Linux name has one name here and leads back to its bytes.
//!
//! The functions translate between these names and those that other clients see
//! ([`NameMapping::Map`]). The server uses the latter inside, so that all clients agree on a file.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use crate::file_name::NameMapping;

/// The code point of the byte 0; a byte of 0x80 or more follows as the difference.
const BYTES: u32 = 0xef00;

/// Returns the name with which clients of the SMB3 POSIX extensions see the file with the Linux
/// name `disk`. `.` and `..` stay as they are. The result has at most one UTF-16 unit for each byte
/// of `disk`.
pub fn from_disk(disk: &[u8]) -> Cow<'_, str> {
    if let Some(name) = plain(disk) {
        return Cow::Borrowed(name);
    }
    let mut name = String::with_capacity(3 * disk.len());
    for chunk in disk.utf8_chunks() {
        for c in chunk.valid().chars() {
            match is_byte(c) {
                true => push_bytes(&mut name, c.encode_utf8(&mut [0; 4]).as_bytes()),
                false => name.push(c),
            }
        }
        push_bytes(&mut name, chunk.invalid());
    }
    Cow::Owned(name)
}

/// Returns the Linux name of the file that a client of the SMB3 POSIX extensions names `name`: the
/// inverse of [`from_disk`]. `None` if no file can have the name: it is empty, `.` or `..`, has a
/// `/` or NUL, or its bytes are UTF-8 and would be listed under another name.
pub fn to_disk(name: &str) -> Option<Cow<'_, [u8]>> {
    if matches!(name, "" | "." | "..") || name.contains(['/', '\0']) {
        return None;
    }
    if !name.chars().any(is_byte) {
        return Some(Cow::Borrowed(name.as_bytes()));
    }
    let mut disk = Vec::with_capacity(name.len());
    for c in name.chars() {
        match is_byte(c) {
            true => disk.push((u32::from(c) - BYTES) as u8),
            false => disk.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    (from_disk(&disk) == name).then_some(Cow::Owned(disk))
}

/// Returns the name that other clients see ([`NameMapping::Map`]) for a name of the SMB3 POSIX
/// extensions. `None` if no file can have the name.
pub fn to_mapped(name: &str) -> Option<Cow<'_, str>> {
    match to_disk(name)? {
        Cow::Borrowed(_) => NameMapping::Map.to_wire(name.as_bytes()),
        Cow::Owned(disk) => {
            let mapped = NameMapping::Map.to_wire(&disk)?;
            Some(Cow::Owned(mapped.into_owned()))
        }
    }
}

/// Returns the name of the SMB3 POSIX extensions for a name that other clients see
/// ([`NameMapping::Map`]): the inverse of [`to_mapped`]. `.` and `..` stay as they are. `None` if
/// no file can have the name.
pub fn from_mapped(mapped: &str) -> Option<Cow<'_, str>> {
    if matches!(mapped, "." | "..") {
        return Some(Cow::Borrowed(mapped));
    }
    match NameMapping::Map.to_disk(mapped)? {
        Cow::Borrowed(_) if !mapped.chars().any(is_byte) => Some(Cow::Borrowed(mapped)),
        disk => Some(Cow::Owned(from_disk(&disk).into_owned())),
    }
}

/// Returns the name if it needs no escapes.
fn plain(disk: &[u8]) -> Option<&str> {
    let name = core::str::from_utf8(disk).ok()?;
    (!name.chars().any(is_byte)).then_some(name)
}

/// Returns whether a code point stands for a byte.
fn is_byte(c: char) -> bool {
    matches!(c, '\u{ef80}'..='\u{efff}')
}

/// Appends the code points of bytes of 0x80 or more.
fn push_bytes(name: &mut String, bytes: &[u8]) {
    let code = |byte: &u8| char::from_u32(BYTES + u32::from(*byte)).expect("no surrogate");
    name.extend(bytes.iter().map(code));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that a Linux name leads back to itself in both forms.
    fn round_trip(disk: &[u8]) -> String {
        let name = from_disk(disk).into_owned();
        assert_eq!(
            to_disk(&name).as_deref(),
            Some(disk),
            "{disk:02x?} {name:?}"
        );
        assert!(name.encode_utf16().count() <= disk.len(), "{disk:02x?}");
        let mapped = NameMapping::Map.to_wire(disk).expect("a mapped name");
        assert_eq!(to_mapped(&name).as_deref(), Some(&*mapped), "{disk:02x?}");
        assert_eq!(from_mapped(&mapped).as_deref(), Some(&*name), "{disk:02x?}");
        name
    }

    #[test]
    fn every_character_but_a_slash_stands_for_itself() {
        for name in [
            "a:b",
            "*",
            "con",
            "a.",
            "a ",
            ". ",
            "...",
            "back\\slash",
            "<>?|\"",
            "\u{1}\t\n\u{7f}",
            "\u{e4}\u{1f600}",
            "a\u{f022}b",
            "\u{f029}",
        ] {
            assert_eq!(round_trip(name.as_bytes()), name);
        }
    }

    #[test]
    fn bytes_that_are_not_utf8_are_escaped() {
        assert_eq!(round_trip(b"\xff"), "\u{efff}");
        assert_eq!(round_trip(b"a\xe4:"), "a\u{efe4}:");
        assert_eq!(
            round_trip("\u{efe4}".as_bytes()),
            "\u{efee}\u{efbf}\u{efa4}"
        );
    }

    #[test]
    fn names_that_no_file_can_have_are_refused() {
        // The last one is UTF-8, so the name would be listed as another one.
        for name in ["", ".", "..", "/", "a/b", "a\0b", "\u{efc3}\u{efa4}"] {
            assert_eq!(to_disk(name), None, "{name:?}");
            assert_eq!(to_mapped(name), None, "{name:?}");
        }
        assert_eq!(from_mapped("a/b"), None);
        assert_eq!(from_mapped(".."), Some(Cow::Borrowed("..")));
    }

    #[test]
    fn short_and_long_names_lead_back() {
        let is_allowed = |byte: &u8| *byte != 0 && *byte != b'/';
        for one in (0..=255).filter(is_allowed) {
            for two in (0..=255).filter(is_allowed) {
                if [one, two] != *b".." {
                    round_trip(&[one, two]);
                }
            }
        }
        for part in ["\u{efe4}", "\u{f022}", ":", "\u{1f600}"] {
            round_trip(&part.repeat(255).as_bytes()[..255]);
        }
    }
}
