//! Names of Linux files in SMB.
//!
//! Linux allows every byte in a name except `/` and NUL. SMB names are UTF-16, must not contain
//! control characters and `" * / : < > ? \ |`, and Windows cannot open a name that ends in a dot or
//! a blank. \[MS-FSCC\] 2.1.5.2 The mapping here gives every Linux name a distinct SMB name, and
//! leads back to the same bytes:
//!
//! - The characters that SMB reserves become code points of the private-use area, by the table of
//!   Services for Macintosh (SFM). macOS uses it, and so does the Linux client by default (mount
//!   option `mapposix` of mount.cifs). These clients show the original character.
//! - A byte that is not part of a UTF-8 sequence becomes U+EF00 plus the byte, U+EF80 to U+EFFF.
//!   The ConScript Unicode Registry lists this range for raw bytes (OPTU-8 of MirBSD). Other
//!   choices are worse: unpaired surrogates are not text for many clients, and U+F080 to U+F0FF
//!   belong to symbol fonts.
//! - A name can contain one of the code points of this mapping literally. The mapping then escapes
//!   each of its three bytes as if it were not UTF-8. So `a:b` and `a<U+F022>b` differ in SMB too.
//!
//! No name becomes longer than its bytes: at most 255 bytes become at most 255 UTF-16 units.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

/// The code points of the characters `" * : < > ? \ |` in this order. Control characters become
/// U+F000 plus the character.
const RESERVED: [(char, char); 8] = [
    ('"', '\u{f020}'),
    ('*', '\u{f021}'),
    (':', '\u{f022}'),
    ('<', '\u{f023}'),
    ('>', '\u{f024}'),
    ('?', '\u{f025}'),
    ('\\', '\u{f026}'),
    ('|', '\u{f027}'),
];
/// The code point of a blank at the end of a name.
const LAST_BLANK: char = '\u{f028}';
/// The code point of a dot at the end of a name.
const LAST_DOT: char = '\u{f029}';
/// The code point of the byte 0; a byte of 0x80 or more follows as the difference.
const BYTES: u32 = 0xef00;

/// The server's treatment of Linux file names that SMB cannot carry: show them to clients under
/// mapped names, or hide them. These are names with control characters, with one of
/// `" * : < > ? \ |`, with a dot or blank at the end, or that are not UTF-8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameMapping {
    /// Clients see such files under mapped names: reserved characters become private-use code
    /// points as on macOS, and invalid bytes become U+EF80 to U+EFFF. A mapped name of a client
    /// leads back to the original name.
    #[default]
    Map,
    /// Such files are hidden: the server does not list, open or create them.
    Hide,
}

impl NameMapping {
    /// Returns the SMB name under which clients see the file with the Linux name `disk`. `None` if
    /// [`Hide`](Self::Hide) hides the file. `.` and `..` stay as they are. The result has at most
    /// one UTF-16 unit for each byte of `disk`.
    pub fn to_wire(self, disk: &[u8]) -> Option<Cow<'_, str>> {
        match self {
            Self::Map => Some(to_wire(disk)),
            Self::Hide => plain(disk).map(Cow::Borrowed),
        }
    }

    /// Returns the SMB name under which clients see the file that a client names `wire`, as
    /// [`to_wire`](Self::to_wire) makes it. It differs from `wire` if that ends with an unmapped
    /// dot or blank. `None` if no file on the disk can have the name.
    pub fn canonical(self, wire: &str) -> Option<Cow<'_, str>> {
        if !is_component(wire) {
            return None;
        }
        match self {
            Self::Map => {
                let name = canonical(wire);
                (to_wire(&bytes_of(&name)) == name).then_some(name)
            }
            Self::Hide => plain(wire.as_bytes()).map(Cow::Borrowed),
        }
    }

    /// Returns the Linux file name of the file with the SMB name `wire`: the inverse of
    /// [`to_wire`](Self::to_wire). `None` if no file can have the name. The result is never empty,
    /// `.` or `..`, and contains neither `/` nor NUL.
    pub fn to_disk(self, wire: &str) -> Option<Cow<'_, [u8]>> {
        match (self.canonical(wire)?, self) {
            (Cow::Borrowed(name), Self::Map) => Some(bytes_of(name)),
            (Cow::Owned(name), Self::Map) => Some(Cow::Owned(bytes_of(&name).into_owned())),
            (_, Self::Hide) => Some(Cow::Borrowed(wire.as_bytes())),
        }
    }
}

