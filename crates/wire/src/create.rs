//! CREATE: open or create a file, a directory or a pipe. \[MS-SMB2\] 2.2.13, 2.2.14

use alloc::vec::Vec;

use crate::access::{
    AccessMask, CreateDisposition, CreateOptions, FileAttributes, ImpersonationLevel, OplockLevel,
    ShareAccess,
};
use crate::create_context::{self, RawContext};
use crate::cursor::{Put, Reader, slice_at};
use crate::error::DecodeError;
use crate::header::HEADER_LEN;
use crate::ids::FileId;
use crate::layout::{begin, fill_empty, u16_of, u32_of};
use crate::open_enum::{open_enum, open_flags};
use crate::text::Utf16;
use crate::time::FileTime;

const REQUEST_LEN: usize = 56;
const RESPONSE_LEN: usize = 88;

open_enum! {
    /// What the server did. \[MS-SMB2\] 2.2.14
    CreateAction(u32) {
        /// Replaced the file.
        SUPERSEDED = 0,
        /// Opened it.
        OPENED = 1,
        /// Created it.
        CREATED = 2,
        /// Truncated it.
        OVERWRITTEN = 3,
    }
}

open_flags! {
    /// Flags of the response. \[MS-SMB2\] 2.2.14
    ResponseFlags(u8) {
        /// The last part of the name is a reparse point. Dialects 3.x.
        REPARSEPOINT = 0x01,
    }
}

/// What to open, and how. \[MS-SMB2\] 2.2.13
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// What the client would like to cache.
    pub oplock_level: OplockLevel,
    /// What the server may do in the name of the user.
    pub impersonation_level: ImpersonationLevel,
    /// Rights that the open should have.
    pub desired_access: AccessMask,
    /// Attributes of a new file.
    pub file_attributes: FileAttributes,
    /// What others may do meanwhile.
    pub share_access: ShareAccess,
    /// What to do if the file exists, and if not.
    pub create_disposition: CreateDisposition,
    /// How to open or create.
    pub create_options: CreateOptions,
    /// The name beneath the share, without a leading backslash.
    pub name: Utf16<'a>,
    /// What else is asked.
    pub contexts: Vec<RawContext<'a>>,
}

impl<'a> Request<'a> {
    /// Reads the body of a message.
    pub fn decode(message: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::body(message, "CREATE request")?;
        reader.structure_size("CREATE request", 57)?;
        reader.skip("SecurityFlags", 1)?;
        let oplock_level = OplockLevel(reader.u8("RequestedOplockLevel")?);
        let impersonation_level = ImpersonationLevel(reader.u32("ImpersonationLevel")?);
        reader.skip("SmbCreateFlags", 16)?;
        let desired_access = AccessMask(reader.u32("DesiredAccess")?);
        let file_attributes = FileAttributes(reader.u32("FileAttributes")?);
        let share_access = ShareAccess(reader.u32("ShareAccess")?);
        let create_disposition = CreateDisposition(reader.u32("CreateDisposition")?);
        let create_options = CreateOptions(reader.u32("CreateOptions")?);
        let name_offset = reader.u16("NameOffset")?;
        let name_length = reader.u16("NameLength")?;
        let name = slice_at(message, "Name", name_offset.into(), name_length.into())?;
        Ok(Self {
            oplock_level,
            impersonation_level,
            desired_access,
            file_attributes,
            share_access,
            create_disposition,
            create_options,
            name: Utf16(name),
            contexts: decode_contexts(message, &mut reader)?,
        })
    }

