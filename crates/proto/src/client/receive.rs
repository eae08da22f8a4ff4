//! Received frames: decryption, splitting, matching to requests, and verification.
//! \[MS-SMB2\] 3.2.5.1

use crypto::SigningNonce;
use wire::compound::Members;
use wire::header::Target;
use wire::{Command, DecodeError, Flags, Header, MessageId, Status, transform};

use super::breaks::learn;
use super::connection::Connection;
use super::effect::{Effect, Effects};
use super::encode;
use super::flight::{Owner, Pending};
use super::message::Message;
use super::rdma_buffers;
use super::request::{ReadData, Reply, RequestId, Step};
use super::violation::{Violation, invalid};

impl Connection {
    /// Handles a frame, or returns the reason why the connection ends.
    pub(super) fn frame(
        &mut self,
        bytes: &mut [u8],
        effects: &mut Effects,
    ) -> Result<(), Violation> {
        if bytes.len() > self.max_frame() {
            return Err(Violation::LimitReached("length of a frame"));
        }
        match bytes.first_chunk() {
            Some(&wire::header::PROTOCOL_ID) => self.members(bytes, 0, effects),
            Some(&transform::PROTOCOL_ID) => self.encrypted_frame(bytes, effects),
            // The client does not offer compression and does not support SMB1.
            Some(&other) => Err(invalid("ProtocolId", u32::from_le_bytes(other).into())),
            None => Err(Violation::Malformed(DecodeError::Truncated {
                field: "ProtocolId",
                needed: 4,
                left: bytes.len(),
            })),
        }
    }

    /// \[MS-SMB2\] 3.2.5.1.1
    fn encrypted_frame(
        &mut self,
        bytes: &mut [u8],
        effects: &mut Effects,
    ) -> Result<(), Violation> {
        let parts = transform::split(bytes).map_err(Violation::Malformed)?;
        let not_encrypted = Violation::NotEncrypted(parts.header.session_id);
        let session = self.session.as_ref();
        let session = session.filter(|session| session.id == parts.header.session_id);
        let key = session.and_then(|session| session.encryption.as_ref());
        let Some(key) = key.map(|pair| pair.inbound.clone()) else {
            return Err(not_encrypted);
        };
        if parts.header.flags != transform::FLAG_ENCRYPTED {
            return Err(not_encrypted);
        }
        let nonce = &parts.header.nonce[..key.cipher().nonce_len()];
        let tag = &parts.header.signature;
        if key
            .decrypt_in_place(nonce, parts.associated_data, parts.ciphertext, tag)
            .is_err()
        {
            return Err(not_encrypted);
        }
        self.members(parts.ciphertext, transform::TRANSFORM_LEN, effects)
    }

    /// Handles the messages of a frame, which start at offset `start` of the received bytes.
    fn members(
        &mut self,
        bytes: &[u8],
        start: usize,
        effects: &mut Effects,
    ) -> Result<(), Violation> {
        let mut offset = 0;
        for member in Members::new(bytes) {
            let member = member.map_err(Violation::Malformed)?;
            let message = Message {
                header: Header::decode(member).map_err(Violation::Malformed)?,
                bytes: member,
                placed: None,
                start: start + offset,
                is_encrypted: start > 0,
            };
            offset += member.len();
            self.take(&message, effects)?;
        }
        self.keep_fresh_reads(bytes, start);
        Ok(())
    }

    /// Copies the data of READs whose compounds are not complete, because the frame ends here.
    fn keep_fresh_reads(&mut self, bytes: &[u8], start: usize) {
        while let Some(id) = self.fresh_reads.pop() {
            let Some(flight) = self.flights.get_mut(&id) else {
                continue;
            };
            for result in flight.results.iter_mut().flatten() {
                if let Ok(Reply::Read(data)) = result
                    && let ReadData::Inbound(range) = data
                {
                    *data = ReadData::Held(bytes[range.start - start..range.end - start].to_vec());
                }
            }
        }
    }

