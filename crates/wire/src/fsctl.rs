//! Functions of IOCTL and what their buffers say. \[MS-SMB2\] 2.2.31.1, 2.2.32, \[MS-FSCC\] 2.3

use crate::open_enum::open_enum;

mod copychunk;
mod network_interface;
mod object_id;
mod pipe;
mod ranges;
mod validate_negotiate;

pub use copychunk::{Chunk, CopyChunkRequest, CopyChunkResponse, ResumeKeyResponse};
pub use network_interface::{InterfaceCapability, NetworkInterface, SocketAddress};
pub use object_id::ObjectIdBuffer;
pub use pipe::{PipePeek, PipeWait};
pub use ranges::{AllocatedRange, ZeroData};
pub use validate_negotiate::{ValidateNegotiateInfoRequest, ValidateNegotiateInfoResponse};

open_enum! {
    /// A function. \[MS-SMB2\] 2.2.31, \[MS-FSCC\] 2.3
    CtlCode(u32) {
        /// Where a DFS path leads.
        DFS_GET_REFERRALS = 0x0006_0194,
        /// Where a DFS path leads, seen from a site.
        DFS_GET_REFERRALS_EX = 0x0006_01B0,
        /// The compression of a file.
        GET_COMPRESSION = 0x0009_003C,
        /// Sets a reparse point.
        SET_REPARSE_POINT = 0x0009_00A4,
        /// The reparse point.
        GET_REPARSE_POINT = 0x0009_00A8,
        /// Deletes a reparse point.
        DELETE_REPARSE_POINT = 0x0009_00AC,
        /// The object id, made if there is none.
        CREATE_OR_GET_OBJECT_ID = 0x0009_00C0,
        /// Lets a file have holes.
        SET_SPARSE = 0x0009_00C4,
        /// Integrity streams of a file.
        GET_INTEGRITY_INFORMATION = 0x0009_027C,
        /// Of virtual disks that are shared.
        SVHDX_SYNC_TUNNEL_REQUEST = 0x0009_0304,
        /// Quality of service of storage.
        STORAGE_QOS_CONTROL = 0x0009_0350,
        /// Ranges that are not holes.
        QUERY_ALLOCATED_RANGES = 0x0009_40CF,
        /// A token for data to be copied.
        OFFLOAD_READ = 0x0009_4264,
        /// Makes a hole.
        SET_ZERO_DATA = 0x0009_80C8,
        /// Ranges that are no longer needed.
        FILE_LEVEL_TRIM = 0x0009_8208,
        /// Copies the data of a token.
        OFFLOAD_WRITE = 0x0009_8268,
        /// Shares blocks with another file.
        DUPLICATE_EXTENTS_TO_FILE = 0x0009_8344,
        /// Shares blocks with another file, atomically if asked.
        DUPLICATE_EXTENTS_TO_FILE_EX = 0x0009_83E8,
        /// Sets the compression of a file.
        SET_COMPRESSION = 0x0009_C040,
        /// Sets integrity streams of a file.
        SET_INTEGRITY_INFORMATION = 0x0009_C280,
        /// What a pipe holds, without taking it.
        PIPE_PEEK = 0x0011_400C,
        /// Waits for a pipe.
        PIPE_WAIT = 0x0011_0018,
        /// Writes to a pipe and reads the answer.
        PIPE_TRANSCEIVE = 0x0011_C017,
        /// A key that stands for an open as the source of a copy.
        SRV_REQUEST_RESUME_KEY = 0x0014_0078,
        /// Keeps an open over a lost connection.
        LMR_REQUEST_RESILIENCY = 0x0014_01D4,
        /// The server's network interfaces.
        QUERY_NETWORK_INTERFACE_INFO = 0x0014_01FC,
        /// Whether NEGOTIATE was tampered with.
        VALIDATE_NEGOTIATE_INFO = 0x0014_0204,
        /// The snapshots of a file.
        SRV_ENUMERATE_SNAPSHOTS = 0x0014_4064,
        /// Copies on the server; the target is open for reading too.
        SRV_COPYCHUNK = 0x0014_40F2,
        /// Hashes for BranchCache.
        SRV_READ_HASH = 0x0014_41BB,
        /// Copies on the server.
        SRV_COPYCHUNK_WRITE = 0x0014_80F2,
    }
}
