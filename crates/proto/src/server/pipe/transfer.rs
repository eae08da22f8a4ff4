//! READ, WRITE and PIPE_TRANSCEIVE. \[MS-SMB2\] 3.3.5.12, 3.3.5.13, 3.3.5.15.10
//!
//! A read takes from one answer at a time, and waits where there is none. One of no bytes waits
//! too: for the pipe to be closed, as on Windows and Samba (smbtorture
//! smb2.credits.ipc_max_data_zero).
//!
//! A call that needs the driver keeps the request waiting that started it. Calls of other requests
//! start after it.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use wire::Status;
use wire::fsctl::CtlCode;
use wire::header::HEADER_LEN;
use wire::read::{Channel, DATA_OFFSET};
use wire::{FileId, ioctl, read, write};

use super::calls::{self, Called, Caller, Lookup};
use super::endpoint::Call;
use super::instance::Pipe;
use crate::effect::{Effect, Outcome};
use crate::file::FileKey;
use crate::id::OpId;
use crate::server::context::{Body, Context, Parked, Progress, Reply};
use crate::server::open::malformed;

/// Bytes that one read takes, at most, as with Samba.
const MAX_READ: u32 = 65_535;

/// A request that waits.
pub(crate) enum Step {
    /// For data.
    Read(Waiting),
    /// For the driver to complete a call.
    LookUp(Box<LookUp>),
}

/// A call that waits for the driver, and the request that started it.
pub(crate) struct LookUp {
    pipe: Arc<Pipe>,
    call: Call,
    lookup: Lookup,
    then: Then,
}

/// What a request does after the calls that it has started.
enum Then {
    /// It is answered.
    Reply(Reply),
    /// It reads the answer.
    Read(Waiting),
}

/// A read that waits.
pub(crate) struct Waiting {
    pipe: Arc<Pipe>,
    max_len: u32,
    /// How it is answered.
    answer: Answer,
    /// Under which it waits.
    op: OpId,
}

/// How a read is answered.
#[derive(Clone, Copy, Debug)]
enum Answer {
    Read,
    Transceive(FileId),
}

/// READ.
pub(super) fn read(context: &mut Context<'_>, message: &[u8]) -> Result<Progress<Step>, Status> {
    let request = read::Request::decode(message).map_err(malformed)?;
    context.check_charge(request.length)?;
    let pipe = context.pipe(request.file_id)?;
    if request.length > context.max_read() || request.channel != Channel::NONE {
        return Err(Status::INVALID_PARAMETER);
    }
    Waiting {
        pipe,
        max_len: request.length.min(MAX_READ),
        answer: Answer::Read,
        op: context.op(),
    }
    .start(context)
}

/// WRITE.
pub(super) fn write(context: &mut Context<'_>, message: &[u8]) -> Result<Progress<Step>, Status> {
    let request = write::Request::decode(message).map_err(malformed)?;
    let length = u32::try_from(request.data.len()).unwrap_or(u32::MAX);
    context.check_charge(length)?;
    let pipe = context.pipe(request.file_id)?;
    if length > context.max_write() || request.channel != Channel::NONE {
        return Err(Status::INVALID_PARAMETER);
    }
    pipe.state.lock().write(request.data)?;
    let response = write::Response { count: length };
    let reply = Reply::message(|out| response.encode(out));
    serve(context, pipe, Then::Reply(reply))
}

/// PIPE_TRANSCEIVE: writes a request and reads the answer.
pub(super) fn transceive(
    context: &mut Context<'_>,
    request: &ioctl::Request<'_>,
) -> Result<Progress<Step>, Status> {
    let pipe = context.pipe(request.file_id)?;
    if request.max_output_response > context.max_transact() {
        return Err(Status::INVALID_PARAMETER);
    }
    pipe.state.lock().write(request.input)?;
    let read = Waiting {
        pipe: Arc::clone(&pipe),
        max_len: request.max_output_response.min(MAX_READ),
        answer: Answer::Transceive(request.file_id),
        op: context.op(),
    };
    serve(context, pipe, Then::Read(read))
}

/// Executes the pending calls of the client, and wakes reads that wait for their results. Then
/// completes the request, or waits for the driver first.
fn serve(context: &mut Context<'_>, pipe: Arc<Pipe>, then: Then) -> Result<Progress<Step>, Status> {
    let is_named = context.session.state.lock().is_named();
    let caller = Caller {
        server: context.server,
        now: context.now,
        is_named,
    };
    // The lock is not held during a call, because calls read the tables of sessions.
    let waiting = loop {
        let Some(call) = pipe.state.lock().next_call() else {
            break None;
        };
        let called = calls::call(
            pipe.service,
            &caller,
            &pipe.policies,
            call.opnum,
            &call.stub,
        );
        let result = match called {
            Ok(Called::LookUp(query, lookup)) => break Some((query, lookup, call)),
            Ok(Called::Done(stub)) => Ok(stub),
            Err(fault) => Err(fault),
        };
        pipe.state.lock().answer(&call, result);
    };
    let notices = pipe.state.lock().wake();
    context.post(notices);
    let Some((query, lookup, call)) = waiting else {
        return then.proceed(context);
    };
    let op = context.op();
    context.effects.push(Effect::LookUpAccounts(op, query));
    let step = LookUp {
        pipe,
        call,
        lookup,
        then,
    };
    Ok(Progress::Wait(op, Step::LookUp(Box::new(step))))
}

