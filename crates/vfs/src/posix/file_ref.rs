//! References to files, for queries and changes of their metadata.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use proto::token::Token;

use super::volume::Volume;

/// A file to query or change: its descriptor, and whether that is an O_PATH descriptor.
#[derive(Clone, Copy)]
pub(super) struct FileRef<'a> {
    pub(super) fd: &'a OwnedFd,
    /// The file system of the file.
    pub(super) volume: &'a Arc<Volume>,
    pub(super) is_path: bool,
    pub(super) token: &'a Arc<Token>,
    /// Whether the open has a right that permits changes of attributes.
    pub(super) may_set_attributes: bool,
}
