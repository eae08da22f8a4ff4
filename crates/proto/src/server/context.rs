//! The input of a command's handler, and its result.
//!
//! Each command that acts on an open is in a separate file with one entry:
//! `start(context, message) -> Result<Progress<Step>, Status>`. `Step` is a type of that file. A
//! handler that has to wait for an operation pushes an effect with [`Context::wait`] and returns
//! [`Progress::Wait`] with the step; the outcome is passed to `resume` of that step. The frame of
//! the request is no longer available then: the step holds all that the handler still needs.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use wire::dialect::Dialect;
use wire::{FileId, Header, Status};

use crate::carrier::Carrier;
use crate::effect::{Access, Effect, Effects, Payload};
use crate::file::{FileKey, FileOp};
use crate::id::{ConnectionId, OpId};
use crate::path::SharePath;
use crate::report::{AccessDenied, NeededAccess, Report};
use crate::server::Server;
use crate::server::audit::Draft;
use crate::server::config::Config;
use crate::server::fsa::caching::BreakWait;
use crate::server::notices::{Notices, Waiter};
use crate::server::op_ids::OpIds;
use crate::server::open::Open;
use crate::server::outstanding_request::{self, OutstandingRequest};
use crate::server::session::Session;
use crate::server::sizes::{BYTES_PER_CREDIT, Sizes};
use crate::server::tree::TreeConnect;
use crate::time::{Instant, Now};
use crate::token::Token;
use crate::violation::Violation;

/// The request of a handler and the state that the handler may use.
pub(crate) struct Context<'a> {
    pub(crate) now: Now,
    pub(crate) server: &'a Arc<Server>,
    /// The configuration of the connection, without shares.
    pub(crate) config: &'a Config,
    pub(crate) connection: ConnectionId,
    pub(crate) dialect: Dialect,
    pub(crate) header: Header,
    /// The session and the tree of the request: looked up anew for each member of a compound.
    pub(crate) session: Arc<Session>,
    pub(crate) tree: Arc<TreeConnect>,
    /// Whether a request may ask for more than 64 KiB and pay with its credits: dialect 2.1 and
    /// later, on a transport with long frames.
    pub(crate) has_large_mtu: bool,
    /// The transport of the connection.
    pub(crate) carrier: Carrier,
    /// The requirement on the bytes of a response.
    pub(crate) access: Access,
    /// Whether the request was encrypted.
    pub(crate) is_encrypted: bool,
    /// Whether no member of the compound follows.
    pub(crate) is_last: bool,
    /// Bytes of the responses to the members before.
    pub(crate) response_bytes: usize,
    /// Whether the client gave up on the request while it waited.
    pub(crate) is_cancelled: bool,
    /// Whether the connection is lost: the answer will not be sent.
    pub(crate) is_lost: bool,
    /// The count of the request on the open that it acts on. \[MS-SMB2\] 3.3.5.2.10
    pub(crate) outstanding: &'a mut Option<OutstandingRequest>,
    /// Offset of the message in the inbound frame of this call; `None` without that frame
    /// (a later member of a compound): then bytes that an effect needs are copied.
    pub(crate) frame_offset: Option<usize>,
    /// The open that a related request means: of the member of the compound before. A CREATE that
    /// succeeds puts its open here; that one failed is noted by the connection.
    pub(crate) related_open: &'a mut RelatedOpen,
    /// The key of client memory that the answer invalidates.
    pub(crate) invalidate: &'a mut Option<u32>,
    /// Bytes of the file that the request read or wrote, for statistics.
    pub(crate) transferred: &'a mut u32,
    /// The event of the request for the audit log, if its share may select it.
    pub(crate) audit: &'a mut Option<Box<Draft>>,
    /// Whether a session may have several connections: NEGOTIATE said so.
    pub(crate) has_multichannel: bool,
    /// Whether the client may use the SMB3 POSIX extensions, in the shares that have them.
    pub(crate) has_posix: bool,
    /// Requests of the connection that wait for a byte-range lock.
    pub(crate) lock_waits: &'a Arc<AtomicUsize>,
    pub(crate) op_ids: &'a mut OpIds,
    pub(crate) effects: &'a mut Effects,
}

/// The open that related requests of a compound use. \[MS-SMB2\] 3.3.5.2.7.2
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum RelatedOpen {
    /// No member before had an open.
    #[default]
    None,
    /// The open of the member before.
    Open(FileId),
    /// The member that should have made the open failed; related members fail with its status.
    Failed(Status),
}

/// The result of a handler that does not fail. `S` is the state with which a waiting request
/// continues; each command has a separate type.
pub(crate) enum Progress<S> {
    /// The answer.
    Done(Reply),
    /// The driver must complete this operation first.
    Wait(OpId, S),
    /// The request waits for another client, such as for the break of an oplock.
    Park(Parked, S),
    /// The connection ends.
    End(Violation),
}

