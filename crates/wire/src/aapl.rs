//! Apple's create context AAPL: a client asks once after a tree connect what the server can do.
//!
//! Not in the specifications of Microsoft. As Apple publishes it in its SMB client (smbfs), and
//! as Samba's vfs_fruit answers it.

use alloc::vec::Vec;

use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::open_enum::{open_enum, open_flags};
use crate::text::Utf16;

open_enum! {
    /// What a context asks for.
    AaplCommand(u32) {
        /// What can the server do?
        SERVER_QUERY = 1,
        /// What is the path of this file id?
        RESOLVE_ID = 2,
    }
}

open_flags! {
    /// What a query asks for, and what a reply holds.
    AaplFields(u64) {
        /// What server or client can do.
        SERVER_CAPS = 0x1,
        /// What the volume can do.
        VOLUME_CAPS = 0x2,
        /// The model of the server.
        MODEL_INFO = 0x4,
    }
}

open_flags! {
    /// What server or client can do.
    AaplServerCaps(u64) {
        /// Listings by class 37 carry [`DirectoryAttributes`].
        SUPPORTS_READ_DIR_ATTR = 0x1,
        /// FSCTL_SRV_COPYCHUNK copies the whole file, with streams and attributes.
        SUPPORTS_OSX_COPYFILE = 0x2,
        /// The server keeps Unix modes.
        UNIX_BASED = 0x4,
        /// ACEs for the SIDs S-1-5-88 set mode, owner and group.
        SUPPORTS_NFS_ACE = 0x8,
    }
}

open_flags! {
    /// What a volume can do.
    AaplVolumeCaps(u64) {
        /// RESOLVE_ID works.
        SUPPORT_RESOLVE_ID = 0x1,
        /// Names that differ in case only are two names.
        CASE_SENSITIVE = 0x2,
        /// A flush goes to the disk: Time Machine asks for it.
        SUPPORTS_FULL_SYNC = 0x4,
    }
}

/// The data of the context in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AaplRequest<'a> {
    /// What can the server do?
    ServerQuery {
        /// What is asked for.
        fields: AaplFields,
        /// What the client can do.
        client_caps: AaplServerCaps,
    },
    /// Something else.
    Other {
        /// What is asked for.
        command: AaplCommand,
        /// What follows command and reserved field.
        data: &'a [u8],
    },
}

impl<'a> AaplRequest<'a> {
    /// Reads the data of the context.
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

    /// Appends the data of the context.
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

/// Appends command and reserved field.
fn put_head(out: &mut Vec<u8>, command: AaplCommand) {
    out.put_u32(command.0);
    out.put_u32(0);
}

/// The answer to [`AaplRequest::ServerQuery`]. What is `Some` is in the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct AaplReply<'a> {
    /// What the server can do.
    pub server_caps: Option<AaplServerCaps>,
    /// What the volume can do.
    pub volume_caps: Option<AaplVolumeCaps>,
    /// The model, which picks the icon in the Finder: "MacSamba".
    pub model: Option<Utf16<'a>>,
}

impl<'a> AaplReply<'a> {
    /// Reads the data of the context.
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

    /// What the reply holds.
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

    /// Appends the data of the context.
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

/// Reads the padding, the length and the characters of the model.
fn read_model<'a>(reader: &mut Reader<'a>) -> Result<Utf16<'a>, DecodeError> {
    reader.skip("Padding", 4)?;
    let length = usize::try_from(reader.u32("ModelLength")?).unwrap_or(usize::MAX);
    reader.bytes("Model", length).map(Utf16)
}

/// What a listing by class 37 carries from EaSize to Reserved2, 32 bytes in all, once both sides
/// agreed on [`AaplServerCaps::SUPPORTS_READ_DIR_ATTR`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DirectoryAttributes {
    /// The rights of the user, in the place of EaSize.
    pub max_access: u32,
    /// Bytes of the resource fork.
    pub resource_fork_len: u64,
    /// The parts of the FinderInfo that a listing shows.
    pub finder_info: [u8; 16],
    /// The Unix mode, type included, where the server is UNIX_BASED.
    pub unix_mode: u16,
}

impl DirectoryAttributes {
    /// Bytes on the wire.
    pub const LEN: usize = 32;

    /// Reads the bytes from EaSize to Reserved2.
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

    /// Appends the bytes from EaSize to Reserved2.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(self.max_access);
        // There is no 8.3 name, but clients are used to see a length of 24 here.
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

    /// What macOS asks for: all three.
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
    fn replies_hold_what_their_bits_say() {
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
