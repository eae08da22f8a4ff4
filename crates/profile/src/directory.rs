//! The directory of the user's files.

use std::env;
use std::path::PathBuf;

/// The path of a file of the user: in `$XDG_CONFIG_HOME/smbeam` or `~/.config/smbeam`. `None`
/// without a home directory.
pub(crate) fn user_file(name: &str) -> Option<PathBuf> {
    let config = env::var_os("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| env::var_os("HOME").map(|home| PathBuf::from(home).join(".config")))?;
    Some(config.join("smbeam").join(name))
}
