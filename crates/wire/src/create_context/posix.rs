//! The context of the POSIX extensions, which Samba and cifs.ko share.

use alloc::vec::Vec;

use super::check_length;
use crate::cursor::{Put, Reader};
use crate::error::DecodeError;

/// POSIX, request: the mode of a new file. Not of \[MS-SMB2\]; Samba and cifs.ko.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PosixRequest {
    /// The permission bits.
    pub mode: u32,
}

impl PosixRequest {
    /// Reads the data of a context.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        check_length(data, "POSIX", 4)?;
        let mode = Reader::new(data).u32("POSIX mode")?;
        Ok(Self { mode })
    }

    /// The data of a context.
    pub fn encode(&self) -> Vec<u8> {
        self.mode.to_le_bytes().to_vec()
    }
}

/// POSIX, response. Not of \[MS-SMB2\]; Samba and cifs.ko.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PosixResponse<'a> {
    /// Hard links.
    pub link_count: u32,
    /// The reparse tag; 0 for none.
    pub reparse_tag: u32,
    /// The permission bits.
    pub mode: u32,
    /// The owner's SID, then the group's, as they stand on the wire.
    pub sids: &'a [u8],
}

impl<'a> PosixResponse<'a> {
    /// Reads the data of a context.
    pub fn decode(data: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(data);
        Ok(Self {
            link_count: reader.u32("POSIX nlinks")?,
            reparse_tag: reader.u32("POSIX reparse_tag")?,
            mode: reader.u32("POSIX mode")?,
            sids: reader.rest(),
        })
    }

    /// The data of a context.
    pub fn encode(&self) -> Vec<u8> {
        let mut data = Vec::new();
        data.put_u32(self.link_count);
        data.put_u32(self.reparse_tag);
        data.put_u32(self.mode);
        data.put(self.sids);
        data
    }
}
