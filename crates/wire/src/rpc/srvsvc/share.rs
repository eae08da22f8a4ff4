//! Descriptions of shares: SHARE_INFO_0 and the other levels. \[MS-SRVS\] 2.2.4.22 to 2.2.4.31

use alloc::string::String;
use alloc::vec::Vec;

use crate::error::DecodeError;
use crate::layout::u32_of;
use crate::open_enum::open_flags;
use crate::rpc::ndr::{Reader, Writer};

open_flags! {
    /// Type of a share: one of the four kinds, with any of the flags. \[MS-SRVS\] 2.2.2.4
    ShareType(u32) {
        /// The share is a directory of files.
        DISKTREE = 0x0000_0000,
        /// The share is a print queue.
        PRINTQ = 0x0000_0001,
        /// The share is a communication device.
        DEVICE = 0x0000_0002,
        /// The share consists of named pipes (IPC$).
        IPC = 0x0000_0003,
        /// Flag: the share ends with the server process.
        TEMPORARY = 0x4000_0000,
        /// Flag: an administrative share, which user interfaces hide.
        SPECIAL = 0x8000_0000,
    }
}

impl ShareType {
    /// Returns the kind of the share (disk, printer, device or IPC), without the flags.
    pub fn kind(self) -> Self {
        Self(self.0 & 0xFF)
    }
}

/// A description of a share in calls of the server service, with the fields of all information
/// levels. A field that the level does not have is empty or 0.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ShareInfo {
    /// Name of the share, without the name of the server.
    pub name: String,
    /// Kind of the share, such as disk or IPC, and flags, such as an administrative share.
    pub share_type: ShareType,
    /// Description of the share for display.
    pub comment: String,
    /// Permissions of share-level security, an obsolete feature of LAN Manager; else 0.
    pub permissions: u32,
    /// Maximum number of connections to the share; 0xFFFFFFFF for no limit.
    pub max_uses: u32,
    /// Number of connections to the share at the time of the call.
    pub current_uses: u32,
    /// Path of the shared directory on the server.
    pub path: String,
    /// Password of share-level security, an obsolete feature of LAN Manager; `None` when the server
    /// returns none.
    pub password: Option<String>,
    /// Name of the server that has the share; `*` for any.
    pub server_name: String,
    /// Flags for caching, DFS and encryption of the share: SHI1005_FLAGS. \[MS-SRVS\] 2.2.2.5
    pub flags: u32,
    /// Encoded self-relative security descriptor of the share; empty when the server returns none.
    pub security_descriptor: Vec<u8>,
}

/// A field of a structure. Each is four bytes: an integer or a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Name,
    Type,
    Comment,
    Permissions,
    MaxUses,
    CurrentUses,
    Path,
    Password,
    ServerName,
    Flags,
    /// Length of the security descriptor in bytes.
    DescriptorLength,
    Descriptor,
}

/// The fields of a level, in order; `None` for an unsupported level.
pub(super) fn fields(level: u32) -> Option<&'static [Field]> {
    use Field::{
        Comment, CurrentUses, Descriptor, DescriptorLength, Flags, MaxUses, Name, Password, Path,
        Permissions, ServerName, Type,
    };
    Some(match level {
        0 => &[Name],
        1 => &[Name, Type, Comment],
        2 => &[
            Name,
            Type,
            Comment,
            Permissions,
            MaxUses,
            CurrentUses,
            Path,
            Password,
        ],
        501 => &[Name, Type, Comment, Flags],
        502 => &[
            Name,
            Type,
            Comment,
            Permissions,
            MaxUses,
            CurrentUses,
            Path,
            Password,
            DescriptorLength,
            Descriptor,
        ],
        503 => &[
            Name,
            Type,
            Comment,
            Permissions,
            MaxUses,
            CurrentUses,
            Path,
            Password,
            ServerName,
            DescriptorLength,
            Descriptor,
        ],
        1004 => &[Comment],
        1005 => &[Flags],
        1006 => &[MaxUses],
        1501 => &[DescriptorLength, Descriptor],
        _ => return None,
    })
}

impl ShareInfo {
    /// Appends the fields of a structure, without the referents of pointers.
    pub(super) fn put_fields(&self, fields: &[Field], out: &mut Writer) {
        for field in fields {
            match field {
                Field::Name | Field::Comment | Field::Path | Field::ServerName => {
                    out.put_pointer(true);
                }
                Field::Password => out.put_pointer(self.password.is_some()),
                Field::Descriptor => out.put_pointer(!self.security_descriptor.is_empty()),
                Field::Type => out.put_u32(self.share_type.0),
                Field::Permissions => out.put_u32(self.permissions),
                Field::MaxUses => out.put_u32(self.max_uses),
                Field::CurrentUses => out.put_u32(self.current_uses),
                Field::Flags => out.put_u32(self.flags),
                Field::DescriptorLength => out.put_u32(u32_of(self.security_descriptor.len())),
            }
        }
    }

    /// Appends the referents of the fields.
    pub(super) fn put_referents(&self, fields: &[Field], out: &mut Writer) {
        for field in fields {
            match field {
                Field::Name => out.put_string(&self.name),
                Field::Comment => out.put_string(&self.comment),
                Field::Path => out.put_string(&self.path),
                Field::ServerName => out.put_string(&self.server_name),
                Field::Password => {
                    if let Some(password) = &self.password {
                        out.put_string(password);
                    }
                }
                Field::Descriptor if !self.security_descriptor.is_empty() => {
                    out.put_bytes(&self.security_descriptor);
                }
                _ => {}
            }
        }
    }

    /// Reads the fields of a structure: four bytes each.
    pub(super) fn read_fields(
        fields: &[Field],
        reader: &mut Reader<'_>,
        values: &mut Vec<u32>,
    ) -> Result<(), DecodeError> {
        for _ in fields {
            values.push(reader.u32("SHARE_INFO")?);
        }
        Ok(())
    }

    /// Reads the referents of the fields.
    pub(super) fn read_referents(
        fields: &[Field],
        values: &[u32],
        reader: &mut Reader<'_>,
    ) -> Result<Self, DecodeError> {
        let mut info = Self::default();
        for (field, value) in fields.iter().zip(values) {
            let mut text = |name| match value {
                0 => Ok(None),
                _ => reader.string(name).map(Some),
            };
            match field {
                Field::Name => info.name = text("netname")?.unwrap_or_default(),
                Field::Comment => info.comment = text("remark")?.unwrap_or_default(),
                Field::Path => info.path = text("path")?.unwrap_or_default(),
                Field::ServerName => info.server_name = text("servername")?.unwrap_or_default(),
                Field::Password => info.password = text("passwd")?,
                Field::Descriptor if *value != 0 => {
                    info.security_descriptor = reader.bytes("security_descriptor")?.to_vec();
                }
                Field::Descriptor | Field::DescriptorLength => {}
                Field::Type => info.share_type = ShareType(*value),
                Field::Permissions => info.permissions = *value,
                Field::MaxUses => info.max_uses = *value,
                Field::CurrentUses => info.current_uses = *value,
                Field::Flags => info.flags = *value,
            }
        }
        Ok(info)
    }
}
