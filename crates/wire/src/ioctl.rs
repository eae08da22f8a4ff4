//! IOCTL: control a file, a file system or the server. \[MS-SMB2\] 2.2.31, 2.2.32
//!
//! What the buffers say is in [`crate::fsctl`].

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
    /// Flags of request and response. \[MS-SMB2\] 2.2.31
    IoctlFlags(u32) {
        /// An FSCTL. Without it an IOCTL, which no server takes.
        IS_FSCTL = 0x0000_0001,
    }
}

/// What to control. \[MS-SMB2\] 2.2.31
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The function.
    pub ctl_code: CtlCode,
    /// The open; all ones for functions of the server.
    pub file_id: FileId,
    /// Most bytes of input in the response.
    pub max_input_response: u32,
    /// Most bytes of output in the response.
    pub max_output_response: u32,
    /// Flags.
    pub flags: IoctlFlags,
    /// What the function works on.
    pub input: &'a [u8],
    /// Output bytes of a request: nothing sends any. Not written.
    pub output: &'a [u8],
}

impl<'a> Request<'a> {
    /// Reads the body of a message.
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

    /// Appends the body to a message that holds its header.
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

/// What the function says. \[MS-SMB2\] 2.2.32
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response<'a> {
    /// The function.
    pub ctl_code: CtlCode,
    /// The open.
    pub file_id: FileId,
    /// Flags; reserved.
    pub flags: IoctlFlags,
    /// The input again; empty as a rule.
    pub input: &'a [u8],
    /// The output.
    pub output: &'a [u8],
}

impl<'a> Response<'a> {
    /// Reads the body of a message.
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

    /// Appends the body to a message that holds its header. Output follows input at a multiple
    /// of 8 bytes. Without output Samba sends 112 bytes in all, not the one more that
    /// StructureSize counts.
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
