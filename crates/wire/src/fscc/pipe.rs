//! Information classes of named pipes.

use alloc::vec::Vec;

use crate::cursor::{Put, Reader};
use crate::error::DecodeError;

/// How the near end of a pipe reads and completes. \[MS-FSCC\] 2.4.37
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FilePipeInformation {
    /// 0 for bytes, 1 for messages.
    pub read_mode: u32,
    /// 0 waits, 1 does not.
    pub completion_mode: u32,
}

impl FilePipeInformation {
    /// Bytes on the wire.
    pub const LEN: usize = 8;

    /// Reads the structure at the start of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        Ok(Self {
            read_mode: reader.u32("ReadMode")?,
            completion_mode: reader.u32("CompletionMode")?,
        })
    }

    /// Appends the structure.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(self.read_mode);
        out.put_u32(self.completion_mode);
    }
}

/// The near end of a pipe. \[MS-FSCC\] 2.4.38
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FilePipeLocalInformation {
    /// 0 for bytes, 1 for messages.
    pub pipe_type: u32,
    /// 0 inbound, 1 outbound, 2 both.
    pub configuration: u32,
    /// Most opens of the pipe; all ones for any number.
    pub maximum_instances: u32,
    /// Opens of the pipe.
    pub current_instances: u32,
    /// Bytes that may wait for the server.
    pub inbound_quota: u32,
    /// Bytes that wait for the client.
    pub read_data_available: u32,
    /// Bytes that may wait for the client.
    pub outbound_quota: u32,
    /// Bytes that the client may still write.
    pub write_quota_available: u32,
    /// 1 disconnected, 2 listening, 3 connected, 4 closing.
    pub state: u32,
    /// 0 for the client's end, 1 for the server's.
    pub end: u32,
}

impl FilePipeLocalInformation {
    /// Bytes on the wire.
    pub const LEN: usize = 40;

    /// Reads the structure at the start of `bytes`.
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

    /// Appends the structure.
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
