//! Remote procedure calls over a named pipe: connection-oriented DCE/RPC. \[C706\] 12.6,
//! \[MS-RPCE\] 2.2.2
//!
//! A pipe carries *fragments* ([`Pdu`]). A bind negotiates interfaces. A request and its response
//! carry *stubs*: the arguments and results of a call, encoded in NDR ([`ndr`]). Each interface has
//! a module with the stubs of its calls: [`srvsvc`] lists shares, [`wkssvc`] describes the
//! computer, [`lsarpc`] translates SIDs into names and back.
//!
//! Integers are little-endian. This module can measure and refuse a big-endian fragment, but not
//! decode it. It ignores the authentication trailer of a fragment, because the session of the pipe
//! is authenticated.

mod bind;
mod call;
mod fragments;
pub mod lsarpc;
pub mod ndr;
mod pdu;
pub mod srvsvc;
pub mod wkssvc;

pub use bind::{
    Bind, BindAck, BindNak, ContextResult, PresentationContext, Reason, RejectReason, ResultCode,
};
pub use call::{Fault, FaultStatus, Request, Response, request_fragments, response_fragments};
pub use fragments::Fragments;
pub use pdu::{Body, Header, PacketFlags, PacketType, Pdu};

use alloc::vec::Vec;

use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::ids::Guid;
use crate::open_enum::{open_enum, open_flags};

/// Maximum length in bytes of an RPC bind, which must be one fragment. Every peer must accept
/// fragments of this length. \[C706\] 12.6.2, MustRecvFragSize
pub const MIN_FRAGMENT: u16 = 1432;
/// Maximum length in bytes of an RPC fragment on a pipe that Windows offers in a bind.
pub const WINDOWS_FRAGMENT: u16 = 4280;

/// Identifier of an RPC interface, or of a transfer syntax (an encoding of arguments), with its
/// version: p_syntax_id_t. \[C706\] 12.6.3.1
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SyntaxId {
    /// UUID of the RPC interface or transfer syntax.
    pub uuid: Guid,
    /// Major version of the RPC interface or transfer syntax.
    pub major: u16,
    /// Minor version of the RPC interface or transfer syntax.
    pub minor: u16,
}

impl SyntaxId {
    /// Length of an encoded syntax identifier in bytes.
    pub const LEN: usize = 20;

    /// The transfer syntax (encoding of RPC arguments) NDR with 32-bit pointers, which all known
    /// peers support. \[MS-RPCE\] 2.2.4.12
    pub const NDR32: Self = Self {
        uuid: Guid([
            0x04, 0x5D, 0x88, 0x8A, 0xEB, 0x1C, 0xC9, 0x11, 0x9F, 0xE8, 0x08, 0x00, 0x2B, 0x10,
            0x48, 0x60,
        ]),
        major: 2,
        minor: 0,
    };
    /// The transfer syntax (encoding of RPC arguments) NDR with 64-bit pointers.
    /// \[MS-RPCE\] 2.2.4.12
    pub const NDR64: Self = Self {
        uuid: Guid([
            0x33, 0x05, 0x71, 0x71, 0xBA, 0xBE, 0x37, 0x49, 0x83, 0x19, 0xB5, 0xDB, 0xEF, 0x9C,
            0xCC, 0x36,
        ]),
        major: 1,
        minor: 0,
    };

    /// Returns the features that the client requests if this identifier is in place of a transfer
    /// syntax in a bind; `None` for a transfer syntax. \[MS-RPCE\] 2.2.2.14
    pub fn features(&self) -> Option<Features> {
        let (pattern, bits) = self.uuid.0.split_at(8);
        let is_pattern = pattern == FEATURES_PATTERN && self.major == 1 && self.minor == 0;
        is_pattern.then(|| {
            Features(u64::from_le_bytes(
                bits.try_into().expect("half of 16 bytes"),
            ))
        })
    }

