//! Create contexts: the chain of contexts in CREATE requests and responses, and the data of most of
//! them. \[MS-SMB2\] 2.2.13.2, 2.2.14.2
//!
//! This module does not decode the data of EXTENDED_ATTRIBUTES and SECURITY_DESCRIPTOR.
//! [`crate::aapl`] decodes the data of APPLE.

use alloc::vec::Vec;

use crate::access::AccessMask;
use crate::cursor::{Put, Reader, slice_at};
use crate::error::DecodeError;
use crate::layout::{u16_of, u32_of};
use crate::status::Status;
use crate::time::FileTime;

mod app_instance;
mod durable;
mod lease;
mod posix;

pub use app_instance::{AppInstanceId, AppInstanceVersion};
pub use durable::{
    DURABLE_REQUEST_DATA, DURABLE_RESPONSE_DATA, DurableFlags, DurableReconnect,
    DurableReconnectV2, DurableRequestV2, DurableResponseV2,
};
pub use lease::{Lease, LeaseFlags, LeaseState, LeaseV2};
pub use posix::PosixRequest;

/// Maximum number of create contexts in one CREATE message; [`decode_list`] fails for more. The
/// specification defines about a dozen, each at most once; the higher limit leaves space for types
/// of later versions.
pub const MAX_CONTEXTS: usize = 64;

/// Length of a context before its name, in bytes.
const HEAD_LEN: usize = 16;

/// Names of the create contexts, the optional extensions of CREATE requests and responses, as they
/// appear on the wire. \[MS-SMB2\] 2.2.13.2
pub mod name {
    /// Name of the create context with extended attributes for a new file, as
    /// FILE_FULL_EA_INFORMATION.
    pub const EXTENDED_ATTRIBUTES: &[u8] = b"ExtA";
    /// Name of the create context with the security descriptor for a new file.
    pub const SECURITY_DESCRIPTOR: &[u8] = b"SecD";
    /// Name of the create context that requests a durable open, version 1.
    pub const DURABLE_REQUEST: &[u8] = b"DHnQ";
    /// Name of the create context that reconnects to a durable open after a lost connection,
    /// version 1.
    pub const DURABLE_RECONNECT: &[u8] = b"DHnC";
    /// Name of the create context with the disk space to allocate for a new file.
    pub const ALLOCATION_SIZE: &[u8] = b"AlSi";
    /// Name of the create context that queries the maximal access rights of the user.
    pub const MAXIMAL_ACCESS: &[u8] = b"MxAc";
    /// Name of the create context that opens an earlier version of the file, from a snapshot.
    pub const TIMEWARP: &[u8] = b"TWrp";
    /// Name of the create context that queries the numeric identifiers of the file and its volume.
    pub const ON_DISK_ID: &[u8] = b"QFid";
    /// Name of the create context that requests a lease, version 1 or 2, which differ in length.
    pub const LEASE: &[u8] = b"RqLs";
    /// Name of the create context that requests a durable or persistent open, version 2.
    pub const DURABLE_REQUEST_V2: &[u8] = b"DH2Q";
    /// Name of the create context that reconnects to a durable or persistent open, version 2.
    pub const DURABLE_RECONNECT_V2: &[u8] = b"DH2C";
    /// Name of the create context with Apple's extensions, which are not part of \[MS-SMB2\].
    pub const APPLE: &[u8] = b"AAPL";
    /// Name of the create context that identifies an application instance, which can move between
    /// clients. The server closes the opens that the instance left on another client.
    pub const APP_INSTANCE_ID: &[u8] =
        b"\x45\xBC\xA6\x6A\xEF\xA7\xF7\x4A\x90\x08\xFA\x46\x2E\x14\x4D\x74";
    /// Name of the create context with the version of the application instance. A newer version
    /// replaces the opens of an older one.
    pub const APP_INSTANCE_VERSION: &[u8] =
        b"\xB9\x82\xD0\xB7\x3B\x56\x07\x4F\xA0\x7B\x52\x4A\x81\x16\xA0\x10";
    /// Name of the create context that opens a shared virtual disk. \[MS-RSVD\]
    pub const SVHDX_OPEN_DEVICE: &[u8] =
        b"\x9C\xCB\xCF\x9E\x04\xC1\xE6\x43\x98\x0E\x15\x8D\xA1\xF6\xEC\x83";
    /// Name of the create context with the SMB3 POSIX extensions of Samba and Linux, which are not
    /// part of \[MS-SMB2\].
    pub const POSIX: &[u8] = b"\x93\xAD\x25\x50\x9C\xB4\x11\xE7\xB4\x23\x83\xDE\x96\x8B\xCD\x7C";
}

