//! Sends requests and receives responses.

use wire::compound::{Members, link};
use wire::header::{HEADER_LEN, Target};
use wire::transform::Transform;
use wire::{AsyncId, Command, Flags, Header, MessageId, Status, TreeId};

use super::call::{Call, Intent};
use super::ledger::Pending;
use super::{Client, Order, Phase, Shared};
use crate::check::{Check, ensure};
use crate::scenario::Protection;

impl Client {
    /// Returns whether the client has this number of credits: for one request with this charge, or
    /// for as many requests with a charge of 1.
    pub(super) fn can_send(&self, charge: u16) -> bool {
        self.ledger.has_run(charge)
    }

    /// Sends a request as soon as the client has credits for it.
    pub(super) fn submit_one(&mut self, call: Call, shared: &mut Shared<'_>) {
        if self.can_send(1) {
            self.submit(vec![call], shared);
        } else {
            self.deferred.push_back(call);
        }
    }

    /// Sends requests in one frame. The client has credits for them.
    pub(super) fn submit(&mut self, calls: Vec<Call>, shared: &mut Shared<'_>) {
        let start = shared.tick();
        let encrypts = self.encrypts(&calls[0]);
        let signs = !encrypts && self.signs(&calls[0]);
        let count = calls.len();
        let mut frame = Vec::new();
        for (index, call) in calls.into_iter().enumerate() {
            shared.report.requests += 1;
            let mut message = call.message;
            let header = self.header(&call.intent, call.command, (call.charge, call.is_related));
            let header = Header {
                flags: header.flags | if signs { Flags::SIGNED } else { Flags::NONE },
                ..header
            };
            put_header(&header, &mut message);
            if index + 1 < count {
                link(&mut message);
            }
            self.hash(call.command, &message);
            if signs {
                let keys = self
                    .keys
                    .get(&self.session)
                    .expect("a session that signs has keys");
                keys.sign(&header, &mut message);
            }
            frame.extend(message);
            let changes = self.changed_holder(&call.intent);
            if let Some(holder) = changes.and_then(|number| shared.caching.get_mut(number)) {
                holder.changes(start);
            }
            let pending = Pending {
                command: call.command,
                intent: call.intent,
                memory: call.memory,
                start,
                sent: shared.now.instant,
                changes,
                is_signed: signs,
                is_encrypted: encrypts,
                async_id: None,
            };
            self.ledger.expect(header.message_id, pending);
        }
        self.emit(frame, encrypts, shared);
    }

    fn emit(&mut self, frame: Vec<u8>, encrypts: bool, shared: &mut Shared<'_>) {
        let session = self.session;
        let frame = match self.keys.get_mut(&session) {
            Some(keys) if encrypts => keys.encrypt(session, frame),
            _ => frame,
        };
        shared.orders.push(Order::Frame(frame));
    }

    /// Cancels a request. CANCEL has no response.
    pub(super) fn cancel(&mut self, shared: &mut Shared<'_>) {
        if let Some(request) = self.ledger.any(&mut self.choices) {
            self.cancel_one(request, shared);
        }
    }

    /// Cancels a request that may wait forever, if one exists.
    pub(super) fn cancel_watch(&mut self, shared: &mut Shared<'_>) {
        if let Some(request) = self.ledger.watch() {
            self.cancel_one(request, shared);
        }
    }

    pub(super) fn cancel_one(
        &mut self,
        (message_id, async_id): (MessageId, Option<AsyncId>),
        shared: &mut Shared<'_>,
    ) {
        let mut call = Call::new(Command::CANCEL, Intent::Any, |out| {
            wire::cancel::Request.encode(out);
        });
        let encrypts = self.encrypts(&call);
        let signs = !encrypts && self.signs(&call);
        let mut header = self.bare_header(Command::CANCEL, message_id);
        if let Some(async_id) = async_id {
            header.target = Target::Async(async_id);
            header.flags |= Flags::ASYNC_COMMAND;
        }
        if signs {
            header.flags |= Flags::SIGNED;
        }
        put_header(&header, &mut call.message);
        if let (true, Some(keys)) = (signs, self.keys.get(&self.session)) {
            keys.sign(&header, &mut call.message);
        }
        self.emit(call.message, encrypts, shared);
    }

    pub(super) fn encrypts(&self, call: &Call) -> bool {
        let is_setup = matches!(call.command, Command::NEGOTIATE);
        let can = (self.keys.get(&self.session)).is_some_and(super::keys::Keys::can_encrypt);
        self.protection == Protection::Encrypted && self.is_logged_in && can && !is_setup
    }

    /// \[MS-SMB2\] 3.2.4.1.1; in 3.1.1 a TREE_CONNECT is always signed.
    pub(super) fn signs(&self, call: &Call) -> bool {
        let wants = self.protection != Protection::Plain || call.command == Command::TREE_CONNECT;
        wants && self.is_logged_in
    }

