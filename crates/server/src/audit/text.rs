//! Text of clients in records: limited, and without invisible characters.

use std::fmt::Write as _;

use proto::audit::Name;
use proto::path::SharePath;

use crate::log::is_invisible;

/// Longest name of a file in a record, in bytes of UTF-8. Linux has no longer paths.
const NAME_MAX: usize = 4096 + 256;
/// Longest other text in a record, in bytes of UTF-8.
const TEXT_MAX: usize = 512;

/// The name of a file in a record.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FileName {
    /// The components with `/` between them, and the stream after a colon.
    pub(super) text: String,
    /// The UTF-16LE bytes of a name that is no text, in hexadecimal digits.
    pub(super) hex: Option<String>,
    /// Whether a part is missing.
    pub(super) is_cut: bool,
}

impl From<&Name> for FileName {
    fn from(name: &Name) -> Self {
        match name {
            Name::Path(path) => Self::of_text(full_path(path)),
            Name::Raw(bytes) => Self::of_bytes(bytes),
        }
    }
}

impl FileName {
    fn of_text(text: String) -> Self {
        let is_cut = text.len() > NAME_MAX;
        Self {
            text: cut(text, NAME_MAX),
            hex: None,
            is_cut,
        }
    }

    fn of_bytes(bytes: &[u8]) -> Self {
        let is_cut = bytes.len() > NAME_MAX;
        let bytes = &bytes[..bytes.len().min(NAME_MAX)];
        let (units, rest) = bytes.as_chunks();
        let units = units.iter().map(|unit| u16::from_le_bytes(*unit));
        let units: Vec<u16> = units.collect();
        let decoded = String::from_utf16(&units).ok().filter(|_| rest.is_empty());
        let hex = match decoded {
            Some(_) => None,
            None => Some(bytes.iter().fold(String::new(), |mut hex, byte| {
                // Writing to a string does not fail.
                let _ = write!(hex, "{byte:02x}");
                hex
            })),
        };
        let text = decoded.unwrap_or_else(|| String::from_utf16_lossy(&units));
        let text = text.replace('\\', "/");
        Self { text, hex, is_cut }
    }
}

fn full_path(path: &SharePath) -> String {
    let mut text = path.as_str().to_owned();
    if let Some(stream) = path.stream() {
        text.push(':');
        text.push_str(stream.as_str());
    }
    text
}

/// A text that a client chose.
pub(super) fn limited(text: &str) -> String {
    cut(text.to_owned(), TEXT_MAX)
}

fn cut(mut text: String, max: usize) -> String {
    text.truncate(text.floor_char_boundary(max));
    text
}

/// Escapes the characters of JSON that a reader would not see. They occur only in its strings.
pub(super) fn escaped(json: &str) -> String {
    if json.bytes().all(|byte| (b' '..0x7f).contains(&byte)) {
        return json.to_owned();
    }
    let mut text = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if is_invisible(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(text, "\\u{unit:04x}");
            }
        } else {
            text.push(c);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_escapes_of_json() {
        let text = "a\u{202e}b\u{7f}\u{e0001}\u{e9}\n\"";
        let json = serde_json::to_string(text).expect("a text");
        let escaped = escaped(&json);
        assert_eq!(escaped, "\"a\\u202eb\\u007f\\udb40\\udc01\u{e9}\\n\\\"\"");
        let read: String = serde_json::from_str(&escaped).expect("JSON");
        assert_eq!(read, text);
    }

    #[test]
    fn names_that_are_no_text_have_their_bytes() {
        let utf16 = |units: &[u16]| -> Vec<u8> {
            let bytes = units.iter().flat_map(|unit| unit.to_le_bytes());
            bytes.collect()
        };
        let bad = FileName::from(&Name::Raw(utf16(&[0x61, 0x5c, 0xd800])));
        assert_eq!(bad.text, "a/\u{fffd}");
        assert_eq!(bad.hex.as_deref(), Some("61005c0000d8"));
        let text = FileName::from(&Name::Raw(utf16(&[0x3a, 0x62])));
        assert_eq!((text.text.as_str(), text.hex), (":b", None));
        let path = SharePath::from_trusted(&"\u{e9}".repeat(10_000));
        let long = FileName::from(&Name::Path(path));
        assert!(long.is_cut && long.text.len() <= NAME_MAX);
        assert!(long.text.chars().all(|c| c == '\u{e9}'));
    }
}
