//! Functions of IOCTL and what their buffers say. \[MS-SMB2\] 2.2.31.1, 2.2.32, \[MS-FSCC\] 2.3

use alloc::vec::Vec;

use crate::cursor::{Put, Reader};
use crate::dialect::{Capabilities, Dialect, SecurityMode};
use crate::error::DecodeError;
use crate::ids::Guid;
use crate::layout::{u16_of, u32_of};
use crate::open_enum::{open_enum, open_flags};

open_enum! {
    /// A function. \[MS-SMB2\] 2.2.31, \[MS-FSCC\] 2.3
    CtlCode(u32) {
        /// Where a DFS path leads.
        DFS_GET_REFERRALS = 0x0006_0194,
        /// Where a DFS path leads, seen from a site.
        DFS_GET_REFERRALS_EX = 0x0006_01B0,
        /// The compression of a file.
        GET_COMPRESSION = 0x0009_003C,
        /// Sets a reparse point.
        SET_REPARSE_POINT = 0x0009_00A4,
        /// The reparse point.
        GET_REPARSE_POINT = 0x0009_00A8,
        /// Deletes a reparse point.
        DELETE_REPARSE_POINT = 0x0009_00AC,
        /// The object id, made if there is none.
        CREATE_OR_GET_OBJECT_ID = 0x0009_00C0,
        /// Lets a file have holes.
        SET_SPARSE = 0x0009_00C4,
        /// Integrity streams of a file.
        GET_INTEGRITY_INFORMATION = 0x0009_027C,
        /// Of virtual disks that are shared.
        SVHDX_SYNC_TUNNEL_REQUEST = 0x0009_0304,
        /// Quality of service of storage.
        STORAGE_QOS_CONTROL = 0x0009_0350,
        /// Ranges that are not holes.
        QUERY_ALLOCATED_RANGES = 0x0009_40CF,
        /// A token for data to be copied.
        OFFLOAD_READ = 0x0009_4264,
        /// Makes a hole.
        SET_ZERO_DATA = 0x0009_80C8,
        /// Ranges that are no longer needed.
        FILE_LEVEL_TRIM = 0x0009_8208,
        /// Copies the data of a token.
        OFFLOAD_WRITE = 0x0009_8268,
        /// Shares blocks with another file.
        DUPLICATE_EXTENTS_TO_FILE = 0x0009_8344,
        /// Shares blocks with another file, atomically if asked.
        DUPLICATE_EXTENTS_TO_FILE_EX = 0x0009_83E8,
        /// Sets the compression of a file.
        SET_COMPRESSION = 0x0009_C040,
        /// Sets integrity streams of a file.
        SET_INTEGRITY_INFORMATION = 0x0009_C280,
        /// What a pipe holds, without taking it.
        PIPE_PEEK = 0x0011_400C,
        /// Waits for a pipe.
        PIPE_WAIT = 0x0011_0018,
        /// Writes to a pipe and reads the answer.
        PIPE_TRANSCEIVE = 0x0011_C017,
        /// A key that stands for an open as the source of a copy.
        SRV_REQUEST_RESUME_KEY = 0x0014_0078,
        /// Keeps an open over a lost connection.
        LMR_REQUEST_RESILIENCY = 0x0014_01D4,
        /// The server's network interfaces.
        QUERY_NETWORK_INTERFACE_INFO = 0x0014_01FC,
        /// Whether NEGOTIATE was tampered with.
        VALIDATE_NEGOTIATE_INFO = 0x0014_0204,
        /// The snapshots of a file.
        SRV_ENUMERATE_SNAPSHOTS = 0x0014_4064,
        /// Copies on the server; the target is open for reading too.
        SRV_COPYCHUNK = 0x0014_40F2,
        /// Hashes for BranchCache.
        SRV_READ_HASH = 0x0014_41BB,
        /// Copies on the server.
        SRV_COPYCHUNK_WRITE = 0x0014_80F2,
    }
}

/// VALIDATE_NEGOTIATE_INFO, input. \[MS-SMB2\] 2.2.31.4
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidateNegotiateInfoRequest {
    /// As in the NEGOTIATE.
    pub capabilities: Capabilities,
    /// As in the NEGOTIATE.
    pub guid: Guid,
    /// As in the NEGOTIATE.
    pub security_mode: SecurityMode,
    /// As in the NEGOTIATE.
    pub dialects: Vec<Dialect>,
}

