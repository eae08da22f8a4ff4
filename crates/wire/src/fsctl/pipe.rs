//! Functions of named pipes.

use alloc::vec::Vec;

use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::layout::u32_of;
use crate::text::Utf16;

/// PIPE_WAIT, input: wait until a pipe can be opened. \[MS-FSCC\] 2.3.49
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PipeWait<'a> {
    /// How long, in steps of 100 ns, negative for a span; where it is given.
    pub timeout: Option<u64>,
    /// The pipe, without `\PIPE\`.
    pub name: Utf16<'a>,
}

impl<'a> PipeWait<'a> {
    /// Reads the input.
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

    /// The input.
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

/// PIPE_PEEK, output: what a pipe holds. \[MS-FSCC\] 2.3.46
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PipePeek<'a> {
    /// 3 for connected, 4 for closing.
    pub state: u32,
    /// Bytes that wait for the client.
    pub read_data_available: u32,
    /// Messages that wait.
    pub number_of_messages: u32,
    /// Bytes of the first.
    pub message_length: u32,
    /// As many of them as there was room for.
    pub data: &'a [u8],
}

impl<'a> PipePeek<'a> {
    /// Bytes before the data.
    pub const HEAD_LEN: usize = 16;

    /// Reads the output.
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

    /// The output.
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