    /// Appends the body to a message that holds its header.
    pub fn encode(&self, message: &mut Vec<u8>) {
        let name_offset = HEADER_LEN + REQUEST_LEN;
        begin(message, 57);
        message.put_u8(0);
        message.put_u8(self.oplock_level.0);
        message.put_u32(self.impersonation_level.0);
        message.put(&[0; 16]);
        message.put_u32(self.desired_access.0);
        message.put_u32(self.file_attributes.0);
        message.put_u32(self.share_access.0);
        message.put_u32(self.create_disposition.0);
        message.put_u32(self.create_options.0);
        message.put_u16(u16_of(name_offset));
        message.put_u16(u16_of(self.name.len()));
        let contexts = create_context::encode_list(&self.contexts);
        put_contexts_extent(name_offset + self.name.len(), &contexts, message);
        message.put(self.name.0);
        if !contexts.is_empty() {
            message.align(8);
            message.put(&contexts);
        }
        fill_empty(message, REQUEST_LEN);
    }
}

fn decode_contexts<'a>(
    message: &'a [u8],
    reader: &mut Reader<'a>,
) -> Result<Vec<RawContext<'a>>, DecodeError> {
    let offset = reader.u32("CreateContextsOffset")?;
    let length = reader.u32("CreateContextsLength")?;
    let list = slice_at(message, "CreateContexts", offset.into(), length.into())?;
    create_context::decode_list(list)
}

/// Appends offset and length of the contexts, which follow `end` at a multiple of 8 bytes.
fn put_contexts_extent(end: usize, contexts: &[u8], message: &mut Vec<u8>) {
    if contexts.is_empty() {
        message.put_u64(0);
    } else {
        message.put_u32(u32_of(end.next_multiple_of(8)));
        message.put_u32(u32_of(contexts.len()));
    }
}

/// What was opened. \[MS-SMB2\] 2.2.14
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response<'a> {
    /// What the client may cache.
    pub oplock_level: OplockLevel,
    /// Flags.
    pub flags: ResponseFlags,
    /// What the server did.
    pub create_action: CreateAction,
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
    /// The open.
    pub file_id: FileId,
    /// What else is answered.
    pub contexts: Vec<RawContext<'a>>,
}

impl<'a> Response<'a> {
    /// Reads the body of a message.
    pub fn decode(message: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::body(message, "CREATE response")?;
        reader.structure_size("CREATE response", 89)?;
        let oplock_level = OplockLevel(reader.u8("OplockLevel")?);
        let flags = ResponseFlags(reader.u8("Flags")?);
        let create_action = CreateAction(reader.u32("CreateAction")?);
        let creation_time = FileTime(reader.u64("CreationTime")?);
        let last_access_time = FileTime(reader.u64("LastAccessTime")?);
        let last_write_time = FileTime(reader.u64("LastWriteTime")?);
        let change_time = FileTime(reader.u64("ChangeTime")?);
        let allocation_size = reader.u64("AllocationSize")?;
        let end_of_file = reader.u64("EndofFile")?;
        let file_attributes = FileAttributes(reader.u32("FileAttributes")?);
        reader.skip("Reserved2", 4)?;
        let file_id = reader.file_id("FileId")?;
        Ok(Self {
            oplock_level,
            flags,
            create_action,
            creation_time,
            last_access_time,
            last_write_time,
            change_time,
            allocation_size,
            end_of_file,
            file_attributes,
            file_id,
            contexts: decode_contexts(message, &mut reader)?,
        })
    }

    /// Appends the body to a message that holds its header. Without contexts the message ends
    /// with the fixed part, 152 bytes in all, as Windows sends it.
    pub fn encode(&self, message: &mut Vec<u8>) {
        begin(message, 89);
        message.put_u8(self.oplock_level.0);
        message.put_u8(self.flags.0);
        message.put_u32(self.create_action.0);
        message.put_u64(self.creation_time.0);
        message.put_u64(self.last_access_time.0);
        message.put_u64(self.last_write_time.0);
        message.put_u64(self.change_time.0);
        message.put_u64(self.allocation_size);
        message.put_u64(self.end_of_file);
        message.put_u32(self.file_attributes.0);
        message.put_u32(0);
        message.put_file_id(self.file_id);
        let contexts = create_context::encode_list(&self.contexts);
        put_contexts_extent(HEADER_LEN + RESPONSE_LEN, &contexts, message);
        message.put(&contexts);
    }
}
