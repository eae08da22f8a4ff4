//! TREE_DISCONNECT: disconnect from a share. \[MS-SMB2\] 2.2.11, 2.2.12

use crate::layout::empty_message;

empty_message! {
    /// A TREE_DISCONNECT request: the client ends the tree connect that the header names.
    /// \[MS-SMB2\] 2.2.11
    Request, "TREE_DISCONNECT request"
}

empty_message! {
    /// A TREE_DISCONNECT response: the tree connect has ended. \[MS-SMB2\] 2.2.12
    Response, "TREE_DISCONNECT response"
}
