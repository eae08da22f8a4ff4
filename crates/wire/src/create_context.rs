//! What a CREATE asks and answers besides: the chain of contexts and what they say.
//! \[MS-SMB2\] 2.2.13.2, 2.2.14.2
//!
//! The data of EXTENDED_ATTRIBUTES, SECURITY_DESCRIPTOR and APPLE are not read here.

use alloc::vec::Vec;

use crate::access::AccessMask;
use crate::cursor::{Put, Reader, slice_at};
use crate::error::DecodeError;
use crate::ids::{FileId, Guid};
use crate::layout::{u16_of, u32_of};
use crate::open_enum::open_flags;
use crate::status::Status;
use crate::time::FileTime;

/// Most contexts of a CREATE. The specification knows a dozen names, each once; the rest is room
/// for those to come.
pub const MAX_CONTEXTS: usize = 64;

/// Bytes before the name of a context.
const HEAD_LEN: usize = 16;

/// Names of contexts. \[MS-SMB2\] 2.2.13.2
pub mod name {
    /// Extended attributes of a new file: FILE_FULL_EA_INFORMATION.
    pub const EXTENDED_ATTRIBUTES: &[u8] = b"ExtA";
    /// The security descriptor of a new file.
    pub const SECURITY_DESCRIPTOR: &[u8] = b"SecD";
    /// A durable open.
    pub const DURABLE_REQUEST: &[u8] = b"DHnQ";
    /// A durable open, again.
    pub const DURABLE_RECONNECT: &[u8] = b"DHnC";
    /// Bytes that a new file should take on the disk.
    pub const ALLOCATION_SIZE: &[u8] = b"AlSi";
    /// What the user may do at most.
    pub const MAXIMAL_ACCESS: &[u8] = b"MxAc";
    /// The file as it was.
    pub const TIMEWARP: &[u8] = b"TWrp";
    /// The file's number on its disk.
    pub const ON_DISK_ID: &[u8] = b"QFid";
    /// A lease, of version 1 or 2 by its length.
    pub const LEASE: &[u8] = b"RqLs";
    /// A durable or persistent open, version 2.
    pub const DURABLE_REQUEST_V2: &[u8] = b"DH2Q";
    /// A durable or persistent open, version 2, again.
    pub const DURABLE_RECONNECT_V2: &[u8] = b"DH2C";
    /// Apple's extensions. Not of \[MS-SMB2\].
    pub const APPLE: &[u8] = b"AAPL";
    /// The instance of an application that moves between clients.
    pub const APP_INSTANCE_ID: &[u8] =
        b"\x45\xBC\xA6\x6A\xEF\xA7\xF7\x4A\x90\x08\xFA\x46\x2E\x14\x4D\x74";
    /// The version of that instance.
    pub const APP_INSTANCE_VERSION: &[u8] =
        b"\xB9\x82\xD0\xB7\x3B\x56\x07\x4F\xA0\x7B\x52\x4A\x81\x16\xA0\x10";
    /// A shared virtual disk.
    pub const SVHDX_OPEN_DEVICE: &[u8] =
        b"\x9C\xCB\xCF\x9E\x04\xC1\xE6\x43\x98\x0E\x15\x8D\xA1\xF6\xEC\x83";
    /// The POSIX extensions of Samba and Linux. Not of \[MS-SMB2\].
    pub const POSIX: &[u8] = b"\x93\xAD\x25\x50\x9C\xB4\x11\xE7\xB4\x23\x83\xDE\x96\x8B\xCD\x7C";
}

/// A context as it stands in the message. \[MS-SMB2\] 2.2.13.2
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawContext<'a> {
    /// What it is about: one of [`name`], or another.
    pub name: &'a [u8],
    /// What it says.
    pub data: &'a [u8],
}

/// The data of the first context of that name.
pub fn find<'a>(contexts: &[RawContext<'a>], name: &[u8]) -> Option<&'a [u8]> {
    let context = contexts.iter().find(|context| context.name == name)?;
    Some(context.data)
}

