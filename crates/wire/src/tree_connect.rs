//! TREE_CONNECT: connect to a share. \[MS-SMB2\] 2.2.9, 2.2.10

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
    /// Flags of a TREE_CONNECT request. Dialect 3.1.1 only. \[MS-SMB2\] 2.2.9
    RequestFlags(u16) {
        /// The client reconnects to a cluster share after a failover.
        CLUSTER_RECONNECT = 0x0001,
        /// The client accepts a redirection to the cluster node that owns the share.
        REDIRECT_TO_OWNER = 0x0002,
        /// Tree connect contexts precede the path.
        EXTENSION_PRESENT = 0x0004,
    }
}

open_enum! {
    /// Type of a share: files, pipes or printer. \[MS-SMB2\] 2.2.10
    ShareType(u8) {
        /// A share of files.
        DISK = 0x01,
        /// A share of named pipes (IPC$).
        PIPE = 0x02,
        /// A printer share.
        PRINT = 0x03,
    }
}

open_flags! {
    /// Flags of a share. The two bits of the caching mode are one number. \[MS-SMB2\] 2.2.10
    ShareFlags(u32) {
        /// Caching mode 1: clients may cache files offline automatically.
        AUTO_CACHING = 0x0000_0010,
        /// Caching mode 2: clients may cache files and programs offline.
        VDO_CACHING = 0x0000_0020,
        /// Caching mode 3: clients must not cache files offline.
        NO_CACHING = 0x0000_0030,
        /// The share is in a DFS namespace.
        DFS = 0x0000_0001,
        /// The share is the root of a DFS namespace.
        DFS_ROOT = 0x0000_0002,
        /// Clients must not open files of the share with a share mode that denies reads to other
        /// opens: the server refuses such opens.
        RESTRICT_EXCLUSIVE_OPENS = 0x0000_0100,
        /// Files may be deleted while they are open.
        FORCE_SHARED_DELETE = 0x0000_0200,
        /// Clients may cache directory listings.
        ALLOW_NAMESPACE_CACHING = 0x0000_0400,
        /// A listing contains only the files that the user may access.
        ACCESS_BASED_DIRECTORY_ENUM = 0x0000_0800,
        /// The server grants level II oplocks at most.
        FORCE_LEVELII_OPLOCK = 0x0000_1000,
        /// The share supports hashes for BranchCache, version 1.
        ENABLE_HASH_V1 = 0x0000_2000,
        /// The share supports hashes for BranchCache, version 2.
        ENABLE_HASH_V2 = 0x0000_4000,
        /// The client must encrypt all messages to the share.
        ENCRYPT_DATA = 0x0000_8000,
        /// The share supports identity remoting: the client may connect with the identity of a
        /// remote user, in a tree connect context.
        IDENTITY_REMOTING = 0x0004_0000,
        /// The client should compress the data of reads and writes.
        COMPRESS_DATA = 0x0010_0000,
        /// The client should use separate connections for the share, as the administrator prefers.
        ISOLATED_TRANSPORT = 0x0020_0000,
    }
}

open_flags! {
    /// Features of a share. \[MS-SMB2\] 2.2.10
    ShareCapabilities(u32) {
        /// The share is in a DFS namespace.
        DFS = 0x0000_0008,
        /// Opens can survive the failure of a cluster node, as persistent opens.
        CONTINUOUS_AVAILABILITY = 0x0000_0010,
        /// Every cluster node serves the share.
        SCALEOUT = 0x0000_0020,
        /// The share is on a cluster.
        CLUSTER = 0x0000_0040,
        /// The share may move to another cluster node.
        ASYMMETRIC = 0x0000_0080,
        /// The server can redirect the client to the node that owns the share.
        REDIRECT_TO_OWNER = 0x0000_0100,
    }
}

/// A TREE_CONNECT request: the client connects to a share. `decode` skips its extension contexts.
/// \[MS-SMB2\] 2.2.9
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Flags of the request for clusters and extensions. `encode` never sets EXTENSION_PRESENT.
    pub flags: RequestFlags,
    /// UNC path of the share: `\\server\share`.
    pub path: Utf16<'a>,
}

impl<'a> Request<'a> {
    /// Decodes a TREE_CONNECT request from `message`, which starts with its 64-byte SMB2 header.
    /// Fails when `message` is too short, or its StructureSize, a length or an offset is not valid.
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

    /// Appends the body of a TREE_CONNECT request to `message`, which must hold exactly its 64-byte
    /// SMB2 header. Panics when `message` has another length, or a field is too long for its length
    /// field.
    pub fn encode(&self, message: &mut Vec<u8>) {
        begin(message, 9);
        message.put_u16(self.flags.without(RequestFlags::EXTENSION_PRESENT).0);
        message.put_u16(u16_of(HEADER_LEN + REQUEST_LEN));
        message.put_u16(u16_of(self.path.len()));
        message.put(self.path.0);
        fill_empty(message, REQUEST_LEN);
    }
}

/// A TREE_CONNECT response: the client has access to the share. \[MS-SMB2\] 2.2.10
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// Type of the share: files, pipes or printer.
    pub share_type: ShareType,
    /// Flags of the share for caching, DFS and encryption.
    pub share_flags: ShareFlags,
    /// Features of the share, such as DFS or continuous availability in a cluster.
    pub capabilities: ShareCapabilities,
    /// Maximal access rights of the user in the share, which limit the rights of all opens.
    pub maximal_access: AccessMask,
}

impl Response {
    /// Decodes a TREE_CONNECT response from `message`, which starts with its 64-byte SMB2 header.
    /// Fails when `message` is too short, or its StructureSize is wrong.
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

    /// Appends the body of a TREE_CONNECT response to `message`, which must hold exactly its
    /// 64-byte SMB2 header. Panics when `message` has another length.
    pub fn encode(&self, message: &mut Vec<u8>) {
        begin(message, 16);
        message.put_u8(self.share_type.0);
        message.put_u8(0);
        message.put_u32(self.share_flags.0);
        message.put_u32(self.capabilities.0);
        message.put_u32(self.maximal_access.0);
    }
}
