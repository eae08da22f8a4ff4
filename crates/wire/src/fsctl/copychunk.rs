//! Server-side copies.

use alloc::vec::Vec;

use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::layout::u32_of;

/// Output of FSCTL_SRV_REQUEST_RESUME_KEY: the key by which copy requests name an open file as
/// their source. \[MS-SMB2\] 2.2.32.3
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResumeKeyResponse {
    /// Key that identifies the open file on the server; clients do not interpret it.
    pub resume_key: [u8; 24],
}

impl ResumeKeyResponse {
    /// Length of the encoded output in bytes.
    pub const LEN: u32 = 32;

    /// Decodes the output buffer of an IOCTL response with FSCTL_SRV_REQUEST_RESUME_KEY. Fails when
    /// `output` has less than 24 bytes.
    pub fn decode(output: &[u8]) -> Result<Self, DecodeError> {
        let resume_key = Reader::new(output).array("ResumeKey")?;
        Ok(Self { resume_key })
    }

    /// Encodes the output buffer of 32 bytes: the key, a ContextLength of zero, and four bytes of
    /// Context, which Windows sends regardless and Samba's clients read.
    pub fn encode(&self) -> Vec<u8> {
        let mut output = self.resume_key.to_vec();
        output.put_u32(0);
        output.put_u32(0);
        output
    }
}

/// A range in a server-side copy (FSCTL_SRV_COPYCHUNK): the server copies it from the source file
/// to the target file. \[MS-SMB2\] 2.2.31.1.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Offset of the range in the source file, in bytes.
    pub source_offset: u64,
    /// Offset of the range in the target file, in bytes.
    pub target_offset: u64,
    /// Length of the range in bytes.
    pub length: u32,
}

/// Input of FSCTL_SRV_COPYCHUNK and FSCTL_SRV_COPYCHUNK_WRITE: the client asks the server to copy
/// ranges into the open target file. \[MS-SMB2\] 2.2.31.1
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyChunkRequest {
    /// Key of the open source file, from FSCTL_SRV_REQUEST_RESUME_KEY.
    pub source_key: [u8; 24],
    /// The ranges that the server copies, in this order.
    pub chunks: Vec<Chunk>,
}

/// Length of an encoded [`Chunk`] in bytes.
const CHUNK_LEN: u64 = 24;

impl CopyChunkRequest {
    /// Decodes the input buffer of an IOCTL request with FSCTL_SRV_COPYCHUNK or
    /// FSCTL_SRV_COPYCHUNK_WRITE. Fails when `input` is shorter than its number of ranges requires.
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

    /// Encodes the input buffer of an FSCTL_SRV_COPYCHUNK or FSCTL_SRV_COPYCHUNK_WRITE request.
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

/// Output of FSCTL_SRV_COPYCHUNK and FSCTL_SRV_COPYCHUNK_WRITE: the progress of the copy, or with
/// status INVALID_PARAMETER the limits of the server. \[MS-SMB2\] 2.2.32.1
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyChunkResponse {
    /// Number of ranges that the server copied; with status INVALID_PARAMETER, the maximum number
    /// of ranges in a request.
    pub chunks_written: u32,
    /// Number of bytes that the server copied of the range that failed; with status
    /// INVALID_PARAMETER, the maximum length of a range in bytes.
    pub chunk_bytes_written: u32,
    /// Number of bytes that the server copied in all; with status INVALID_PARAMETER, the maximum
    /// number of bytes in a request.
    pub total_bytes_written: u32,
}

impl CopyChunkResponse {
    /// Length of the encoded output in bytes.
    pub const LEN: u32 = 12;

    /// Decodes the output buffer of an IOCTL response with FSCTL_SRV_COPYCHUNK or
    /// FSCTL_SRV_COPYCHUNK_WRITE. Fails when `output` has less than 12 bytes.
    pub fn decode(output: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(output);
        Ok(Self {
            chunks_written: reader.u32("ChunksWritten")?,
            chunk_bytes_written: reader.u32("ChunkBytesWritten")?,
            total_bytes_written: reader.u32("TotalBytesWritten")?,
        })
    }

    /// Encodes the output buffer of an IOCTL response with FSCTL_SRV_COPYCHUNK or
    /// FSCTL_SRV_COPYCHUNK_WRITE.
    pub fn encode(&self) -> Vec<u8> {
        let mut output = Vec::new();
        output.put_u32(self.chunks_written);
        output.put_u32(self.chunk_bytes_written);
        output.put_u32(self.total_bytes_written);
        output
    }
}
