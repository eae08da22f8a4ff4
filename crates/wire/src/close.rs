//! CLOSE: close an open. \[MS-SMB2\] 2.2.15, 2.2.16

use alloc::vec::Vec;

use crate::access::FileAttributes;
use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::ids::FileId;
use crate::layout::begin;
use crate::open_enum::open_flags;
use crate::time::FileTime;

open_flags! {
    /// Flags of a CLOSE request and response. \[MS-SMB2\] 2.2.15
    CloseFlags(u16) {
        /// Request: return times, sizes and attributes. Response: these fields are valid.
        POSTQUERY_ATTRIB = 0x0001,
    }
}

/// A CLOSE request: the client closes an open file, directory or pipe. \[MS-SMB2\] 2.2.15
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Flags of the request: whether the response must have times, sizes and attributes of the
    /// file.
    pub flags: CloseFlags,
    /// FileId of the file, directory or pipe to close, as the server returned it in the CREATE
    /// response.
    pub file_id: FileId,
}

impl Request {
    /// Decodes a CLOSE request from `message`, which starts with its 64-byte SMB2 header. Fails
    /// when `message` is too short, or its StructureSize is wrong.
    pub fn decode(message: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::body(message, "CLOSE request")?;
        reader.structure_size("CLOSE request", 24)?;
        let flags = CloseFlags(reader.u16("Flags")?);
        reader.skip("Reserved", 4)?;
        let file_id = reader.file_id("FileId")?;
        Ok(Self { flags, file_id })
    }

    /// Appends the body of a CLOSE request to `message`, which must hold exactly its 64-byte SMB2
    /// header. Panics when `message` has another length.
    pub fn encode(&self, message: &mut Vec<u8>) {
        begin(message, 24);
        message.put_u16(self.flags.0);
        message.put_u32(0);
        message.put_file_id(self.file_id);
    }
}

/// A CLOSE response, with times, sizes and attributes of the closed file. All fields after `flags`
/// are zero without [`CloseFlags::POSTQUERY_ATTRIB`]. \[MS-SMB2\] 2.2.16
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Response {
    /// Flags of the response: whether the server filled in times, sizes and attributes; otherwise
    /// they are zero.
    pub flags: CloseFlags,
    /// Time of the creation of the file (CreationTime).
    pub creation_time: FileTime,
    /// Time of the last read of the file (LastAccessTime).
    pub last_access_time: FileTime,
    /// Time of the last write to the file (LastWriteTime).
    pub last_write_time: FileTime,
    /// Time of the last change of data or attributes (ChangeTime).
    pub change_time: FileTime,
    /// Space allocated to the file, in bytes (AllocationSize).
    pub allocation_size: u64,
    /// Length of the file in bytes (EndOfFile).
    pub end_of_file: u64,
    /// DOS attributes of the file.
    pub file_attributes: FileAttributes,
}

impl Response {
    /// Decodes a CLOSE response from `message`, which starts with its 64-byte SMB2 header. Fails
    /// when `message` is too short, or its StructureSize is wrong.
    pub fn decode(message: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::body(message, "CLOSE response")?;
        reader.structure_size("CLOSE response", 60)?;
        let flags = CloseFlags(reader.u16("Flags")?);
        reader.skip("Reserved", 4)?;
        Ok(Self {
            flags,
            creation_time: FileTime(reader.u64("CreationTime")?),
            last_access_time: FileTime(reader.u64("LastAccessTime")?),
            last_write_time: FileTime(reader.u64("LastWriteTime")?),
            change_time: FileTime(reader.u64("ChangeTime")?),
            allocation_size: reader.u64("AllocationSize")?,
            end_of_file: reader.u64("EndofFile")?,
            file_attributes: FileAttributes(reader.u32("FileAttributes")?),
        })
    }

    /// Appends the body of a CLOSE response to `message`, which must hold exactly its 64-byte SMB2
    /// header. Panics when `message` has another length.
    pub fn encode(&self, message: &mut Vec<u8>) {
        begin(message, 60);
        message.put_u16(self.flags.0);
        message.put_u32(0);
        message.put_u64(self.creation_time.0);
        message.put_u64(self.last_access_time.0);
        message.put_u64(self.last_write_time.0);
        message.put_u64(self.change_time.0);
        message.put_u64(self.allocation_size);
        message.put_u64(self.end_of_file);
        message.put_u32(self.file_attributes.0);
    }
}
