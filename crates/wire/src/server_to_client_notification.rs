//! SERVER_TO_CLIENT_NOTIFICATION: the server says something unasked. \[MS-SMB2\] 2.2.44

use alloc::vec::Vec;

use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::layout::begin;
use crate::open_enum::open_enum;

open_enum! {
    /// What is said. \[MS-SMB2\] 2.2.44.1
    NotificationType(u32) {
        /// The session of the header is closed.
        NOTIFY_SESSION_CLOSED = 0x0000_0000,
    }
}

/// What the server says. NOTIFY_SESSION_CLOSED has four reserved bytes more, which are written
/// as zero and not read. \[MS-SMB2\] 2.2.44.1, 2.2.44.2
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification {
    /// What is said.
    pub notification_type: NotificationType,
}

impl Notification {
    /// Reads the body of a message.
    pub fn decode(message: &[u8]) -> Result<Self, DecodeError> {
        let structure = "SERVER_TO_CLIENT_NOTIFICATION";
        let mut reader = Reader::body(message, structure)?;
        reader.structure_size(structure, 4)?;
        reader.skip("Reserved", 2)?;
        let notification_type = NotificationType(reader.u32("NotificationType")?);
        Ok(Self { notification_type })
    }

    /// Appends the body to a message that holds its header.
    pub fn encode(&self, message: &mut Vec<u8>) {
        begin(message, 4);
        message.put_u16(0);
        message.put_u32(self.notification_type.0);
        message.put_u32(0);
    }
}
