//! Object identifiers of files.

use alloc::vec::Vec;

use crate::Guid;
use crate::cursor::{Put, Reader};
use crate::error::DecodeError;

/// FILE_OBJECTID_BUFFER: the object identifier of a file, in the output of
/// FSCTL_CREATE_OR_GET_OBJECT_ID. \[MS-FSCC\] 2.1.3.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectIdBuffer {
    /// Object identifier of the file, unique on the volume.
    pub object_id: Guid,
    /// Identifier of the volume on which the file was created.
    pub birth_volume_id: Guid,
    /// Object identifier that the file had at its creation.
    pub birth_object_id: Guid,
    /// Reserved identifier of a domain; zero in practice.
    pub domain_id: Guid,
}

impl ObjectIdBuffer {
    /// Length of the encoded structure in bytes.
    pub const LEN: u32 = 64;

    /// Decodes the output buffer of an IOCTL response with FSCTL_CREATE_OR_GET_OBJECT_ID. Fails
    /// when `output` has less than 64 bytes.
    pub fn decode(output: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(output);
        Ok(Self {
            object_id: reader.guid("ObjectId")?,
            birth_volume_id: reader.guid("BirthVolumeId")?,
            birth_object_id: reader.guid("BirthObjectId")?,
            domain_id: reader.guid("DomainId")?,
        })
    }

    /// Encodes the output buffer of an IOCTL response with FSCTL_CREATE_OR_GET_OBJECT_ID.
    pub fn encode(&self) -> Vec<u8> {
        let mut output = Vec::new();
        for id in [
            self.object_id,
            self.birth_volume_id,
            self.birth_object_id,
            self.domain_id,
        ] {
            output.put(&id.0);
        }
        output
    }
}