/// One create context, an optional extension of a CREATE request or response: a name and undecoded
/// data. \[MS-SMB2\] 2.2.13.2
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawContext<'a> {
    /// Name of the create context, such as b"RqLs": one of the constants in [`name`], or unknown.
    pub name: &'a [u8],
    /// Data of the create context, undecoded, in the format that belongs to the name.
    pub data: &'a [u8],
}

/// Returns the data of the first create context in `contexts` with this name; `None` when no
/// context has it.
pub fn find<'a>(contexts: &[RawContext<'a>], name: &[u8]) -> Option<&'a [u8]> {
    let context = contexts.iter().find(|context| context.name == name)?;
    Some(context.data)
}

/// Decodes `list`, the encoded chain of create contexts of a CREATE request or response.
///
/// # Errors
/// Fails when a context is truncated or has a name of less than 4 bytes, its Next is not valid, or
/// the chain has more than [`MAX_CONTEXTS`] contexts. Next is a relative offset, a multiple of 8
/// and at least 16, so every chain ends.
pub fn decode_list(list: &[u8]) -> Result<Vec<RawContext<'_>>, DecodeError> {
    let mut contexts = Vec::new();
    let mut left = list;
    while !left.is_empty() {
        let next = Reader::new(left).u32("CreateContext Next")?;
        check_next(next, left.len())?;
        if contexts.len() == MAX_CONTEXTS {
            return Err(invalid("CreateContext Next", next.into()));
        }
        let end = if next == 0 { left.len() } else { next as usize };
        let (context, rest) = left.split_at(end);
        contexts.push(decode_one(context)?);
        left = rest;
    }
    Ok(contexts)
}

fn check_next(next: u32, left: usize) -> Result<(), DecodeError> {
    let is_last = next == 0;
    let is_forward = next as usize >= HEAD_LEN && next.is_multiple_of(8) && (next as usize) <= left;
    if is_last || is_forward {
        Ok(())
    } else {
        Err(invalid("CreateContext Next", next.into()))
    }
}

fn invalid(field: &'static str, value: u64) -> DecodeError {
    DecodeError::Invalid { field, value }
}

/// Decodes one context, which is all of `context`. A context without data may have any DataOffset;
/// Windows and Samba ignore it.
fn decode_one(context: &[u8]) -> Result<RawContext<'_>, DecodeError> {
    let mut reader = Reader::new(context);
    reader.skip("CreateContext Next", 4)?;
    let name_offset = reader.u16("CreateContext NameOffset")?;
    let name_length = reader.u16("CreateContext NameLength")?;
    reader.skip("CreateContext Reserved", 2)?;
    let data_offset = reader.u16("CreateContext DataOffset")?;
    let data_length = reader.u32("CreateContext DataLength")?;
    // Windows and Samba refuse a shorter name, as smbtorture smb2.create.blob checks.
    if name_length < 4 {
        return Err(invalid("CreateContext NameLength", name_length.into()));
    }
    let (name, data) = ("CreateContext Name", "CreateContext Data");
    Ok(RawContext {
        name: slice_at(context, name, name_offset.into(), name_length.into())?,
        data: slice_at(context, data, data_offset.into(), data_length.into())?,
    })
}

/// Encodes a chain of create contexts for a CREATE request or response. Each starts at a multiple
/// of 8 bytes; the last one has no padding. Panics when a name is longer than 64 KiB or data are
/// longer than 4 GiB.
pub fn encode_list(contexts: &[RawContext<'_>]) -> Vec<u8> {
    let mut list = Vec::new();
    for (index, context) in contexts.iter().enumerate() {
        let is_last = index + 1 == contexts.len();
        encode_one(context, is_last, &mut list);
    }
    list
}

fn encode_one(context: &RawContext<'_>, is_last: bool, list: &mut Vec<u8>) {
    let data_offset = (HEAD_LEN + context.name.len()).next_multiple_of(8);
    let length = data_offset + context.data.len();
    let next = if is_last {
        0
    } else {
        length.next_multiple_of(8)
    };
    list.put_u32(u32_of(next));
    list.put_u16(u16_of(HEAD_LEN));
    list.put_u16(u16_of(context.name.len()));
    list.put_u16(0);
    list.put_u16(u16_of(data_offset));
    list.put_u32(u32_of(context.data.len()));
    list.put(context.name);
    list.align(8);
    list.put(context.data);
    if !is_last {
        list.align(8);
    }
}

/// Fails unless `data` has `length` bytes.
fn check_length(data: &[u8], field: &'static str, length: usize) -> Result<(), DecodeError> {
    if data.len() == length {
        Ok(())
    } else {
        Err(invalid(field, data.len() as u64))
    }
}

/// Data of a MAXIMAL_ACCESS (MxAc) create context in a request: the client queries its maximal
/// access rights to the file. \[MS-SMB2\] 2.2.13.2.5
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaximalAccessRequest {
    /// The server returns the rights only if the file was written after this time; `None` always
    /// returns them.
    pub timestamp: Option<FileTime>,
}

impl MaximalAccessRequest {
    /// Decodes the data of a MAXIMAL_ACCESS (MxAc) create context in a request. Fails unless `data`
    /// has 0 or 8 bytes.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        if data.is_empty() {
            return Ok(Self { timestamp: None });
        }
        check_length(data, "MxAc", 8)?;
        let timestamp = Some(FileTime(Reader::new(data).u64("MxAc")?));
        Ok(Self { timestamp })
    }

    /// Encodes the data of a MAXIMAL_ACCESS (MxAc) create context in a request: 8 bytes, or 0
    /// without a timestamp.
    pub fn encode(&self) -> Vec<u8> {
        match self.timestamp {
            Some(timestamp) => timestamp.0.to_le_bytes().to_vec(),
            None => Vec::new(),
        }
    }
}

