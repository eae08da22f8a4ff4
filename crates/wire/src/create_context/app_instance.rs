//! The create contexts of application instances, which move between clients with their open files.

use alloc::vec::Vec;

use super::check_length;
use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::ids::Guid;

/// Length in bytes of the data of an APP_INSTANCE_ID create context.
const ID_LEN: usize = 20;
/// Length in bytes of the data of an APP_INSTANCE_VERSION create context.
const VERSION_LEN: usize = 24;

/// Data of an APP_INSTANCE_ID create context in a request: the application instance that opens the
/// file. \[MS-SMB2\] 2.2.13.2.13
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppInstanceId {
    /// AppInstanceId: a random identifier that the application keeps when it moves to another
    /// client.
    pub id: Guid,
}

/// Data of an APP_INSTANCE_VERSION create context in a request: the version of the application
/// instance. A higher version replaces a lower one. \[MS-SMB2\] 2.2.13.2.15
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AppInstanceVersion {
    /// The more significant half of the version.
    pub high: u64,
    /// The less significant half of the version.
    pub low: u64,
}

impl AppInstanceId {
    /// Decodes the data of an APP_INSTANCE_ID create context. Fails unless `data` has 20 bytes.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        check_length(data, "APP_INSTANCE_ID", ID_LEN)?;
        let mut reader = Reader::new(data);
        reader.skip("StructureSize, Reserved", 4)?;
        let id = reader.guid("AppInstanceId")?;
        Ok(Self { id })
    }

    /// Encodes the data of an APP_INSTANCE_ID create context: 20 bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut data = Vec::new();
        data.put_u16(20);
        data.put_u16(0);
        data.put(&self.id.0);
        data
    }
}

impl AppInstanceVersion {
    /// Decodes the data of an APP_INSTANCE_VERSION create context. Fails unless `data` has 24
    /// bytes.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        check_length(data, "APP_INSTANCE_VERSION", VERSION_LEN)?;
        let mut reader = Reader::new(data);
        reader.skip("StructureSize, Reserved, Padding", 8)?;
        Ok(Self {
            high: reader.u64("AppInstanceVersionHigh")?,
            low: reader.u64("AppInstanceVersionLow")?,
        })
    }

    /// Encodes the data of an APP_INSTANCE_VERSION create context: 24 bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut data = Vec::new();
        data.put_u16(24);
        data.put_u16(0);
        data.put_u32(0);
        data.put_u64(self.high);
        data.put_u64(self.low);
        data
    }
}
