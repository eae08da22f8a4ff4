//! LOCK: lock and unlock byte ranges. \[MS-SMB2\] 2.2.26, 2.2.27

use alloc::vec::Vec;

use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::ids::FileId;
use crate::layout::{begin, empty_message, u16_of};
use crate::open_enum::open_flags;

/// Length of an element in bytes.
const ELEMENT_LEN: usize = 24;

open_flags! {
    /// The action on a byte range of a file. \[MS-SMB2\] 2.2.26.1
    LockFlags(u32) {
        /// Shared lock: other opens may read the range, but not write it.
        SHARED_LOCK = 0x0000_0001,
        /// Exclusive lock: other opens may neither read nor write the range.
        EXCLUSIVE_LOCK = 0x0000_0002,
        /// Unlock the range, which an earlier request of this open has locked.
        UNLOCK = 0x0000_0004,
        /// Fail immediately if another open has locked the range, instead of waiting.
        FAIL_IMMEDIATELY = 0x0000_0010,
    }
}

/// A byte range of a file in a LOCK request, and the action on it: lock or unlock.
/// \[MS-SMB2\] 2.2.26.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockElement {
    /// Offset of the range in bytes from the start of the file.
    pub offset: u64,
    /// Length of the range in bytes.
    pub length: u64,
    /// Flags of the range: a shared lock, an exclusive lock or an unlock, and whether the server
    /// fails at once on a conflict.
    pub flags: LockFlags,
}

/// A LOCK request: the client locks or unlocks byte ranges of an open file. \[MS-SMB2\] 2.2.26
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Number of the LOCK, by which the server recognizes a repeated one: LockSequenceNumber in the
    /// low 4 bits, LockSequenceIndex above. Reserved in dialect 2.0.2.
    pub lock_sequence: u32,
    /// FileId of the file to lock, as the server returned it in the CREATE response.
    pub file_id: FileId,
    /// The byte ranges and the actions on them. `decode` accepts an empty list, which servers
    /// refuse.
    pub locks: Vec<LockElement>,
}

impl Request {
    /// Returns LockSequenceNumber, 0 to 15: the client changes it for each new LOCK with the same
    /// LockSequenceIndex. \[MS-SMB2\] 2.2.26
    pub fn lock_sequence_number(&self) -> u8 {
        (self.lock_sequence & 0x0F) as u8
    }

    /// Returns LockSequenceIndex, which selects one of the server's entries for repeated LOCKs of
    /// the open; 0 for none. \[MS-SMB2\] 2.2.26
    pub fn lock_sequence_index(&self) -> u32 {
        self.lock_sequence >> 4
    }

    /// Decodes a LOCK request from `message`, which starts with its 64-byte SMB2 header. Fails when
    /// `message` is too short, or its StructureSize, a length or an offset is not valid.
    pub fn decode(message: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::body(message, "LOCK request")?;
        reader.structure_size("LOCK request", 48)?;
        let lock_count = usize::from(reader.u16("LockCount")?);
        let lock_sequence = reader.u32("LockSequence")?;
        let file_id = reader.file_id("FileId")?;
        let mut elements = Reader::new(reader.bytes("Locks", lock_count * ELEMENT_LEN)?);
        let mut locks = Vec::with_capacity(lock_count);
        for _ in 0..lock_count {
            locks.push(decode_element(&mut elements)?);
        }
        Ok(Self {
            lock_sequence,
            file_id,
            locks,
        })
    }

    /// Appends the body of a LOCK request to `message`, which must hold exactly its 64-byte SMB2
    /// header. Panics when `message` has another length, or a field is too long for its length
    /// field.
    pub fn encode(&self, message: &mut Vec<u8>) {
        begin(message, 48);
        message.put_u16(u16_of(self.locks.len()));
        message.put_u32(self.lock_sequence);
        message.put_file_id(self.file_id);
        for element in &self.locks {
            message.put_u64(element.offset);
            message.put_u64(element.length);
            message.put_u32(element.flags.0);
            message.put_u32(0);
        }
    }
}

fn decode_element(reader: &mut Reader<'_>) -> Result<LockElement, DecodeError> {
    let offset = reader.u64("Offset")?;
    let length = reader.u64("Length")?;
    let flags = LockFlags(reader.u32("Flags")?);
    reader.skip("Reserved", 4)?;
    Ok(LockElement {
        offset,
        length,
        flags,
    })
}

empty_message! {
    /// A LOCK response: all ranges are locked or unlocked. \[MS-SMB2\] 2.2.27
    Response, "LOCK response"
}
