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
    /// The kind of object that a QUERY_INFO or SET_INFO applies to. \[MS-SMB2\] 2.2.37
    InfoType(u8) {
        /// A file, directory or pipe; the information class is a
        /// [`FileInfoClass`](crate::fscc::FileInfoClass).
        FILE = 0x01,
        /// The file system that the open is on; the information class is an
        /// [`FsInfoClass`](crate::fscc::FsInfoClass).
        FILESYSTEM = 0x02,
        /// The security descriptor of the open file.
        SECURITY = 0x03,
        /// Disk quotas of the file system that the open is on.
        QUOTA = 0x04,
    }
}

open_flags! {
    /// The parts of a security descriptor that a QUERY_INFO or SET_INFO applies to. \[MS-SMB2\]
    /// 2.2.37
    SecurityInformation(u32) {
        /// The SID of the owner.
        OWNER = 0x0000_0001,
        /// The SID of the primary group.
        GROUP = 0x0000_0002,
        /// The discretionary access control list (DACL), which grants access.
        DACL = 0x0000_0004,
        /// The system access control list (SACL), which configures auditing.
        SACL = 0x0000_0008,
        /// The mandatory integrity label, an entry of the SACL.
        LABEL = 0x0000_0010,
        /// The resource attributes, entries of the SACL.
        ATTRIBUTE = 0x0000_0020,
        /// The central access policy, an entry of the SACL.
        SCOPE = 0x0000_0040,
        /// All parts of the descriptor, for a backup.
        BACKUP = 0x0001_0000,
    }
}

open_flags! {
    /// Flags of a QUERY_INFO request for extended attributes or disk quotas. \[MS-SMB2\] 2.2.37
    QueryInfoFlags(u32) {
        /// Restart the list from the first entry.
        RESTART_SCAN = 0x0000_0001,
        /// Return only one entry.
        RETURN_SINGLE_ENTRY = 0x0000_0002,
        /// Continue the list from the index in AdditionalInformation.
        INDEX_SPECIFIED = 0x0000_0004,
    }
}

/// A QUERY_INFO request: the client queries a file, a file system, a security descriptor or quotas.
/// \[MS-SMB2\] 2.2.37
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The kind of information that the client queries: about a file, a file system, security or
    /// quotas.
    pub info_type: InfoType,
    /// Information class: the number of a FileInfoClass or, for a file system, of an FsInfoClass,
    /// which defines the format of the response; 0 for a security descriptor. \[MS-FSCC\] 2.4, 2.5
    pub file_info_class: u8,
    /// Maximum length in bytes of the information in the QUERY_INFO response.
    pub output_buffer_length: u32,
    /// For a security descriptor, the parts that the client queries, as [`SecurityInformation`];
    /// for extended attributes, the index from which the list continues; otherwise 0.
    pub additional_information: u32,
    /// For extended attributes and quotas, where the list starts and whether the server returns one
    /// entry only (SL_RESTART_SCAN, SL_RETURN_SINGLE_ENTRY, SL_INDEX_SPECIFIED); 0 otherwise.
    pub flags: QueryInfoFlags,
    /// FileId of the open that the query is about, as the server returned it in the CREATE
    /// response.
    pub file_id: FileId,
    /// Names of the extended attributes that the client queries, or a query of quotas; otherwise
    /// empty.
    pub input: &'a [u8],
}

impl<'a> Request<'a> {
    /// Decodes a QUERY_INFO request from `message`, which starts with its 64-byte SMB2 header.
    /// Fails when `message` is too short, or its StructureSize, a length or an offset is not valid.
    /// InputBufferOffset may have any value when the length is zero.
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

    /// Appends the body of a QUERY_INFO request to `message`, which must hold exactly its 64-byte
    /// SMB2 header. Panics when `message` has another length, or a field is too long for its length
    /// field. Without input, the message has 104 bytes as in Windows, without the extra byte that
    /// StructureSize counts.
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
    /// A QUERY_INFO response. Its output buffer has the queried information in the requested class.
    /// \[MS-SMB2\] 2.2.38
    Response, "QUERY_INFO response"
}
