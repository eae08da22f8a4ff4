//! QUERY_INFO: ask about a file, a file system, security or quotas. \[MS-SMB2\] 2.2.37, 2.2.38

use alloc::vec::Vec;

use crate::cursor::{Put, Reader, slice_at};
use crate::error::DecodeError;
use crate::header::HEADER_LEN;
use crate::ids::FileId;
use crate::layout::{begin, buffer_response, u16_of, u32_of};
use crate::open_enum::{open_enum, open_flags};

const REQUEST_LEN: usize = 40;

open_enum! {
    /// What kind of thing is asked or set. \[MS-SMB2\] 2.2.37
    InfoType(u8) {
        /// The file.
        FILE = 0x01,
        /// Its file system.
        FILESYSTEM = 0x02,
        /// Its security descriptor.
        SECURITY = 0x03,
        /// Quotas.
        QUOTA = 0x04,
    }
}

open_flags! {
    /// Which parts of a security descriptor are asked or set. \[MS-SMB2\] 2.2.37
    SecurityInformation(u32) {
        /// The owner.
        OWNER = 0x0000_0001,
        /// The group.
        GROUP = 0x0000_0002,
        /// The DACL.
        DACL = 0x0000_0004,
        /// The SACL.
        SACL = 0x0000_0008,
        /// The integrity label.
        LABEL = 0x0000_0010,
        /// Resource attributes.
        ATTRIBUTE = 0x0000_0020,
        /// The central access policy.
        SCOPE = 0x0000_0040,
        /// Everything, for backup.
        BACKUP = 0x0001_0000,
    }
}

open_flags! {
    /// How extended attributes and quotas are listed. \[MS-SMB2\] 2.2.37
    QueryInfoFlags(u32) {
        /// From the start.
        RESTART_SCAN = 0x0000_0001,
        /// One entry.
        RETURN_SINGLE_ENTRY = 0x0000_0002,
        /// From the index.
        INDEX_SPECIFIED = 0x0000_0004,
    }
}

/// What is asked. \[MS-SMB2\] 2.2.37
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The kind of thing.
    pub info_type: InfoType,
    /// The form of the answer. \[MS-FSCC\] 2.4, 2.5
    pub file_info_class: u8,
    /// Most bytes of the answer.
    pub output_buffer_length: u32,
    /// SecurityInformation; or the index of an extended attribute.
    pub additional_information: u32,
    /// How to list.
    pub flags: QueryInfoFlags,
    /// The open.
    pub file_id: FileId,
    /// Names of extended attributes, or quotas, that are asked for.
    pub input: &'a [u8],
}

impl<'a> Request<'a> {
    /// Reads the body of a message. Clients write any InputBufferOffset where the length is zero.
    pub fn decode(message: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::body(message, "QUERY_INFO request")?;
        reader.structure_size("QUERY_INFO request", 41)?;
        let info_type = InfoType(reader.u8("InfoType")?);
        let file_info_class = reader.u8("FileInfoClass")?;
        let output_buffer_length = reader.u32("OutputBufferLength")?;
        let input_offset = reader.u16("InputBufferOffset")?;
        reader.skip("Reserved", 2)?;
        let input_length = reader.u32("InputBufferLength")?;
        let additional_information = reader.u32("AdditionalInformation")?;
        let flags = QueryInfoFlags(reader.u32("Flags")?);
        let file_id = reader.file_id("FileId")?;
        Ok(Self {
            info_type,
            file_info_class,
            output_buffer_length,
            additional_information,
            flags,
            file_id,
            input: slice_at(
                message,
                "InputBuffer",
                input_offset.into(),
                input_length.into(),
            )?,
        })
    }

    /// Appends the body to a message that holds its header. Without input Windows sends 104 bytes
    /// in all, not the one more that StructureSize counts.
    pub fn encode(&self, message: &mut Vec<u8>) {
        begin(message, 41);
        message.put_u8(self.info_type.0);
        message.put_u8(self.file_info_class);
        message.put_u32(self.output_buffer_length);
        message.put_u16(u16_of(HEADER_LEN + REQUEST_LEN));
        message.put_u16(0);
        message.put_u32(u32_of(self.input.len()));
        message.put_u32(self.additional_information);
        message.put_u32(self.flags.0);
        message.put_file_id(self.file_id);
        message.put(self.input);
    }
}

buffer_response! {
    /// The answer, in the form that was asked for. \[MS-SMB2\] 2.2.38
    Response, "QUERY_INFO response"
}
