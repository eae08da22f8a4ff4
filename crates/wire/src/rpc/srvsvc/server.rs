//! NetrServerGetInfo: describes the server. \[MS-SRVS\] 3.1.4.17, 2.2.4.40 to 2.2.4.42

use alloc::string::String;
use alloc::vec::Vec;

use crate::error::DecodeError;
use crate::open_enum::open_flags;
use crate::rpc::ndr::{Reader, Writer};
use crate::rpc::{Levels, WinError};

open_flags! {
    /// Services and system of a server, as a bit set. \[MS-SRVS\] 2.2.2.7
    ServerType(u32) {
        /// The server runs the workstation service.
        WORKSTATION = 0x0000_0001,
        /// The server runs the server service, which shares files.
        SERVER = 0x0000_0002,
        /// The server runs Unix.
        SERVER_UNIX = 0x0000_0800,
        /// The server runs Windows NT or a compatible system.
        NT = 0x0000_1000,
        /// The server runs Windows NT as a server that is no domain controller.
        SERVER_NT = 0x0000_8000,
    }
}

/// The arguments of the RPC call NetrServerGetInfo: the client queries a description of the server.
/// \[MS-SRVS\] 3.1.4.17
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerGetInfo {
    /// Name of the server, as the client addresses it; `None` for a null pointer. Servers ignore
    /// it.
    pub server_name: Option<String>,
    /// Information level, which selects the returned fields: 100, 101 or 102.
    pub level: u32,
}

impl ServerGetInfo {
    /// Decodes the stub: the NDR encoding of the fields, without RPC headers. Fails when `stub` is
    /// truncated, or a string or array in it is malformed.
    pub fn decode(stub: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(stub);
        Ok(Self {
            server_name: reader.unique_string("ServerName")?,
            level: reader.u32("Level")?,
        })
    }

    /// Encodes the stub: the NDR encoding of the fields, without RPC headers.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.put_unique_string(self.server_name.as_deref());
        out.put_u32(self.level);
        out.into_stub()
    }
}

/// A description of a server in the RPC call NetrServerGetInfo, with the fields of all information
/// levels. A field that the level does not have is empty or 0.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ServerInfo {
    /// Number of the server's operating system family, such as [`super::PLATFORM_NT`].
    pub platform: u32,
    /// Name of the described server, without leading backslashes.
    pub name: String,
    /// Major version of the operating system; level 101 and up.
    pub version_major: u32,
    /// Minor version of the operating system; level 101 and up.
    pub version_minor: u32,
    /// Bit mask of the services that the server runs; level 101 and up.
    pub server_type: ServerType,
    /// Description of the server for display; level 101 and up.
    pub comment: String,
    /// Maximum number of users of the server; 0xFFFFFFFF for no limit; level 102.
    pub users: u32,
    /// Minutes before the server disconnects an idle session; level 102.
    pub disconnect: u32,
    /// Whether lists of servers in the network omit the server; level 102.
    pub is_hidden: bool,
    /// Interval in seconds between the server's announcements to the network; level 102.
    pub announce: u32,
    /// Maximum random variation of the interval of announcements, in milliseconds; level 102.
    pub announce_delta: u32,
    /// Number of users per license of the server; level 102.
    pub licenses: u32,
    /// Path of the directory that holds the home directories of the users; level 102.
    pub user_path: String,
}

impl ServerInfo {
    fn put(&self, level: u32, out: &mut Writer) {
        out.put_u32(self.platform);
        out.put_pointer(true);
        if level >= 101 {
            out.put_u32(self.version_major);
            out.put_u32(self.version_minor);
            out.put_u32(self.server_type.0);
            out.put_pointer(true);
        }
        if level >= 102 {
            out.put_u32(self.users);
            out.put_u32(self.disconnect);
            out.put_u32(u32::from(self.is_hidden));
            out.put_u32(self.announce);
            out.put_u32(self.announce_delta);
            out.put_u32(self.licenses);
            out.put_pointer(true);
        }
        out.put_string(&self.name);
        if level >= 101 {
            out.put_string(&self.comment);
        }
        if level >= 102 {
            out.put_string(&self.user_path);
        }
    }

    fn read(level: u32, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut info = Self {
            platform: reader.u32("platform_id")?,
            ..Self::default()
        };
        let has_name = reader.pointer("name")?;
        let mut has_comment = false;
        let mut has_path = false;
        if level >= 101 {
            info.version_major = reader.u32("version_major")?;
            info.version_minor = reader.u32("version_minor")?;
            info.server_type = ServerType(reader.u32("type")?);
            has_comment = reader.pointer("comment")?;
        }
        if level >= 102 {
            info.users = reader.u32("users")?;
            info.disconnect = reader.u32("disc")?;
            info.is_hidden = reader.u32("hidden")? != 0;
            info.announce = reader.u32("announce")?;
            info.announce_delta = reader.u32("anndelta")?;
            info.licenses = reader.u32("licenses")?;
            has_path = reader.pointer("userpath")?;
        }
        let mut text = |is_present, field| match is_present {
            true => reader.string(field),
            false => Ok(String::new()),
        };
        info.name = text(has_name, "name")?;
        info.comment = text(has_comment, "comment")?;
        info.user_path = text(has_path, "userpath")?;
        Ok(info)
    }
}

/// The results of the RPC call NetrServerGetInfo: a description of the server, or an error.
/// \[MS-SRVS\] 3.1.4.17
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerGetInfoResponse {
    /// Information level of the results, which selects the returned fields, as in the request.
    pub level: u32,
    /// The description of the server; `None` after an error.
    pub server: Option<ServerInfo>,
    /// Result of the call: SUCCESS, or an error code.
    pub status: WinError,
}

impl ServerGetInfoResponse {
    const LEVELS: Levels = Levels {
        has_arm,
        knows: Self::knows,
        field: "InfoStruct",
    };

    /// Returns true if this crate supports the information level: 100, 101 or 102.
    pub fn knows(level: u32) -> bool {
        (100..=102).contains(&level)
    }

    /// Decodes the stub: the NDR encoding of the fields, without RPC headers. Fails when `stub` is
    /// truncated, or a string or array in it is malformed.
    pub fn decode(stub: &[u8]) -> Result<Self, DecodeError> {
        let (level, server, status) = Self::LEVELS.decode(stub, ServerInfo::read)?;
        Ok(Self {
            level,
            server,
            status,
        })
    }

    /// Encodes the stub: the NDR encoding of the fields, without RPC headers.
    ///
    /// # Panics
    /// Panics when a description is present and the level is not supported.
    pub fn encode(&self) -> Vec<u8> {
        let (level, server) = (self.level, self.server.as_ref());
        Self::LEVELS.encode(level, server, self.status, ServerInfo::put)
    }
}

/// Whether the union of all levels has an arm for this level; every arm is a pointer. \[MS-SRVS\]
/// 2.2.3.7
fn has_arm(level: u32) -> bool {
    matches!(level, 100..=103 | 502 | 503 | 599 | 1005 | 1107 | 1010 | 1016..=1018 | 1501..=1599)
}
