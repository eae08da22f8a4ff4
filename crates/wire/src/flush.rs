//! FLUSH: write the cached data of an open to stable storage. \[MS-SMB2\] 2.2.17, 2.2.18

use alloc::vec::Vec;

use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::ids::FileId;
use crate::layout::{begin, empty_message};

/// A FLUSH request: the client asks the server to write the cached data of an open to stable
/// storage. \[MS-SMB2\] 2.2.17
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Reserved1 of the specification, usually 0; macOS sends 0xFFFF to request that the disk
    /// flushes its cache as well.
    pub reserved: u16,
    /// FileId of the file to flush, as the server returned it in the CREATE response.
    pub file_id: FileId,
}

impl Request {
    /// Decodes a FLUSH request from `message`, which starts with its 64-byte SMB2 header. Fails
    /// when `message` is too short, or its StructureSize is wrong.
    pub fn decode(message: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::body(message, "FLUSH request")?;
        reader.structure_size("FLUSH request", 24)?;
        let reserved = reader.u16("Reserved1")?;
        reader.skip("Reserved2", 4)?;
        let file_id = reader.file_id("FileId")?;
        Ok(Self { reserved, file_id })
    }

    /// Appends the body of a FLUSH request to `message`, which must hold exactly its 64-byte SMB2
    /// header. Panics when `message` has another length.
    pub fn encode(&self, message: &mut Vec<u8>) {
        begin(message, 24);
        message.put_u16(self.reserved);
        message.put_u32(0);
        message.put_file_id(self.file_id);
    }
}

empty_message! {
    /// A FLUSH response: the data of the open are on stable storage. \[MS-SMB2\] 2.2.18
    Response, "FLUSH response"
}
