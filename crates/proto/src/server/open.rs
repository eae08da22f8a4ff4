//! An open: a file as a client has it open. \[MS-SMB2\] 3.3.1.10

use alloc::sync::Arc;
use alloc::vec::Vec;

use spin::Mutex;
use wire::access::{AccessMask, CreateOptions, FileAttributes, ShareAccess};
use wire::{FileId, SessionId, TreeId};

use crate::effect::{DirectoryEntry, FileKey, LocalOpen};
use crate::path::SharePath;
use crate::server::config::Share;

/// A file as a client has it open.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) id: FileId,
    pub(crate) session: SessionId,
    pub(crate) tree: TreeId,
    pub(crate) share: Arc<Share>,
    /// The file system's open.
    pub(crate) file: LocalOpen,
    /// Which file it is.
    pub(crate) key: FileKey,
    pub(crate) is_directory: bool,
    /// Open.GrantedAccess.
    pub(crate) granted: AccessMask,
    pub(crate) share_access: ShareAccess,
    pub(crate) options: CreateOptions,
    pub(crate) state: Mutex<OpenState>,
}

/// What of an open can change.
#[derive(Debug, Default)]
pub(crate) struct OpenState {
    /// Its name, as it was opened or renamed to.
    pub(crate) path: SharePath,
    /// Attributes that CREATE gave, for what the file system does not keep.
    pub(crate) attributes: FileAttributes,
    /// FilePositionInformation. Bytes.
    pub(crate) position: u64,
    /// FileModeInformation.
    pub(crate) mode: u32,
    /// Where QUERY_DIRECTORY stands.
    pub(crate) enumeration: Option<Enumeration>,
}

/// Where QUERY_DIRECTORY stands. \[MS-SMB2\] 3.3.5.18
#[derive(Debug)]
pub(crate) struct Enumeration {
    /// What the first call asked for.
    pub(crate) pattern: alloc::string::String,
    /// Entries that the file system gave and that did not fit in the last answer; the next first,
    /// from the end of the vector on.
    pub(crate) left_over: Vec<DirectoryEntry>,
    /// Whether any entry was returned.
    pub(crate) has_matched: bool,
}
