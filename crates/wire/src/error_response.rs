//! The ERROR response: a status alone, or with error data, or with the error contexts of dialect
//! 3.1.1. \[MS-SMB2\] 2.2.2

use alloc::vec::Vec;

use crate::cursor::{Put, Reader, slice_at};
use crate::error::DecodeError;
use crate::layout::{begin, u16_of, u32_of};
use crate::open_enum::{open_enum, open_flags};
use crate::text::Utf16;

/// Maximum number of error contexts in an ERROR response; [`decode_contexts`] fails for more. No
/// known server sends more than one.
pub const MAX_CONTEXTS: u8 = 16;
/// "SYML". \[MS-SMB2\] 2.2.2.2.1
const SYMLINK_ERROR_TAG: u32 = 0x4C4D_5953;
/// IO_REPARSE_TAG_SYMLINK. \[MS-FSCC\] 2.1.2.1
const REPARSE_TAG_SYMLINK: u32 = 0xA000_000C;
/// Length of a symlink error before its names, in bytes.
const SYMLINK_LEN: usize = 28;

/// The body of an ERROR response, which the server sends for a failed request. The status is in the
/// SMB2 header. \[MS-SMB2\] 2.2.2
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Response<'a> {
    /// Number of error contexts in `error_data`; always 0 before dialect 3.1.1.
    pub context_count: u8,
    /// Additional data of the error, in a format that depends on the status; empty for most errors.
    /// [`decode_contexts`] decodes them if `context_count` is not 0; [`SymlinkError`] decodes those
    /// of a symbolic link.
    pub error_data: &'a [u8],
}

impl<'a> Response<'a> {
    /// The body of an ERROR response without data: the status in the SMB2 header has all
    /// information.
    pub const PLAIN: Response<'static> = Response {
        context_count: 0,
        error_data: &[],
    };

    /// Decodes an ERROR response from `message`, which starts with its 64-byte SMB2 header. Fails
    /// when `message` is too short, or its StructureSize, a length or an offset is not valid.
    pub fn decode(message: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::body(message, "ERROR response")?;
        reader.structure_size("ERROR response", 9)?;
        let context_count = reader.u8("ErrorContextCount")?;
        reader.skip("Reserved", 1)?;
        let byte_count = reader.u32("ByteCount")?;
        let offset = reader.position() as u64;
        Ok(Self {
            context_count,
            error_data: slice_at(message, "ErrorData", offset, byte_count.into())?,
        })
    }

    /// Appends the body of an ERROR response to `message`, which must hold exactly its 64-byte SMB2
    /// header. Panics when `message` has another length, or a field is too long for its length
    /// field. An error without data has one zero byte instead, as the specification requires and
    /// Windows and Samba send: 73 bytes in all.
    pub fn encode(&self, message: &mut Vec<u8>) {
        begin(message, 9);
        message.put_u8(self.context_count);
        message.put_u8(0);
        message.put_u32(u32_of(self.error_data.len()));
        message.put(self.error_data);
        if self.error_data.is_empty() {
            message.put_u8(0);
        }
    }
}

open_enum! {
    /// The identifier of an error context, which defines the format of its data. \[MS-SMB2\]
    /// 2.2.2.1
    ErrorId(u32) {
        /// The format of the data depends on the status: a symlink error, or the required buffer
        /// length.
        DEFAULT = 0x0000_0000,
        /// The share moved to another server; the data contain the address of that server.
        SHARE_REDIRECT = 0x7264_5253,
    }
}

/// An error context: one part of the data of an ERROR response in dialect 3.1.1.
/// \[MS-SMB2\] 2.2.2.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorContext<'a> {
    /// Identifier of the error context, which defines the format of the data.
    pub error_id: ErrorId,
    /// Data of the error context, not decoded.
    pub data: &'a [u8],
}

/// Decodes `error_data`, the data of an ERROR response, into its `count` error contexts. Each
/// starts at a multiple of 8 bytes; the padding after the last one may be absent.
///
/// # Errors
/// Fails when a context is truncated or `count` exceeds [`MAX_CONTEXTS`].
pub fn decode_contexts(error_data: &[u8], count: u8) -> Result<Vec<ErrorContext<'_>>, DecodeError> {
    if count > MAX_CONTEXTS {
        let (field, value) = ("ErrorContextCount", count.into());
        return Err(DecodeError::Invalid { field, value });
    }
    let mut reader = Reader::new(error_data);
    let mut contexts = Vec::with_capacity(count.into());
    for _ in 0..count {
        let padding = reader.position().next_multiple_of(8) - reader.position();
        reader.skip("ErrorContext", padding)?;
        let length = reader.u32("ErrorDataLength")?;
        let error_id = ErrorId(reader.u32("ErrorId")?);
        let data = reader.bytes("ErrorContextData", length as usize)?;
        contexts.push(ErrorContext { error_id, data });
    }
    Ok(contexts)
}

