//! The place of each value of a configuration.

use std::ops::Range;
use std::path::Path;

use toml::Spanned;

use super::Config;
use super::error::ConfigError;
use super::sources::{Origin, Place, Source};

impl Config {
    /// Returns the place of the value of a key, such as `server.workers`, or `share.0.path` for the
    /// first share; `None` for a default.
    pub fn origin(&self, key: &str) -> Option<Place> {
        let span = self.source.values.get(key)?;
        self.source.sources.place(span)
    }

    /// Returns the path of the file that the configuration was read from; `None` if it does not
    /// come from a file.
    pub fn file(&self) -> Option<&Path> {
        self.source.sources.main_file()
    }

    /// Line of a value in the main file, from 1; `None` for a default, and for a value of another
    /// source.
    pub(crate) fn line<T>(&self, value: &Spanned<T>) -> Option<usize> {
        let place = self.source.sources.place(&value.span())?;
        let is_main = place.origin == Origin::File(self.file()?.to_owned());
        place.line.filter(|_| is_main)
    }
}

impl Source {
    /// An error of the value at some offsets.
    pub(super) fn error(&self, span: &Range<usize>, what: String) -> ConfigError {
        ConfigError::at(&self.sources, span, what)
    }
}
