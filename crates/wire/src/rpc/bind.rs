//! The agreement on interfaces: bind, bind_ack, bind_nak, alter_context. \[C706\] 12.6.4.3 to
//! 12.6.4.5, \[MS-RPCE\] 2.2.2.4, 2.2.2.14

use alloc::string::String;
use alloc::vec::Vec;

use super::SyntaxId;
use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::layout::u16_of;
use crate::open_enum::open_enum;

/// Asks for interfaces. \[C706\] 12.6.4.3
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bind {
    /// Bytes of the longest fragment that the client sends.
    pub max_xmit_frag: u16,
    /// Bytes of the longest fragment that the client takes.
    pub max_recv_frag: u16,
    /// The connections that this one belongs to; 0 for a new group.
    pub assoc_group_id: u32,
    /// The interfaces.
    pub contexts: Vec<PresentationContext>,
}

/// An interface, and the ways in which the client can write its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PresentationContext {
    /// What requests will call it.
    pub id: u16,
    /// The interface.
    pub abstract_syntax: SyntaxId,
    /// The ways.
    pub transfer_syntaxes: Vec<SyntaxId>,
}

impl Bind {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let max_xmit_frag = reader.u16("max_xmit_frag")?;
        let max_recv_frag = reader.u16("max_recv_frag")?;
        let assoc_group_id = reader.u32("assoc_group_id")?;
        let count = reader.u8("n_context_elem")?;
        reader.skip("reserved", 3)?;
        let mut contexts = Vec::with_capacity(usize::from(count));
        for _ in 0..count {
            contexts.push(PresentationContext::decode(reader)?);
        }
        Ok(Self {
            max_xmit_frag,
            max_recv_frag,
            assoc_group_id,
            contexts,
        })
    }

    pub(super) fn encode(&self, fragment: &mut Vec<u8>) {
        fragment.put_u16(self.max_xmit_frag);
        fragment.put_u16(self.max_recv_frag);
        fragment.put_u32(self.assoc_group_id);
        fragment.put_u32(u32::from(u8_of(self.contexts.len())));
        for context in &self.contexts {
            context.encode(fragment);
        }
    }
}

impl PresentationContext {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let id = reader.u16("p_cont_id")?;
        let count = reader.u8("n_transfer_syn")?;
        reader.skip("reserved", 1)?;
        let abstract_syntax = SyntaxId::decode(reader)?;
        let transfer_syntaxes = (0..count)
            .map(|_| SyntaxId::decode(reader))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            id,
            abstract_syntax,
            transfer_syntaxes,
        })
    }

    fn encode(&self, fragment: &mut Vec<u8>) {
        fragment.put_u16(self.id);
        fragment.put_u16(u16::from(u8_of(self.transfer_syntaxes.len())));
        self.abstract_syntax.encode(fragment);
        for syntax in &self.transfer_syntaxes {
            syntax.encode(fragment);
        }
    }
}

open_enum! {
    /// Whether an interface is to be had. \[C706\] 12.6.3.1, \[MS-RPCE\] 2.2.2.4
    ResultCode(u16) {
        /// It is.
        ACCEPTANCE = 0,
        /// The user says no.
        USER_REJECTION = 1,
        /// The server says no.
        PROVIDER_REJECTION = 2,
        /// These features are to be had.
        NEGOTIATE_ACK = 3,
    }
}

open_enum! {
    /// Why not. \[C706\] 12.6.3.1
    Reason(u16) {
        /// For no reason that has a number.
        NOT_SPECIFIED = 0,
        /// There is no such interface.
        ABSTRACT_SYNTAX_NOT_SUPPORTED = 1,
        /// There is no such way to write arguments.
        PROPOSED_TRANSFER_SYNTAXES_NOT_SUPPORTED = 2,
        /// There are too many.
        LOCAL_LIMIT_EXCEEDED = 3,
    }
}

/// Which interfaces there are. \[C706\] 12.6.4.4
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindAck {
    /// Bytes of the longest fragment that the server sends.
    pub max_xmit_frag: u16,
    /// Bytes of the longest fragment that the server takes.
    pub max_recv_frag: u16,
    /// The connections that this one belongs to.
    pub assoc_group_id: u32,
    /// Where more connections of the group go, such as `\PIPE\srvsvc`.
    pub secondary_address: String,
    /// One for each interface that was asked for.
    pub results: Vec<ContextResult>,
}

