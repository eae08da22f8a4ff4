//! Distinguished names of issuers and subjects: parsing, printing and comparison.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use x509_parser::x509::{AttributeTypeAndValue, X509Name};

/// Longest written name in characters. Longer ones are mistakes.
const MAX_CHARS: usize = 4096;

/// Short names of attribute types: those of RFC 4514 3, Windows and OpenSSL. If a type has several,
/// the first one is printed.
const KINDS: [(&str, &str); 27] = [
    ("CN", "2.5.4.3"),
    ("SN", "2.5.4.4"),
    ("SURNAME", "2.5.4.4"),
    ("SERIALNUMBER", "2.5.4.5"),
    ("C", "2.5.4.6"),
    ("L", "2.5.4.7"),
    ("S", "2.5.4.8"),
    ("ST", "2.5.4.8"),
    ("STREET", "2.5.4.9"),
    ("O", "2.5.4.10"),
    ("OU", "2.5.4.11"),
    ("T", "2.5.4.12"),
    ("TITLE", "2.5.4.12"),
    ("POSTALCODE", "2.5.4.17"),
    ("G", "2.5.4.42"),
    ("GN", "2.5.4.42"),
    ("GIVENNAME", "2.5.4.42"),
    ("I", "2.5.4.43"),
    ("INITIALS", "2.5.4.43"),
    ("DNQUALIFIER", "2.5.4.46"),
    ("DC", "0.9.2342.19200300.100.1.25"),
    ("UID", "0.9.2342.19200300.100.1.1"),
    ("E", "1.2.840.113549.1.9.1"),
    ("EMAIL", "1.2.840.113549.1.9.1"),
    ("EMAILADDRESS", "1.2.840.113549.1.9.1"),
    ("BUSINESSCATEGORY", "2.5.4.15"),
    ("ORGANIZATIONIDENTIFIER", "2.5.4.97"),
];

/// A distinguished name: the issuer or the subject of a certificate. Its `Display` form is that of
/// Windows and RFC 4514, with the most specific part first: `CN=nas, O=Example, C=DE`.
#[derive(Clone, Debug)]
pub struct DistinguishedName {
    /// The parts in the order of the certificate, the most general one first.
    parts: Vec<Vec<Attribute>>,
}

#[derive(Clone, Debug)]
struct Attribute {
    /// An object identifier in dotted form.
    kind: String,
    value: String,
}

/// Reason why the text of a [`DistinguishedName`] is malformed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameError {
    /// The text of the name is empty.
    Empty,
    /// The text of the name is too long.
    TooLong,
    /// A part of the text is not `KIND=value`: that part.
    NotAnAttribute(String),
    /// An attribute type, such as `CN`, is not known: that type.
    UnknownKind(String),
    /// A quotation mark or an escape in the text is not complete.
    Unfinished,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => {
                f.write_str("the name is missing: use a name such as `CN=Example CA, C=DE`")
            }
            Self::TooLong => write!(f, "a name has at most {MAX_CHARS} characters"),
            Self::NotAnAttribute(part) => write!(
                f,
                "`{part}` is not KIND=value (write \\, for a comma that is part of a value)"
            ),
            Self::UnknownKind(kind) => write!(
                f,
                "`{kind}` is not an attribute type: use CN, O, C, ... or a dotted identifier"
            ),
            Self::Unfinished => f.write_str("a quotation mark or a backslash is not complete"),
        }
    }
}

impl std::error::Error for NameError {}

impl DistinguishedName {
    /// The name in a certificate.
    pub(super) fn of(name: &X509Name<'_>) -> Self {
        let attribute = |attribute: &AttributeTypeAndValue<'_>| Attribute {
            kind: attribute.attr_type().to_id_string(),
            value: text_of(attribute),
        };
        let part = |part: &x509_parser::x509::RelativeDistinguishedName<'_>| {
            part.iter().map(attribute).collect()
        };
        Self {
            parts: name.iter_rdn().map(part).collect(),
        }
    }

    /// Returns whether two names are equal. Case, white space (RFC 5280 7.1) and the order of the
    /// parts do not matter, because tools print both orders.
    pub fn is(&self, other: &Self) -> bool {
        let (own, other) = (self.folded(), other.folded());
        own.len() == other.len()
            && (own.iter().eq(other.iter()) || own.iter().eq(other.iter().rev()))
    }

    fn folded(&self) -> Vec<BTreeSet<(&str, String)>> {
        let mut folded = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            folded.push(part.iter().map(Attribute::folded).collect());
        }
        folded
    }
}

impl Attribute {
    fn folded(&self) -> (&str, String) {
        let words: Vec<_> = self
            .value
            .split_whitespace()
            .map(str::to_lowercase)
            .collect();
        (&self.kind, words.join(" "))
    }
}

