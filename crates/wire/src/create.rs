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
    /// The action that the server took in a successful CREATE. \[MS-SMB2\] 2.2.14
    CreateAction(u32) {
        /// The server replaced an existing file with a new one.
        SUPERSEDED = 0,
        /// The server opened an existing file.
        OPENED = 1,
        /// The server created a new file.
        CREATED = 2,
        /// The server truncated an existing file.
        OVERWRITTEN = 3,
    }
}

open_flags! {
    /// Flags of a CREATE response. \[MS-SMB2\] 2.2.14
    ResponseFlags(u8) {
        /// The last component of the path is a reparse point. Dialects 3.0 and later only.
        REPARSEPOINT = 0x01,
    }
}

/// A CREATE request: the client opens or creates a file, a directory or a pipe. \[MS-SMB2\] 2.2.13
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The oplock that the client requests; LEASE when a lease context is present.
    pub oplock_level: OplockLevel,
    /// The degree to which the server may act for the user (impersonation). File servers ignore it.
    pub impersonation_level: ImpersonationLevel,
    /// The access rights that the client requests for the open.
    pub desired_access: AccessMask,
    /// DOS attributes that the file receives if the CREATE makes a new one; for an existing file,
    /// servers ignore most of them.
    pub file_attributes: FileAttributes,
    /// The access that other opens may have while this open exists.
    pub share_access: ShareAccess,
    /// The action of the server if the file exists, and if it does not exist: open, create,
    /// overwrite or fail.
    pub create_disposition: CreateDisposition,
    /// Options of the open, such as "must be a directory" or "delete on close".
    pub create_options: CreateOptions,
    /// The path of the file below the root of the share, without a leading backslash; at most 65535
    /// bytes.
    pub name: Utf16<'a>,
    /// The create contexts of the request: optional extensions such as leases.
    pub contexts: Vec<RawContext<'a>>,
}

impl<'a> Request<'a> {
    /// Decodes a CREATE request from `message`, which starts with its 64-byte SMB2 header. Fails
    /// when `message` is too short, or its StructureSize, a length or an offset is not valid.
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

    /// Appends the body of a CREATE request to `message`, which must hold exactly its 64-byte SMB2
    /// header. Panics when `message` has another length, or a field is too long for its length
    /// field.
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

/// Appends offset and length of the contexts, which start at the first multiple of 8 bytes after
/// `end`.
fn put_contexts_extent(end: usize, contexts: &[u8], message: &mut Vec<u8>) {
    if contexts.is_empty() {
        message.put_u64(0);
    } else {
        message.put_u32(u32_of(end.next_multiple_of(8)));
        message.put_u32(u32_of(contexts.len()));
    }
}

/// A CREATE response: the server has opened or created the file, and reports its times, sizes and
/// attributes. \[MS-SMB2\] 2.2.14
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response<'a> {
    /// The oplock that the server granted; LEASE when a lease context is present.
    pub oplock_level: OplockLevel,
    /// Flags of the response: whether the path ends in a reparse point.
    pub flags: ResponseFlags,
    /// The action that the server took: it opened, created, overwrote or superseded the file.
    pub create_action: CreateAction,
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
    /// FileId of the new open, by which later requests of the client name it.
    pub file_id: FileId,
    /// The create contexts of the response: the server's replies to contexts of the request.
    pub contexts: Vec<RawContext<'a>>,
}

impl<'a> Response<'a> {
    /// Decodes a CREATE response from `message`, which starts with its 64-byte SMB2 header. Fails
    /// when `message` is too short, or its StructureSize, a length or an offset is not valid.
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

    /// Appends the body of a CREATE response to `message`, which must hold exactly its 64-byte SMB2
    /// header. Panics when `message` has another length. Without contexts the message ends with the
    /// fixed part, 152 bytes in all, as Windows sends it.
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
