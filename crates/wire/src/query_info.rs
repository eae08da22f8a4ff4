//! QUERY_INFO: query a file, a file system, a security descriptor or quotas. \[MS-SMB2\] 2.2.37,
//! 2.2.38

use alloc::vec::Vec;

use crate::cursor::{Put, Reader, slice_at};
use crate::error::DecodeError;
use crate::header::HEADER_LEN;
use crate::ids::FileId;
use crate::layout::{begin, buffer_response, u16_of, u32_of};
use crate::open_enum::{open_enum, open_flags};

const REQUEST_LEN: usize = 40;

open_enum! {
    /// The object of a QUERY_INFO or SET_INFO. \[MS-SMB2\] 2.2.37
    InfoType(u8) {
        /// A file.
        FILE = 0x01,
        /// The file system of the file.
        FILESYSTEM = 0x02,
        /// The security descriptor of the file.
        SECURITY = 0x03,
        /// Quotas of the file system.
        QUOTA = 0x04,
    }
}

open_flags! {
    /// Parts of a security descriptor to query or set. \[MS-SMB2\] 2.2.37
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
        /// The resource attributes.
        ATTRIBUTE = 0x0000_0020,
        /// The central access policy.
        SCOPE = 0x0000_0040,
        /// All parts, for a backup.
        BACKUP = 0x0001_0000,
    }
}

open_flags! {
    /// Flags of a query of extended attributes or quotas. \[MS-SMB2\] 2.2.37
    QueryInfoFlags(u32) {
        /// Restart the list from its beginning.
        RESTART_SCAN = 0x0000_0001,
        /// Return one entry only.
        RETURN_SINGLE_ENTRY = 0x0000_0002,
        /// Continue the list from the index in AdditionalInformation.
        INDEX_SPECIFIED = 0x0000_0004,
    }
}

/// A QUERY_INFO request. \[MS-SMB2\] 2.2.37
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The object of the query.
    pub info_type: InfoType,
    /// FileInfoClass or FsInfoClass of the response. \[MS-FSCC\] 2.4, 2.5
    pub file_info_class: u8,
    /// Maximum length of the response's buffer in bytes.
    pub output_buffer_length: u32,
    /// SecurityInformation; or the index of an extended attribute.
    pub additional_information: u32,
    /// Flags of the query.
    pub flags: QueryInfoFlags,
    /// FileId of the open.
    pub file_id: FileId,
    /// Names of extended attributes, or a quota query; otherwise empty.
    pub input: &'a [u8],
}

impl<'a> Request<'a> {
    /// Decodes the body of `message`, which starts with its 64-byte SMB2 header. InputBufferOffset
    /// may have any value when the length is zero.
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

    /// Appends the encoded body to `message`, which so far holds its SMB2 header only. Without
    /// input, the message has 104 bytes as in Windows, without the extra byte that StructureSize
    /// counts.
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
    /// The queried information, in the requested class. \[MS-SMB2\] 2.2.38
    Response, "QUERY_INFO response"
}
