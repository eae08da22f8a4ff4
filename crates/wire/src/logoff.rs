//! LOGOFF: end a session. \[MS-SMB2\] 2.2.7, 2.2.8

use crate::layout::empty_message;

empty_message! {
    /// A LOGOFF request: the client ends the session that the header names. \[MS-SMB2\] 2.2.7
    Request, "LOGOFF request"
}

empty_message! {
    /// A LOGOFF response: the session has ended. \[MS-SMB2\] 2.2.8
    Response, "LOGOFF response"
}
