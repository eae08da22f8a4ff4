//! Answers before they are sent: header, credits, padding, signature, encryption. \[MS-SMB2\]
//! 3.3.4.1

use alloc::vec::Vec;

use crypto::SigningNonce;
use wire::dialect::Dialect;
use wire::header::{HEADER_LEN, Target};
use wire::{AsyncId, Command, Flags, Header, Status, error_response};

use crate::effect::{AnsweredRequest, Effect, Effects, OutMessage, Outbound, Payload};
use crate::encryption::Sign;
use crate::server::connection::Connection;
use crate::server::connection::task::{Request, Task};
use crate::server::context::{Body, Reply};
use crate::time::Instant;

/// An answer without its header, which depends on its credits and on its position in the frame:
/// both are known only when the frame is sent.
#[derive(Debug)]
pub(in crate::server) struct Answer {
    /// The request, its status that of the answer.
    request: Request,
    /// 64 bytes for the header, then the body.
    head: Vec<u8>,
    payload: Option<Payload>,
    /// The request in statistics; `None` for an interim response.
    answers: Option<AnsweredRequest>,
}

impl Answer {
    pub(in crate::server) fn new(now: Instant, mut request: Request, reply: Reply) -> Self {
        let answers = Some(request.answered(now, reply.status));
        request.header.status = reply.status;
        let (head, payload) = match reply.body {
            Body::Message(head) => (head, None),
            Body::WithPayload(head, payload) => (head, Some(payload)),
            Body::Error => (error(), None),
        };
        assert!(head.len() > HEADER_LEN);
        Self {
            request,
            head,
            payload,
            answers,
        }
    }

    /// The answer that says that the answer follows.
    pub(super) fn interim(request: &Request, async_id: AsyncId) -> Self {
        let mut header = request.header;
        header.status = Status::PENDING;
        // Never signed: AES-GMAC would use the nonce of the final answer. Windows and Samba do not
        // sign it either.
        let request = Request {
            session: request.session.clone(),
            async_id: Some(async_id),
            ..Request::new(header, Instant::default())
        };
        Self {
            request,
            head: error(),
            payload: None,
            answers: None,
        }
    }

    fn is_interim(&self) -> bool {
        self.answers.is_none()
    }

    /// Whether this is the answer to a CREATE.
    pub(super) fn is_of_create(&self) -> bool {
        self.request.header.command == Command::CREATE
    }

    /// Releases the payload of a response that will not be sent.
    pub(super) fn release(self, effects: &mut Effects) {
        if let Some(payload) = self.payload {
            effects.push(Effect::Release(payload.token));
        }
    }

    /// Length in bytes, without the payload.
    pub(super) fn head_len(&self) -> usize {
        self.head.len()
    }

    fn len(&self) -> usize {
        self.head.len() + self.payload.map_or(0, |payload| payload.len as usize)
    }
}

/// The body of an error. \[MS-SMB2\] 2.2.2
fn error() -> Vec<u8> {
    let mut head = Vec::with_capacity(HEADER_LEN + 9);
    head.resize(HEADER_LEN, 0);
    error_response::Response::PLAIN.encode(&mut head);
    head
}

impl Connection {
    /// Sends the answers that a task has so far, in one frame.
    pub(in crate::server) fn send(&mut self, task: &mut Task, effects: &mut Effects) {
        let answers = core::mem::take(&mut task.answers);
        if answers.is_empty() || self.is_over {
            answers
                .into_iter()
                .for_each(|answer| answer.release(effects));
            return;
        }
        let encryption = task
            .encrypt_for
            .as_ref()
            .and_then(|session| session.encryption());
        let count = answers.len();
        let mut credits = 0;
        let mut messages = Vec::with_capacity(count);
        // One SEND can take one key back. Those of the other members the client takes back itself,
        // as it does where a server leaves it to it.
        let invalidate = answers.iter().find_map(|answer| answer.request.invalidate);
        for (index, answer) in answers.into_iter().enumerate() {
            // To match Windows, the last answer of a compound grants for all.
            credits += self.grant(&answer);
            let is_last = index + 1 == count;
            // Samba pads the last member of a compound too, and a test of it expects that.
            let padding = if count > 1 { padding(answer.len()) } else { 0 };
            let layout = Layout {
                index,
                padding,
                is_last,
                credits: if is_last { credits } else { 0 },
                is_encrypted: encryption.is_some(),
            };
            messages.push(self.finish(answer, &layout));
        }
        effects.push(Effect::Send(Outbound {
            messages,
            encryption,
            invalidate,
        }));
    }