    /// Makes the identifier that requests `features` in place of a transfer syntax in a bind.
    /// \[MS-RPCE\] 2.2.2.14
    pub fn of_features(features: Features) -> Self {
        let mut uuid = [0; 16];
        uuid[..8].copy_from_slice(&FEATURES_PATTERN);
        uuid[8..].copy_from_slice(&features.0.to_le_bytes());
        Self {
            uuid: Guid(uuid),
            major: 1,
            minor: 0,
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            uuid: reader.guid("if_uuid")?,
            major: reader.u16("if_version")?,
            minor: reader.u16("if_version")?,
        })
    }

    fn encode(&self, fragment: &mut Vec<u8>) {
        fragment.put(&self.uuid.0);
        fragment.put_u16(self.major);
        fragment.put_u16(self.minor);
    }
}

/// The first half of the UUID of a feature negotiation. \[MS-RPCE\] 2.2.2.14
const FEATURES_PATTERN: [u8; 8] = [0x2C, 0x1C, 0xB7, 0x6C, 0x12, 0x98, 0x40, 0x45];

open_flags! {
    /// Features that RPC peers negotiate in a bind (bind time feature negotiation). \[MS-RPCE\]
    /// 2.2.2.14
    Features(u64) {
        /// The peer supports several security contexts on one connection.
        SECURITY_CONTEXT_MULTIPLEXING = 0x1,
        /// The connection survives a call that the client has abandoned.
        KEEP_CONNECTION_ON_ORPHAN = 0x2,
    }
}

open_enum! {
    /// The result of an RPC call, NET_API_STATUS: an error code of Windows. \[MS-ERREF\] 2.2
    WinError(u32) {
        /// The call succeeded.
        SUCCESS = 0,
        /// The user may not make the call.
        ACCESS_DENIED = 5,
        /// The server does not support the call.
        NOT_SUPPORTED = 50,
        /// An argument is not valid.
        INVALID_PARAMETER = 87,
        /// The server does not support the information level of the call.
        INVALID_LEVEL = 124,
        /// The server has more data than the buffer can hold.
        MORE_DATA = 234,
        /// NERR_NetNameNotFound: the share does not exist.
        NET_NAME_NOT_FOUND = 2310,
    }
}

/// The response of a call with an information level: the level, a union of pointers, and the result
/// of the call.
struct Levels {
    /// Whether the union of all levels has an arm for this level.
    has_arm: fn(u32) -> bool,
    /// Whether this crate supports the level.
    knows: fn(u32) -> bool,
    /// Name of the union, for errors.
    field: &'static str,
}

impl Levels {
    /// Decodes the stub: the level, the structure if it is present, and the result of the call.
    fn decode<T>(
        &self,
        stub: &[u8],
        read: fn(u32, &mut ndr::Reader<'_>) -> Result<T, DecodeError>,
    ) -> Result<(u32, Option<T>, WinError), DecodeError> {
        let mut reader = ndr::Reader::new(stub);
        let level = reader.u32("switch")?;
        let mut info = None;
        if (self.has_arm)(level) && reader.pointer(self.field)? {
            if !(self.knows)(level) {
                let (field, value) = ("switch", level.into());
                return Err(DecodeError::Invalid { field, value });
            }
            info = Some(read(level, &mut reader)?);
        }
        let status = WinError(reader.u32("return value")?);
        Ok((level, info, status))
    }

    /// Encodes the stub: the NDR encoding of the fields, without RPC headers.
    ///
    /// # Panics
    /// Panics when a structure is present and the level is not supported.
    fn encode<T>(
        &self,
        level: u32,
        info: Option<&T>,
        status: WinError,
        put: fn(&T, u32, &mut ndr::Writer),
    ) -> Vec<u8> {
        let mut out = ndr::Writer::new();
        out.put_u32(level);
        assert!((self.knows)(level) || info.is_none());
        if (self.has_arm)(level) {
            out.put_pointer(info.is_some());
        }
        if let Some(info) = info {
            put(info, level, &mut out);
        }
        out.put_u32(status.0);
        out.into_stub()
    }
}
