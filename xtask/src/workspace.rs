//! Where the workspace is and where cargo puts what it builds.

use std::env;
use std::path::{Path, PathBuf};

/// The root directory of the workspace.
pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map_or_else(PathBuf::new, Path::to_path_buf)
}

/// The directory where cargo puts what it builds.
pub(crate) fn target() -> PathBuf {
    let named = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    named.map_or_else(
        || workspace().join("target"),
        |directory| workspace().join(directory),
    )
}