/// Reads a chain of contexts. Next is relative, a multiple of 8 and at least a head: the walk
/// goes forward only.
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
    let is_forward = next as usize >= HEAD_LEN && next % 8 == 0 && (next as usize) <= left;
    if is_last || is_forward {
        Ok(())
    } else {
        Err(invalid("CreateContext Next", next.into()))
    }
}

fn invalid(field: &'static str, value: u64) -> DecodeError {
    DecodeError::Invalid { field, value }
}

/// Reads one context, which is all of `context`. Where there are no data, clients write any
/// DataOffset; Windows and Samba do not look at it.
fn decode_one(context: &[u8]) -> Result<RawContext<'_>, DecodeError> {
    let mut reader = Reader::new(context);
    reader.skip("CreateContext Next", 4)?;
    let name_offset = reader.u16("CreateContext NameOffset")?;
    let name_length = reader.u16("CreateContext NameLength")?;
    reader.skip("CreateContext Reserved", 2)?;
    let data_offset = reader.u16("CreateContext DataOffset")?;
    let data_length = reader.u32("CreateContext DataLength")?;
    // Windows and Samba refuse a shorter name: smbtorture smb2.create.blob.
    if name_length < 4 {
        return Err(invalid("CreateContext NameLength", name_length.into()));
    }
    let (name, data) = ("CreateContext Name", "CreateContext Data");
    Ok(RawContext {
        name: slice_at(context, name, name_offset.into(), name_length.into())?,
        data: slice_at(context, data, data_offset.into(), data_length.into())?,
    })
}

/// The chain of contexts, each at a multiple of 8 bytes; the last is not padded.
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

/// Refuses data that have not the one length that they may have.
fn check_length(data: &[u8], field: &'static str, length: usize) -> Result<(), DecodeError> {
    if data.len() == length {
        Ok(())
    } else {
        Err(invalid(field, data.len() as u64))
    }
}

/// MxAc, request. \[MS-SMB2\] 2.2.13.2.5
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaximalAccessRequest {
    /// Answer only if the file was written since.
    pub timestamp: Option<FileTime>,
}

impl MaximalAccessRequest {
    /// Reads the data of a context.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        if data.is_empty() {
            return Ok(Self { timestamp: None });
        }
        check_length(data, "MxAc", 8)?;
        let timestamp = Some(FileTime(Reader::new(data).u64("MxAc")?));
        Ok(Self { timestamp })
    }

    /// The data of a context.
    pub fn encode(&self) -> Vec<u8> {
        match self.timestamp {
            Some(timestamp) => timestamp.0.to_le_bytes().to_vec(),
            None => Vec::new(),
        }
    }
}

/// MxAc, response. \[MS-SMB2\] 2.2.14.2.5
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaximalAccessResponse {
    /// Whether the answer is one.
    pub query_status: Status,
    /// What the user may do at most.
    pub maximal_access: AccessMask,
}

impl MaximalAccessResponse {
    /// Reads the data of a context.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        check_length(data, "MxAc", 8)?;
        let mut reader = Reader::new(data);
        Ok(Self {
            query_status: Status(reader.u32("QueryStatus")?),
            maximal_access: AccessMask(reader.u32("MaximalAccess")?),
        })
    }

    /// The data of a context.
    pub fn encode(&self) -> Vec<u8> {
        let mut data = Vec::new();
        data.put_u32(self.query_status.0);
        data.put_u32(self.maximal_access.0);
        data
    }
}

/// QFid, response; the request has no data. \[MS-SMB2\] 2.2.14.2.9
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnDiskIdResponse {
    /// The file's number on its volume.
    pub disk_file_id: u64,
    /// The volume.
    pub volume_id: u64,
}

impl OnDiskIdResponse {
    /// Reads the data of a context.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        check_length(data, "QFid", 32)?;
        let mut reader = Reader::new(data);
        Ok(Self {
            disk_file_id: reader.u64("DiskFileId")?,
            volume_id: reader.u64("VolumeId")?,
        })
    }

    /// The data of a context.
    pub fn encode(&self) -> Vec<u8> {
        let mut data = Vec::new();
        data.put_u64(self.disk_file_id);
        data.put_u64(self.volume_id);
        data.put(&[0; 16]);
        data
    }
}

