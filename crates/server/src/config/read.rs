//! Reads a configuration file.

use std::io;
use std::path::Path;

use super::error::ConfigError;

/// Longest configuration file, in bytes.
const FILE_MAX: u64 = 1 << 20;

/// Reads a file.
pub(super) fn read(file: &Path) -> Result<String, ConfigError> {
    let text = std::fs::metadata(file).and_then(|found| match found.len() > FILE_MAX {
        true => Err(io::Error::other("the file is longer than 1 MiB")),
        false => std::fs::read_to_string(file),
    });
    text.map_err(|error| ConfigError::unreadable(file, &error))
}
