//! Directories for the files of one test.

use std::env;
use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use anyhow::{Context as _, Result};

/// The directory that the host and the lab see under the same path, and that every user may enter.
const PARENT: &str = "/tmp";

/// A directory that is removed with the value, unless the thread panics or `SMBEAM_KEEP` is set.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// A new directory with `name` in its name.
    pub fn new(name: &str) -> Result<Scratch> {
        Scratch::below(Path::new(PARENT), name)
    }

    /// A new directory in `parent`, for a test that cares about the file system under it.
    pub fn below(parent: &Path, name: &str) -> Result<Scratch> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let path = loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = parent.join(format!("smbeam-{}-{number}-{name}", process::id()));
            match fs::create_dir(&path) {
                // A killed process of the same number left it behind.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                result => {
                    result.with_context(|| format!("cannot make {}", path.display()))?;
                    break path;
                }
            }
        };
        fs::set_permissions(&path, Permissions::from_mode(0o755))?;
        Ok(Scratch { path })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A new directory in it that every user may write to.
    pub fn open_directory(&self, name: &str) -> Result<PathBuf> {
        let path = self.path.join(name);
        open_directory(&path)?;
        Ok(path)
    }
}

/// Makes a directory that every user may write to.
pub fn open_directory(path: &Path) -> Result<()> {
    fs::create_dir(path).with_context(|| format!("cannot make {}", path.display()))?;
    fs::set_permissions(path, Permissions::from_mode(0o777))?;
    Ok(())
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if thread::panicking() || env::var_os("SMBEAM_KEEP").is_some() {
            eprintln!("kept: {}", self.path.display());
        } else {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}