/// AlSi, request. \[MS-SMB2\] 2.2.13.2.6
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocationSize {
    /// Bytes that a new file should take on the disk.
    pub allocation_size: u64,
}

impl AllocationSize {
    /// Reads the data of a context.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        check_length(data, "AlSi", 8)?;
        let allocation_size = Reader::new(data).u64("AllocationSize")?;
        Ok(Self { allocation_size })
    }

    /// The data of a context.
    pub fn encode(&self) -> Vec<u8> {
        self.allocation_size.to_le_bytes().to_vec()
    }
}

/// TWrp, request. \[MS-SMB2\] 2.2.13.2.7
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timewarp {
    /// The time of the snapshot.
    pub timestamp: FileTime,
}

impl Timewarp {
    /// Reads the data of a context.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        check_length(data, "TWrp", 8)?;
        let timestamp = FileTime(Reader::new(data).u64("Timestamp")?);
        Ok(Self { timestamp })
    }

    /// The data of a context.
    pub fn encode(&self) -> Vec<u8> {
        self.timestamp.0.to_le_bytes().to_vec()
    }
}

open_flags! {
    /// What a lease lets a client cache. \[MS-SMB2\] 2.2.13.2.8
    LeaseState(u32) {
        /// Reads.
        READ_CACHING = 0x0000_0001,
        /// The open itself.
        HANDLE_CACHING = 0x0000_0002,
        /// Writes.
        WRITE_CACHING = 0x0000_0004,
    }
}

open_flags! {
    /// Flags of a lease. \[MS-SMB2\] 2.2.13.2.10, 2.2.14.2.10
    LeaseFlags(u32) {
        /// In a response: the lease is being broken.
        BREAK_IN_PROGRESS = 0x0000_0002,
        /// The parent's key is set.
        PARENT_LEASE_KEY_SET = 0x0000_0004,
    }
}

/// What a lease of version 2 has more. \[MS-SMB2\] 2.2.13.2.10
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseV2 {
    /// The lease on the directory. Counts where PARENT_LEASE_KEY_SET is set.
    pub parent_lease_key: Guid,
    /// The number of the state.
    pub epoch: u16,
}

/// RqLs, request and response: version 1 of 32 bytes, version 2 of 52.
/// \[MS-SMB2\] 2.2.13.2.8, 2.2.13.2.10, 2.2.14.2.10, 2.2.14.2.11
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The client's name for the lease.
    pub lease_key: Guid,
    /// What is asked or granted.
    pub lease_state: LeaseState,
    /// Flags.
    pub lease_flags: LeaseFlags,
    /// What version 2 has more.
    pub v2: Option<LeaseV2>,
}

impl Lease {
    /// Bytes of version 1.
    pub const V1_LEN: usize = 32;
    /// Bytes of version 2.
    pub const V2_LEN: usize = 52;

    /// Reads the data of a context.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        let is_v2 = data.len() == Self::V2_LEN;
        if !is_v2 {
            check_length(data, "RqLs", Self::V1_LEN)?;
        }
        let mut reader = Reader::new(data);
        let lease_key = reader.guid("LeaseKey")?;
        let lease_state = LeaseState(reader.u32("LeaseState")?);
        let lease_flags = LeaseFlags(reader.u32("LeaseFlags")?);
        reader.skip("LeaseDuration", 8)?;
        let v2 = if is_v2 {
            Some(LeaseV2 {
                parent_lease_key: reader.guid("ParentLeaseKey")?,
                epoch: reader.u16("Epoch")?,
            })
        } else {
            None
        };
        Ok(Self {
            lease_key,
            lease_state,
            lease_flags,
            v2,
        })
    }

    /// The data of a context.
    pub fn encode(&self) -> Vec<u8> {
        let mut data = Vec::new();
        data.put(&self.lease_key.0);
        data.put_u32(self.lease_state.0);
        data.put_u32(self.lease_flags.0);
        data.put_u64(0);
        if let Some(LeaseV2 {
            parent_lease_key,
            epoch,
        }) = self.v2
        {
            data.put(&parent_lease_key.0);
            data.put_u16(epoch);
            data.put_u16(0);
        }
        data
    }
}