    /// Handles one message.
    pub(super) fn take(
        &mut self,
        message: &Message<'_>,
        effects: &mut Effects,
    ) -> Result<(), Violation> {
        let header = &message.header;
        if !header.is_response() {
            return Err(invalid("Flags", header.flags.0.into()));
        }
        if header.message_id == MessageId::UNSOLICITED {
            return self.take_break(message, effects);
        }
        let unknown = Violation::UnknownMessageId(header.message_id);
        let pending = self.pending.get_mut(&header.message_id).ok_or(unknown)?;
        if header.command != pending.command {
            let (asked, came) = (pending.command, header.command);
            return Err(Violation::WrongCommand { asked, came });
        }
        self.credits.grant(header.credits)?;
        if header.status == Status::PENDING {
            return self.take_interim(message);
        }
        check_async(header, pending)?;
        let pending = self.pending.remove(&header.message_id);
        let pending = pending.expect("it was looked up");
        if pending.async_id.is_none() {
            self.credits.settle(pending.charge);
        }
        self.verify(message, &pending)?;
        self.dispatch(message, &pending, effects)
    }

    /// Handles an interim response. It is not signed, and does not need to be: it changes only how
    /// the request can be canceled. In an encrypted session it is encrypted. \[MS-SMB2\] 3.2.5.1.5
    fn take_interim(&mut self, message: &Message<'_>) -> Result<(), Violation> {
        let header = &message.header;
        let session = self.session.as_ref();
        if let Some(session) = session.filter(|session| session.encrypt && !message.is_encrypted) {
            return Err(Violation::NotEncrypted(session.id));
        }
        let pending = self.pending.get_mut(&header.message_id);
        let pending = pending.expect("it was looked up");
        let Target::Async(async_id) = header.target else {
            return Err(invalid("Flags", header.flags.0.into()));
        };
        if pending.async_id.is_some() {
            return Err(invalid("AsyncId", async_id.0));
        }
        pending.async_id = Some(async_id);
        self.credits.settle(pending.charge);
        Ok(())
    }

    /// Verifies the protection, the session and the tree of a response. \[MS-SMB2\] 3.2.5.1.1,
    /// 3.2.5.1.3
    fn verify(&self, message: &Message<'_>, pending: &Pending) -> Result<(), Violation> {
        let header = &message.header;
        let Some(session) = &self.session else {
            // The end of the login proves the identity of the server.
            return Ok(());
        };
        let is_over = matches!(
            header.status,
            Status::USER_SESSION_DELETED | Status::NETWORK_SESSION_EXPIRED
        );
        // A server that dropped the session has no keys to sign this. An attacker who sends it
        // could as well break the connection.
        if is_over {
            return Err(Violation::SessionGone(header.status));
        }
        if header.session_id != session.id {
            return Err(invalid("SessionId", header.session_id.0));
        }
        if !message.is_encrypted {
            if session.encrypt || pending.is_encrypted {
                return Err(Violation::NotEncrypted(session.id));
            }
            let must_be_signed = session.signing_required || pending.is_signed;
            self.check_signature(message, must_be_signed)?;
        }
        check_tree(header, pending)
    }

    /// Verifies a signature. In a session without keys a signature proves nothing.
    /// \[MS-SMB2\] 3.2.5.1.3
    pub(super) fn check_signature(
        &self,
        message: &Message<'_>,
        must_be_signed: bool,
    ) -> Result<(), Violation> {
        let header = &message.header;
        let Some(key) = &self.channel else {
            return Ok(());
        };
        let bad = Violation::BadSignature(header.session_id);
        if !header.flags.contains(Flags::SIGNED) {
            return if must_be_signed { Err(bad) } else { Ok(()) };
        }
        let nonce = SigningNonce {
            message_id: header.message_id.0,
            from_server: true,
            is_cancel: false,
        };
        let parts = [message.bytes, message.placed.unwrap_or_default()];
        match key.verify(nonce, &parts, &header.signature) {
            true => Ok(()),
            false => Err(bad),
        }
    }