/// An event other than an operation of the driver that a request waits for, such as the end of an
/// oplock break.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parked {
    /// Under which it is woken.
    pub(crate) op: OpId,
    /// The file.
    pub(crate) key: FileKey,
    /// When the holder will have had its time; `None` once it had.
    pub(crate) until: Option<Instant>,
    /// Whether the request continues at that time in any case.
    pub(crate) is_limited: bool,
}

/// An answer: its status and its body.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: Status,
    /// The message after the 64 bytes of the header, up to the payload. `write` appends it.
    pub(crate) body: Body,
}

/// The body of an answer.
#[derive(Debug)]
pub(crate) enum Body {
    /// These bytes: `encode` of a response into a vector that starts with 64 zero bytes, which
    /// the connection overwrites with the header. No copy is made.
    Message(Vec<u8>),
    /// The same, followed by bytes that the driver holds.
    WithPayload(Vec<u8>, Payload),
    /// An ERROR response without data. \[MS-SMB2\] 2.2.2
    Error,
}

impl<S> Progress<S> {
    /// The same progress with the state as a wider type: that of the command of which a function
    /// serves a part, or the step of all commands.
    pub(crate) fn widen<T: From<S>>(self) -> Progress<T> {
        match self {
            Self::Done(reply) => Progress::Done(reply),
            Self::Wait(op, step) => Progress::Wait(op, step.into()),
            Self::Park(parked, step) => Progress::Park(parked, step.into()),
            Self::End(violation) => Progress::End(violation),
        }
    }
}

impl Parked {
    /// What waits as long as the table of open files said.
    pub(crate) fn new(wait: &BreakWait, key: FileKey, until: Instant) -> Self {
        Self {
            op: wait.waiter.op,
            key,
            until: Some(until),
            is_limited: false,
        }
    }
}

