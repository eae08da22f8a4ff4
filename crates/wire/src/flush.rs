//! FLUSH: put what was written on stable storage. \[MS-SMB2\] 2.2.17, 2.2.18

use alloc::vec::Vec;

use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::ids::FileId;
use crate::layout::{begin, empty_message};

/// Flush an open. \[MS-SMB2\] 2.2.17
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Reserved1 of the specification; macOS asks here for a flush of the disk's cache (0xFFFF).
    pub reserved: u16,
    /// The open.
    pub file_id: FileId,
}

impl Request {
    /// Reads the body of a message.
    pub fn decode(message: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::body(message, "FLUSH request")?;
        reader.structure_size("FLUSH request", 24)?;
        let reserved = reader.u16("Reserved1")?;
        reader.skip("Reserved2", 4)?;
        let file_id = reader.file_id("FileId")?;
        Ok(Self { reserved, file_id })
    }

    /// Appends the body to a message that holds its header.
    pub fn encode(&self, message: &mut Vec<u8>) {
        begin(message, 24);
        message.put_u16(self.reserved);
        message.put_u32(0);
        message.put_file_id(self.file_id);
    }
}

empty_message! {
    /// It is on stable storage. \[MS-SMB2\] 2.2.18
    Response, "FLUSH response"
}