/// DHnQ, request: 16 reserved bytes. \[MS-SMB2\] 2.2.13.2.3
pub const DURABLE_REQUEST_DATA: [u8; 16] = [0; 16];
/// DHnQ, response: 8 reserved bytes. \[MS-SMB2\] 2.2.14.2.3
pub const DURABLE_RESPONSE_DATA: [u8; 8] = [0; 8];

/// DHnC, request; the response has none. \[MS-SMB2\] 2.2.13.2.4
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurableReconnect {
    /// The open.
    pub file_id: FileId,
}

impl DurableReconnect {
    /// Reads the data of a context.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        check_length(data, "DHnC", 16)?;
        let file_id = Reader::new(data).file_id("DHnC")?;
        Ok(Self { file_id })
    }

    /// The data of a context.
    pub fn encode(&self) -> Vec<u8> {
        let mut data = Vec::new();
        data.put_file_id(self.file_id);
        data
    }
}

open_flags! {
    /// Flags of a durable open. \[MS-SMB2\] 2.2.13.2.11
    DurableFlags(u32) {
        /// The open is persistent.
        PERSISTENT = 0x0000_0002,
    }
}

/// DH2Q, request. \[MS-SMB2\] 2.2.13.2.11
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurableRequestV2 {
    /// How long to keep the open; 0 for the server's choice.
    pub timeout_ms: u32,
    /// Whether the open should be persistent.
    pub flags: DurableFlags,
    /// The client's name for the CREATE.
    pub create_guid: Guid,
}

impl DurableRequestV2 {
    /// Reads the data of a context.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        check_length(data, "DH2Q", 32)?;
        let mut reader = Reader::new(data);
        let timeout_ms = reader.u32("Timeout")?;
        let flags = DurableFlags(reader.u32("Flags")?);
        reader.skip("Reserved", 8)?;
        Ok(Self {
            timeout_ms,
            flags,
            create_guid: reader.guid("CreateGuid")?,
        })
    }

    /// The data of a context.
    pub fn encode(&self) -> Vec<u8> {
        let mut data = Vec::new();
        data.put_u32(self.timeout_ms);
        data.put_u32(self.flags.0);
        data.put_u64(0);
        data.put(&self.create_guid.0);
        data
    }
}

/// DH2Q, response. \[MS-SMB2\] 2.2.14.2.12
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurableResponseV2 {
    /// How long the open is kept.
    pub timeout_ms: u32,
    /// Whether the open is persistent.
    pub flags: DurableFlags,
}

impl DurableResponseV2 {
    /// Reads the data of a context.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        check_length(data, "DH2Q", 8)?;
        let mut reader = Reader::new(data);
        Ok(Self {
            timeout_ms: reader.u32("Timeout")?,
            flags: DurableFlags(reader.u32("Flags")?),
        })
    }

    /// The data of a context.
    pub fn encode(&self) -> Vec<u8> {
        let mut data = Vec::new();
        data.put_u32(self.timeout_ms);
        data.put_u32(self.flags.0);
        data
    }
}

/// DH2C, request; the response has none. \[MS-SMB2\] 2.2.13.2.12
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurableReconnectV2 {
    /// The open.
    pub file_id: FileId,
    /// The client's name for the CREATE.
    pub create_guid: Guid,
    /// Whether the open was persistent.
    pub flags: DurableFlags,
}

impl DurableReconnectV2 {
    /// Reads the data of a context.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        check_length(data, "DH2C", 36)?;
        let mut reader = Reader::new(data);
        Ok(Self {
            file_id: reader.file_id("DH2C")?,
            create_guid: reader.guid("CreateGuid")?,
            flags: DurableFlags(reader.u32("Flags")?),
        })
    }

    /// The data of a context.
    pub fn encode(&self) -> Vec<u8> {
        let mut data = Vec::new();
        data.put_file_id(self.file_id);
        data.put(&self.create_guid.0);
        data.put_u32(self.flags.0);
        data
    }
}

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
