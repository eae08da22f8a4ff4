//! Information classes of named pipes.

use alloc::vec::Vec;

use crate::cursor::{Put, Reader};
use crate::error::DecodeError;

/// Read mode and completion mode of the client's end of a named pipe: the information class PIPE.
/// \[MS-FSCC\] 2.4.37
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FilePipeInformation {
    /// Read mode of the client's end: 0 for a stream of bytes, 1 for whole messages.
    pub read_mode: u32,
    /// Completion mode: 0 if reads and writes wait for data or capacity, 1 if they complete
    /// immediately.
    pub completion_mode: u32,
}

impl FilePipeInformation {
    /// Length of the encoded structure in bytes.
    pub const LEN: usize = 8;

    /// Decodes the structure at the start of `bytes` and ignores later bytes. Fails when `bytes` is
    /// too short.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        Ok(Self {
            read_mode: reader.u32("ReadMode")?,
            completion_mode: reader.u32("CompletionMode")?,
        })
    }

    /// Appends the encoded structure to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(self.read_mode);
        out.put_u32(self.completion_mode);
    }
}

/// Type, state and buffers of the client's end of a named pipe: the information class PIPE_LOCAL.
/// \[MS-FSCC\] 2.4.38
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FilePipeLocalInformation {
    /// Type of the pipe: 0 for a stream of bytes, 1 for messages.
    pub pipe_type: u32,
    /// Direction of data: 0 from client to server, 1 from server to client, 2 both.
    pub configuration: u32,
    /// Maximum number of instances of the pipe; 0xFFFFFFFF for no limit.
    pub maximum_instances: u32,
    /// Current number of instances of the pipe.
    pub current_instances: u32,
    /// Capacity in bytes of the buffer for data from client to server.
    pub inbound_quota: u32,
    /// Number of bytes that the client can read now.
    pub read_data_available: u32,
    /// Capacity in bytes of the buffer for data from server to client.
    pub outbound_quota: u32,
    /// Number of bytes that the client can write now.
    pub write_quota_available: u32,
    /// State of the pipe: 1 disconnected, 2 listening, 3 connected, 4 closing.
    pub state: u32,
    /// The end of the pipe that the structure describes: 0 for the client's, 1 for the server's.
    pub end: u32,
}

impl FilePipeLocalInformation {
    /// Length of the encoded structure in bytes.
    pub const LEN: usize = 40;

    /// Decodes the structure at the start of `bytes` and ignores later bytes. Fails when `bytes` is
    /// too short.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        Ok(Self {
            pipe_type: reader.u32("NamedPipeType")?,
            configuration: reader.u32("NamedPipeConfiguration")?,
            maximum_instances: reader.u32("MaximumInstances")?,
            current_instances: reader.u32("CurrentInstances")?,
            inbound_quota: reader.u32("InboundQuota")?,
            read_data_available: reader.u32("ReadDataAvailable")?,
            outbound_quota: reader.u32("OutboundQuota")?,
            write_quota_available: reader.u32("WriteQuotaAvailable")?,
            state: reader.u32("NamedPipeState")?,
            end: reader.u32("NamedPipeEnd")?,
        })
    }

    /// Appends the encoded structure to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        for value in [
            self.pipe_type,
            self.configuration,
            self.maximum_instances,
            self.current_instances,
            self.inbound_quota,
            self.read_data_available,
            self.outbound_quota,
            self.write_quota_available,
            self.state,
            self.end,
        ] {
            out.put_u32(value);
        }
    }
}
