//! SERVER_TO_CLIENT_NOTIFICATION: a notification without a request. \[MS-SMB2\] 2.2.44

use alloc::vec::Vec;

use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::layout::begin;
use crate::open_enum::open_enum;

open_enum! {
    /// Type of a notification. \[MS-SMB2\] 2.2.44.1
    NotificationType(u32) {
        /// The session of the header is closed.
        NOTIFY_SESSION_CLOSED = 0x0000_0000,
    }
}

/// A notification of the server. NOTIFY_SESSION_CLOSED has four further reserved bytes, which
/// `encode` sets to zero and `decode` ignores. \[MS-SMB2\] 2.2.44.1, 2.2.44.2
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification {
    /// Type of the notification.
    pub notification_type: NotificationType,
}

impl Notification {
    /// Decodes the body of `message`, which starts with its 64-byte SMB2 header.
    pub fn decode(message: &[u8]) -> Result<Self, DecodeError> {
        let structure = "SERVER_TO_CLIENT_NOTIFICATION";
        let mut reader = Reader::body(message, structure)?;
        reader.structure_size(structure, 4)?;
        reader.skip("Reserved", 2)?;
        let notification_type = NotificationType(reader.u32("NotificationType")?);
        Ok(Self { notification_type })
    }

    /// Appends the encoded body to `message`, which so far holds its SMB2 header only.
    pub fn encode(&self, message: &mut Vec<u8>) {
        begin(message, 4);
        message.put_u16(0);
        message.put_u32(self.notification_type.0);
        message.put_u32(0);
    }
}
