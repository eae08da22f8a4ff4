//! The texts that a configuration comes from, and the place of a value in them.
//!
//! All texts of a configuration have one range of offsets: a [`toml::Spanned`] value then names its
//! text, too. The offset 0..0 stands for a value without a text, such as a default.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The offsets of values by full key: `server.workers`, or `share.0.path` for the first share.
pub(super) type Values = BTreeMap<String, Range<usize>>;

/// Where a value of the configuration comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A configuration file.
    File(PathBuf),
    /// An environment variable.
    Variable(String),
    /// An option of the command line.
    Option(String),
}

/// The place of a value: a text, and a line of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The text.
    pub origin: Origin,
    /// The line of a file, from 1; `None` if no single line is meant.
    pub line: Option<usize>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::File(file) => write!(f, "{}", file.display())?,
            Origin::Variable(name) => write!(f, "variable {name}")?,
            Origin::Option(name) => write!(f, "option {name}")?,
        }
        self.line.map_or(Ok(()), |line| write!(f, ", line {line}"))
    }
}

/// The texts of a configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sources(Vec<Piece>);

#[derive(Clone, Debug, PartialEq)]
struct Piece {
    origin: Origin,
    text: String,
    /// Offset of the first byte of the text.
    start: usize,
}

impl Sources {
    /// Adds a text. Returns its number.
    pub(super) fn add(&mut self, origin: Origin, text: &str) -> usize {
        let start = self
            .0
            .last()
            .map_or(0, |last| last.start + last.text.len() + 1);
        self.0.push(Piece {
            origin,
            // A parser would skip the mark, but not behind blanks.
            text: text.trim_start_matches('\u{feff}').to_owned(),
            start,
        });
        self.0.len() - 1
    }

    /// The number of texts.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// A text with as many blanks before it that the offsets of a parser are those of all texts.
    pub(super) fn padded(&self, number: usize) -> String {
        let Piece { text, start, .. } = &self.0[number];
        let mut padded = " ".repeat(*start);
        padded.push_str(text);
        padded
    }

    /// The place of a range of offsets; `None` for a value without a text.
    pub(super) fn place(&self, span: &Range<usize>) -> Option<Place> {
        if span.end == 0 {
            return None;
        }
        let piece = self
            .0
            .iter()
            .rev()
            .find(|piece| piece.start <= span.start)?;
        let is_file = matches!(piece.origin, Origin::File(_));
        let line = || line_of(&piece.text, span.start - piece.start);
        Some(Place {
            origin: piece.origin.clone(),
            line: is_file.then(line),
        })
    }

    /// The first file.
    pub(super) fn main_file(&self) -> Option<&Path> {
        match &self.0.first()?.origin {
            Origin::File(file) => Some(file),
            Origin::Variable(_) | Origin::Option(_) => None,
        }
    }
}

/// The texts that a configuration comes from, and the places of its values in them. Empty for a
/// configuration without a file.
#[derive(Clone, Debug, Default)]
pub struct Source {
    pub(super) sources: Sources,
    pub(super) values: Values,
}

impl Source {
    /// The offsets of the value of a key; empty for a default.
    pub(super) fn span_of(&self, key: &str) -> Range<usize> {
        self.values.get(key).cloned().unwrap_or_default()
    }
}

/// The line number of a byte of a text, from 1. A byte behind the last line counts for that line.
fn line_of(text: &str, byte: usize) -> usize {
    let before = text.as_bytes().get(..byte).unwrap_or(text.as_bytes());
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_names_its_text_and_line() {
        let mut sources = Sources::default();
        assert_eq!(sources.place(&(0..1)), None);
        sources.add(Origin::File("a.toml".into()), "x = 1\ny = 2\n");
        let second = sources.add(Origin::File("b.toml".into()), "\u{feff}\nz = 3\n");
        sources.add(Origin::Variable("V".to_owned()), "\n\n4");
        let place = |span| sources.place(&span).map(|place| place.to_string());
        assert_eq!(place(0..0), None);
        assert_eq!(place(0..1).as_deref(), Some("a.toml, line 1"));
        assert_eq!(place(6..7).as_deref(), Some("a.toml, line 2"));
        let z = sources.padded(second).find('z').expect("the key");
        assert_eq!(place(z..z + 1).as_deref(), Some("b.toml, line 2"));
        assert_eq!(place(99..100).as_deref(), Some("variable V"));
        assert_eq!(sources.main_file(), Some(Path::new("a.toml")));
    }
}
