//! The server's end of a pipe: fragments in, calls out. \[C706\] 9.3, 12.6, \[MS-RPCE\] 3.3.3
//!
//! Kept apart from the pipe so that bytes alone drive it: nothing here waits, and
//! no other state changes.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use wire::DecodeError;
use wire::rpc::{
    Bind, BindAck, BindNak, Body, ContextResult, Fault, FaultStatus, Features, Fragments, Header,
    MIN_FRAGMENT, PacketFlags, PacketType, Pdu, PresentationContext, Reason, RejectReason, Request,
    ResultCode, SyntaxId, WINDOWS_FRAGMENT, response_fragments,
};

use super::service::Service;

/// Bytes of the longest fragment that is taken: Samba's clients send such a bind unasked.
const MAX_FRAGMENT: u16 = 5840;
/// Bytes of the longest arguments of a call. Those of the calls that are served fit in a fragment.
const MAX_STUB: usize = 16 << 10;
/// Interfaces that one pipe agrees on. There is one in each pipe, in one or two versions of NDR.
const MAX_CONTEXTS: usize = 16;

/// The state of the conversation with the client.
#[derive(Debug)]
pub(super) struct Endpoint {
    service: Service,
    fragments: Fragments,
    /// Set by the first bind that succeeds: bytes of the longest fragment that the client takes.
    max_send: Option<u16>,
    assoc_group_id: u32,
    /// The presentation contexts that were accepted.
    contexts: BTreeSet<u16>,
    /// The call with fragments still to come.
    pending: Option<Pending>,
}

/// A call that is not whole yet.
#[derive(Debug)]
struct Pending {
    call_id: u32,
    context_id: u16,
    opnum: u16,
    stub: Vec<u8>,
}

/// The next action of the pipe.
#[derive(Debug)]
pub(super) enum Action {
    /// Answer with this fragment.
    Answer(Vec<u8>),
    /// Run this call, and answer with its outcome.
    Call(Call),
}

/// A call that is whole.
#[derive(Debug)]
pub(super) struct Call {
    call_id: u32,
    context_id: u16,
    max_send: u16,
    wants_answer: bool,
    pub(super) opnum: u16,
    pub(super) stub: Vec<u8>,
}

/// The bytes make no sense any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken;

impl From<DecodeError> for Broken {
    fn from(_: DecodeError) -> Self {
        Self
    }
}

impl Call {
    /// The fragments that answer the call.
    pub(super) fn answer(&self, result: Result<Vec<u8>, FaultStatus>) -> Vec<Vec<u8>> {
        match result {
            _ if !self.wants_answer => Vec::new(),
            Ok(stub) => response_fragments(self.call_id, self.context_id, &stub, self.max_send),
            Err(status) => {
                let flags = PacketFlags::WHOLE;
                alloc::vec![fault(self.call_id, self.context_id, flags, status)]
            }
        }
    }
}

impl Endpoint {
    /// Nothing is agreed on. `group` distinguishes the associations of one client.
    pub(super) fn new(service: Service, group: u32) -> Self {
        Self {
            service,
            fragments: Fragments::new(MAX_FRAGMENT),
            max_send: None,
            assoc_group_id: group,
            contexts: BTreeSet::new(),
            pending: None,
        }
    }

