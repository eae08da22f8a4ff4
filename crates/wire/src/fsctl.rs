//! Control codes of IOCTL, and the structures of their input and output buffers. \[MS-SMB2\]
//! 2.2.31.1, 2.2.32, \[MS-FSCC\] 2.3

use crate::open_enum::open_enum;

mod copychunk;
mod duplicate_extents;
mod file_regions;
mod network_interface;
mod object_id;
mod pipe;
mod ranges;
mod resiliency;
mod trim;
mod validate_negotiate;

pub use copychunk::{Chunk, CopyChunkRequest, CopyChunkResponse, ResumeKeyResponse};
pub use duplicate_extents::{DuplicateExtents, DuplicateExtentsFlags};
pub use file_regions::{FileRegion, FileRegions, FileRegionsRequest, RegionUsage};
pub use network_interface::{InterfaceCapability, NetworkInterface, SocketAddress};
pub use object_id::ObjectIdBuffer;
pub use pipe::{PipePeek, PipeWait};
pub use ranges::{AllocatedRange, ZeroData};
pub use resiliency::ResiliencyRequest;
pub use trim::{FileLevelTrim, FileLevelTrimOutput, TrimRange};
pub use validate_negotiate::{ValidateNegotiateInfoRequest, ValidateNegotiateInfoResponse};

open_enum! {
    /// A control code: the operation of an IOCTL request. \[MS-SMB2\] 2.2.31, \[MS-FSCC\] 2.3
    CtlCode(u32) {
        /// Resolves a DFS path to the servers that hold its target.
        DFS_GET_REFERRALS = 0x0006_0194,
        /// Resolves a DFS path to the servers that hold its target, with the site of the client.
        DFS_GET_REFERRALS_EX = 0x0006_01B0,
        /// Queries the compression format of a file.
        GET_COMPRESSION = 0x0009_003C,
        /// Sets the reparse point of a file or directory.
        SET_REPARSE_POINT = 0x0009_00A4,
        /// Queries the reparse point of a file or directory, such as the target of a symbolic link.
        GET_REPARSE_POINT = 0x0009_00A8,
        /// Deletes the reparse point of a file or directory.
        DELETE_REPARSE_POINT = 0x0009_00AC,
        /// Queries the object identifier of a file, and creates one if it has none.
        CREATE_OR_GET_OBJECT_ID = 0x0009_00C0,
        /// Makes a file sparse, so that ranges without data take no space.
        SET_SPARSE = 0x0009_00C4,
        /// Queries the checksum settings (integrity streams) of a file.
        GET_INTEGRITY_INFORMATION = 0x0009_027C,
        /// Lists the ranges of a file with valid data.
        QUERY_FILE_REGIONS = 0x0009_0284,
        /// Sends a request for a shared virtual disk. \[MS-RSVD\]
        SVHDX_SYNC_TUNNEL_REQUEST = 0x0009_0304,
        /// Controls the quality of service of storage traffic. \[MS-SQOS\]
        STORAGE_QOS_CONTROL = 0x0009_0350,
        /// Lists the allocated ranges of a sparse file.
        QUERY_ALLOCATED_RANGES = 0x0009_40CF,
        /// Creates a token that represents a range of data, for an offloaded copy.
        OFFLOAD_READ = 0x0009_4264,
        /// Fills a range of a file with zeros.
        SET_ZERO_DATA = 0x0009_80C8,
        /// Discards the data in ranges of a file, so that storage can reuse the space.
        FILE_LEVEL_TRIM = 0x0009_8208,
        /// Writes the data that a token of OFFLOAD_READ represents.
        OFFLOAD_WRITE = 0x0009_8268,
        /// Copies a range between files of a volume, which then share the extents.
        DUPLICATE_EXTENTS_TO_FILE = 0x0009_8344,
        /// Copies a range between files of a volume, which then share the extents; optionally
        /// atomically.
        DUPLICATE_EXTENTS_TO_FILE_EX = 0x0009_83E8,
        /// Sets the compression format of a file.
        SET_COMPRESSION = 0x0009_C040,
        /// Changes the checksum settings (integrity streams) of a file.
        SET_INTEGRITY_INFORMATION = 0x0009_C280,
        /// Reads available data of a named pipe without removing them.
        PIPE_PEEK = 0x0011_400C,
        /// Waits until an instance of a named pipe is available.
        PIPE_WAIT = 0x0011_0018,
        /// Writes a message to a named pipe and reads the response.
        PIPE_TRANSCEIVE = 0x0011_C017,
        /// Creates a key that identifies an open as the source of SRV_COPYCHUNK.
        SRV_REQUEST_RESUME_KEY = 0x0014_0078,
        /// Makes an open resilient: the server preserves it after a lost connection.
        LMR_REQUEST_RESILIENCY = 0x0014_01D4,
        /// Lists the network interfaces of the server.
        QUERY_NETWORK_INTERFACE_INFO = 0x0014_01FC,
        /// Checks that NEGOTIATE was not changed in transit.
        VALIDATE_NEGOTIATE_INFO = 0x0014_0204,
        /// Lists the snapshots that contain a file.
        SRV_ENUMERATE_SNAPSHOTS = 0x0014_4064,
        /// Copies data on the server into a file that is open for reading and writing.
        SRV_COPYCHUNK = 0x0014_40F2,
        /// Retrieves the hashes of a file's content, for BranchCache.
        SRV_READ_HASH = 0x0014_41BB,
        /// Copies data on the server into a file that is open for writing.
        SRV_COPYCHUNK_WRITE = 0x0014_80F2,
    }
}
