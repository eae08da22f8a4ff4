//! TREE_DISCONNECT: leave a share. \[MS-SMB2\] 2.2.11, 2.2.12

use crate::layout::empty_message;

empty_message! {
    /// Leave the tree of the header. \[MS-SMB2\] 2.2.11
    Request, "TREE_DISCONNECT request"
}

empty_message! {
    /// The tree is gone. \[MS-SMB2\] 2.2.12
    Response, "TREE_DISCONNECT response"
}