    /// Adds written data. Call [`Self::next`] until it returns nothing more.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.fragments.push(bytes);
    }

    /// Processes the next fragment; `None` if no complete fragment is buffered.
    pub(super) fn next(&mut self) -> Result<Option<Action>, Broken> {
        while let Some(fragment) = self.fragments.take()? {
            if let Some(action) = self.take(&fragment)? {
                return Ok(Some(action));
            }
        }
        Ok(None)
    }

    fn take(&mut self, fragment: &[u8]) -> Result<Option<Action>, Broken> {
        let header = Header::decode(fragment)?;
        let Ok(pdu) = Pdu::decode(fragment) else {
            return refuse(&header).map(Some);
        };
        let Pdu {
            call_id,
            flags,
            body,
        } = pdu;
        let answer = match body {
            Body::Bind(bind) => self.bind(call_id, &bind),
            Body::AlterContext(bind) => self.alter_context(call_id, &bind),
            Body::Request(request) => return Ok(self.request(call_id, flags, &request)),
            Body::Other(PacketType::CO_CANCEL | PacketType::ORPHANED, _) => {
                self.pending.take_if(|pending| pending.call_id == call_id);
                return Ok(None);
            }
            // A bind without authentication has no third leg.
            Body::Other(PacketType::AUTH3, _) => return Ok(None),
            _ => return Err(Broken),
        };
        Ok(Some(Action::Answer(answer)))
    }

    fn bind(&mut self, call_id: u32, bind: &Bind) -> Vec<u8> {
        if self.max_send.is_some() {
            return nak(call_id, RejectReason::NOT_SPECIFIED);
        }
        self.max_send = Some(bind.max_recv_frag.clamp(MIN_FRAGMENT, WINDOWS_FRAGMENT));
        if bind.assoc_group_id != 0 {
            self.assoc_group_id = bind.assoc_group_id;
        }
        let ack = self.agree(bind, format!("\\PIPE\\{}", self.service.pipe()));
        whole(call_id, Body::BindAck(ack))
    }

    fn alter_context(&mut self, call_id: u32, bind: &Bind) -> Vec<u8> {
        if self.max_send.is_none() {
            let flags = PacketFlags::WHOLE | PacketFlags::DID_NOT_EXECUTE;
            return fault(call_id, 0, flags, FaultStatus::PROTOCOL_ERROR);
        }
        let ack = self.agree(bind, String::new());
        whole(call_id, Body::AlterContextResp(ack))
    }

    fn agree(&mut self, bind: &Bind, secondary_address: String) -> BindAck {
        let contexts = bind.contexts.iter();
        BindAck {
            max_xmit_frag: self.max_send.unwrap_or(MIN_FRAGMENT),
            max_recv_frag: bind.max_xmit_frag.clamp(MIN_FRAGMENT, WINDOWS_FRAGMENT),
            assoc_group_id: self.assoc_group_id,
            secondary_address,
            results: contexts.map(|context| self.accept(context)).collect(),
        }
    }

    fn accept(&mut self, context: &PresentationContext) -> ContextResult {
        let mut syntaxes = context.transfer_syntaxes.iter();
        if let Some(asked) = syntaxes.clone().find_map(SyntaxId::features) {
            // [MS-RPCE] 3.3.1.5.3. There are no security contexts to be multiplexed.
            let kept = asked & Features::KEEP_CONNECTION_ON_ORPHAN;
            return ContextResult {
                result: ResultCode::NEGOTIATE_ACK,
                reason: Reason(u16::try_from(kept.0).unwrap_or(0)),
                transfer_syntax: SyntaxId::default(),
            };
        }
        let (mine, theirs) = (self.service.interface(), context.abstract_syntax);
        let is_known =
            theirs.uuid == mine.uuid && theirs.major == mine.major && theirs.minor <= mine.minor;
        let has_room = self.contexts.len() < MAX_CONTEXTS || self.contexts.contains(&context.id);
        let reason = if !is_known {
            Reason::ABSTRACT_SYNTAX_NOT_SUPPORTED
        } else if !syntaxes.any(|syntax| *syntax == SyntaxId::NDR32) {
            Reason::PROPOSED_TRANSFER_SYNTAXES_NOT_SUPPORTED
        } else if !has_room {
            Reason::LOCAL_LIMIT_EXCEEDED
        } else {
            self.contexts.insert(context.id);
            return ContextResult {
                result: ResultCode::ACCEPTANCE,
                reason: Reason::NOT_SPECIFIED,
                transfer_syntax: SyntaxId::NDR32,
            };
        };
        ContextResult {
            result: ResultCode::PROVIDER_REJECTION,
            reason,
            transfer_syntax: SyntaxId::default(),
        }
    }

    fn request(
        &mut self,
        call_id: u32,
        flags: PacketFlags,
        request: &Request<'_>,
    ) -> Option<Action> {
        match self.gather(call_id, flags, request) {
            Ok(Some(call)) => Some(Action::Call(call)),
            Ok(None) => None,
            Err(status) => {
                self.pending = None;
                let flags = PacketFlags::WHOLE | PacketFlags::DID_NOT_EXECUTE;
                let fault = fault(call_id, request.context_id, flags, status);
                Some(Action::Answer(fault))
            }
        }
    }

    /// Puts the fragments of a call together.
    fn gather(
        &mut self,
        call_id: u32,
        flags: PacketFlags,
        request: &Request<'_>,
    ) -> Result<Option<Call>, FaultStatus> {
        let max_send = self.max_send.ok_or(FaultStatus::PROTOCOL_ERROR)?;
        if !self.contexts.contains(&request.context_id) {
            return Err(FaultStatus::UNKNOWN_INTERFACE);
        }
        let is_first = flags.contains(PacketFlags::FIRST_FRAG);
        let mut pending = match (self.pending.take(), is_first) {
            (None, true) => Pending {
                call_id,
                context_id: request.context_id,
                opnum: request.opnum,
                stub: Vec::new(),
            },
            (Some(pending), false) if pending.call_id == call_id => pending,
            _ => return Err(FaultStatus::PROTOCOL_ERROR),
        };
        if pending.stub.len() + request.stub.len() > MAX_STUB {
            return Err(FaultStatus::NO_MEMORY);
        }
        pending.stub.extend_from_slice(request.stub);
        if !flags.contains(PacketFlags::LAST_FRAG) {
            self.pending = Some(pending);
            return Ok(None);
        }
        let Pending {
            call_id,
            context_id,
            opnum,
            stub,
        } = pending;
        Ok(Some(Call {
            call_id,
            context_id,
            max_send,
            wants_answer: !flags.contains(PacketFlags::MAYBE),
            opnum,
            stub,
        }))
    }
}

