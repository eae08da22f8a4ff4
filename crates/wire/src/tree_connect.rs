//! TREE_CONNECT: enter a share. \[MS-SMB2\] 2.2.9, 2.2.10

use alloc::vec::Vec;

use crate::access::AccessMask;
use crate::cursor::{Put, Reader, slice_at};
use crate::error::DecodeError;
use crate::header::HEADER_LEN;
use crate::layout::{begin, fill_empty, u16_of};
use crate::open_enum::{open_enum, open_flags};
use crate::text::Utf16;

const REQUEST_LEN: usize = 8;

open_flags! {
    /// Flags of the request, dialect 3.1.1. \[MS-SMB2\] 2.2.9
    RequestFlags(u16) {
        /// The client was here before the cluster failed over.
        CLUSTER_RECONNECT = 0x0001,
        /// The client can be sent to the node that owns the share.
        REDIRECT_TO_OWNER = 0x0002,
        /// Contexts stand before the path.
        EXTENSION_PRESENT = 0x0004,
    }
}

open_enum! {
    /// What is shared. \[MS-SMB2\] 2.2.10
    ShareType(u8) {
        /// Files.
        DISK = 0x01,
        /// Named pipes.
        PIPE = 0x02,
        /// A printer.
        PRINT = 0x03,
    }
}

open_flags! {
    /// How a share is to be used. The two bits of the caching mode are a number.
    /// \[MS-SMB2\] 2.2.10
    ShareFlags(u32) {
        /// Caching mode 1: the client may cache by itself.
        AUTO_CACHING = 0x0000_0010,
        /// Caching mode 2: the client may cache programs too.
        VDO_CACHING = 0x0000_0020,
        /// Caching mode 3: the client must not cache offline.
        NO_CACHING = 0x0000_0030,
        /// The share is in a DFS tree.
        DFS = 0x0000_0001,
        /// The share is the root of a DFS tree.
        DFS_ROOT = 0x0000_0002,
        /// Opens that do not share are refused.
        RESTRICT_EXCLUSIVE_OPENS = 0x0000_0100,
        /// Files may be deleted though they are open.
        FORCE_SHARED_DELETE = 0x0000_0200,
        /// Clients may cache the list of names.
        ALLOW_NAMESPACE_CACHING = 0x0000_0400,
        /// A user sees what he may open, no more.
        ACCESS_BASED_DIRECTORY_ENUM = 0x0000_0800,
        /// No more than a level II oplock is granted.
        FORCE_LEVELII_OPLOCK = 0x0000_1000,
        /// Hashes for BranchCache, version 1.
        ENABLE_HASH_V1 = 0x0000_2000,
        /// Hashes for BranchCache, version 2.
        ENABLE_HASH_V2 = 0x0000_4000,
        /// Everything about the share is encrypted.
        ENCRYPT_DATA = 0x0000_8000,
        /// The share is served from each node of a cluster.
        IDENTITY_REMOTING = 0x0004_0000,
        /// Reads and writes may be compressed.
        COMPRESS_DATA = 0x0010_0000,
        /// Data of this share are not to leave the transport unencrypted.
        ISOLATED_TRANSPORT = 0x0020_0000,
    }
}

open_flags! {
    /// What a share can do. \[MS-SMB2\] 2.2.10
    ShareCapabilities(u32) {
        /// In a DFS tree.
        DFS = 0x0000_0008,
        /// Opens survive the failure of a node.
        CONTINUOUS_AVAILABILITY = 0x0000_0010,
        /// Served by each node of a cluster.
        SCALEOUT = 0x0000_0020,
        /// Of a cluster.
        CLUSTER = 0x0000_0040,
        /// May move to another node.
        ASYMMETRIC = 0x0000_0080,
        /// The client can be sent to the owner.
        REDIRECT_TO_OWNER = 0x0000_0100,
    }
}

/// Enter a share. \[MS-SMB2\] 2.2.9
///
/// The contexts of \[MS-SMB2\] 2.2.9.1 (EXTENSION_PRESENT) are passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Flags. EXTENSION_PRESENT is read but never written.
    pub flags: RequestFlags,
    /// `\\server\share`.
    pub path: Utf16<'a>,
}

impl<'a> Request<'a> {
    /// Reads the body of a message.
    pub fn decode(message: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::body(message, "TREE_CONNECT request")?;
        reader.structure_size("TREE_CONNECT request", 9)?;
        let flags = RequestFlags(reader.u16("Flags")?);
        let offset = reader.u16("PathOffset")?;
        let length = reader.u16("PathLength")?;
        let path = slice_at(message, "PathName", offset.into(), length.into())?;
        Ok(Self {
            flags,
            path: Utf16(path),
        })
    }

    /// Appends the body to a message that holds its header.
    pub fn encode(&self, message: &mut Vec<u8>) {
        begin(message, 9);
        message.put_u16(self.flags.without(RequestFlags::EXTENSION_PRESENT).0);
        message.put_u16(u16_of(HEADER_LEN + REQUEST_LEN));
        message.put_u16(u16_of(self.path.len()));
        message.put(self.path.0);
        fill_empty(message, REQUEST_LEN);
    }
}

/// What the share is. \[MS-SMB2\] 2.2.10
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// Files, pipes or a printer.
    pub share_type: ShareType,
    /// How it is to be used.
    pub share_flags: ShareFlags,
    /// What it can do.
    pub capabilities: ShareCapabilities,
    /// What the user may do in it at most.
    pub maximal_access: AccessMask,
}

impl Response {
    /// Reads the body of a message.
    pub fn decode(message: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::body(message, "TREE_CONNECT response")?;
        reader.structure_size("TREE_CONNECT response", 16)?;
        let share_type = ShareType(reader.u8("ShareType")?);
        reader.skip("Reserved", 1)?;
        Ok(Self {
            share_type,
            share_flags: ShareFlags(reader.u32("ShareFlags")?),
            capabilities: ShareCapabilities(reader.u32("Capabilities")?),
            maximal_access: AccessMask(reader.u32("MaximalAccess")?),
        })
    }

    /// Appends the body to a message that holds its header.
    pub fn encode(&self, message: &mut Vec<u8>) {
        begin(message, 16);
        message.put_u8(self.share_type.0);
        message.put_u8(0);
        message.put_u32(self.share_flags.0);
        message.put_u32(self.capabilities.0);
        message.put_u32(self.maximal_access.0);
    }
}