/// Encodes error contexts as the data of an ERROR response. Each starts at a multiple of 8 bytes.
pub fn encode_contexts(contexts: &[ErrorContext<'_>]) -> Vec<u8> {
    let mut error_data = Vec::new();
    for context in contexts {
        error_data.align(8);
        error_data.put_u32(u32_of(context.data.len()));
        error_data.put_u32(context.error_id.0);
        error_data.put(context.data);
    }
    error_data
}

open_flags! {
    /// Flags of the target in a symlink error. \[MS-SMB2\] 2.2.2.2.1
    SymlinkFlags(u32) {
        /// The target is a path relative to the directory of the link.
        RELATIVE = 0x0000_0001,
    }
}

/// The error data of STATUS_STOPPED_ON_SYMLINK: the path of a CREATE contains a symbolic link,
/// which the client must resolve. \[MS-SMB2\] 2.2.2.2.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymlinkError<'a> {
    /// Length in bytes of the part of the requested path after the symbolic link.
    pub unparsed_path_length: u16,
    /// Flags of the error: whether the target is relative to the directory of the symbolic link.
    pub flags: SymlinkFlags,
    /// Path of the link's target, by which the client continues.
    pub substitute_name: Utf16<'a>,
    /// Path of the link's target in a form for display.
    pub print_name: Utf16<'a>,
}

impl<'a> SymlinkError<'a> {
    /// Decodes the data of an ERROR response, or of an error context, for a symbolic link. Fails
    /// when the data are truncated, have a wrong tag, or a name is outside them.
    pub fn decode(data: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(data);
        reader.skip("SymLinkLength", 4)?;
        expect_tag(&mut reader, "SymLinkErrorTag", SYMLINK_ERROR_TAG)?;
        expect_tag(&mut reader, "ReparseTag", REPARSE_TAG_SYMLINK)?;
        reader.skip("ReparseDataLength", 2)?;
        let unparsed_path_length = reader.u16("UnparsedPathLength")?;
        let substitute = (
            reader.u16("SubstituteNameOffset")?,
            reader.u16("SubstituteNameLength")?,
        );
        let print = (
            reader.u16("PrintNameOffset")?,
            reader.u16("PrintNameLength")?,
        );
        let flags = SymlinkFlags(reader.u32("Flags")?);
        let names = reader.rest();
        let (substitute_offset, substitute_length) = substitute;
        let (print_offset, print_length) = print;
        Ok(Self {
            unparsed_path_length,
            flags,
            substitute_name: name_at(
                names,
                "SubstituteName",
                substitute_offset,
                substitute_length,
            )?,
            print_name: name_at(names, "PrintName", print_offset, print_length)?,
        })
    }

    /// Encodes the error as data of an ERROR response or of an error context. Panics when a path is
    /// longer than 64 KiB.
    pub fn encode(&self) -> Vec<u8> {
        let names_len = self.substitute_name.len() + self.print_name.len();
        let mut data = Vec::with_capacity(SYMLINK_LEN + names_len);
        data.put_u32(u32_of(SYMLINK_LEN - 4 + names_len));
        data.put_u32(SYMLINK_ERROR_TAG);
        data.put_u32(REPARSE_TAG_SYMLINK);
        data.put_u16(u16_of(12 + names_len));
        data.put_u16(self.unparsed_path_length);
        data.put_u16(0);
        data.put_u16(u16_of(self.substitute_name.len()));
        data.put_u16(u16_of(self.substitute_name.len()));
        data.put_u16(u16_of(self.print_name.len()));
        data.put_u32(self.flags.0);
        data.put(self.substitute_name.0);
        data.put(self.print_name.0);
        data
    }
}

fn expect_tag(reader: &mut Reader<'_>, field: &'static str, tag: u32) -> Result<(), DecodeError> {
    let found = reader.u32(field)?;
    if found == tag {
        Ok(())
    } else {
        let value = found.into();
        Err(DecodeError::Invalid { field, value })
    }
}

fn name_at<'a>(
    names: &'a [u8],
    field: &'static str,
    offset: u16,
    length: u16,
) -> Result<Utf16<'a>, DecodeError> {
    slice_at(names, field, offset.into(), length.into()).map(Utf16)
}
