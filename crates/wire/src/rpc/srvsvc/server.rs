//! NetrServerGetInfo: what the server is. \[MS-SRVS\] 3.1.4.17, 2.2.4.40 to 2.2.4.42

use alloc::string::String;
use alloc::vec::Vec;

use crate::error::DecodeError;
use crate::open_enum::open_flags;
use crate::rpc::ndr::{Reader, Writer};
use crate::rpc::{Levels, WinError};

open_flags! {
    /// What software a server runs. \[MS-SRVS\] 2.2.2.7
    ServerType(u32) {
        /// It is a workstation.
        WORKSTATION = 0x0000_0001,
        /// It shares.
        SERVER = 0x0000_0002,
        /// It is a Unix machine.
        SERVER_UNIX = 0x0000_0800,
        /// It is Windows NT or behaves like it.
        NT = 0x0000_1000,
        /// It is a server of such kind, and no domain controller.
        SERVER_NT = 0x0000_8000,
    }
}

/// NetrServerGetInfo, request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerGetInfo {
    /// The server as the client calls it. Not looked at.
    pub server_name: Option<String>,
    /// What to tell: 100, 101, 102.
    pub level: u32,
}

impl ServerGetInfo {
    /// Reads the stub.
    pub fn decode(stub: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(stub);
        Ok(Self {
            server_name: reader.unique_string("ServerName")?,
            level: reader.u32("Level")?,
        })
    }

    /// The stub.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.put_unique_string(self.server_name.as_deref());
        out.put_u32(self.level);
        out.into_stub()
    }
}

/// What is told of a server, at any level. What a level does not tell is empty or 0.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ServerInfo {
    /// Which kind of system it is, such as [`super::PLATFORM_NT`].
    pub platform: u32,
    /// Its name.
    pub name: String,
    /// The version of the system; level 101 and up.
    pub version_major: u32,
    /// The rest of it.
    pub version_minor: u32,
    /// What software it runs.
    pub server_type: ServerType,
    /// What it is for.
    pub comment: String,
    /// Most users at one time, all ones for any number; level 102.
    pub users: u32,
    /// Minutes after which one that does nothing is sent away.
    pub disconnect: u32,
    /// Whether it hides from lists of servers.
    pub is_hidden: bool,
    /// Seconds between its announcements.
    pub announce: u32,
    /// Milliseconds by which they vary.
    pub announce_delta: u32,
    /// Licences.
    pub licenses: u32,
    /// Where the folders of users are.
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
        let mut text = |is_there, field| match is_there {
            true => reader.string(field),
            false => Ok(String::new()),
        };
        info.name = text(has_name, "name")?;
        info.comment = text(has_comment, "comment")?;
        info.user_path = text(has_path, "userpath")?;
        Ok(info)
    }
}

/// NetrServerGetInfo, response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerGetInfoResponse {
    /// What is told.
    pub level: u32,
    /// The server.
    pub server: Option<ServerInfo>,
    /// SUCCESS, or what went wrong.
    pub status: WinError,
}

impl ServerGetInfoResponse {
    const LEVELS: Levels = Levels {
        has_arm,
        knows: Self::knows,
        field: "InfoStruct",
    };

    /// Whether the level is one that these structures know.
    pub fn knows(level: u32) -> bool {
        (100..=102).contains(&level)
    }

    /// Reads the stub.
    pub fn decode(stub: &[u8]) -> Result<Self, DecodeError> {
        let (level, server, status) = Self::LEVELS.decode(stub, ServerInfo::read)?;
        Ok(Self {
            level,
            server,
            status,
        })
    }

    /// The stub.
    ///
    /// # Panics
    /// When there is a server at a level that is not known.
    pub fn encode(&self) -> Vec<u8> {
        let (level, server) = (self.level, self.server.as_ref());
        Self::LEVELS.encode(level, server, self.status, ServerInfo::put)
    }
}

/// Whether the union of all levels has this one: each of them is a pointer. \[MS-SRVS\] 2.2.3.7
fn has_arm(level: u32) -> bool {
    matches!(level, 100..=103 | 502 | 503 | 599 | 1005 | 1107 | 1010 | 1016..=1018 | 1501..=1599)
}
