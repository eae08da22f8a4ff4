//! The create context of the SMB3 POSIX extensions, as Samba and cifs.ko implement them.

use alloc::vec::Vec;

use super::check_length;
use crate::cursor::{Put, Reader};
use crate::error::DecodeError;

/// Data of POSIX in a request. Not part of \[MS-SMB2\]; as in Samba and cifs.ko.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PosixRequest {
    /// Permission bits of a new file (`st_mode & 07777`).
    pub mode: u32,
}

impl PosixRequest {
    /// Decodes the data of the context.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        check_length(data, "POSIX", 4)?;
        let mode = Reader::new(data).u32("POSIX mode")?;
        Ok(Self { mode })
    }

    /// Encodes the data of the context.
    pub fn encode(&self) -> Vec<u8> {
        self.mode.to_le_bytes().to_vec()
    }
}

/// Data of POSIX in a response. Not part of \[MS-SMB2\]; as in Samba and cifs.ko.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PosixResponse<'a> {
    /// Number of hard links.
    pub link_count: u32,
    /// Reparse tag; 0 for a file without a reparse point.
    pub reparse_tag: u32,
    /// Permission bits of the file (`st_mode & 07777`).
    pub mode: u32,
    /// SID of the owner, then SID of the group, both encoded.
    pub sids: &'a [u8],
}

impl<'a> PosixResponse<'a> {
    /// Decodes the data of the context.
    pub fn decode(data: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(data);
        Ok(Self {
            link_count: reader.u32("POSIX nlinks")?,
            reparse_tag: reader.u32("POSIX reparse_tag")?,
            mode: reader.u32("POSIX mode")?,
            sids: reader.rest(),
        })
    }

    /// Encodes the data of the context.
    pub fn encode(&self) -> Vec<u8> {
        let mut data = Vec::new();
        data.put_u32(self.link_count);
        data.put_u32(self.reparse_tag);
        data.put_u32(self.mode);
        data.put(self.sids);
        data
    }
}
