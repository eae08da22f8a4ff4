//! The server service: lists shares and describes the server. \[MS-SRVS\]
//!
//! Each call has two structures, one for the stub of the request and one for the stub of the
//! response. A `level` selects the returned fields. [`ShareInfo`] and [`ServerInfo`] have the
//! fields of all levels.

mod server;
mod share;
mod share_calls;
mod time_of_day;

pub use server::{ServerGetInfo, ServerGetInfoResponse, ServerInfo, ServerType};
pub use share::{ShareInfo, ShareType};
pub use share_calls::{ShareEnum, ShareEnumResponse, ShareGetInfo, ShareGetInfoResponse};
pub use time_of_day::{RemoteTod, RemoteTodResponse, TimeOfDay};

use super::SyntaxId;
use crate::ids::Guid;
use crate::open_enum::open_enum;

/// UUID and version of the RPC interface of the server service (srvsvc), which lists shares.
/// \[MS-SRVS\] 1.9
pub const INTERFACE: SyntaxId = SyntaxId {
    uuid: Guid([
        0xC8, 0x4F, 0x32, 0x4B, 0x70, 0x16, 0xD3, 0x01, 0x12, 0x78, 0x5A, 0x47, 0xBF, 0x6E, 0xE1,
        0x88,
    ]),
    major: 3,
    minor: 0,
};

/// Name of the pipe on IPC$ that carries RPC calls of the server service. \[MS-SRVS\] 2.1
pub const PIPE: &str = "srvsvc";

/// MAX_PREFERRED_LENGTH: the preferred length of a list by which a client sets no limit.
/// \[MS-SRVS\] 3.1.4.8
pub const ALL: u32 = u32::MAX;

/// PLATFORM_ID_NT: the platform number of Windows NT and compatible systems, which file servers
/// report. \[MS-SRVS\] 2.2.2.6
pub const PLATFORM_NT: u32 = 500;

open_enum! {
    /// Operation numbers of the calls of the server service. \[MS-SRVS\] 3.1.4
    Opnum(u16) {
        /// NetrShareEnum: lists shares.
        SHARE_ENUM = 15,
        /// NetrShareGetInfo: describes a share.
        SHARE_GET_INFO = 16,
        /// NetrServerGetInfo: describes the server.
        SERVER_GET_INFO = 21,
        /// NetrRemoteTOD: returns the time of the server.
        REMOTE_TOD = 28,
        /// NetrShareEnumSticky: lists persistent shares.
        SHARE_ENUM_STICKY = 36,
    }
}
