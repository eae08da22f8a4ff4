//! Errors of a configuration.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::sources::{Origin, Place, Sources};

/// An error of a configuration. Its `Display` form names the file, the line and the key, or the
/// environment variable or option with the value.
#[derive(Debug)]
pub struct ConfigError {
    /// The place of the wrong value; `None` for a default value without a file.
    place: Option<Place>,
    /// Key and reason.
    what: String,
    /// The file cannot be read for this reason.
    unread: Option<io::ErrorKind>,
}

impl ConfigError {
    /// An error of the value at some offsets. Without a value, the main file is the place.
    pub(super) fn at(sources: &Sources, span: &Range<usize>, what: String) -> Self {
        let of_file = || {
            let file = sources.main_file()?.to_owned();
            let origin = Origin::File(file);
            Some(Place { origin, line: None })
        };
        Self {
            place: sources.place(span).or_else(of_file),
            what,
            unread: None,
        }
    }

    /// An error of an environment variable.
    pub(super) fn of_variable(name: &str, what: String) -> Self {
        Self {
            place: Some(Place {
                origin: Origin::Variable(name.to_owned()),
                line: None,
            }),
            what,
            unread: None,
        }
    }

    /// A file that cannot be read.
    pub(super) fn unreadable(file: &Path, error: &io::Error) -> Self {
        Self {
            place: Some(Place {
                origin: Origin::File(file.to_owned()),
                line: None,
            }),
            what: format!("cannot read the configuration: {error}"),
            unread: Some(error.kind()),
        }
    }

    /// The same error with the file of a configuration that does not come from a file.
    pub(super) fn in_file(mut self, file: &Path) -> Self {
        self.place.get_or_insert_with(|| Place {
            origin: Origin::File(file.to_owned()),
            line: None,
        });
        self
    }

    /// Returns the file, variable or option with the error; `None` for a value without a source.
    pub fn place(&self) -> Option<&Place> {
        self.place.as_ref()
    }

    /// Returns the file with the error; `None` if a variable or an option has it.
    pub fn file(&self) -> Option<PathBuf> {
        match &self.place.as_ref()?.origin {
            Origin::File(file) => Some(file.clone()),
            Origin::Variable(_) | Origin::Option(_) => None,
        }
    }

    /// Returns the line of the error in its file, from 1; `None` if no single line causes the
    /// error.
    pub fn line(&self) -> Option<usize> {
        self.place.as_ref()?.line
    }

    /// Returns the reason of the error for users, with the configuration key, but without file and
    /// line.
    pub fn reason(&self) -> &str {
        &self.what
    }

    /// Returns the kind of I/O error if the configuration file could not be read; `None` if it was
    /// read and its contents are not valid.
    pub fn unread(&self) -> Option<io::ErrorKind> {
        self.unread
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.what)
    }
}

impl std::error::Error for ConfigError {}
