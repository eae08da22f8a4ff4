//! CANCEL: cancel a pending request. It has no response. \[MS-SMB2\] 2.2.30

use crate::layout::empty_message;

empty_message! {
    /// Cancels the pending request that the header identifies by MessageId or AsyncId. \[MS-SMB2\]
    /// 2.2.30
    Request, "CANCEL request"
}