    fn dispatch(
        &mut self,
        message: &Message<'_>,
        pending: &Pending,
        effects: &mut Effects,
    ) -> Result<(), Violation> {
        match pending.owner {
            Owner::Negotiate => self.take_negotiate(message, effects),
            Owner::SessionSetup => self.take_session_setup(message, effects),
            Owner::Step(id, index) => self.take_answer(id, index, message, effects),
            Owner::Validate => self.take_validation(message, effects),
            Owner::Own => Ok(()),
            Owner::Abandoned {
                is_to_be_undone,
                encrypt,
            } => {
                if is_to_be_undone {
                    self.undo(message, pending, encrypt, effects);
                }
                Ok(())
            }
        }
    }

    /// Handles the response to a step.
    fn take_answer(
        &mut self,
        id: RequestId,
        index: usize,
        message: &Message<'_>,
        effects: &mut Effects,
    ) -> Result<(), Violation> {
        let session = self.session.clone().expect("the login is done");
        let flight = self.flights.get_mut(&id).expect("its step is pending");
        let step = &flight.request.steps[index];
        let request = &flight.request;
        let is_remote = flight.memory.is_some() && encode::is_transfer(step);
        if is_remote {
            rdma_buffers::check(step, message)?;
        }
        let result = match super::answer::was_done_before(request, step, message.header.status) {
            Some(reply) => Ok(reply),
            None => super::answer::reply(step, is_remote, message, flight.is_cancelled),
        };
        let due = (result.as_ref().ok())
            .and_then(|reply| learn(&session, request, index, &flight.results, reply))
            .map(|step| (step, request.tree, request.encrypt));
        if let (Ok(Reply::Read(ReadData::Inbound(_))), true) = (&result, flight.results.len() > 1) {
            self.fresh_reads.push(id);
        }
        let is_tree = matches!(step, Step::TreeConnect(_)) && result.is_ok();
        let tree = match &result {
            Ok(Reply::TreeConnected { tree, .. }) => Some(*tree),
            _ => None,
        };
        flight.results[index] = Some(result);
        if let Some((step, tree, encrypt)) = due {
            self.send_own(step, tree, encrypt, effects);
        }
        if is_tree && !self.is_validated {
            self.validate(id, tree, effects)?;
        }
        self.conclude_if_done(id, effects);
        Ok(())
    }

    /// Answers a request whose steps are all done.
    pub(super) fn conclude_if_done(&mut self, id: RequestId, effects: &mut Effects) {
        let Some(flight) = self.flights.get(&id) else {
            return;
        };
        if flight.results.iter().any(Option::is_none) || self.unvalidated.contains(&id) {
            return;
        }
        let mut flight = self.land(id).expect("it was there");
        Self::withdraw(id, flight.memory.take(), effects);
        if let Some(at) = self.retry_at(&flight) {
            self.retry_later(at, id, flight);
            return;
        }
        let results = flight.results.into_iter().flatten().collect();
        effects.push(Effect::Answer(id, results));
    }
}

/// A final response carries the AsyncId of the interim response.
fn check_async(header: &Header, pending: &Pending) -> Result<(), Violation> {
    match (header.target, pending.async_id) {
        (Target::Async(came), Some(known)) if came != known => Err(invalid("AsyncId", came.0)),
        (Target::Sync { .. }, Some(known)) => Err(invalid("AsyncId", known.0)),
        _ => Ok(()),
    }
}

/// A successful response carries the TreeId of its request.
fn check_tree(header: &Header, pending: &Pending) -> Result<(), Violation> {
    let (Some(asked), Some(came)) = (pending.tree, header.tree_id()) else {
        return Ok(());
    };
    let is_new = header.command == Command::TREE_CONNECT;
    if is_new || header.status != Status::SUCCESS || asked == came {
        Ok(())
    } else {
        Err(invalid("TreeId", came.0.into()))
    }
}
