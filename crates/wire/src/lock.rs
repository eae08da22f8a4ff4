//! LOCK: lock and unlock byte ranges. \[MS-SMB2\] 2.2.26, 2.2.27

use alloc::vec::Vec;

use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::ids::FileId;
use crate::layout::{begin, empty_message, u16_of};
use crate::open_enum::open_flags;

/// Bytes of one element.
const ELEMENT_LEN: usize = 24;

open_flags! {
    /// What to do with a range. \[MS-SMB2\] 2.2.26.1
    LockFlags(u32) {
        /// Others may read.
        SHARED_LOCK = 0x0000_0001,
        /// Others may not read or write.
        EXCLUSIVE_LOCK = 0x0000_0002,
        /// Unlock.
        UNLOCK = 0x0000_0004,
        /// Do not wait.
        FAIL_IMMEDIATELY = 0x0000_0010,
    }
}

/// A range and what to do with it. \[MS-SMB2\] 2.2.26.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockElement {
    /// Bytes from the start of the file.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
    /// What to do.
    pub flags: LockFlags,
}

/// Which ranges to lock or unlock. \[MS-SMB2\] 2.2.26
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// LockSequenceNumber in the low 4 bits, LockSequenceIndex above. Reserved in dialect 2.0.2.
    pub lock_sequence: u32,
    /// The open.
    pub file_id: FileId,
    /// The ranges. No range at all is not refused here.
    pub locks: Vec<LockElement>,
}

impl Request {
    /// The number of the lock sequence. \[MS-SMB2\] 2.2.26
    pub fn lock_sequence_number(&self) -> u8 {
        (self.lock_sequence & 0x0F) as u8
    }

    /// The index of the lock sequence; 0 for none. \[MS-SMB2\] 2.2.26
    pub fn lock_sequence_index(&self) -> u32 {
        self.lock_sequence >> 4
    }

    /// Reads the body of a message.
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

    /// Appends the body to a message that holds its header.
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
    /// The ranges are locked or unlocked. \[MS-SMB2\] 2.2.27
    Response, "LOCK response"
}
