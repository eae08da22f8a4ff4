//! LOGOFF: log out. \[MS-SMB2\] 2.2.7, 2.2.8

use crate::layout::empty_message;

empty_message! {
    /// Log out of the session of the header. \[MS-SMB2\] 2.2.7
    Request, "LOGOFF request"
}

empty_message! {
    /// The session is gone. \[MS-SMB2\] 2.2.8
    Response, "LOGOFF response"
}
