//! The server service: which shares there are, and what the server is. \[MS-SRVS\]
//!
//! Each call is a pair of structures, one for the stub of the request and one for that of the
//! response. A `level` chooses what is told of each share, server or the like: [`ShareInfo`] and
//! [`ServerInfo`] hold what any level tells.

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

/// The interface. \[MS-SRVS\] 1.9
pub const INTERFACE: SyntaxId = SyntaxId {
    uuid: Guid([
        0xC8, 0x4F, 0x32, 0x4B, 0x70, 0x16, 0xD3, 0x01, 0x12, 0x78, 0x5A, 0x47, 0xBF, 0x6E, 0xE1,
        0x88,
    ]),
    major: 3,
    minor: 0,
};

/// The pipe. \[MS-SRVS\] 2.1
pub const PIPE: &str = "srvsvc";

/// MAX_PREFERRED_LENGTH: as much as there is. \[MS-SRVS\] 3.1.4.8
pub const ALL: u32 = u32::MAX;

/// PLATFORM_ID_NT. \[MS-SRVS\] 2.2.2.6
pub const PLATFORM_NT: u32 = 500;

open_enum! {
    /// The calls. \[MS-SRVS\] 3.1.4
    Opnum(u16) {
        /// NetrShareEnum.
        SHARE_ENUM = 15,
        /// NetrShareGetInfo.
        SHARE_GET_INFO = 16,
        /// NetrServerGetInfo.
        SERVER_GET_INFO = 21,
        /// NetrRemoteTOD.
        REMOTE_TOD = 28,
        /// NetrShareEnumSticky.
        SHARE_ENUM_STICKY = 36,
    }
}
