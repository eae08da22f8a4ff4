//! Values in files of /proc and /sys.

use std::fs;
use std::path::Path;
use std::str::FromStr;

/// The content of a file without the white space at its ends.
pub(super) fn text(path: impl AsRef<Path>) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}

/// The number in a file.
pub(super) fn number<T: FromStr>(path: impl AsRef<Path>) -> Option<T> {
    text(path)?.parse().ok()
}