/// The text of an attribute, or its bytes if it is not text.
fn text_of(attribute: &AttributeTypeAndValue<'_>) -> String {
    use x509_parser::der_parser::asn1_rs::Tag;
    let value = attribute.attr_value();
    let units = |width: usize| value.data.chunks_exact(width);
    match value.tag() {
        Tag::BmpString => {
            let chars = units(2).map(|unit| u16::from_be_bytes([unit[0], unit[1]]));
            String::from_utf16_lossy(&chars.collect::<Vec<_>>())
        }
        Tag::UniversalString => units(4)
            .map(|unit| u32::from_be_bytes([unit[0], unit[1], unit[2], unit[3]]))
            .map(|ch| char::from_u32(ch).unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect(),
        // Certificates have only Latin-1 there.
        Tag::T61String => value.data.iter().copied().map(char::from).collect(),
        _ => match std::str::from_utf8(value.data) {
            Ok(text) => text.to_owned(),
            Err(_) => value.data.iter().fold("#".to_owned(), |mut text, byte| {
                text.push_str(&format!("{byte:02X}"));
                text
            }),
        },
    }
}

impl fmt::Display for DistinguishedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, part) in self.parts.iter().rev().enumerate() {
            f.write_str(if index == 0 { "" } else { ", " })?;
            for (index, Attribute { kind, value }) in part.iter().enumerate() {
                f.write_str(if index == 0 { "" } else { " + " })?;
                match KINDS.iter().find(|(_, known)| known == kind) {
                    Some((name, _)) => write!(f, "{name}=")?,
                    None => write!(f, "OID.{kind}=")?,
                }
                fmt_value(value, f)?;
            }
        }
        Ok(())
    }
}

/// Peers choose these chars, and logs are read in terminals: nothing moves a cursor.
fn fmt_value(value: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for ch in value.chars() {
        match ch {
            ',' | '+' | '"' | '\\' | '<' | '>' | ';' | '=' => write!(f, "\\{ch}")?,
            ch if ch.is_control() => {
                let mut bytes = [0; 4];
                for byte in ch.encode_utf8(&mut bytes).bytes() {
                    write!(f, "\\{byte:02X}")?;
                }
            }
            ch => write!(f, "{ch}")?,
        }
    }
    Ok(())
}

impl FromStr for DistinguishedName {
    type Err = NameError;

    /// RFC 4514, and the quotation marks of Windows.
    fn from_str(text: &str) -> Result<Self, NameError> {
        if text.trim().is_empty() {
            return Err(NameError::Empty);
        }
        if text.len() > MAX_CHARS {
            return Err(NameError::TooLong);
        }
        let mut parts = vec![Vec::new()];
        for piece in pieces(text)? {
            let attribute = piece.attribute()?;
            parts.last_mut().expect("there is one").push(attribute);
            if piece.end == End::Part {
                parts.push(Vec::new());
            }
        }
        parts.reverse();
        Ok(Self { parts })
    }
}

/// What is between two separators.
struct Piece {
    /// What stood before the first `=`, if there was one.
    kind: Option<String>,
    value: Vec<u8>,
    /// Number of unescaped blanks at the end of `value`.
    blanks: usize,
    end: End,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// Another attribute of the same part comes.
    Attribute,
    /// Another part comes.
    Part,
    /// That was all.
    Name,
}

impl Piece {
    fn new() -> Self {
        Self {
            kind: None,
            value: Vec::new(),
            blanks: 0,
            end: End::Name,
        }
    }

    /// Appends an escaped byte of the value.
    fn keep(&mut self, byte: u8) {
        self.value.push(byte);
        self.blanks = 0;
    }

    fn take(&mut self, byte: u8) {
        match byte {
            b'=' if self.kind.is_none() => {
                let kind = std::mem::take(&mut self.value);
                self.kind = Some(String::from_utf8_lossy(&kind).trim().to_owned());
                self.blanks = 0;
            }
            byte if byte.is_ascii_whitespace() => {
                // White space at the start is not part of the value.
                if !self.value.is_empty() {
                    self.value.push(byte);
                    self.blanks += 1;
                }
            }
            byte => self.keep(byte),
        }
    }

    fn attribute(&self) -> Result<Attribute, NameError> {
        let value = &self.value[..self.value.len() - self.blanks];
        let value = String::from_utf8_lossy(value).into_owned();
        let Some(name) = &self.kind else {
            return Err(NameError::NotAnAttribute(value));
        };
        let upper = name.to_ascii_uppercase();
        let known = KINDS.iter().find(|(known, _)| *known == upper);
        let dotted = upper.strip_prefix("OID.").unwrap_or(&upper);
        let is_dotted = dotted.contains('.')
            && dotted
                .split('.')
                .all(|arc| arc.bytes().all(|byte| byte.is_ascii_digit()));
        let kind = match known {
            Some((_, kind)) => (*kind).to_owned(),
            None if is_dotted => dotted.to_owned(),
            None => return Err(NameError::UnknownKind(name.clone())),
        };
        Ok(Attribute { kind, value })
    }
}

