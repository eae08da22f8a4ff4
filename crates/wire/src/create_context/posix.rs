//! The create context of the SMB3 POSIX extensions, as Samba and cifs.ko implement them.

use alloc::vec::Vec;

use super::check_length;
use crate::cursor::{Put, Reader};
use crate::error::DecodeError;

/// Data of the POSIX create context in a request: the client uses the SMB3 POSIX extensions for the
/// file. \[MS-SMB2\] does not specify it; the layout is that of Samba and the Linux client
/// (cifs.ko).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PosixRequest {
    /// Permission bits (`st_mode & 07777`) that the server sets if it creates the file.
    pub mode: u32,
}

impl PosixRequest {
    /// Decodes the data of a POSIX create context in a request. Fails unless `data` has 4 bytes.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        check_length(data, "POSIX", 4)?;
        let mode = Reader::new(data).u32("POSIX mode")?;
        Ok(Self { mode })
    }

    /// Encodes the data of a POSIX create context in a request: 4 bytes.
    pub fn encode(&self) -> Vec<u8> {
        self.mode.to_le_bytes().to_vec()
    }
}

/// Data of the POSIX create context in a response: the Unix attributes of the opened file.
/// \[MS-SMB2\] does not specify it; the layout is that of Samba and the Linux client (cifs.ko).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PosixResponse<'a> {
    /// Number of hard links of the file.
    pub link_count: u32,
    /// Reparse tag, which is the type of the file's reparse point; 0 for a file without one.
    pub reparse_tag: u32,
    /// Permission bits of the file (`st_mode & 07777`).
    pub mode: u32,
    /// The encoded SID of the file's owner, then the encoded SID of its group.
    pub sids: &'a [u8],
}

impl<'a> PosixResponse<'a> {
    /// Decodes the data of a POSIX create context in a response. Fails when `data` has less than 12
    /// bytes; does not check the SIDs.
    pub fn decode(data: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(data);
        Ok(Self {
            link_count: reader.u32("POSIX nlinks")?,
            reparse_tag: reader.u32("POSIX reparse_tag")?,
            mode: reader.u32("POSIX mode")?,
            sids: reader.rest(),
        })
    }

    /// Encodes the data of a POSIX create context in a response: 12 bytes, then the SIDs.
    pub fn encode(&self) -> Vec<u8> {
        let mut data = Vec::new();
        data.put_u32(self.link_count);
        data.put_u32(self.reparse_tag);
        data.put_u32(self.mode);
        data.put(self.sids);
        data
    }
}
