//! Sending of requests: credits, header, padding, signature, encryption. \[MS-SMB2\] 3.2.4.1

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use crypto::{SigningKey, SigningNonce};
use wire::dialect::Dialect;
use wire::header::{HEADER_LEN, Target};
use wire::{Command, Flags, Header, MessageId, SessionId, Status, TreeId, cancel};

use super::connection::{Connection, Phase};
use super::credits;
use super::effect::{Effect, Effects};
use super::encode::{self, Body};
use super::flight::{Flight, Owner, Pending, Waiting};
use super::request::{Request, RequestId, Step};
use crate::effect::{OutMessage, Outbound, Payload, PayloadToken};
use crate::encryption::{FrameEncryption, Sign};
use crate::time::{Instant, Now};

/// Value of the obsolete ProcessId field; cifs.ko and Windows send the same.
const PROCESS_ID: u32 = 0xFEFF;

/// Speed of the slowest supported line in bytes per second. The time limit of a request is extended
/// by the time that the bytes before it take at this speed.
const SLOWEST_LINE: u64 = 128 << 10;

/// Largest count of the connection's own requests that wait for a credit. A server that breaks more
/// oplocks while it grants no credits waits for the other acknowledgments until a timeout.
const OWED_MAX: usize = 64;

/// The common values of the headers of a frame.
#[derive(Clone, Default)]
pub(super) struct Envelope {
    pub(super) session_id: SessionId,
    pub(super) tree: Option<TreeId>,
    /// Signing key; `None` for unsigned messages.
    pub(super) key: Option<Arc<SigningKey>>,
    pub(super) is_encrypted: bool,
    pub(super) is_replay: bool,
    /// Session.ChannelSequence, read once: another thread may lose a channel at any time, and the
    /// response of the server depends on the value in the request.
    pub(super) sequence: u16,
    /// Token of the data of a WRITE.
    pub(super) token: Option<PayloadToken>,
}

/// Returns a predicate: whether a request was started and is not answered.
pub(super) fn pending_requests<'a>(
    flights: &'a BTreeMap<RequestId, Flight>,
    exposing: &'a BTreeMap<RequestId, Waiting>,
    retries: &'a BTreeMap<(Instant, RequestId), Waiting>,
) -> impl Fn(RequestId) -> bool + use<'a> {
    move |id| {
        let is_retried = || retries.keys().any(|(_, waiting)| *waiting == id);
        flights.contains_key(&id) || exposing.contains_key(&id) || is_retried()
    }
}

impl Connection {
    /// Sends waiting requests as far as the credits allow.
    pub(super) fn pump(&mut self, now: Now, effects: &mut Effects) {
        if self.phase != Phase::Ready {
            return;
        }
        self.send_owed(effects);
        loop {
            let credits = &self.credits;
            // Requests whose memory is being registered need their credits later.
            let exposing = self.exposing.values().map(|waiting| waiting.charge);
            let reserved: u32 = exposing.sum();
            let may_go = |waiting: &Waiting| credits.allow(waiting.charge.saturating_add(reserved));
            let is_pending = pending_requests(&self.flights, &self.exposing, &self.retries);
            match self.queue.take(is_pending, may_go) {
                Some(waiting) => {
                    if let Some(waiting) = self.expose(waiting, effects) {
                        self.launch(now, waiting, effects);
                    }
                }
                None if self.is_stuck(effects) => continue,
                None => return,
            }
        }
    }

    /// Fails the first waiting request if it can never be sent: no pending response would return
    /// credits, and an ECHO that requested its credits did not bring them. Returns whether it
    /// failed, or may now take the last credit.
    fn is_stuck(&mut self, effects: &mut Effects) -> bool {
        let is_pending = pending_requests(&self.flights, &self.exposing, &self.retries);
        let Some(first) = self.queue.first(is_pending) else {
            return false;
        };
        let id = first.id;
        if !self.exposing.is_empty() {
            return false;
        }
        let (free, charge) = (self.credits.free(), first.charge);
        if self.credits.is_waiting() || free == 0 || self.credits.allow(charge) {
            return false;
        }
        if self
            .credits_at_echo
            .replace(free)
            .is_none_or(|before| before < free)
        {
            self.credits.aim_for(charge.saturating_add(1));
            self.send_echo(effects);
            return false;
        }
        self.credits_at_echo = None;
        if free >= charge {
            self.credits.limit();
            return true;
        }
        let waiting = self.queue.remove(id).expect("it is the first");
        let Waiting {
            request,
            placement,
            deadline,
            ..
        } = waiting;
        self.stop_clock(id, deadline);
        Self::withdraw(id, placement.into_memory(), effects);
        self.refuse(id, &request, "more credits than the server grants", effects);
        true
    }

