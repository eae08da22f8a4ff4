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
}
