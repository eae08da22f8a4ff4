//! CANCEL: give up on a request. Has no response. \[MS-SMB2\] 2.2.30

use crate::layout::empty_message;

empty_message! {
    /// Give up on the request that the header names by MessageId or AsyncId. \[MS-SMB2\] 2.2.30
    Request, "CANCEL request"
}
