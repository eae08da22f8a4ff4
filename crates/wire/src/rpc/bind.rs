//! Negotiation of interfaces: bind, bind_ack, bind_nak, alter_context. \[C706\] 12.6.4.3 to
//! 12.6.4.5, \[MS-RPCE\] 2.2.2.4, 2.2.2.14

use alloc::string::String;
use alloc::vec::Vec;

use super::SyntaxId;
use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::layout::u16_of;
use crate::open_enum::open_enum;

/// The body of an RPC bind or alter_context: the client requests interfaces of the server. \[C706\]
/// 12.6.4.3
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bind {
    /// Maximum length in bytes of an RPC fragment that the client sends on the connection.
    pub max_xmit_frag: u16,
    /// Maximum length in bytes of an RPC fragment that the client accepts on the connection.
    pub max_recv_frag: u16,
    /// Identifier of the association group (connections with shared state) that the RPC connection
    /// joins; 0 for a new group.
    pub assoc_group_id: u32,
    /// The RPC interfaces that the client requests, at most 255.
    pub contexts: Vec<PresentationContext>,
}

/// An RPC interface that the client requests in a bind, and the transfer syntaxes (encodings of
/// arguments) that the client supports for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PresentationContext {
    /// Identifier that the client chose for the interface; its later RPC requests carry it.
    pub id: u16,
    /// UUID and version of the RPC interface.
    pub abstract_syntax: SyntaxId,
    /// The encodings of arguments that the client supports, such as [`SyntaxId::NDR32`]; at most
    /// 255.
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
    /// Whether the server accepts one RPC interface of a bind. \[C706\] 12.6.3.1, \[MS-RPCE\]
    /// 2.2.2.4
    ResultCode(u16) {
        /// The server accepts the interface.
        ACCEPTANCE = 0,
        /// The application refuses the interface.
        USER_REJECTION = 1,
        /// The RPC runtime of the server refuses the interface.
        PROVIDER_REJECTION = 2,
        /// The server responds to a feature negotiation, which a bind carries in place of an
        /// interface.
        NEGOTIATE_ACK = 3,
    }
}

open_enum! {
    /// The reason for which the server refuses one RPC interface of a bind. \[C706\] 12.6.3.1
    Reason(u16) {
        /// The server states no reason.
        NOT_SPECIFIED = 0,
        /// The server does not have the interface.
        ABSTRACT_SYNTAX_NOT_SUPPORTED = 1,
        /// The server supports none of the client's transfer syntaxes.
        PROPOSED_TRANSFER_SYNTAXES_NOT_SUPPORTED = 2,
        /// The client requests more interfaces than the server allows.
        LOCAL_LIMIT_EXCEEDED = 3,
    }
}

/// The body of an RPC bind_ack or alter_context_resp: the server's results for the interfaces that
/// the client requested. \[C706\] 12.6.4.4
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindAck {
    /// Maximum length in bytes of an RPC fragment that the server sends on the connection.
    pub max_xmit_frag: u16,
    /// Maximum length in bytes of an RPC fragment that the server accepts on the connection.
    pub max_recv_frag: u16,
    /// Identifier of the association group (connections with shared state) that the RPC connection
    /// belongs to.
    pub assoc_group_id: u32,
    /// Address for further RPC connections of the association group, such as `\PIPE\srvsvc`; empty
    /// when absent or not ASCII.
    pub secondary_address: String,
    /// The results, one for each interface that the client requested, in the same order.
    pub results: Vec<ContextResult>,
}

/// The server's result for one RPC interface that the client requested in a bind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextResult {
    /// Whether the server accepts the RPC interface.
    pub result: ResultCode,
    /// Reason for which the server refuses the interface. If `result` is NEGOTIATE_ACK, the bits of
    /// the accepted features.
    pub reason: Reason,
    /// The transfer syntax (encoding of arguments) that the server selected; all zeros after a
    /// refusal.
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

    /// Appends the encoded body. `start` is the index of the start of the fragment.
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
    /// The reason for which the server refuses an RPC bind as a whole. \[C706\] 12.6.3.1,
    /// \[MS-RPCE\] 2.2.2.5
    RejectReason(u16) {
        /// The server states no reason.
        NOT_SPECIFIED = 0,
        /// The server is temporarily congested.
        TEMPORARY_CONGESTION = 1,
        /// The server has reached a limit, such as that of its connections.
        LOCAL_LIMIT_EXCEEDED = 2,
        /// The server does not support the client's version of the RPC protocol.
        PROTOCOL_VERSION_NOT_SUPPORTED = 4,
        /// The server does not support the client's security provider.
        AUTHENTICATION_TYPE_NOT_RECOGNIZED = 8,
        /// The server cannot verify the credentials of the client.
        INVALID_CHECKSUM = 9,
    }
}

/// The body of an RPC bind_nak: the server refuses a bind as a whole. \[C706\] 12.6.4.5
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindNak {
    /// Reason for which the server refuses the bind.
    pub reason: RejectReason,
    /// Versions of the RPC protocol that the server supports, as (major, minor); at most 255. Some
    /// servers send none.
    pub versions: Vec<(u8, u8)>,
}

impl BindNak {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let reason = RejectReason(reader.u16("provider_reject_reason")?);
        let mut versions = Vec::new();
        // Some servers omit the list.
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

/// Converts a count to 8 bits. The caller guarantees that it fits.
fn u8_of(count: usize) -> u8 {
    u8::try_from(count).expect("the caller guarantees that the value fits")
}
