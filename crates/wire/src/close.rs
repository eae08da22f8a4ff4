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
    /// Flags of request and response. \[MS-SMB2\] 2.2.15
    CloseFlags(u16) {
        /// The times, sizes and attributes of the response are wanted, or set.
        POSTQUERY_ATTRIB = 0x0001,
    }
}

/// Close an open. \[MS-SMB2\] 2.2.15
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Whether attributes are wanted.
    pub flags: CloseFlags,
    /// The open.
    pub file_id: FileId,
}

impl Request {
    /// Reads the body of a message.
    pub fn decode(message: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::body(message, "CLOSE request")?;
        reader.structure_size("CLOSE request", 24)?;
        let flags = CloseFlags(reader.u16("Flags")?);
        reader.skip("Reserved", 4)?;
        let file_id = reader.file_id("FileId")?;
        Ok(Self { flags, file_id })
    }

    /// Appends the body to a message that holds its header.
    pub fn encode(&self, message: &mut Vec<u8>) {
        begin(message, 24);
        message.put_u16(self.flags.0);
        message.put_u32(0);
        message.put_file_id(self.file_id);
    }
}

/// The open is closed. Without POSTQUERY_ATTRIB all else is zero. \[MS-SMB2\] 2.2.16
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Response {
    /// Whether the attributes are set.
    pub flags: CloseFlags,
    /// When the file was created.
    pub creation_time: FileTime,
    /// When it was last read.
    pub last_access_time: FileTime,
    /// When it was last written.
    pub last_write_time: FileTime,
    /// When its metadata last changed.
    pub change_time: FileTime,
    /// Bytes that it takes on the disk.
    pub allocation_size: u64,
    /// Its length in bytes.
    pub end_of_file: u64,
    /// Its attributes.
    pub file_attributes: FileAttributes,
}

impl Response {
    /// Reads the body of a message.
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

    /// Appends the body to a message that holds its header.
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
