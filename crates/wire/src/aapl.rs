//! AAPL, the create context of Apple: after a tree connect, a client queries once which features
//! the server supports.
//!
//! The specifications of Microsoft do not contain it. The layout follows Apple's SMB client (smbfs)
//! and the vfs_fruit module of Samba.

use alloc::vec::Vec;

use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::open_enum::{open_enum, open_flags};
use crate::text::Utf16;

open_enum! {
    /// The command of an AAPL create context, Apple's extension of CREATE.
    AaplCommand(u32) {
        /// The client queries the features of the server and the volume.
        SERVER_QUERY = 1,
        /// The client queries the path of the file with a given 64-bit file identifier.
        RESOLVE_ID = 2,
    }
}

open_flags! {
    /// A bitmap of the fields that an AAPL query requests, and that the reply contains.
    AaplFields(u64) {
        /// Features of the peer that sends the context, an [`AaplServerCaps`]: of the client in the
        /// query, of the server in the reply.
        SERVER_CAPS = 0x1,
        /// Features of the volume, an [`AaplVolumeCaps`]. Only the reply carries them.
        VOLUME_CAPS = 0x2,
        /// The model of the server as text. Only the reply carries it.
        MODEL_INFO = 0x4,
    }
}

open_flags! {
    /// Features that a server or a client of Apple's SMB extension supports.
    AaplServerCaps(u64) {
        /// Directory listings by class 37 (ID_BOTH_DIRECTORY) carry [`DirectoryAttributes`], if
        /// both peers have this feature.
        SUPPORTS_READ_DIR_ATTR = 0x1,
        /// FSCTL_SRV_COPYCHUNK can copy the whole file with its streams and attributes.
        SUPPORTS_OSX_COPYFILE = 0x2,
        /// The server stores Unix modes of files.
        UNIX_BASED = 0x4,
        /// Access control entries for SIDs below S-1-5-88 set the Unix mode, owner and group of a
        /// file.
        SUPPORTS_NFS_ACE = 0x8,
    }
}

open_flags! {
    /// Features of a volume, in the server's reply to an AAPL query.
    AaplVolumeCaps(u64) {
        /// The server can resolve a file identifier to a path, with [`AaplCommand::RESOLVE_ID`].
        SUPPORT_RESOLVE_ID = 0x1,
        /// Names that differ only in case are different names.
        CASE_SENSITIVE = 0x2,
        /// FLUSH can flush the cache of the disk. Time Machine requires it.
        SUPPORTS_FULL_SYNC = 0x4,
    }
}

/// The data of the AAPL create context (Apple's protocol extension) in a CREATE request: a query of
/// features, or another command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AaplRequest<'a> {
    /// The client queries the features of the server and the volume.
    ServerQuery {
        /// The fields that the server's reply should contain.
        fields: AaplFields,
        /// Features that the client supports.
        client_caps: AaplServerCaps,
    },
    /// A command that this crate does not decode.
    Other {
        /// The command: any value except SERVER_QUERY.
        command: AaplCommand,
        /// The bytes after the command and its reserved field.
        data: &'a [u8],
    },
}

impl<'a> AaplRequest<'a> {
    /// Decodes the data of an AAPL create context in a CREATE request. Fails when `bytes` is too
    /// short for its command.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let command = AaplCommand(reader.u32("CommandCode")?);
        reader.skip("Reserved", 4)?;
        if command != AaplCommand::SERVER_QUERY {
            let data = reader.rest();
            return Ok(Self::Other { command, data });
        }
        Ok(Self::ServerQuery {
            fields: AaplFields(reader.u64("RequestBitmap")?),
            client_caps: AaplServerCaps(reader.u64("ClientCapabilities")?),
        })
    }

    /// Appends the data of the AAPL create context of a CREATE request to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            Self::ServerQuery {
                fields,
                client_caps,
            } => {
                put_head(out, AaplCommand::SERVER_QUERY);
                out.put_u64(fields.0);
                out.put_u64(client_caps.0);
            }
            Self::Other { command, data } => {
                put_head(out, command);
                out.put(data);
            }
        }
    }
}

/// Appends the command and its reserved field.
fn put_head(out: &mut Vec<u8>, command: AaplCommand) {
    out.put_u32(command.0);
    out.put_u32(0);
}

