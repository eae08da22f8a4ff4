//! The objects of the checks of paths and permissions.

use std::fs::Metadata;
use std::path::PathBuf;
use std::sync::Arc;

use proto::path::SharePath;
use proto::token::Token;
use vfs::FileSystem;

use super::account::User;
use crate::config::ShareSection;

/// A share that a user may enter.
pub(super) struct Entered<'a> {
    pub(super) section: &'a ShareSection,
    pub(super) file_system: Arc<dyn FileSystem>,
    /// The identity of file operations.
    pub(super) token: Arc<Token>,
    pub(super) user: &'a User,
}

/// A file or directory on the path of the question.
pub(super) struct Found {
    /// Its path on this machine.
    pub(super) local: PathBuf,
    /// Its path as clients see it.
    pub(super) path: SharePath,
    pub(super) metadata: Metadata,
}