impl Then {
    fn proceed(self, context: &mut Context<'_>) -> Result<Progress<Step>, Status> {
        match self {
            Self::Reply(reply) => Ok(Progress::Done(reply)),
            Self::Read(read) => read.start(context),
        }
    }
}

impl LookUp {
    fn resume(self, context: &mut Context<'_>, outcome: Outcome) -> Result<Progress<Step>, Status> {
        let Self {
            pipe,
            call,
            lookup,
            then,
        } = self;
        let stub = match outcome.expect_accounts() {
            Ok(found) => lookup.finish(found),
            Err(status) => lookup.fail(status),
        };
        pipe.state.lock().answer(&call, Ok(stub));
        serve(context, pipe, then)
    }
}

impl Step {
    pub(crate) fn resume(
        self,
        context: &mut Context<'_>,
        outcome: Outcome,
    ) -> Result<Progress<Step>, Status> {
        match self {
            Self::Read(read) => read.resume(context, outcome),
            Self::LookUp(look_up) => look_up.resume(context, outcome),
        }
    }
}

impl Waiting {
    fn start(self, context: &mut Context<'_>) -> Result<Progress<Step>, Status> {
        let (is_last, progress) = (context.is_last, self.look(context)?);
        match progress {
            // Windows and Samba wait for nothing amid a compound.
            Progress::Park(_, Step::Read(read)) if !is_last => {
                read.give_up(context);
                Err(Status::INTERNAL_ERROR)
            }
            progress => Ok(progress),
        }
    }

    fn resume(self, context: &mut Context<'_>, outcome: Outcome) -> Result<Progress<Step>, Status> {
        match outcome.expect_woken() {
            Ok(()) => self.look(context),
            // The client canceled the request, or its tree or session ends.
            Err(status) => {
                self.give_up(context);
                Err(status)
            }
        }
    }

    /// Returns available data, or waits for data.
    fn look(self, context: &mut Context<'_>) -> Result<Progress<Step>, Status> {
        let mut state = self.pipe.state.lock();
        let wants_data = self.max_len > 0 || matches!(self.answer, Answer::Transceive(_));
        let taken = match wants_data {
            true => state.read(self.max_len as usize),
            false => None,
        };
        let Some((bytes, has_more)) = taken else {
            if let Some(status) = state.is_over() {
                return Err(status);
            }
            state.wait((context.connection, self.op), wants_data)?;
            drop(state);
            let parked = Parked {
                op: self.op,
                key: FileKey::default(),
                until: None,
                is_limited: false,
            };
            return Ok(Progress::Park(parked, Step::Read(self)));
        };
        drop(state);
        // There may now be space for the response of a waiting call.
        let reply = self.answer.reply(&bytes, has_more);
        serve(context, self.pipe, Then::Reply(reply))
    }

    /// Ends the wait. Data that arrived meanwhile go to the next read.
    fn give_up(&self, context: &mut Context<'_>) {
        let mut state = self.pipe.state.lock();
        state.forget((context.connection, self.op));
        let notices = state.wake();
        drop(state);
        context.post(notices);
    }
}

impl Answer {
    /// If a part of the message is left, a READ succeeds and a transaction answers BUFFER_OVERFLOW,
    /// as with Samba.
    fn reply(self, bytes: &[u8], has_more: bool) -> Reply {
        match self {
            Self::Read => read_reply(bytes),
            Self::Transceive(file_id) => {
                let response = ioctl::Response {
                    ctl_code: CtlCode::PIPE_TRANSCEIVE,
                    file_id,
                    flags: ioctl::IoctlFlags::NONE,
                    input: &[],
                    output: bytes,
                };
                let status = match has_more {
                    true => Status::BUFFER_OVERFLOW,
                    false => Status::SUCCESS,
                };
                Reply::with_status(status, |out| response.encode(out))
            }
        }
    }
}

/// The bytes stand in the message itself: no driver holds them.
fn read_reply(bytes: &[u8]) -> Reply {
    let response = read::Response {
        data_offset: DATA_OFFSET,
        data_remaining: 0,
        flags: read::ResponseFlags::NONE,
    };
    let length = u32::try_from(bytes.len()).expect("no more than was asked for");
    let mut message = Vec::with_capacity(usize::from(DATA_OFFSET) + bytes.len());
    message.resize(HEADER_LEN, 0);
    response.encode_head(length, &mut message);
    message.extend_from_slice(bytes);
    Reply {
        status: Status::SUCCESS,
        body: Body::Message(message),
    }
}
