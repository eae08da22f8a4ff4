//! The RPC interface of the workstation service, which describes a computer. \[MS-WKST\]

use alloc::string::String;
use alloc::vec::Vec;

use super::ndr::{Reader, Writer};
use super::{Levels, SyntaxId, WinError};
use crate::error::DecodeError;
use crate::ids::Guid;
use crate::open_enum::open_enum;

/// UUID and version of the RPC interface of the workstation service (wkssvc), which describes a
/// computer. \[MS-WKST\] 1.9
pub const INTERFACE: SyntaxId = SyntaxId {
    uuid: Guid([
        0x98, 0xD0, 0xFF, 0x6B, 0x12, 0xA1, 0x10, 0x36, 0x98, 0x33, 0x46, 0xC3, 0xF8, 0x7E, 0x34,
        0x5A,
    ]),
    major: 1,
    minor: 0,
};

/// Name of the pipe on IPC$ that carries RPC calls of the workstation service. \[MS-WKST\] 2.1
pub const PIPE: &str = "wkssvc";

open_enum! {
    /// Operation numbers of the calls of the workstation service. \[MS-WKST\] 3.2.4
    Opnum(u16) {
        /// NetrWkstaGetInfo: describes the computer.
        WKSTA_GET_INFO = 0,
    }
}

/// The arguments of the RPC call NetrWkstaGetInfo: the client queries a description of the
/// computer. \[MS-WKST\] 3.2.4.1
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WkstaGetInfo {
    /// Name of the server, as the client addresses it; `None` for a null pointer. Servers ignore
    /// it.
    pub server_name: Option<String>,
    /// Information level, which selects the returned fields: 100, 101 or 102.
    pub level: u32,
}

impl WkstaGetInfo {
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

/// A description of a computer in the RPC call NetrWkstaGetInfo, with the fields of all information
/// levels. A field that the level does not have is empty or 0. \[MS-WKST\] 2.2.5.1 to 2.2.5.3
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct WkstaInfo {
    /// Number of the computer's operating system family, such as [`super::srvsvc::PLATFORM_NT`].
    pub platform: u32,
    /// NetBIOS name of the computer.
    pub computer: String,
    /// Domain or workgroup that the computer belongs to.
    pub domain: String,
    /// Major version of the operating system.
    pub version_major: u32,
    /// Minor version of the operating system.
    pub version_minor: u32,
    /// Path of the obsolete LAN Manager directory; level 101 and up.
    pub lan_root: String,
    /// Number of logged-on users; level 102.
    pub logged_on_users: u32,
}

impl WkstaInfo {
    fn put(&self, level: u32, out: &mut Writer) {
        out.put_u32(self.platform);
        out.put_pointer(true);
        out.put_pointer(true);
        out.put_u32(self.version_major);
        out.put_u32(self.version_minor);
        if level >= 101 {
            out.put_pointer(true);
        }
        if level >= 102 {
            out.put_u32(self.logged_on_users);
        }
        out.put_string(&self.computer);
        out.put_string(&self.domain);
        if level >= 101 {
            out.put_string(&self.lan_root);
        }
    }

    fn read(level: u32, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut info = Self {
            platform: reader.u32("wki_platform_id")?,
            ..Self::default()
        };
        let has_computer = reader.pointer("wki_computername")?;
        let has_domain = reader.pointer("wki_langroup")?;
        info.version_major = reader.u32("wki_ver_major")?;
        info.version_minor = reader.u32("wki_ver_minor")?;
        let has_root = level >= 101 && reader.pointer("wki_lanroot")?;
        if level >= 102 {
            info.logged_on_users = reader.u32("wki_logged_on_users")?;
        }
        let mut text = |is_present, field| match is_present {
            true => reader.string(field),
            false => Ok(String::new()),
        };
        info.computer = text(has_computer, "wki_computername")?;
        info.domain = text(has_domain, "wki_langroup")?;
        info.lan_root = text(has_root, "wki_lanroot")?;
        Ok(info)
    }
}

/// The results of the RPC call NetrWkstaGetInfo: a description of the computer, or an error.
/// \[MS-WKST\] 3.2.4.1
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WkstaGetInfoResponse {
    /// Information level of the results, which selects the returned fields, as in the request.
    pub level: u32,
    /// The description of the computer; `None` after an error.
    pub info: Option<WkstaInfo>,
    /// Result of the call: SUCCESS, or an error code.
    pub status: WinError,
}

impl WkstaGetInfoResponse {
    const LEVELS: Levels = Levels {
        has_arm,
        knows: Self::knows,
        field: "WkstaInfo",
    };

    /// Returns true if this crate supports the information level: 100, 101 or 102.
    pub fn knows(level: u32) -> bool {
        (100..=102).contains(&level)
    }

    /// Decodes the stub: the NDR encoding of the fields, without RPC headers. Fails when `stub` is
    /// truncated, or a string or array in it is malformed.
    pub fn decode(stub: &[u8]) -> Result<Self, DecodeError> {
        let (level, info, status) = Self::LEVELS.decode(stub, WkstaInfo::read)?;
        Ok(Self {
            level,
            info,
            status,
        })
    }

    /// Encodes the stub: the NDR encoding of the fields, without RPC headers.
    ///
    /// # Panics
    /// Panics when a description is present and the level is not supported.
    pub fn encode(&self) -> Vec<u8> {
        let (level, info) = (self.level, self.info.as_ref());
        Self::LEVELS.encode(level, info, self.status, WkstaInfo::put)
    }
}

/// Whether the union of all levels has an arm for this level; every arm is a pointer. \[MS-WKST\]
/// 2.2.3.3
fn has_arm(level: u32) -> bool {
    matches!(level, 100..=102 | 502 | 1013 | 1018 | 1046)
}