    /// Sends a request.
    fn launch(&mut self, now: Now, waiting: Waiting, effects: &mut Effects) {
        let Waiting {
            id,
            request,
            charge: _,
            bytes,
            retries,
            deadline: sent_by,
            placement,
        } = waiting;
        self.stop_clock(id, sent_by);
        let memory = placement.into_memory();
        self.credits_at_echo = None;
        let envelope = self.envelope_of(id, &request);
        let count = request.steps.len();
        let mut messages = Vec::with_capacity(count);
        let mut ids = Vec::with_capacity(count);
        let mut answers = 0;
        for (index, step) in request.steps.iter().enumerate() {
            let place = Position {
                index,
                is_last: index + 1 == count,
                cost: self.cost(step),
            };
            let negotiated = self.negotiated.as_ref().expect("the login is done");
            let server_name = &self.config.server_name;
            let body = encode::body(step, memory.as_ref(), server_name, negotiated);
            let owner = Owner::Step(id, index);
            ids.push(self.credits.next());
            messages.push(self.member(body, owner, &envelope, &place));
            answers += u64::from(encode::asked(step)) + u64::from(encode::ANSWER_OVERHEAD);
        }
        self.longest_answer = self.longest_answer.max(answers);
        let encryption = self.encryption_if(envelope.is_encrypted);
        let deadline = self.deadline(now, request.timeout, self.flying + bytes);
        self.deadlines.extend(deadline.map(|at| (at, id)));
        let flight = Flight {
            request,
            ids,
            results: vec![None; count],
            deadline,
            bytes,
            is_cancelled: false,
            sequence: envelope.sequence,
            retries,
            memory,
        };
        self.flying += bytes;
        self.flights.insert(id, flight);
        self.push(messages, encryption, effects);
    }

    /// Deadline of a request with `ahead` bytes in flight before and with it.
    pub(super) fn deadline(
        &self,
        now: Now,
        own: Option<Option<Duration>>,
        ahead: u64,
    ) -> Option<Instant> {
        let timeout = own.unwrap_or(self.config.request_timeout)?;
        let transit = Duration::from_secs(ahead / SLOWEST_LINE);
        Some(now.instant.after(timeout + transit))
    }

    /// Credit charge of a step.
    fn cost(&self, step: &Step) -> u16 {
        if !self.has_large_mtu() {
            return 1;
        }
        let charge = credits::charge(encode::sent(step), encode::asked(step));
        u16::try_from(charge).expect("the client refuses longer requests before")
    }

    fn envelope_of(&self, id: RequestId, request: &Request) -> Envelope {
        let must_sign = (request.steps.iter()).any(|step| self.must_sign(encode::command(step)));
        Envelope {
            token: Some(PayloadToken(id.0)),
            is_replay: request.is_replay,
            ..self.envelope(request.tree, request.encrypt, must_sign)
        }
    }

    /// The envelope that the session requires.
    pub(super) fn envelope(&self, tree: Option<TreeId>, encrypt: bool, sign: bool) -> Envelope {
        let session = self.session.as_ref().expect("the login is done");
        let is_encrypted = session.encrypt || encrypt;
        let is_signed = !is_encrypted && (session.signing_required || sign);
        Envelope {
            session_id: session.id,
            tree,
            key: self.channel.clone().filter(|_| is_signed),
            is_encrypted,
            sequence: session.channel_sequence(),
            ..Envelope::default()
        }
    }

    /// Whether a request must be signed: a TREE_CONNECT of 3.1.1 proves that both ends saw the same
    /// NEGOTIATE. \[MS-SMB2\] 3.2.4.1.1
    fn must_sign(&self, command: Command) -> bool {
        let dialect = self
            .negotiated
            .as_ref()
            .map(|negotiated| negotiated.dialect);
        command == Command::TREE_CONNECT && dialect == Some(Dialect::SMB_3_1_1)
    }

    pub(super) fn encryption_if(&self, is_encrypted: bool) -> Option<FrameEncryption> {
        let session = self.session.as_ref().filter(|_| is_encrypted)?;
        Some(
            session
                .next_encryption()
                .expect("the client refuses requests that cannot be encrypted before"),
        )
    }

    /// Sends a step of the connection itself before all waiting requests: an acknowledgment, or a
    /// cleanup.
    pub(super) fn send_own(
        &mut self,
        step: Step,
        tree: Option<TreeId>,
        encrypt: bool,
        effects: &mut Effects,
    ) {
        if self.owed.len() < OWED_MAX {
            self.owed.push_back((step, tree, encrypt));
        }
        self.send_owed(effects);
    }

    fn send_owed(&mut self, effects: &mut Effects) {
        while self.credits.free() > 0
            && let Some((step, tree, encrypt)) = self.owed.pop_front()
        {
            let envelope = self.envelope(tree, encrypt, false);
            self.send_step(&step, Owner::Own, &envelope, effects);
        }
    }

    /// Sends an ECHO if a credit is available.
    pub(super) fn send_echo(&mut self, effects: &mut Effects) {
        let envelope = self.envelope(None, false, false);
        self.send_step(&Step::Echo, Owner::Own, &envelope, effects);
    }

    /// Sends one step if a credit is available. Returns whether it was.
    pub(super) fn send_step(
        &mut self,
        step: &Step,
        owner: Owner,
        envelope: &Envelope,
        effects: &mut Effects,
    ) -> bool {
        if self.credits.free() == 0 {
            return false;
        }
        let negotiated = self.negotiated.as_ref().expect("the login is done");
        let body = encode::body(step, None, &self.config.server_name, negotiated);
        let message = self.message(body, owner, envelope);
        let encryption = self.encryption_if(envelope.is_encrypted);
        self.push(vec![message], encryption, effects);
        true
    }