    fn header(
        &mut self,
        intent: &Intent,
        command: Command,
        (charge, is_related): (u16, bool),
    ) -> Header {
        let has_large_mtu = self.agreed.is_some_and(|agreed| agreed.has_large_mtu);
        let used = if has_large_mtu { charge } else { 1 };
        let id = self.ledger.take(used, &mut self.choices);
        let mut header = self.bare_header(command, id.expect("the credits were counted"));
        header.credit_charge = if has_large_mtu { charge } else { 0 };
        header.credits = 1 + self.choices.below(24) as u16;
        if is_related {
            header.flags |= Flags::RELATED_OPERATIONS;
        }
        if matches!(intent, Intent::Tree | Intent::ForbiddenTree) {
            header.target = tree_target(TreeId(0));
        }
        header
    }

    pub(super) fn bare_header(&self, command: Command, message_id: MessageId) -> Header {
        Header {
            credit_charge: 0,
            status: Status::SUCCESS,
            command,
            credits: 0,
            flags: Flags::NONE,
            next_command: 0,
            message_id,
            target: tree_target(self.tree),
            session_id: self.session,
            signature: [0; 16],
        }
    }

    fn hash(&mut self, command: Command, message: &[u8]) {
        match command {
            Command::NEGOTIATE => self.preauth.update(message),
            Command::SESSION_SETUP => self.login_preauth.update(message),
            _ => {}
        }
    }

    /// Receives a frame of the server.
    pub(crate) fn frame(&mut self, mut frame: Vec<u8>, shared: &mut Shared<'_>) -> Check {
        let is_encrypted = frame.starts_with(&wire::transform::PROTOCOL_ID);
        if is_encrypted {
            let session = Transform::decode(&frame).map(|header| header.session_id);
            let session = session.map_err(|error| format!("a bad transform header: {error}"))?;
            let keys = self.keys.get_mut(&session);
            let keys = keys.ok_or("encrypted before the login")?;
            frame = keys.open(&mut frame)?;
        }
        for member in Members::new(&frame) {
            let message = member.map_err(|error| format!("a malformed frame: {error}"))?;
            self.message(message, is_encrypted, shared)?;
        }
        if self.phase == Phase::Doomed {
            return Ok(());
        }
        self.ledger.check_starvation()?;
        while self.can_send(1)
            && let Some(call) = self.deferred.pop_front()
        {
            self.submit(vec![call], shared);
        }
        Ok(())
    }

    fn message(&mut self, message: &[u8], is_encrypted: bool, shared: &mut Shared<'_>) -> Check {
        let end = shared.tick();
        let header = Header::decode(message).map_err(|error| format!("no header: {error}"))?;
        ensure(header.is_response(), || format!("no answer: {header:?}"))?;
        if header.message_id == MessageId::UNSOLICITED {
            return self.broken(&header, message, end, shared);
        }
        let Some(pending) = self.ledger.answered(&header)? else {
            shared.report.interims += 1;
            return Ok(());
        };
        ensure(is_encrypted || !pending.is_encrypted, || {
            format!("an unencrypted response to an encrypted request: {header:?}")
        })?;
        self.answer(pending, &header, message, (is_encrypted, end), shared)
    }

    /// Checks the signature of a response.
    pub(super) fn check_signature(
        &self,
        pending: &Pending,
        header: &Header,
        message: &[u8],
        is_encrypted: bool,
    ) -> Check {
        // A server without the session has no key to sign with. It returns the signature of the
        // request.
        let is_echo = header.status == Status::USER_SESSION_DELETED;
        let is_signed = header.flags.contains(Flags::SIGNED) && !is_echo;
        if is_signed {
            let keys = self.keys.get(&header.session_id);
            let keys = keys.ok_or("signed before the login")?;
            return ensure(keys.verify(header, message), || {
                format!("a wrong signature: {header:?}")
            });
        }
        let is_refusal = matches!(
            header.status,
            Status::USER_SESSION_DELETED | Status::INVALID_PARAMETER
        );
        let is_deleted = is_refusal && self.phase == Phase::LoggingIn;
        ensure(is_encrypted || !pending.is_signed || is_deleted, || {
            format!("an unsigned response to a signed request: {header:?}")
        })
    }
}

pub(super) fn put_header(header: &Header, message: &mut [u8]) {
    let mut bytes = Vec::with_capacity(HEADER_LEN);
    header.encode(&mut bytes);
    message[..HEADER_LEN].copy_from_slice(&bytes);
}

fn tree_target(tree_id: TreeId) -> Target {
    Target::Sync {
        process_id: 0xFEFF,
        tree_id,
    }
}
