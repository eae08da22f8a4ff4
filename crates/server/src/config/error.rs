//! Errors of a configuration.

use std::fmt;
use std::path::PathBuf;

/// An error of a configuration. Its `Display` form names the file, the line and the key.
#[derive(Debug)]
pub struct ConfigError {
    pub(super) file: PathBuf,
    pub(super) line: Option<usize>,
    /// Key and reason.
    pub(super) what: String,
    /// The file cannot be read for this reason.
    pub(super) unread: Option<std::io::ErrorKind>,
}

impl ConfigError {
    /// Returns the line of the error in the configuration file, from 1; `None` if no single line
    /// causes the error.
    pub fn line(&self) -> Option<usize> {
        self.line
    }

    /// Returns the reason of the error for users, with the configuration key, but without file and
    /// line.
    pub fn reason(&self) -> &str {
        &self.what
    }

    /// Returns the kind of I/O error if the configuration file could not be read; `None` if it was
    /// read and its contents are not valid.
    pub fn unread(&self) -> Option<std::io::ErrorKind> {
        self.unread
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        write!(f, ": {}", self.what)
    }
}

impl std::error::Error for ConfigError {}
