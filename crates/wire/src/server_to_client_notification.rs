//! SERVER_TO_CLIENT_NOTIFICATION: a notification without a request. \[MS-SMB2\] 2.2.44

use alloc::vec::Vec;

use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::layout::begin;
use crate::open_enum::open_enum;

open_enum! {
    /// Type of a notification from the server to the client. \[MS-SMB2\] 2.2.44.1
    NotificationType(u32) {
        /// The server has closed the session that the header names.
        NOTIFY_SESSION_CLOSED = 0x0000_0000,
    }
}

/// A SERVER_TO_CLIENT_NOTIFICATION, which the server sends without a request, such as the end of a
/// session. NOTIFY_SESSION_CLOSED has four further reserved bytes, which `encode` sets to zero and
/// `decode` ignores. \[MS-SMB2\] 2.2.44.1, 2.2.44.2
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification {
    /// Type of the notification: the event that the server reports, such as the end of the session.
    pub notification_type: NotificationType,
}

impl Notification {
    /// Decodes a SERVER_TO_CLIENT_NOTIFICATION message from `message`, which starts with its
    /// 64-byte SMB2 header. Fails when `message` is too short, or its StructureSize is wrong.
    pub fn decode(message: &[u8]) -> Result<Self, DecodeError> {
        let structure = "SERVER_TO_CLIENT_NOTIFICATION";
        let mut reader = Reader::body(message, structure)?;
        reader.structure_size(structure, 4)?;
        reader.skip("Reserved", 2)?;
        let notification_type = NotificationType(reader.u32("NotificationType")?);
        Ok(Self { notification_type })
    }

    /// Appends the body of a SERVER_TO_CLIENT_NOTIFICATION message to `message`, which must hold
    /// exactly its 64-byte SMB2 header. Panics when `message` has another length.
    pub fn encode(&self, message: &mut Vec<u8>) {
        begin(message, 4);
        message.put_u16(0);
        message.put_u32(self.notification_type.0);
        message.put_u32(0);
    }
}