impl ValidateNegotiateInfoRequest {
    /// Reads the input.
    pub fn decode(input: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(input);
        let capabilities = Capabilities(reader.u32("Capabilities")?);
        let guid = reader.guid("Guid")?;
        let security_mode = SecurityMode(reader.u16("SecurityMode")?);
        let count = usize::from(reader.u16("DialectCount")?);
        let pairs = reader.bytes("Dialects", 2 * count)?.chunks_exact(2);
        let dialects = pairs
            .map(|pair| Dialect(u16::from_le_bytes([pair[0], pair[1]])))
            .collect();
        Ok(Self {
            capabilities,
            guid,
            security_mode,
            dialects,
        })
    }

    /// The input.
    pub fn encode(&self) -> Vec<u8> {
        let mut input = Vec::new();
        input.put_u32(self.capabilities.0);
        input.put(&self.guid.0);
        input.put_u16(self.security_mode.0);
        input.put_u16(u16_of(self.dialects.len()));
        for dialect in &self.dialects {
            input.put_u16(dialect.0);
        }
        input
    }
}

/// VALIDATE_NEGOTIATE_INFO, output. \[MS-SMB2\] 2.2.32.6
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidateNegotiateInfoResponse {
    /// As in the NEGOTIATE.
    pub capabilities: Capabilities,
    /// As in the NEGOTIATE.
    pub guid: Guid,
    /// As in the NEGOTIATE.
    pub security_mode: SecurityMode,
    /// As in the NEGOTIATE.
    pub dialect: Dialect,
}

impl ValidateNegotiateInfoResponse {
    /// Reads the output.
    pub fn decode(output: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(output);
        Ok(Self {
            capabilities: Capabilities(reader.u32("Capabilities")?),
            guid: reader.guid("Guid")?,
            security_mode: SecurityMode(reader.u16("SecurityMode")?),
            dialect: Dialect(reader.u16("Dialect")?),
        })
    }

    /// The output.
    pub fn encode(&self) -> Vec<u8> {
        let mut output = Vec::new();
        output.put_u32(self.capabilities.0);
        output.put(&self.guid.0);
        output.put_u16(self.security_mode.0);
        output.put_u16(self.dialect.0);
        output
    }
}

open_flags! {
    /// What a network interface can do. \[MS-SMB2\] 2.2.32.5
    InterfaceCapability(u32) {
        /// Receives on several queues.
        RSS_CAPABLE = 0x0000_0001,
        /// RDMA.
        RDMA_CAPABLE = 0x0000_0002,
    }
}

/// An address of an interface. \[MS-SMB2\] 2.2.32.5.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketAddress {
    /// IPv4, family 0x0002. \[MS-SMB2\] 2.2.32.5.1.1
    V4([u8; 4]),
    /// IPv6, family 0x0017. \[MS-SMB2\] 2.2.32.5.1.2
    V6([u8; 16]),
    /// Another family; its 126 bytes are passed over.
    Other(u16),
}

/// One element of QUERY_NETWORK_INTERFACE_INFO. \[MS-SMB2\] 2.2.32.5
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkInterface {
    /// The number of the interface.
    pub if_index: u32,
    /// What it can do.
    pub capability: InterfaceCapability,
    /// Bits per second.
    pub link_speed: u64,
    /// The address.
    pub address: SocketAddress,
}

impl NetworkInterface {
    /// Bytes of an element.
    pub const LEN: usize = 152;
    /// Most elements of an answer that are read.
    pub const MAX_COUNT: usize = 1024;