    /// Writes the header of an answer.
    fn finish(&mut self, answer: Answer, layout: &Layout) -> OutMessage {
        let len = answer.len();
        let Answer {
            request,
            mut head,
            payload,
            answers,
        } = answer;
        let sign = request
            .sign
            .filter(|_| !layout.is_encrypted || ends_login(&request.header))
            .map(|key| Sign {
                key,
                nonce: SigningNonce {
                    message_id: request.header.message_id.0,
                    from_server: true,
                    is_cancel: false,
                },
            });
        let mut header = request.header;
        if answers.is_some() {
            self.responses.count(header.status);
        }
        header.flags = response_flags(header.flags, layout.index);
        if sign.is_some() {
            header.flags |= Flags::SIGNED;
        }
        if let Some(async_id) = request.async_id {
            header.target = Target::Async(async_id);
        }
        let end = len + usize::from(layout.padding);
        header.next_command = match layout.is_last {
            true => 0,
            false => u32::try_from(end).expect("an answer is shorter than 4 GiB"),
        };
        header.credits = layout.credits;
        // There is no key to sign with. Samba and Windows send the signature of the request back,
        // and Samba's clients believe nothing that does not look signed: smb2.session.bind2.
        let is_echo = sign.is_none()
            && header.status == Status::USER_SESSION_DELETED
            && request.header.flags.contains(Flags::SIGNED);
        if is_echo {
            header.flags |= Flags::SIGNED;
        } else {
            header.signature = [0; 16];
        }
        self.scratch.clear();
        header.encode(&mut self.scratch);
        head[..HEADER_LEN].copy_from_slice(&self.scratch);
        let mut sign = sign;
        if is_hashed_signed(&header) && payload.is_none() {
            // The hash goes over the signature too, so this one cannot wait for the driver.
            if let Some(sign) = sign.take() {
                sign.apply(&mut head, &[], layout.padding);
            }
        }
        self.hash(&header, &head);
        OutMessage {
            head,
            payload,
            padding: layout.padding,
            sign,
            answers,
        }
    }

    /// Adds an answer to the hash that the keys of a session of dialect 3.1.1 depend on.
    /// \[MS-SMB2\] 3.3.5.4, 3.3.5.5
    fn hash(&mut self, header: &Header, message: &[u8]) {
        match (header.command, header.status) {
            (Command::NEGOTIATE, Status::SUCCESS) if self.dialect() == Dialect::SMB_3_1_1 => {
                self.preauth.update(message);
            }
            (Command::SESSION_SETUP, Status::MORE_PROCESSING_REQUIRED) => {
                if let Some(login) = self.logins.get_mut(header.session_id) {
                    login.preauth.update(message);
                }
            }
            _ => {}
        }
    }

    /// Credits for an answer: what the request used up, and what it asked for beyond. As Windows
    /// and Samba have it, NEGOTIATE and a login that is not done get no more than they used, and
    /// a request with an interim response got its credits with that. \[MS-SMB2\] 3.3.1.2
    fn grant(&mut self, answer: &Answer) -> u16 {
        let header = &answer.request.header;
        if answer.request.async_id.is_some() && !answer.is_interim() {
            return 0;
        }
        let is_early = header.command == Command::NEGOTIATE
            || header.command == Command::SESSION_SETUP && header.status != Status::SUCCESS;
        let beyond = if is_early {
            0
        } else {
            header.credits.saturating_sub(1)
        };
        let wanted = self.charge(header).saturating_add(beyond);
        self.window.grant(wanted)
    }
}

/// Whether an answer ends a login with success. It is signed within an encrypted frame as well, as
/// Samba does: Samba's client checks the signature of a login again (smb2.session.reauth1).
/// \[MS-SMB2\] 3.3.5.5.3
fn ends_login(header: &Header) -> bool {
    header.command == Command::SESSION_SETUP && header.status == Status::SUCCESS
}

/// Whether an answer is of a login that has more legs: signed where it is to bind a connection.
fn is_hashed_signed(header: &Header) -> bool {
    header.command == Command::SESSION_SETUP && header.status == Status::MORE_PROCESSING_REQUIRED
}

/// Where an answer stands in its frame.
struct Layout {
    index: usize,
    padding: u8,
    is_last: bool,
    credits: u16,
    is_encrypted: bool,
}

/// Zero bytes up to a multiple of 8. \[MS-SMB2\] 3.3.4.1.3
fn padding(len: usize) -> u8 {
    (len.next_multiple_of(8) - len) as u8
}

/// The flags of a request that the response repeats. \[MS-SMB2\] 3.3.4.1
fn response_flags(flags: Flags, index: usize) -> Flags {
    let mut kept = flags & (Flags::PRIORITY_MASK | Flags::REPLAY_OPERATION);
    if index > 0 {
        kept |= flags & Flags::RELATED_OPERATIONS;
    }
    kept | Flags::SERVER_TO_REDIR
}