/// Splits a name at separators that are neither quoted nor escaped.
fn pieces(text: &str) -> Result<Vec<Piece>, NameError> {
    let mut found = Vec::new();
    let mut piece = Piece::new();
    let mut is_quoted = false;
    let mut bytes = text.bytes().peekable();
    while let Some(byte) = bytes.next() {
        let end = match byte {
            b'\\' => {
                let first = bytes.next().ok_or(NameError::Unfinished)?;
                let second = bytes.peek().copied().and_then(hex);
                match (hex(first), second) {
                    (Some(high), Some(low)) => {
                        bytes.next();
                        piece.keep(high << 4 | low);
                    }
                    _ => piece.keep(first),
                }
                continue;
            }
            // Windows doubles a quotation mark inside a quoted value.
            b'"' if is_quoted && bytes.next_if_eq(&b'"').is_some() => {
                piece.keep(b'"');
                continue;
            }
            b'"' => {
                is_quoted = !is_quoted;
                continue;
            }
            byte if is_quoted => {
                piece.keep(byte);
                continue;
            }
            b',' | b';' => End::Part,
            b'+' => End::Attribute,
            byte => {
                piece.take(byte);
                continue;
            }
        };
        piece.end = end;
        found.push(std::mem::replace(&mut piece, Piece::new()));
    }
    if is_quoted {
        return Err(NameError::Unfinished);
    }
    found.push(piece);
    Ok(found)
}

fn hex(byte: u8) -> Option<u8> {
    let digit = char::from(byte).to_digit(16)?;
    u8::try_from(digit).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> DistinguishedName {
        text.parse().expect("a name")
    }

    fn is_same(one: &str, other: &str) -> bool {
        name(one).is(&name(other))
    }

    #[test]
    fn case_blanks_order_and_spelling_do_not_matter() {
        let windows = "CN=Example CA, O=Example Inc, S=Bavaria, C=DE";
        assert!(is_same(
            windows,
            "cn=EXAMPLE  ca,o=Example Inc , ST=bavaria,C=de"
        ));
        assert!(is_same(
            windows,
            "C = DE, ST = Bavaria, O = Example Inc, CN = Example CA"
        ));
        assert!(is_same(
            windows,
            "2.5.4.3=Example CA;O=Example Inc;OID.2.5.4.8=Bavaria;C=DE"
        ));
        assert_eq!(name(windows).to_string(), windows);
    }

    #[test]
    fn another_name_is_another() {
        let own = "CN=Example CA, O=Example, C=DE";
        for other in [
            "CN=Example CA, O=Example",
            "CN=Example CB, O=Example, C=DE",
            "O=Example CA, CN=Example, C=DE",
            "O=Example, CN=Example CA, C=DE",
            "CN=Example CA + O=Example, C=DE",
            "CN=Example CA, O=Example, C=DE, C=DE",
        ] {
            assert!(!is_same(own, other), "{other}");
        }
    }

    #[test]
    fn values_may_hold_what_separates_them() {
        let quoted = "CN=\"Example, Inc. \"\"NAS\"\"\", C=DE";
        assert!(is_same(quoted, r#"CN=Example\, Inc. \"NAS\",C=DE"#));
        assert!(is_same("CN=a\\2Cb", "CN=\"a,b\""));
        assert!(is_same("CN=a\\C3\\A4", "CN=a\u{e4}"));
        assert!(is_same("CN=a=b", "CN=\"a=b\""));
        assert!(is_same("O=x+CN=y", "CN=y + O=x"));
        let again = name(quoted).to_string();
        assert!(is_same(quoted, &again), "{again}");
    }

    #[test]
    fn what_a_peer_wrote_moves_no_cursor() {
        assert_eq!(name("CN=a\\1B[2J").to_string(), "CN=a\\1B[2J");
    }

    #[test]
    fn mistakes_are_errors() {
        let error = |text: &str| text.parse::<DistinguishedName>().expect_err("a mistake");
        assert_eq!(error("  "), NameError::Empty);
        assert_eq!(
            error("Example CA"),
            NameError::NotAnAttribute("Example CA".into())
        );
        assert_eq!(error("CN=a, b"), NameError::NotAnAttribute("b".into()));
        assert_eq!(error("XY=a"), NameError::UnknownKind("XY".into()));
        assert_eq!(error("CN=\"a"), NameError::Unfinished);
        assert_eq!(error("CN=a\\"), NameError::Unfinished);
        assert_eq!(
            error(&format!("CN={}", "a".repeat(5000))),
            NameError::TooLong
        );
    }
}
