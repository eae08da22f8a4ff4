//! Files that `--apply` writes.

use std::fs::{self, File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Outcome};

/// Permissions of new files: all users may read the configuration of the system.
const MODE: u32 = 0o644;

/// Replaces or creates a file, so that it has the old or the new content after a crash. Creates its
/// directories.
pub(super) fn write(path: &Path, text: &str) -> Outcome {
    write_mode(path, text, MODE)
}

/// The same with these permissions.
pub(super) fn write_mode(path: &Path, text: &str, mode: u32) -> Outcome {
    let failed = |error| Failure::local(&path.display(), &error);
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(failed)?;
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    let written = (|| {
        let mut file = File::create(&new)?;
        file.set_permissions(Permissions::from_mode(mode))?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, path)
    })();
    written.map_err(|error| {
        let _ = fs::remove_file(&new);
        failed(error)
    })
}

/// The directories above a file that do not exist, the deepest first.
pub(super) fn missing_directories(path: &Path) -> Vec<PathBuf> {
    let above = path.ancestors().skip(1);
    let missing = above.take_while(|above| !above.as_os_str().is_empty() && !above.exists());
    missing.map(Path::to_owned).collect()
}

/// Removes directories that are empty.
pub(super) fn remove_directories(directories: &[PathBuf]) {
    for directory in directories {
        // Another program may have a file in it.
        let _ = fs::remove_dir(directory);
    }
}