/// Data of a MAXIMAL_ACCESS (MxAc) create context in a response: the user's maximal access rights
/// to the opened file. \[MS-SMB2\] 2.2.14.2.5
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaximalAccessResponse {
    /// Result of the server's query: `maximal_access` is valid if it is SUCCESS.
    pub query_status: Status,
    /// Maximal access rights of the user to the file.
    pub maximal_access: AccessMask,
}

impl MaximalAccessResponse {
    /// Decodes the data of a MAXIMAL_ACCESS (MxAc) create context in a response. Fails unless
    /// `data` has 8 bytes.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        check_length(data, "MxAc", 8)?;
        let mut reader = Reader::new(data);
        Ok(Self {
            query_status: Status(reader.u32("QueryStatus")?),
            maximal_access: AccessMask(reader.u32("MaximalAccess")?),
        })
    }

    /// Encodes the data of a MAXIMAL_ACCESS (MxAc) create context in a response: 8 bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut data = Vec::new();
        data.put_u32(self.query_status.0);
        data.put_u32(self.maximal_access.0);
        data
    }
}

/// Data of an ON_DISK_ID (QFid) create context in a response: the identifiers of the file and its
/// volume. The context of the request has no data. \[MS-SMB2\] 2.2.14.2.9
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnDiskIdResponse {
    /// Identifier of the file, unique on its volume.
    pub disk_file_id: u64,
    /// Identifier of the volume that the file is on.
    pub volume_id: u64,
}

impl OnDiskIdResponse {
    /// Decodes the data of an ON_DISK_ID (QFid) create context in a response. Fails unless `data`
    /// has 32 bytes.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        check_length(data, "QFid", 32)?;
        let mut reader = Reader::new(data);
        Ok(Self {
            disk_file_id: reader.u64("DiskFileId")?,
            volume_id: reader.u64("VolumeId")?,
        })
    }

    /// Encodes the data of an ON_DISK_ID (QFid) create context in a response: 32 bytes, the last 16
    /// of which are zero.
    pub fn encode(&self) -> Vec<u8> {
        let mut data = Vec::new();
        data.put_u64(self.disk_file_id);
        data.put_u64(self.volume_id);
        data.put(&[0; 16]);
        data
    }
}

/// Data of an ALLOCATION_SIZE (AlSi) create context in a request: the client asks to reserve space
/// for a new file. \[MS-SMB2\] 2.2.13.2.6
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocationSize {
    /// Space to allocate for a new file, in bytes.
    pub allocation_size: u64,
}

impl AllocationSize {
    /// Decodes the data of an ALLOCATION_SIZE (AlSi) create context. Fails unless `data` has 8
    /// bytes.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        check_length(data, "AlSi", 8)?;
        let allocation_size = Reader::new(data).u64("AllocationSize")?;
        Ok(Self { allocation_size })
    }

    /// Encodes the data of an ALLOCATION_SIZE (AlSi) create context: 8 bytes.
    pub fn encode(&self) -> Vec<u8> {
        self.allocation_size.to_le_bytes().to_vec()
    }
}

/// Data of a TIMEWARP (TWrp) create context in a request: the client opens the file as it was in a
/// snapshot. \[MS-SMB2\] 2.2.13.2.7
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timewarp {
    /// Creation time of the snapshot, which identifies it.
    pub timestamp: FileTime,
}

impl Timewarp {
    /// Decodes the data of a TIMEWARP (TWrp) create context. Fails unless `data` has 8 bytes.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        check_length(data, "TWrp", 8)?;
        let timestamp = FileTime(Reader::new(data).u64("Timestamp")?);
        Ok(Self { timestamp })
    }

    /// Encodes the data of a TIMEWARP (TWrp) create context: 8 bytes.
    pub fn encode(&self) -> Vec<u8> {
        self.timestamp.0.to_le_bytes().to_vec()
    }
}
