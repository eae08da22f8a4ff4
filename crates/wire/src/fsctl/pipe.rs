//! Control codes of named pipes.

use alloc::vec::Vec;

use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::layout::u32_of;
use crate::text::Utf16;

/// Input of FSCTL_PIPE_WAIT: the client waits until an instance of a named pipe is available.
/// \[MS-FSCC\] 2.3.49
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PipeWait<'a> {
    /// Maximum time that the server waits: a signed number in units of 100 ns, in two's complement;
    /// a negative number is a duration. `None` selects the default timeout of the pipe.
    pub timeout: Option<u64>,
    /// Name of the pipe, without `\PIPE\`.
    pub name: Utf16<'a>,
}

impl<'a> PipeWait<'a> {
    /// Decodes the input buffer of an IOCTL request with FSCTL_PIPE_WAIT. Fails when `input` is too
    /// short.
    pub fn decode(input: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(input);
        let timeout = reader.u64("Timeout")?;
        let length = reader.u32("NameLength")?;
        let is_given = reader.u8("TimeoutSpecified")? != 0;
        reader.skip("Padding", 1)?;
        Ok(Self {
            timeout: is_given.then_some(timeout),
            name: Utf16(reader.bytes("Name", length as usize)?),
        })
    }

    /// Encodes the input buffer of an IOCTL request with FSCTL_PIPE_WAIT.
    pub fn encode(&self) -> Vec<u8> {
        let mut input = Vec::new();
        input.put_u64(self.timeout.unwrap_or(0));
        input.put_u32(u32_of(self.name.len()));
        input.put_u8(u8::from(self.timeout.is_some()));
        input.put_u8(0);
        input.put(self.name.0);
        input
    }
}

/// Output of FSCTL_PIPE_PEEK: the available data of a named pipe, which the server does not remove.
/// \[MS-FSCC\] 2.3.46
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PipePeek<'a> {
    /// State of the pipe: 3 for connected, 4 for closing.
    pub state: u32,
    /// Number of bytes that the client can read.
    pub read_data_available: u32,
    /// Number of complete messages that the client can read.
    pub number_of_messages: u32,
    /// Length in bytes of the first message that the client can read.
    pub message_length: u32,
    /// The first of the available bytes, up to the length of the client's buffer.
    pub data: &'a [u8],
}

impl<'a> PipePeek<'a> {
    /// Length in bytes of the encoded structure before the data.
    pub const HEAD_LEN: usize = 16;

    /// Decodes the output buffer of an IOCTL response with FSCTL_PIPE_PEEK. Fails when `output` has
    /// less than 16 bytes.
    pub fn decode(output: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(output);
        Ok(Self {
            state: reader.u32("NamedPipeState")?,
            read_data_available: reader.u32("ReadDataAvailable")?,
            number_of_messages: reader.u32("NumberOfMessages")?,
            message_length: reader.u32("MessageLength")?,
            data: reader.rest(),
        })
    }

    /// Encodes the output buffer of an IOCTL response with FSCTL_PIPE_PEEK.
    pub fn encode(&self) -> Vec<u8> {
        let mut output = Vec::new();
        output.put_u32(self.state);
        output.put_u32(self.read_data_available);
        output.put_u32(self.number_of_messages);
        output.put_u32(self.message_length);
        output.put(self.data);
        output
    }
}
