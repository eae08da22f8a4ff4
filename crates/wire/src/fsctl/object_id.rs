//! Object ids.

use alloc::vec::Vec;

use crate::Guid;
use crate::cursor::{Put, Reader};
use crate::error::DecodeError;

/// FILE_OBJECTID_BUFFER, the output of CREATE_OR_GET_OBJECT_ID. \[MS-FSCC\] 2.1.3.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectIdBuffer {
    /// The file's id, alone of its kind on the volume.
    pub object_id: Guid,
    /// The volume on which the file was made.
    pub birth_volume_id: Guid,
    /// The file's id when it was made.
    pub birth_object_id: Guid,
    /// Nothing uses it.
    pub domain_id: Guid,
}

impl ObjectIdBuffer {
    /// Bytes on the wire.
    pub const LEN: u32 = 64;

    /// Reads the output.
    pub fn decode(output: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(output);
        Ok(Self {
            object_id: reader.guid("ObjectId")?,
            birth_volume_id: reader.guid("BirthVolumeId")?,
            birth_object_id: reader.guid("BirthObjectId")?,
            domain_id: reader.guid("DomainId")?,
        })
    }

    /// The output.
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
