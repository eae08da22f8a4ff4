//! Paths on this machine.

use std::ffi::{OsStr, OsString};
use std::ops::Deref;
use std::path::{Path, PathBuf};

use crate::names::{LocalNames, NameError};

/// A path on this machine, and how names of SMB become components of it.
#[derive(Clone, Debug)]
pub(crate) struct LocalPath {
    path: PathBuf,
    names: LocalNames,
}

impl LocalPath {
    /// A path with the treatment `names` of its components.
    pub(crate) fn new(path: impl Into<PathBuf>, names: LocalNames) -> Self {
        Self {
            path: path.into(),
            names,
        }
    }

    /// Another path with the same treatment of names.
    pub(crate) fn with_path(&self, path: PathBuf) -> Self {
        Self::new(path, self.names)
    }

    /// The path of the entry of this directory with the SMB name `name`.
    pub(super) fn child(&self, name: &str) -> Result<Self, NameError> {
        Ok(self.with_path(self.path.join(self.names.to_local(name)?)))
    }

    /// The path of the entry of the same directory with the SMB name `name`.
    pub(super) fn sibling(&self, name: &str) -> Result<Self, NameError> {
        Ok(self.with_path(self.path.with_file_name(self.names.to_local(name)?)))
    }

    /// The SMB name of a local name.
    pub(crate) fn smb_name(&self, local: &OsStr) -> Result<String, NameError> {
        Ok(self.names.to_server(local)?.into_owned())
    }

    /// The local name for an SMB name.
    pub(crate) fn local_name(&self, name: &str) -> Result<OsString, NameError> {
        Ok(self.names.to_local(name)?.into_owned())
    }

    /// The SMB name of the last component. A name without one has replacement characters.
    pub(super) fn name(&self) -> Option<String> {
        let local = self.path.file_name()?;
        Some(
            self.smb_name(local)
                .unwrap_or_else(|_| local.to_string_lossy().into_owned()),
        )
    }

    /// Whether the SMB name `name` has another form on this machine.
    pub(super) fn is_mapped(&self, name: &str) -> bool {
        self.names
            .to_local(name)
            .is_ok_and(|local| *local != *OsStr::new(name))
    }
}

impl Deref for LocalPath {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

impl AsRef<Path> for LocalPath {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}

/// A path for messages, or one that leads to no other names.
impl From<&Path> for LocalPath {
    fn from(path: &Path) -> Self {
        Self::new(path, LocalNames::default())
    }
}

impl From<PathBuf> for LocalPath {
    fn from(path: PathBuf) -> Self {
        Self::new(path, LocalNames::default())
    }
}

impl From<&str> for LocalPath {
    fn from(path: &str) -> Self {
        Self::new(path, LocalNames::default())
    }
}
