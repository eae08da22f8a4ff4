//! The streams of a file. \[MS-FSCC\] 2.4.49

use alloc::vec::Vec;

use super::chain::{Chain, ChainWriter};
use super::name::{name_of, put_name_len};
use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::text::Utf16;

/// Alignment of the entries in bytes.
const ALIGNMENT: usize = 8;

/// A data stream of a file: its name and sizes; an entry of the information class STREAM.
/// \[MS-FSCC\] 2.4.49
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileStreamInformation<'a> {
    /// Length of the stream in bytes.
    pub stream_size: u64,
    /// Space allocated to the stream, in bytes.
    pub allocation_size: u64,
    /// Name of the stream with its type: "::$DATA" for the data of the file, ":notes:$DATA" for a
    /// named stream.
    pub name: Utf16<'a>,
}

impl<'a> FileStreamInformation<'a> {
    /// Decodes an entry without its NextEntryOffset.
    fn decode(entry: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(entry);
        let name_len = reader.u32("StreamNameLength")?;
        Ok(Self {
            stream_size: reader.u64("StreamSize")?,
            allocation_size: reader.u64("StreamAllocationSize")?,
            name: name_of(&mut reader, "StreamName", name_len)?,
        })
    }

    /// Appends the encoded entry without its NextEntryOffset.
    fn encode(&self, out: &mut Vec<u8>) {
        put_name_len(out, self.name);
        out.put_u64(self.stream_size);
        out.put_u64(self.allocation_size);
        out.put(self.name.0);
    }
}

/// An encoder of the list of a file's data streams for the information class STREAM.
#[derive(Clone, Debug)]
pub struct StreamWriter(ChainWriter);

impl StreamWriter {
    /// Makes a writer of a list of streams with at most `max_len` bytes.
    pub fn new(max_len: usize) -> Self {
        Self(ChainWriter::new(Vec::new(), ALIGNMENT, max_len))
    }

    /// Appends a stream to the list and returns true. Returns false, without a change, if the list
    /// would exceed its maximum length.
    pub fn push(&mut self, stream: &FileStreamInformation<'_>) -> bool {
        self.0.push(|out| stream.encode(out))
    }

    /// Returns the encoded list of all appended streams; no bytes if it has none.
    pub fn finish(self) -> Vec<u8> {
        self.0.finish()
    }
}

/// Iterates over the encoded list of a file's data streams, in the information class STREAM. A
/// malformed entry gives an error.
#[derive(Clone, Debug)]
pub struct Streams<'a>(Chain<'a>);

impl<'a> Streams<'a> {
    /// Makes the iterator over `bytes`: a list of FILE_STREAM_INFORMATION structures, as a response
    /// to QUERY_INFO has it. Errors appear during the iteration.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(Chain::new(bytes, "FILE_STREAM_INFORMATION", ALIGNMENT))
    }
}

impl<'a> Iterator for Streams<'a> {
    type Item = Result<FileStreamInformation<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.0.next()?;
        Some(entry.and_then(FileStreamInformation::decode))
    }
}
