//! Copies on the server.

use alloc::vec::Vec;

use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::layout::u32_of;

/// SRV_REQUEST_RESUME_KEY, output. \[MS-SMB2\] 2.2.32.3
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResumeKeyResponse {
    /// Stands for the open.
    pub resume_key: [u8; 24],
}

impl ResumeKeyResponse {
    /// Bytes of the output.
    pub const LEN: u32 = 32;

    /// Reads the output.
    pub fn decode(output: &[u8]) -> Result<Self, DecodeError> {
        let resume_key = Reader::new(output).array("ResumeKey")?;
        Ok(Self { resume_key })
    }

    /// The output: the key, a ContextLength of zero, and the four bytes of a context all the same
    /// that Windows sends and Samba's clients read.
    pub fn encode(&self) -> Vec<u8> {
        let mut output = self.resume_key.to_vec();
        output.put_u32(0);
        output.put_u32(0);
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyChunkResponse {
    /// Ranges copied; or the most ranges of a request.
    pub chunks_written: u32,
    /// Bytes of the range that failed; or the most bytes of a range.
    pub chunk_bytes_written: u32,
    /// Bytes copied; or the most bytes of a request.
    pub total_bytes_written: u32,
}

impl CopyChunkResponse {
    /// Bytes of the output.
    pub const LEN: u32 = 12;

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
