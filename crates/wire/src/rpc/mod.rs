//! Remote procedure calls through a named pipe: DCE/RPC over connections. \[C706\] 12.6,
//! \[MS-RPCE\] 2.2.2
//!
//! A pipe carries *fragments* ([`Pdu`]): a bind agrees on interfaces, a request and its response
//! carry *stubs*, the arguments and results of a call in NDR ([`ndr`]). An interface has a file of
//! its own with the stubs of its calls, both ways: [`srvsvc`] lists shares, [`wkssvc`] tells of the
//! machine.
//!
//! Integers are little-endian, as everybody sends them: a big-endian fragment can be measured and
//! refused, no more. What a fragment may carry beside its stub for a security provider is not read:
//! the session that the pipe belongs to is authenticated.

mod bind;
mod call;
mod fragments;
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

/// Bytes of a fragment that everybody takes: no bind may be longer, no limit lower.
/// \[C706\] 12.6.2, MustRecvFragSize
pub const MIN_FRAGMENT: u16 = 1432;
/// Bytes of a fragment that Windows offers through a pipe.
pub const WINDOWS_FRAGMENT: u16 = 4280;

/// An interface, or a way to write arguments: p_syntax_id_t. \[C706\] 12.6.3.1
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SyntaxId {
    /// Which one.
    pub uuid: Guid,
    /// The major version.
    pub major: u16,
    /// The minor version.
    pub minor: u16,
}

impl SyntaxId {
    /// Bytes of a syntax.
    pub const LEN: usize = 20;

    /// NDR with pointers of 32 bits: what everybody speaks. \[MS-RPCE\] 2.2.4.12
    pub const NDR32: Self = Self {
        uuid: Guid([
            0x04, 0x5D, 0x88, 0x8A, 0xEB, 0x1C, 0xC9, 0x11, 0x9F, 0xE8, 0x08, 0x00, 0x2B, 0x10,
            0x48, 0x60,
        ]),
        major: 2,
        minor: 0,
    };
    /// NDR with pointers of 64 bits. \[MS-RPCE\] 2.2.4.12
    pub const NDR64: Self = Self {
        uuid: Guid([
            0x33, 0x05, 0x71, 0x71, 0xBA, 0xBE, 0x37, 0x49, 0x83, 0x19, 0xB5, 0xDB, 0xEF, 0x9C,
            0xCC, 0x36,
        ]),
        major: 1,
        minor: 0,
    };

    /// What a bind asks for beside its interfaces, where this is no syntax but the pattern of bind
    /// time feature negotiation. \[MS-RPCE\] 2.2.2.14
    pub fn features(&self) -> Option<Features> {
        let (pattern, bits) = self.uuid.0.split_at(8);
        let is_pattern = pattern == FEATURES_PATTERN && self.major == 1 && self.minor == 0;
        is_pattern.then(|| {
            Features(u64::from_le_bytes(
                bits.try_into().expect("half of 16 bytes"),
            ))
        })
    }

    /// The syntax that asks for features.
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

/// The first half of a syntax that asks for features. \[MS-RPCE\] 2.2.2.14
const FEATURES_PATTERN: [u8; 8] = [0x2C, 0x1C, 0xB7, 0x6C, 0x12, 0x98, 0x40, 0x45];

open_flags! {
    /// What bind time feature negotiation is about. \[MS-RPCE\] 2.2.2.14
    Features(u64) {
        /// Several security contexts on one connection.
        SECURITY_CONTEXT_MULTIPLEXING = 0x1,
        /// A call that the client has given up does not end the connection.
        KEEP_CONNECTION_ON_ORPHAN = 0x2,
    }
}

open_enum! {
    /// What a call came to: NET_API_STATUS, an error of Windows. \[MS-ERREF\] 2.2
    WinError(u32) {
        /// It is done.
        SUCCESS = 0,
        /// Not for this user.
        ACCESS_DENIED = 5,
        /// Not here.
        NOT_SUPPORTED = 50,
        /// An argument makes no sense.
        INVALID_PARAMETER = 87,
        /// There is no such level.
        INVALID_LEVEL = 124,
        /// There is more than was asked for.
        MORE_DATA = 234,
        /// NERR_NetNameNotFound: there is no such share.
        NET_NAME_NOT_FOUND = 2310,
    }
}

/// A structure of which the caller chose how much it tells, as the response of a call has it: the
/// level, a union of pointers, and what came of the call.
struct Levels {
    /// Whether the union of all levels has this one.
    has_arm: fn(u32) -> bool,
    /// Whether the level is one that these structures know.
    knows: fn(u32) -> bool,
    /// The union, for errors.
    field: &'static str,
}

impl Levels {
    /// Reads the stub: the level, the structure if there is one, and what came of the call.
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

    /// The stub.
    ///
    /// # Panics
    /// When there is a structure at a level that is not known.
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