/// Refuses a fragment that bears credentials, is big-endian or cannot be read: with what its kind
/// has for that, if anything.
fn refuse(header: &Header) -> Result<Action, Broken> {
    let answer = match header.packet_type {
        PacketType::BIND if header.auth_length != 0 => nak(
            header.call_id,
            RejectReason::AUTHENTICATION_TYPE_NOT_RECOGNIZED,
        ),
        PacketType::BIND => nak(header.call_id, RejectReason::NOT_SPECIFIED),
        PacketType::ALTER_CONTEXT | PacketType::REQUEST => {
            let flags = PacketFlags::WHOLE | PacketFlags::DID_NOT_EXECUTE;
            fault(header.call_id, 0, flags, FaultStatus::PROTOCOL_ERROR)
        }
        _ => return Err(Broken),
    };
    Ok(Action::Answer(answer))
}

fn nak(call_id: u32, reason: RejectReason) -> Vec<u8> {
    let versions = alloc::vec![(5, 0)];
    whole(call_id, Body::BindNak(BindNak { reason, versions }))
}

fn fault(call_id: u32, context_id: u16, flags: PacketFlags, status: FaultStatus) -> Vec<u8> {
    let fault = Fault {
        context_id,
        cancel_count: 0,
        status,
    };
    encode(call_id, flags, Body::Fault(fault))
}

fn whole(call_id: u32, body: Body<'_>) -> Vec<u8> {
    encode(call_id, PacketFlags::WHOLE, body)
}

fn encode(call_id: u32, flags: PacketFlags, body: Body<'_>) -> Vec<u8> {
    let mut fragment = Vec::new();
    let pdu = Pdu {
        call_id,
        flags,
        body,
    };
    pdu.encode(&mut fragment);
    fragment
}
