//! ECHO: say that both still live. \[MS-SMB2\] 2.2.28, 2.2.29

use crate::layout::empty_message;

empty_message! {
    /// Are you there? \[MS-SMB2\] 2.2.28
    Request, "ECHO request"
}

empty_message! {
    /// I am. \[MS-SMB2\] 2.2.29
    Response, "ECHO response"
}
