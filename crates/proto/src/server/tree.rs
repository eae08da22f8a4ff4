//! A tree connect: the access of one session to one share. \[MS-SMB2\] 3.3.1.9

use alloc::sync::Arc;

use wire::TreeId;
use wire::access::AccessMask;

use crate::server::config::Share;

/// The access of one session to one share. \[MS-SMB2\] 3.3.1.9
#[derive(Debug)]
pub(crate) struct TreeConnect {
    pub(crate) id: TreeId,
    pub(crate) share: Arc<Share>,
    /// TreeConnect.MaximalAccess: no open has more.
    pub(crate) maximal_access: AccessMask,
    /// Whether requests that would change a file or directory fail: by the share, or by the rights
    /// of the user at the time of the TREE_CONNECT.
    pub(crate) is_read_only: bool,
}
