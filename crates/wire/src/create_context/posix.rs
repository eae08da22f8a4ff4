//! The create context of the SMB3 POSIX extensions, as Samba and cifs.ko implement them.

use alloc::vec::Vec;

use super::check_length;
use crate::cursor::Reader;
use crate::error::DecodeError;

/// Data of the POSIX create context in a request: the client uses the SMB3 POSIX extensions for the
/// file. \[MS-SMB2\] does not specify it; the layout is that of Samba and the Linux client
/// (cifs.ko). The data of the response are a
/// [`PosixCreateResponse`](crate::posix::PosixCreateResponse).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PosixRequest {
    /// Permission bits (`st_mode & 07777`) that the server sets if it creates the file. Higher bits
    /// have no meaning: cifs.ko sends the type of `st_mode` in them, or 0xFFFF for no mode.
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