/// The data of the AAPL create context in a CREATE response: the server's reply to the query of a
/// client. The reply contains the fields that are `Some`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct AaplReply<'a> {
    /// Protocol features that the server supports; `None` when the client did not query them.
    pub server_caps: Option<AaplServerCaps>,
    /// Features of the share's volume, such as case sensitivity; `None` when the client did not
    /// query them.
    pub volume_caps: Option<AaplVolumeCaps>,
    /// Text for the model of the server, such as "MacSamba", which selects the icon in the macOS
    /// Finder; `None` when the client did not query it.
    pub model: Option<Utf16<'a>>,
}

impl<'a> AaplReply<'a> {
    /// Decodes the data of an AAPL create context in a CREATE response. Fails when `bytes` is too
    /// short, or the command is not SERVER_QUERY.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let command = reader.u32("CommandCode")?;
        if AaplCommand(command) != AaplCommand::SERVER_QUERY {
            return Err(DecodeError::Invalid {
                field: "CommandCode",
                value: u64::from(command),
            });
        }
        reader.skip("Reserved", 4)?;
        let fields = AaplFields(reader.u64("ReplyBitmap")?);
        let mut reply = Self::default();
        if fields.contains(AaplFields::SERVER_CAPS) {
            reply.server_caps = Some(AaplServerCaps(reader.u64("ServerCapabilities")?));
        }
        if fields.contains(AaplFields::VOLUME_CAPS) {
            reply.volume_caps = Some(AaplVolumeCaps(reader.u64("VolumeCapabilities")?));
        }
        if fields.contains(AaplFields::MODEL_INFO) {
            reply.model = Some(read_model(&mut reader)?);
        }
        Ok(reply)
    }

    /// Returns the bitmap that says which fields the reply contains: those that are `Some`.
    pub fn fields(&self) -> AaplFields {
        let mut fields = AaplFields::NONE;
        if self.server_caps.is_some() {
            fields |= AaplFields::SERVER_CAPS;
        }
        if self.volume_caps.is_some() {
            fields |= AaplFields::VOLUME_CAPS;
        }
        if self.model.is_some() {
            fields |= AaplFields::MODEL_INFO;
        }
        fields
    }

    /// Appends the data of the AAPL create context of a CREATE response to `out`. Panics when the
    /// model is 4 GiB or longer.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_head(out, AaplCommand::SERVER_QUERY);
        out.put_u64(self.fields().0);
        if let Some(caps) = self.server_caps {
            out.put_u64(caps.0);
        }
        if let Some(caps) = self.volume_caps {
            out.put_u64(caps.0);
        }
        if let Some(model) = self.model {
            out.put_u32(0);
            out.put_u32(u32::try_from(model.len()).expect("a model is shorter than 4 GiB"));
            out.put(model.0);
        }
    }
}

/// Decodes the padding, the length and the characters of the model.
fn read_model<'a>(reader: &mut Reader<'a>) -> Result<Utf16<'a>, DecodeError> {
    reader.skip("Padding", 4)?;
    let length = usize::try_from(reader.u32("ModelLength")?).unwrap_or(usize::MAX);
    reader.bytes("Model", length).map(Utf16)
}

/// File attributes for macOS in a directory listing of class 37 (ID_BOTH_DIRECTORY). They replace
/// the 32 bytes from EaSize to Reserved2 of each entry, after both peers have announced
/// [`AaplServerCaps::SUPPORTS_READ_DIR_ATTR`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DirectoryAttributes {
    /// Maximal access rights of the user to the file: the bits of an
    /// [`AccessMask`](crate::access::AccessMask).
    pub max_access: u32,
    /// Length of the file's resource fork, a macOS stream, in bytes.
    pub resource_fork_len: u64,
    /// Parts of the file's FinderInfo, the metadata of the macOS Finder, big-endian: type (4
    /// bytes), creator (4), Finder flags (2), extended Finder flags (2), and a date (4). The layout
    /// is that of Samba's vfs_fruit, since Apple has not published one.
    pub finder_info: [u8; 16],
    /// The `st_mode` of the file: Unix file type and permissions. Valid from a server that
    /// announces [`AaplServerCaps::UNIX_BASED`].
    pub unix_mode: u16,
}