    /// Reads the output of QUERY_NETWORK_INTERFACE_INFO.
    pub fn decode_list(output: &[u8]) -> Result<Vec<Self>, DecodeError> {
        let mut interfaces = Vec::new();
        let mut left = output;
        while !left.is_empty() {
            let mut reader = Reader::new(left);
            let next = reader.u32("Next")?;
            let is_forward = (next as usize) >= Self::LEN && (next as usize) < left.len();
            if (next != 0 && !is_forward) || interfaces.len() == Self::MAX_COUNT {
                let (field, value) = ("Next", next.into());
                return Err(DecodeError::Invalid { field, value });
            }
            interfaces.push(Self::decode(&mut reader)?);
            left = if next == 0 {
                &[]
            } else {
                &left[next as usize..]
            };
        }
        Ok(interfaces)
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let if_index = reader.u32("IfIndex")?;
        let capability = InterfaceCapability(reader.u32("Capability")?);
        reader.skip("Reserved", 4)?;
        let link_speed = reader.u64("LinkSpeed")?;
        let address = decode_address(reader.bytes("SockAddr_Storage", 128)?)?;
        Ok(Self {
            if_index,
            capability,
            link_speed,
            address,
        })
    }

    /// The output of QUERY_NETWORK_INTERFACE_INFO.
    pub fn encode_list(interfaces: &[Self]) -> Vec<u8> {
        let mut output = Vec::with_capacity(interfaces.len() * Self::LEN);
        for (index, interface) in interfaces.iter().enumerate() {
            let is_last = index + 1 == interfaces.len();
            output.put_u32(if is_last { 0 } else { u32_of(Self::LEN) });
            interface.encode(&mut output);
        }
        output
    }

    fn encode(&self, output: &mut Vec<u8>) {
        output.put_u32(self.if_index);
        output.put_u32(self.capability.0);
        output.put_u32(0);
        output.put_u64(self.link_speed);
        let end = output.len() + 128;
        encode_address(&self.address, output);
        output.resize(end, 0);
    }
}

/// AF_INET of Windows.
const FAMILY_V4: u16 = 0x0002;
/// AF_INET6 of Windows.
const FAMILY_V6: u16 = 0x0017;

fn decode_address(storage: &[u8]) -> Result<SocketAddress, DecodeError> {
    let mut reader = Reader::new(storage);
    match reader.u16("Family")? {
        FAMILY_V4 => {
            reader.skip("Port", 2)?;
            reader.array("IPv4Address").map(SocketAddress::V4)
        }
        FAMILY_V6 => {
            reader.skip("Port", 6)?;
            reader.array("IPv6Address").map(SocketAddress::V6)
        }
        family => Ok(SocketAddress::Other(family)),
    }
}

fn encode_address(address: &SocketAddress, output: &mut Vec<u8>) {
    match address {
        SocketAddress::V4(address) => {
            output.put_u16(FAMILY_V4);
            output.put_u16(0);
            output.put(address);
        }
        SocketAddress::V6(address) => {
            output.put_u16(FAMILY_V6);
            output.put(&[0; 6]);
            output.put(address);
        }
        SocketAddress::Other(family) => output.put_u16(*family),
    }
}

/// SRV_REQUEST_RESUME_KEY, output. \[MS-SMB2\] 2.2.32.3
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResumeKeyResponse {
    /// Stands for the open.
    pub resume_key: [u8; 24],
}

impl ResumeKeyResponse {
    /// Reads the output.
    pub fn decode(output: &[u8]) -> Result<Self, DecodeError> {
        let resume_key = Reader::new(output).array("ResumeKey")?;
        Ok(Self { resume_key })
    }

    /// The output: the key, a ContextLength of zero, and four bytes of context, as Windows sends
    /// them: 32 bytes in all.
    pub fn encode(&self) -> Vec<u8> {
        let mut output = self.resume_key.to_vec();
        output.put_u64(0);
        output
    }
}

/// A range to copy. \[MS-SMB2\] 2.2.31.1.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Bytes from the start of the source.
    pub source_offset: u64,
    /// Bytes from the start of the target.
    pub target_offset: u64,
    /// Bytes.
    pub length: u32,
}

/// SRV_COPYCHUNK and SRV_COPYCHUNK_WRITE, input. \[MS-SMB2\] 2.2.31.1
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyChunkRequest {
    /// Stands for the source.
    pub source_key: [u8; 24],
    /// The ranges.
    pub chunks: Vec<Chunk>,
}

/// Bytes of a [`Chunk`].
const CHUNK_LEN: u64 = 24;