/// Returns whether a text can be one component of a path.
fn is_component(wire: &str) -> bool {
    !matches!(wire, "" | "." | "..") && !wire.contains(['/', '\0'])
}

/// Returns the name of a file in SMB.
fn to_wire(disk: &[u8]) -> Cow<'_, str> {
    if let Some(name) = plain(disk).filter(|name| !name.chars().any(is_of_mapping)) {
        return Cow::Borrowed(name);
    }
    let mut wire = String::with_capacity(3 * disk.len());
    for chunk in disk.utf8_chunks() {
        for c in chunk.valid().chars() {
            match is_of_mapping(c) {
                true => push_bytes(&mut wire, c.encode_utf8(&mut [0; 4]).as_bytes()),
                false => wire.push(mapped(c)),
            }
        }
        push_bytes(&mut wire, chunk.invalid());
    }
    map_last(&mut wire);
    Cow::Owned(wire)
}

/// Returns a name of SMB with its reserved characters mapped.
fn canonical(wire: &str) -> Cow<'_, str> {
    if plain(wire.as_bytes()).is_some() {
        return Cow::Borrowed(wire);
    }
    let mut name: String = wire.chars().map(mapped).collect();
    map_last(&mut name);
    Cow::Owned(name)
}

/// Returns the bytes of a canonical name on the disk.
fn bytes_of(wire: &str) -> Cow<'_, [u8]> {
    if !wire.chars().any(is_of_mapping) {
        return Cow::Borrowed(wire.as_bytes());
    }
    let mut disk = Vec::with_capacity(wire.len());
    for c in wire.chars() {
        match (u32::from(c), original(c)) {
            (code @ 0xef80..=0xefff, _) => disk.push((code - BYTES) as u8),
            (_, c) => disk.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Cow::Owned(disk)
}

/// Returns the name if SMB can carry it as it is; `.` and `..` count as such.
fn plain(disk: &[u8]) -> Option<&str> {
    let name = core::str::from_utf8(disk).ok()?;
    let is_plain = name.chars().all(|c| mapped(c) == c) && !name.ends_with(['.', ' ']);
    (is_plain || matches!(name, "." | "..")).then_some(name)
}

/// Returns the code point of a reserved character; other characters stay.
fn mapped(c: char) -> char {
    match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' => c,
        '\u{1}'..='\u{1f}' => char::from_u32(0xf000 + u32::from(c)).unwrap_or(c),
        _ => (RESERVED.iter().find(|(reserved, _)| *reserved == c)).map_or(c, |(_, code)| *code),
    }
}

/// Returns the character of a code point of [`mapped`], [`LAST_BLANK`] or [`LAST_DOT`].
fn original(c: char) -> char {
    match c {
        '\u{f001}'..='\u{f01f}' => char::from_u32(u32::from(c) - 0xf000).unwrap_or(c),
        LAST_BLANK => ' ',
        LAST_DOT => '.',
        _ => (RESERVED.iter().find(|(_, code)| *code == c)).map_or(c, |(reserved, _)| *reserved),
    }
}

/// Returns whether a code point can be a result of the mapping.
fn is_of_mapping(c: char) -> bool {
    matches!(c, '\u{ef80}'..='\u{efff}' | '\u{f001}'..=LAST_DOT)
}

/// Appends the code points of bytes of 0x80 or more.
fn push_bytes(wire: &mut String, bytes: &[u8]) {
    let code = |byte: &u8| char::from_u32(BYTES + u32::from(*byte)).expect("no surrogate");
    wire.extend(bytes.iter().map(code));
}