impl DirectoryAttributes {
    /// Length of the encoded structure in bytes.
    pub const LEN: usize = 32;

    /// Decodes the fields from EaSize to Reserved2 of a FILE_ID_BOTH_DIR_INFORMATION entry. Fails
    /// when `bytes` has fewer than 32 bytes; later bytes are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::read(&mut Reader::new(bytes))
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let max_access = reader.u32("MaxAccess")?;
        reader.skip("ShortNameLength", 2)?;
        Ok(Self {
            max_access,
            resource_fork_len: reader.u64("ResourceForkSize")?,
            finder_info: reader.array("FinderInfo")?,
            unix_mode: reader.u16("UnixMode")?,
        })
    }

    /// Appends the 32 encoded bytes to `out`, in place of the fields from EaSize to Reserved2 of a
    /// FILE_ID_BOTH_DIR_INFORMATION entry.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(self.max_access);
        // The entry has no 8.3 name, but clients expect a length of 24.
        out.put_u16(24);
        out.put_u64(self.resource_fork_len);
        out.put(&self.finder_info);
        out.put_u16(self.unix_mode);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::utf16;

    /// The query of macOS: all three fields.
    const QUERY: &[u8; 24] = b"\x01\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0";

    #[test]
    fn a_server_query_both_ways() {
        let request = AaplRequest::ServerQuery {
            fields: AaplFields(7),
            client_caps: AaplServerCaps(7),
        };
        assert_eq!(AaplRequest::decode(QUERY), Ok(request));
        let mut written = Vec::new();
        request.encode(&mut written);
        assert_eq!(written, QUERY);
        for end in 0..QUERY.len() {
            assert!(AaplRequest::decode(&QUERY[..end]).is_err(), "{end} bytes");
        }
    }

    #[test]
    fn another_command_keeps_its_bytes() {
        let bytes = b"\x02\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\0";
        let request = AaplRequest::decode(bytes).expect("a request");
        let command = AaplCommand::RESOLVE_ID;
        assert_eq!(
            request,
            AaplRequest::Other {
                command,
                data: &bytes[8..]
            }
        );
        let mut written = Vec::new();
        request.encode(&mut written);
        assert_eq!(written, bytes);
    }

    #[test]
    fn replies_contain_the_fields_of_their_bits() {
        let model = utf16("Xserve");
        let reply = AaplReply {
            server_caps: Some(AaplServerCaps::UNIX_BASED | AaplServerCaps::SUPPORTS_NFS_ACE),
            volume_caps: Some(AaplVolumeCaps::SUPPORTS_FULL_SYNC),
            model: Some(Utf16(&model)),
        };
        let bytes = b"\x01\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0\x0C\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0\
            \0\0\0\0\x0C\0\0\0X\0s\0e\0r\0v\0e\0";
        let mut written = Vec::new();
        reply.encode(&mut written);
        assert_eq!(written, bytes);
        assert_eq!(AaplReply::decode(bytes), Ok(reply));
        for end in 0..bytes.len() {
            assert!(AaplReply::decode(&bytes[..end]).is_err(), "{end} bytes");
        }
        let caps_only = AaplReply {
            volume_caps: None,
            model: None,
            ..reply
        };
        let mut written = Vec::new();
        caps_only.encode(&mut written);
        assert_eq!(written.len(), 24);
        assert_eq!(AaplReply::decode(&written), Ok(caps_only));
        assert!(AaplReply::decode(b"\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0").is_err());
    }

    #[test]
    fn directory_attributes_take_32_bytes() {
        let attributes = DirectoryAttributes {
            max_access: 0x001F_01FF,
            resource_fork_len: 9,
            finder_info: *b"TEXTttxt\0\0\0\0\0\0\0\0",
            unix_mode: 0o100_644,
        };
        let mut written = Vec::new();
        attributes.encode(&mut written);
        let bytes = b"\xFF\x01\x1F\0\x18\0\x09\0\0\0\0\0\0\0TEXTttxt\0\0\0\0\0\0\0\0\xA4\x81";
        assert_eq!(written, bytes);
        assert_eq!(written.len(), DirectoryAttributes::LEN);
        assert_eq!(DirectoryAttributes::decode(bytes), Ok(attributes));
    }
}