impl Context<'_> {
    /// The wait of this request for the end of a break, should it have to wait.
    pub(crate) fn break_wait(&mut self) -> BreakWait {
        let deadline = self.break_deadline();
        let waiter = Waiter {
            connection: self.connection,
            op: self.op(),
        };
        BreakWait {
            waiter,
            now: self.now.instant,
            deadline,
        }
    }

    /// When a break that begins now ends at the latest.
    pub(crate) fn break_deadline(&self) -> Instant {
        self.server.change_time(self.now).deadline
    }

    /// Before the file of an open is renamed or deleted: breaks HANDLE_CACHING of the leases of
    /// other clients. `None` if the request does not have to wait. \[MS-FSA\] 2.1.5.15.12
    pub(crate) fn wait_for_handle_leases(&mut self, open: &Open) -> Option<Parked> {
        let wait = self.break_wait();
        let mut notices = Notices::new();
        let files = &self.server.files;
        let until = files.break_handle_leases(open.key, open.file, &wait, &mut notices);
        self.post(notices);
        let (key, until) = until?;
        Some(Parked::new(&wait, key, until))
    }

    /// Removes the request from the requests that wait for the end of a break.
    pub(crate) fn stop_waiting(&self, parked: &Parked) {
        let waiter = Waiter {
            connection: self.connection,
            op: parked.op,
        };
        self.server.files.forget_waiter(parked.key, waiter);
    }

    /// A number for an operation that will be completed.
    pub(crate) fn op(&mut self) -> OpId {
        self.op_ids.allocate()
    }

    /// Asks for a file operation and waits for it.
    pub(crate) fn wait<S>(&mut self, operation: FileOp, step: S) -> Progress<S> {
        let op = self.op();
        self.effects.push(Effect::File(op, operation));
        Progress::Wait(op, step)
    }

    /// Asks for a file operation without waiting for its outcome, such as a close after a failure.
    pub(crate) fn run(&mut self, operation: FileOp) {
        let op = self.op();
        self.effects.push(Effect::File(op, operation));
    }

    /// Sends notices to other connections, and perhaps to this one.
    pub(crate) fn post(&mut self, notices: Notices) {
        self.server.post(notices, self.effects);
    }

    /// The data of a file have changed, or may have: breaks the read caching of clients. The caller
    /// does this after the change, so that no client reads and caches the old data in between.
    pub(crate) fn data_changed(&mut self, open: &Open) {
        if open.has_readers.load(Ordering::SeqCst) {
            let mut notices = Notices::new();
            let deadline = self.break_deadline();
            let files = &self.server.files;
            files.break_read_caching(open.key, open.file, deadline, &mut notices);
            self.post(notices);
        }
    }

    /// Whether a request with several operations to do goes on with the next: not once the client
    /// gave up on it, or its tree or session ends.
    pub(crate) fn check_wanted(&self) -> Result<(), Status> {
        let is_there = !self.session.state.lock().is_closed
            && self.session.trees.lock().contains_key(&self.tree.id);
        match is_there && !self.is_cancelled {
            true => Ok(()),
            false => Err(Status::CANCELLED),
        }
    }

    /// The ChannelSequence of the request.
    pub(crate) fn channel_sequence(&self) -> u16 {
        outstanding_request::channel_sequence(&self.header)
    }

    /// The identity of file operations: that of the share, or that of the user.
    pub(crate) fn token(&self) -> Arc<Token> {
        match &self.tree.share.force_token {
            Some(token) => token.clone(),
            None => self.session.state.lock().account.token.clone(),
        }
    }

    /// Reports a file operation that failed, if the file system denied the access. `needs` are the
    /// accesses that the operation needs.
    pub(crate) fn report_denied(
        &mut self,
        status: Status,
        needs: impl FnOnce() -> Vec<(SharePath, NeededAccess)>,
    ) {
        if status != Status::ACCESS_DENIED {
            return;
        }
        // A separate statement, because `token` takes the same lock.
        let account = self.session.state.lock().account.clone();
        let denied = AccessDenied {
            account,
            token: self.token(),
            share: self.tree.share.id,
            needs: needs(),
        };
        let report = Report::AccessDenied(denied);
        self.effects.push(Effect::Report(Box::new(report)));
    }

    /// Checks that the credits of the request pay for the longer of what it carries and what it
    /// asks for. \[MS-SMB2\] 3.3.5.2.5
    pub(crate) fn check_charge(&self, payload_bytes: u32) -> Result<(), Status> {
        if !self.has_large_mtu {
            return Ok(());
        }
        let needed = payload_bytes.saturating_sub(1) / BYTES_PER_CREDIT + 1;
        if needed <= u32::from(self.header.credit_charge.max(1)) {
            Ok(())
        } else {
            Err(Status::INVALID_PARAMETER)
        }
    }

    /// Bytes of the largest READ on this connection, as NEGOTIATE said.
    pub(crate) fn max_read(&self) -> u32 {
        self.sizes().read
    }

    /// Maximum length in bytes of a READ with the data in the response.
    pub(crate) fn max_inline_read(&self) -> u32 {
        self.sizes().inline_read
    }

    /// Bytes of the largest WRITE on this connection, as NEGOTIATE said.
    pub(crate) fn max_write(&self) -> u32 {
        self.sizes().write
    }

    /// Bytes of the largest transaction on this connection, as NEGOTIATE said.
    pub(crate) fn max_transact(&self) -> u32 {
        self.sizes().transact
    }

    fn sizes(&self) -> Sizes {
        Sizes::new(self.config, &self.carrier, self.has_large_mtu)
    }

    /// The open that a request names. It becomes the open of the compound: a related request means
    /// that one and not the one that it names. \[MS-SMB2\] 3.3.5.2.7.2. Mostly it names ffff...;
    /// smbprotocol sends the FileId of an earlier open.
    ///
    /// A request that names an open shows that its client received the response to the CREATE. A
    /// related request does not show that: the client sent it before the response. (\[MS-SMB2\]
    /// 3.3.5.9.10 makes no difference; then a client that loses the response to such a compound
    /// cannot find its open.)
    pub(crate) fn open(&mut self, id: FileId) -> Result<Arc<Open>, Status> {
        let (id, is_named) = match *self.related_open {
            RelatedOpen::Open(id) => (id, false),
            RelatedOpen::Failed(status) => return Err(status),
            RelatedOpen::None => (id, true),
        };
        let open = self.session.opens.lock().get(&id.volatile).cloned();
        let open = open.filter(|open| open.id == id && open.tree() == self.tree.id);
        let open = open.ok_or(Status::FILE_CLOSED)?;
        *self.related_open = RelatedOpen::Open(id);
        if self.dialect >= Dialect::SMB_3_0 && self.outstanding.is_none() {
            *self.outstanding = outstanding_request::admit(&open, &self.header)?;
        }
        if let Some(replay_entry) = open.replay_entry.as_ref().filter(|_| is_named) {
            replay_entry.mark_used();
        }
        Ok(open)
    }
}

impl Reply {
    /// A success with the body that `encode` appends after the header.
    pub(crate) fn message(encode: impl FnOnce(&mut Vec<u8>)) -> Self {
        Self::with_status(Status::SUCCESS, encode)
    }

    /// The same, with another status: BUFFER_OVERFLOW has a body too.
    pub(crate) fn with_status(status: Status, encode: impl FnOnce(&mut Vec<u8>)) -> Self {
        let mut message = Vec::with_capacity(256);
        message.resize(wire::header::HEADER_LEN, 0);
        encode(&mut message);
        Self {
            status,
            body: Body::Message(message),
        }
    }
}