/// Maps a dot or a blank at the end of a name.
fn map_last(name: &mut String) {
    let last = match name.chars().next_back() {
        Some('.') => LAST_DOT,
        Some(' ') => LAST_BLANK,
        _ => return,
    };
    name.pop();
    name.push(last);
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: NameMapping = NameMapping::Map;
    const HIDE: NameMapping = NameMapping::Hide;

    /// Checks that a name leads back to itself, is valid in SMB, and does not become longer.
    fn round_trip(disk: &[u8]) -> String {
        let wire = to_wire(disk).into_owned();
        assert_eq!(
            MAP.to_disk(&wire).as_deref(),
            Some(disk),
            "{disk:02x?} {wire:?}"
        );
        assert_eq!(MAP.canonical(&wire).as_deref(), Some(&*wire), "{disk:02x?}");
        let reserved = |c: char| c < ' ' || "\"*/:<>?\\|".contains(c);
        assert!(
            !wire.contains(reserved) && !wire.ends_with(['.', ' ']),
            "{wire:?}"
        );
        assert!(wire.encode_utf16().count() <= disk.len(), "{disk:02x?}");
        if let Some(hidden) = HIDE.to_wire(disk) {
            assert_eq!(HIDE.to_disk(&hidden).as_deref(), Some(disk), "{disk:02x?}");
        }
        wire
    }

    #[test]
    fn reserved_characters_follow_the_table_of_services_for_macintosh() {
        for (disk, wire) in [
            (
                "\"*:<>?\\|",
                "\u{f020}\u{f021}\u{f022}\u{f023}\u{f024}\u{f025}\u{f026}\u{f027}",
            ),
            ("a\u{1}b\tc\u{1f}", "a\u{f001}b\u{f009}c\u{f01f}"),
            ("dot.", "dot\u{f029}"),
            ("blank ", "blank\u{f028}"),
            ("two. .", "two. \u{f029}"),
            ("...", "..\u{f029}"),
            (" ", "\u{f028}"),
            ("cam_11:05.jpg", "cam_11\u{f022}05.jpg"),
            ("a.b c", "a.b c"),
            ("CON", "CON"),
            (
                "\u{7f}\u{80}\u{fffe}\u{1f600}",
                "\u{7f}\u{80}\u{fffe}\u{1f600}",
            ),
        ] {
            assert_eq!(round_trip(disk.as_bytes()), wire);
        }
        // The table of Services for Unix is another one; its code points are ordinary here.
        assert_eq!(
            round_trip("\u{f03a}\u{f000}\u{f02a}".as_bytes()),
            "\u{f03a}\u{f000}\u{f02a}"
        );
    }

    #[test]
    fn bytes_that_are_not_utf8_lead_back() {
        for (disk, wire) in [
            (&b"\xff"[..], "\u{efff}"),
            (b"\xe4 at the start", "\u{efe4} at the start"),
            (b"at the end \xe4", "at the end \u{efe4}"),
            (b"\xc3\xa4\xc3", "\u{e4}\u{efc3}"),
            // An overlong slash, a surrogate, a code point beyond the last one.
            (b"\xc0\xaf", "\u{efc0}\u{efaf}"),
            (b"\xed\xa0\x80", "\u{efed}\u{efa0}\u{ef80}"),
            (b"\xf4\x90\x80\x80", "\u{eff4}\u{ef90}\u{ef80}\u{ef80}"),
            (b"\xe4:\xe4.", "\u{efe4}\u{f022}\u{efe4}\u{f029}"),
        ] {
            assert_eq!(round_trip(disk), wire);
        }
    }

    #[test]
    fn a_literal_code_point_of_the_mapping_differs_from_its_twin() {
        let twins = [
            ("a:b", "a\u{f022}b"),
            ("a.", "a\u{f029}"),
            ("a b", "a\u{f028}b"),
        ];
        for (one, other) in twins {
            assert_ne!(round_trip(one.as_bytes()), round_trip(other.as_bytes()));
        }
        assert_ne!(round_trip(b"\xe4"), round_trip("\u{efe4}".as_bytes()));
        assert_eq!(
            round_trip("a\u{f022}b".as_bytes()),
            "a\u{efef}\u{ef80}\u{efa2}b"
        );
        // The escape of an escape.
        let twice = round_trip("\u{efef}\u{ef80}\u{efa2}".as_bytes());
        assert_eq!(twice.chars().count(), 9);
    }

    #[test]
    fn a_name_of_255_bytes_stays_a_name() {
        for part in [
            "\u{f022}",
            "\u{efff}",
            "a\u{f029}",
            ":",
            "\u{1f600}",
            "\u{e4}.",
            "\u{ffff}",
        ] {
            let disk = part.repeat(255);
            round_trip(&disk.as_bytes()[..255]);
        }
        round_trip(&[0xff; 255]);
    }

    #[test]
    fn names_that_no_file_can_have_are_refused() {
        for wire in [
            "",
            ".",
            "..",
            "/",
            "a/b",
            "a\0b",
            // They would be `.` and `..`.
            "\u{f029}",
            ".\u{f029}",
            // The bytes are UTF-8, so the name would be listed as another one.
            "\u{efc3}\u{efa4}",
            "\u{efe2}\u{ef82}\u{efac}",
            // A blank in the middle is a blank.
            "a\u{f028}b",
            "\u{f029}a",
        ] {
            assert_eq!(MAP.to_disk(wire), None, "{wire:?}");
            assert_eq!(MAP.canonical(wire), None, "{wire:?}");
        }
        assert_eq!(HIDE.to_disk(".."), None);
    }

    #[test]
    fn a_name_with_a_dot_or_blank_at_the_end_means_the_mapped_one() {
        assert_eq!(MAP.to_disk("dot.").as_deref(), Some(&b"dot."[..]));
        assert_eq!(MAP.canonical("dot.").as_deref(), Some("dot\u{f029}"));
        assert_eq!(
            MAP.canonical("a\u{efe4} ").as_deref(),
            Some("a\u{efe4}\u{f028}")
        );
        assert_eq!(MAP.canonical("a:b").as_deref(), Some("a\u{f022}b"));
    }

    #[test]
    fn hidden_names_have_no_form_in_smb() {
        for disk in [
            &b"a:b"[..],
            b"tab\t",
            b"back\\slash",
            b"dot.",
            b"blank ",
            b"\xe4",
        ] {
            assert_eq!(HIDE.to_wire(disk), None, "{disk:?}");
        }
        for name in ["plain", "a\u{f022}b", "\u{efff}", "\u{e4}"] {
            assert_eq!(HIDE.to_wire(name.as_bytes()).as_deref(), Some(name));
            assert_eq!(HIDE.to_disk(name).as_deref(), Some(name.as_bytes()));
        }
        assert_eq!(HIDE.to_disk("dot."), None);
    }

    /// Every name of one and two bytes, and every name of up to four parts that the rules treat in
    /// different ways.
    #[test]
    fn every_short_name_leads_back() {
        let is_allowed = |byte: &u8| *byte != 0 && *byte != b'/';
        let check = |disk: &[u8]| {
            if !matches!(disk, b"" | b"." | b"..") {
                round_trip(disk);
            }
        };
        for one in (0..=255).filter(is_allowed) {
            check(&[one]);
            for two in (0..=255).filter(is_allowed) {
                check(&[one, two]);
            }
        }
        const PARTS: [&[u8]; 20] = [
            b"",
            b"a",
            b".",
            b" ",
            b":",
            b"\\",
            b"\x01",
            b"\x80",
            b"\xbf",
            b"\xc3",
            b"\xa4",
            b"\xe4",
            b"\xee",
            b"\xbe",
            b"\xef",
            b"\xff",
            b"\xf0",
            b"\xef\x80\xa2",
            b"\xee\xbe\x80",
            b"\xc3\xa4",
        ];
        for number in 0..PARTS.len().pow(4) {
            let part = |place: u32| PARTS[number / PARTS.len().pow(place) % PARTS.len()];
            check(&[part(0), part(1), part(2), part(3)].concat());
        }
    }

    /// Random names of 1 to 255 bytes, from a generator with a fixed seed.
    #[test]
    fn every_long_name_leads_back() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        const LIKELY: [u8; 16] = *b".: \\\x01a\xef\x80\xa2\xee\xbe\xbf\xc3\xa4\xf0\x9f";
        for _ in 0..20_000 {
            let length = 1 + next() as usize % 255;
            let disk: Vec<u8> = (0..length)
                .map(|_| match next() % 3 {
                    0 => LIKELY[next() as usize % LIKELY.len()],
                    _ => next() as u8,
                })
                .map(|byte| if matches!(byte, 0 | b'/') { b'x' } else { byte })
                .collect();
            if !matches!(&*disk, b"." | b"..") {
                round_trip(&disk);
            }
        }
    }

    /// Every SMB name is refused or leads to a file that has this name.
    #[test]
    fn a_name_of_smb_leads_to_its_own_file() {
        const CHARS: [char; 14] = [
            'a', '.', ' ', ':', '\u{f022}', '\u{f028}', '\u{f029}', '\u{ef80}', '\u{efa4}',
            '\u{efc3}', '\u{efef}', '\u{efa2}', '\u{e4}', '\u{f001}',
        ];
        for number in 0..CHARS.len().pow(4) {
            let c = |place: u32| CHARS[number / CHARS.len().pow(place) % CHARS.len()];
            let wire: String = [c(0), c(1), c(2), c(3)].into_iter().collect();
            let disk = MAP.to_disk(&wire);
            assert_eq!(disk.is_some(), MAP.canonical(&wire).is_some(), "{wire:?}");
            if let Some(disk) = disk {
                assert_eq!(to_wire(&disk), canonical(&wire), "{wire:?}");
            }
        }
    }
}
