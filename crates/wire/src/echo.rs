//! ECHO: check that the peer still responds. \[MS-SMB2\] 2.2.28, 2.2.29

use crate::layout::empty_message;

empty_message! {
    /// An ECHO request, which checks that the server still responds. \[MS-SMB2\] 2.2.28
    Request, "ECHO request"
}

empty_message! {
    /// An ECHO response: the server is alive. \[MS-SMB2\] 2.2.29
    Response, "ECHO response"
}