    /// Sends a CANCEL. It costs no credit and has no response. \[MS-SMB2\] 3.2.4.24
    pub(super) fn send_cancel(&mut self, id: MessageId, effects: &mut Effects) {
        let Some(pending) = self.pending.get_mut(&id) else {
            return;
        };
        if core::mem::replace(&mut pending.is_cancelled, true) {
            return;
        }
        let (is_encrypted, async_id, tree) = (pending.is_encrypted, pending.async_id, pending.tree);
        let envelope = self.envelope(tree, is_encrypted, false);
        let mut head = vec![0; HEADER_LEN];
        cancel::Request.encode(&mut head);
        let mut header = self.header(Command::CANCEL, id, &envelope);
        if let Some(async_id) = async_id {
            header.target = Target::Async(async_id);
        }
        header.credit_charge = 0;
        header.credits = 0;
        let body = Body {
            command: Command::CANCEL,
            head,
            payload: None,
        };
        let message = self.finish(body, header, &envelope, 0);
        let encryption = self.encryption_if(is_encrypted);
        self.push(vec![message], encryption, effects);
    }

    /// Makes the only message of a frame, and spends its credit.
    pub(super) fn message(&mut self, body: Body, owner: Owner, envelope: &Envelope) -> OutMessage {
        let place = Position {
            index: 0,
            is_last: true,
            cost: 1,
        };
        self.member(body, owner, envelope, &place)
    }

    /// Makes a message of a frame, and spends its credits.
    fn member(
        &mut self,
        body: Body,
        owner: Owner,
        envelope: &Envelope,
        place: &Position,
    ) -> OutMessage {
        let cost = place.cost;
        let id = self.credits.spend(cost);
        let mut header = self.header(body.command, id, envelope);
        if self.has_large_mtu() {
            header.credit_charge = cost;
        }
        header.credits = match place.is_last {
            true => self.credits.wanted(cost),
            false => 1,
        };
        if place.index > 0 {
            header.flags |= Flags::RELATED_OPERATIONS;
        }
        let len = body.head.len() + body.payload.unwrap_or(0) as usize;
        let padding = match place.is_last {
            true => 0,
            false => len.next_multiple_of(8) - len,
        };
        if !place.is_last {
            let next = u32::try_from(len + padding);
            header.next_command = next.expect("the client refuses longer requests before");
        }
        let pending = Pending {
            owner,
            command: body.command,
            tree: envelope.tree,
            is_signed: envelope.key.is_some(),
            is_encrypted: envelope.is_encrypted,
            charge: cost,
            async_id: None,
            is_cancelled: false,
        };
        self.pending.insert(id, pending);
        self.finish(body, header, envelope, padding as u8)
    }

    fn header(&self, command: Command, message_id: MessageId, envelope: &Envelope) -> Header {
        let dialect = self
            .negotiated
            .as_ref()
            .map(|negotiated| negotiated.dialect);
        let is_3 = dialect.is_some_and(|dialect| dialect >= Dialect::SMB_3_0);
        let mut flags = Flags::NONE;
        if envelope.is_replay && is_3 {
            flags |= Flags::REPLAY_OPERATION;
        }
        let sequence = if is_3 { envelope.sequence } else { 0 };
        Header {
            credit_charge: 0,
            status: Status(sequence.into()),
            command,
            credits: 1,
            flags,
            next_command: 0,
            message_id,
            target: Target::Sync {
                process_id: PROCESS_ID,
                tree_id: envelope.tree.unwrap_or_default(),
            },
            session_id: envelope.session_id,
            signature: [0; 16],
        }
    }

    /// Writes the header.
    fn finish(
        &mut self,
        body: Body,
        mut header: Header,
        envelope: &Envelope,
        padding: u8,
    ) -> OutMessage {
        let Body {
            command,
            mut head,
            payload,
        } = body;
        let sign = envelope.key.clone().map(|key| Sign {
            key,
            nonce: SigningNonce {
                message_id: header.message_id.0,
                from_server: false,
                is_cancel: command == Command::CANCEL,
            },
        });
        if sign.is_some() {
            header.flags |= Flags::SIGNED;
        }
        self.scratch.clear();
        header.encode(&mut self.scratch);
        head[..HEADER_LEN].copy_from_slice(&self.scratch);
        let payload = payload.map(|len| Payload {
            token: envelope.token.expect("only requests have data"),
            len,
        });
        OutMessage {
            head,
            payload,
            padding,
            sign,
            answers: None,
        }
    }

    pub(super) fn push(
        &mut self,
        messages: Vec<OutMessage>,
        encryption: Option<FrameEncryption>,
        effects: &mut Effects,
    ) {
        effects.push(Effect::Send(Outbound {
            messages,
            encryption,
            invalidate: None,
        }));
    }
}

/// The position of a message in its frame.
struct Position {
    index: usize,
    is_last: bool,
    /// Credit charge.
    cost: u16,
}