impl CopyChunkRequest {
    /// Reads the input.
    pub fn decode(input: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(input);
        let source_key = reader.array("SourceKey")?;
        let chunk_count = reader.u32("ChunkCount")?;
        reader.skip("Reserved", 4)?;
        let needed = u64::from(chunk_count) * CHUNK_LEN;
        if needed > reader.left() as u64 {
            let (field, value) = ("ChunkCount", chunk_count.into());
            return Err(DecodeError::Invalid { field, value });
        }
        let chunks = (0..chunk_count).map(|_| decode_chunk(&mut reader));
        Ok(Self {
            source_key,
            chunks: chunks.collect::<Result<_, _>>()?,
        })
    }

    /// The input.
    pub fn encode(&self) -> Vec<u8> {
        let mut input = self.source_key.to_vec();
        input.put_u32(u32_of(self.chunks.len()));
        input.put_u32(0);
        for chunk in &self.chunks {
            input.put_u64(chunk.source_offset);
            input.put_u64(chunk.target_offset);
            input.put_u32(chunk.length);
            input.put_u32(0);
        }
        input
    }
}

fn decode_chunk(reader: &mut Reader<'_>) -> Result<Chunk, DecodeError> {
    let source_offset = reader.u64("SourceOffset")?;
    let target_offset = reader.u64("TargetOffset")?;
    let length = reader.u32("Length")?;
    reader.skip("Reserved", 4)?;
    Ok(Chunk {
        source_offset,
        target_offset,
        length,
    })
}

/// SRV_COPYCHUNK, output: what was copied; or, with INVALID_PARAMETER, the limits.
/// \[MS-SMB2\] 2.2.32.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyChunkResponse {
    /// Ranges copied; or the most ranges of a request.
    pub chunks_written: u32,
    /// Bytes of the range that failed; or the most bytes of a range.
    pub chunk_bytes_written: u32,
    /// Bytes copied; or the most bytes of a request.
    pub total_bytes_written: u32,
}

impl CopyChunkResponse {
    /// Reads the output.
    pub fn decode(output: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(output);
        Ok(Self {
            chunks_written: reader.u32("ChunksWritten")?,
            chunk_bytes_written: reader.u32("ChunkBytesWritten")?,
            total_bytes_written: reader.u32("TotalBytesWritten")?,
        })
    }

    /// The output.
    pub fn encode(&self) -> Vec<u8> {
        let mut output = Vec::new();
        output.put_u32(self.chunks_written);
        output.put_u32(self.chunk_bytes_written);
        output.put_u32(self.total_bytes_written);
        output
    }
}

/// SET_ZERO_DATA, input. \[MS-FSCC\] 2.3.71
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZeroData {
    /// The first byte of the hole.
    pub file_offset: u64,
    /// The first byte after the hole.
    pub beyond_final_zero: u64,
}

impl ZeroData {
    /// Reads the input.
    pub fn decode(input: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(input);
        Ok(Self {
            file_offset: reader.u64("FileOffset")?,
            beyond_final_zero: reader.u64("BeyondFinalZero")?,
        })
    }

    /// The input.
    pub fn encode(&self) -> Vec<u8> {
        let mut input = Vec::new();
        input.put_u64(self.file_offset);
        input.put_u64(self.beyond_final_zero);
        input
    }
}

/// A range of QUERY_ALLOCATED_RANGES: one in the input, any number in the output.
/// \[MS-FSCC\] 2.3.51, 2.3.52
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocatedRange {
    /// Bytes from the start of the file.
    pub file_offset: u64,
    /// Bytes.
    pub length: u64,
}

impl AllocatedRange {
    /// Bytes of a range.
    pub const LEN: usize = 16;

    /// Reads the input.
    pub fn decode(input: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(input);
        Ok(Self {
            file_offset: reader.u64("FileOffset")?,
            length: reader.u64("Length")?,
        })
    }

    /// The input, or one range of the output.
    pub fn encode(&self, buffer: &mut Vec<u8>) {
        buffer.put_u64(self.file_offset);
        buffer.put_u64(self.length);
    }

    /// Reads the output; bytes after the last whole range are passed over.
    pub fn decode_list(output: &[u8]) -> Result<Vec<Self>, DecodeError> {
        output.chunks_exact(Self::LEN).map(Self::decode).collect()
    }
}