/// Whether an interface is to be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextResult {
    /// Whether it is.
    pub result: ResultCode,
    /// Why not; of NEGOTIATE_ACK the bits of the features.
    pub reason: Reason,
    /// How arguments are written.
    pub transfer_syntax: SyntaxId,
}

impl BindAck {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let max_xmit_frag = reader.u16("max_xmit_frag")?;
        let max_recv_frag = reader.u16("max_recv_frag")?;
        let assoc_group_id = reader.u32("assoc_group_id")?;
        let length = reader.u16("sec_addr")?;
        let address = reader.bytes("sec_addr", length.into())?;
        let address = address.strip_suffix(&[0]).unwrap_or(address);
        let is_text = address.is_ascii();
        let secondary_address = match core::str::from_utf8(address) {
            Ok(text) if is_text => text.into(),
            _ => String::new(),
        };
        reader.skip(
            "pad2",
            reader.position().next_multiple_of(4) - reader.position(),
        )?;
        let count = reader.u8("n_results")?;
        reader.skip("reserved", 3)?;
        let results = (0..count)
            .map(|_| ContextResult::decode(reader))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            max_xmit_frag,
            max_recv_frag,
            assoc_group_id,
            secondary_address,
            results,
        })
    }

    /// `start` is where the fragment begins.
    pub(super) fn encode(&self, start: usize, fragment: &mut Vec<u8>) {
        fragment.put_u16(self.max_xmit_frag);
        fragment.put_u16(self.max_recv_frag);
        fragment.put_u32(self.assoc_group_id);
        if self.secondary_address.is_empty() {
            fragment.put_u16(0);
        } else {
            fragment.put_u16(u16_of(self.secondary_address.len() + 1));
            fragment.put(self.secondary_address.as_bytes());
            fragment.put_u8(0);
        }
        let length = fragment.len() - start;
        fragment.resize(start + length.next_multiple_of(4), 0);
        fragment.put_u32(u32::from(u8_of(self.results.len())));
        for result in &self.results {
            result.encode(fragment);
        }
    }
}

impl ContextResult {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            result: ResultCode(reader.u16("result")?),
            reason: Reason(reader.u16("reason")?),
            transfer_syntax: SyntaxId::decode(reader)?,
        })
    }

    fn encode(&self, fragment: &mut Vec<u8>) {
        fragment.put_u16(self.result.0);
        fragment.put_u16(self.reason.0);
        self.transfer_syntax.encode(fragment);
    }
}

open_enum! {
    /// Why a bind is refused. \[C706\] 12.6.3.1, \[MS-RPCE\] 2.2.2.5
    RejectReason(u16) {
        /// For no reason that has a number.
        NOT_SPECIFIED = 0,
        /// Later, perhaps.
        TEMPORARY_CONGESTION = 1,
        /// Too many.
        LOCAL_LIMIT_EXCEEDED = 2,
        /// Another version of the protocol.
        PROTOCOL_VERSION_NOT_SUPPORTED = 4,
        /// There is no such security provider.
        AUTHENTICATION_TYPE_NOT_RECOGNIZED = 8,
        /// The credentials are wrong.
        INVALID_CHECKSUM = 9,
    }
}

/// That there is no interface to be had at all. \[C706\] 12.6.4.5
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindNak {
    /// Why.
    pub reason: RejectReason,
    /// The versions of the protocol that the server speaks: major and minor.
    pub versions: Vec<(u8, u8)>,
}

impl BindNak {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let reason = RejectReason(reader.u16("provider_reject_reason")?);
        let mut versions = Vec::new();
        // Servers that have no more to say leave the list out.
        if reader.left() > 0 {
            let count = reader.u8("n_protocols")?;
            for _ in 0..count {
                versions.push((reader.u8("major")?, reader.u8("minor")?));
            }
        }
        Ok(Self { reason, versions })
    }

    pub(super) fn encode(&self, fragment: &mut Vec<u8>) {
        fragment.put_u16(self.reason.0);
        fragment.put_u8(u8_of(self.versions.len()));
        for (major, minor) in &self.versions {
            fragment.put(&[*major, *minor]);
        }
    }
}

/// A count for a field of 8 bits. Who encodes has made sure that it fits.
fn u8_of(count: usize) -> u8 {
    u8::try_from(count).expect("an encoder is given no more than its field can tell")
}
