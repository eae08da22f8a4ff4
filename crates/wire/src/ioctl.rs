//! IOCTL: send a control code to a file, a file system or the server. \[MS-SMB2\] 2.2.31, 2.2.32
//!
//! [`crate::fsctl`] describes the input and output buffers.

use alloc::vec::Vec;

use crate::cursor::{Put, Reader, slice_at};
use crate::error::DecodeError;
use crate::fsctl::CtlCode;
use crate::header::HEADER_LEN;
use crate::ids::FileId;
use crate::layout::{begin, fill_empty, u32_of};
use crate::open_enum::open_flags;

const REQUEST_LEN: usize = 56;
const RESPONSE_LEN: usize = 48;

open_flags! {
    /// Flags of an IOCTL request and response. \[MS-SMB2\] 2.2.31
    IoctlFlags(u32) {
        /// The control code is an FSCTL. Without this flag it is an IOCTL of a device, which
        /// servers refuse.
        IS_FSCTL = 0x0000_0001,
    }
}

/// An IOCTL request: the client sends a control code (FSCTL), an operation on an open file or on
/// the server. \[MS-SMB2\] 2.2.31
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The control code: the number of the operation that the server performs.
    pub ctl_code: CtlCode,
    /// FileId of the open that the operation applies to; all ones for operations on the server.
    pub file_id: FileId,
    /// Maximum length in bytes of the input buffer in the IOCTL response (MaxInputResponse);
    /// usually 0.
    pub max_input_response: u32,
    /// Maximum length in bytes of the output buffer in the IOCTL response.
    pub max_output_response: u32,
    /// Flags of the request: whether the control code is an FSCTL. Servers refuse other codes.
    pub flags: IoctlFlags,
    /// Input buffer of the operation, in the format that the control code defines.
    pub input: &'a [u8],
    /// Output buffer of the request, which only the response needs. Known clients leave it empty,
    /// and `encode` ignores it.
    pub output: &'a [u8],
}

impl<'a> Request<'a> {
    /// Decodes an IOCTL request from `message`, which starts with its 64-byte SMB2 header. Fails
    /// when `message` is too short, or its StructureSize, a length or an offset is not valid.
    pub fn decode(message: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::body(message, "IOCTL request")?;
        reader.structure_size("IOCTL request", 57)?;
        reader.skip("Reserved", 2)?;
        let ctl_code = CtlCode(reader.u32("CtlCode")?);
        let file_id = reader.file_id("FileId")?;
        let input_offset = reader.u32("InputOffset")?;
        let input_count = reader.u32("InputCount")?;
        let max_input_response = reader.u32("MaxInputResponse")?;
        let output_offset = reader.u32("OutputOffset")?;
        let output_count = reader.u32("OutputCount")?;
        let max_output_response = reader.u32("MaxOutputResponse")?;
        let flags = IoctlFlags(reader.u32("Flags")?);
        reader.skip("Reserved2", 4)?;
        Ok(Self {
            ctl_code,
            file_id,
            max_input_response,
            max_output_response,
            flags,
            input: slice_at(message, "Input", input_offset.into(), input_count.into())?,
            output: slice_at(message, "Output", output_offset.into(), output_count.into())?,
        })
    }

    /// Appends the body of an IOCTL request to `message`, which must hold exactly its 64-byte SMB2
    /// header. Panics when `message` has another length, or a field is too long for its length
    /// field.
    pub fn encode(&self, message: &mut Vec<u8>) {
        let input_offset = u32_of(HEADER_LEN + REQUEST_LEN);
        begin(message, 57);
        message.put_u16(0);
        message.put_u32(self.ctl_code.0);
        message.put_file_id(self.file_id);
        message.put_u32(input_offset);
        message.put_u32(u32_of(self.input.len()));
        message.put_u32(self.max_input_response);
        message.put_u32(input_offset);
        message.put_u32(0);
        message.put_u32(self.max_output_response);
        message.put_u32(self.flags.0);
        message.put_u32(0);
        message.put(self.input);
        fill_empty(message, REQUEST_LEN);
    }
}

/// An IOCTL response: the output of the operation that a control code names. \[MS-SMB2\] 2.2.32
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response<'a> {
    /// The control code, copied from the request.
    pub ctl_code: CtlCode,
    /// FileId of the file that the request was about, copied from the request.
    pub file_id: FileId,
    /// Flags of the response, which are reserved; servers send zero.
    pub flags: IoctlFlags,
    /// A copy of the input buffer of the IOCTL request; usually empty.
    pub input: &'a [u8],
    /// Output buffer of the operation, in the format that the control code defines.
    pub output: &'a [u8],
}

impl<'a> Response<'a> {
    /// Decodes an IOCTL response from `message`, which starts with its 64-byte SMB2 header. Fails
    /// when `message` is too short, or its StructureSize, a length or an offset is not valid.
    pub fn decode(message: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::body(message, "IOCTL response")?;
        reader.structure_size("IOCTL response", 49)?;
        reader.skip("Reserved", 2)?;
        let ctl_code = CtlCode(reader.u32("CtlCode")?);
        let file_id = reader.file_id("FileId")?;
        let input_offset = reader.u32("InputOffset")?;
        let input_count = reader.u32("InputCount")?;
        let output_offset = reader.u32("OutputOffset")?;
        let output_count = reader.u32("OutputCount")?;
        let flags = IoctlFlags(reader.u32("Flags")?);
        reader.skip("Reserved2", 4)?;
        Ok(Self {
            ctl_code,
            file_id,
            flags,
            input: slice_at(message, "Input", input_offset.into(), input_count.into())?,
            output: slice_at(message, "Output", output_offset.into(), output_count.into())?,
        })
    }

    /// Appends the body of an IOCTL response to `message`, which must hold exactly its 64-byte SMB2
    /// header. Panics when `message` has another length, or a field is too long for its length
    /// field. The output starts at the next multiple of 8 bytes after the input. Without output,
    /// the message has 112 bytes as in Samba, without the extra byte that StructureSize counts.
    pub fn encode(&self, message: &mut Vec<u8>) {
        let input_offset = HEADER_LEN + RESPONSE_LEN;
        let output_offset = (input_offset + self.input.len()).next_multiple_of(8);
        begin(message, 49);
        message.put_u16(0);
        message.put_u32(self.ctl_code.0);
        message.put_file_id(self.file_id);
        message.put_u32(u32_of(input_offset));
        message.put_u32(u32_of(self.input.len()));
        message.put_u32(u32_of(output_offset));
        message.put_u32(u32_of(self.output.len()));
        message.put_u32(self.flags.0);
        message.put_u32(0);
        message.put(self.input);
        if !self.output.is_empty() {
            message.align(8);
            message.put(self.output);
        }
    }
}
