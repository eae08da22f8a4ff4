//! Does what the core asks for. The one place that knows how bytes get from files to sockets.
//!
//! Everything is tried at once first: reads of cached pages, writes into the page cache and
//! metadata whose directory entries are in memory are plain system calls, which is faster than
//! any queue (see docs/design/data-path.md). What would block goes to the ring (reads and writes
//! of files) or to a thread that may block (the rest), and the connection goes on meanwhile.

pub(crate) mod answer_quota;
pub(crate) mod direct;
mod rdma;

use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::Arc;

use net::PayloadBytes;
use proto::effect::{
    Access, Delivery, Effect, Outbound, Outcome, Payload, ReadPlan, WriteData, WritePlan,
};
use proto::file::{CopyPlan, FileOp, LocalOpen, Operation};
use proto::id::OpId;
use proto::login::{Authenticate, Authenticated};
use proto::store::StoreOp;
use ring::{Buffer, File, Personality, VIEW_BYTES_MIN, View};
use tracing::warn;
use vfs::{Attempt, Descriptor, Effort, FileSystem};
use wire::Status;

use crate::connection::{Connection, State};

use answer_quota::Reserved;
use direct::DirectRead;
pub(crate) use rdma::Room;

/// Bytes of a READ up to which the answer is copied next to its head: one piece to send instead
/// of two, which is worth more than the copy. Also spares a buffer of the pool.
const SMALL_READ: u32 = 16 << 10;

/// The frame that the core is looking at, while effects may refer to it.
pub(crate) enum Frame<'a> {
    /// Within a chunk that is needed again soon.
    Borrowed(&'a mut [u8]),
    /// In a buffer of its own (these bytes of it), which a write can take along.
    Owned(Option<Buffer>, Range<usize>),
    /// There is none: the core goes on with what it kept.
    Gone,
}

impl Frame<'_> {
    /// The frame's bytes.
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Owned(Some(buffer), range) => &mut buffer[range.clone()],
            Self::Owned(None, _) | Self::Gone => &mut [],
        }
    }
}

/// What is read.
#[derive(Clone, Copy)]
struct Span {
    file: LocalOpen,
    offset: u64,
    length: usize,
}

/// Where a write goes.
struct Target {
    file_system: Arc<dyn FileSystem>,
    file: LocalOpen,
    offset: Option<u64>,
    through: bool,
}

/// What a write that has to wait keeps.
enum Source {
    /// The frame's own buffer, and where in it.
    Buffer(Buffer, Range<usize>),
    /// A copy.
    Bytes(Vec<u8>),
}

impl Source {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Buffer(buffer, range) => &buffer[range.clone()],
            Self::Bytes(bytes) => bytes,
        }
    }
}

impl Connection {
    /// Does everything that the core has asked for.
    pub(crate) fn perform(self: &Rc<Self>, state: &mut State, frame: &mut Frame<'_>) {
        while let Some(effect) = state.effects.pop() {
            match effect {
                Effect::Send(outbound) => self.send_frame(state, outbound),
                Effect::Read(plan) => self.read(state, &plan),
                Effect::Write(plan) => self.write(state, plan, frame),
                Effect::File(op, operation) => self.file(state, op, operation),
                Effect::Store(op, operation) => self.store(op, operation),
                Effect::Authenticate(op, leg) => self.authenticate(state, op, leg),
                Effect::EndConversation(conversation) => state.logins.end(conversation),
                // Nothing here runs long enough to be worth stopping: the core asks for what takes
                // long in pieces.
                Effect::Cancel(_) => {}
                Effect::Release(token) => state.payloads.release(token),
                Effect::Notify(connection, notice) => self.worker.notify(connection, notice),
                Effect::ArmServerTimer => self.worker.shared.arm_server_timer(),
                Effect::Disconnect(violation) => self.end(&violation),
            }
        }
    }

    fn complete_now(&self, state: &mut State, op: OpId, outcome: Outcome) {
        let now = self.worker.now();
        let State { core, effects, .. } = state;
        core.complete(now, op, outcome, effects);
    }

    fn send_frame(&self, state: &mut State, outbound: Outbound) {
        let State {
            outbox,
            payloads,
            framing,
            ..
        } = state;
        if !outbox.push(framing, &self.handle().pool(), payloads, outbound) {
            warn!(peer = %self.peer, "an answer is too long for the transport");
            self.ended.raise();
        }
        self.wake_sender();
    }

    fn read(self: &Rc<Self>, state: &mut State, plan: &ReadPlan) {
        let &ReadPlan {
            op,
            file,
            offset,
            length,
            access,
            ref delivery,
        } = plan;
        if let Delivery::Remote(pieces) = delivery {
            return self.read_remote(state, plan, pieces);
        }
        let file_system = Arc::clone(self.worker.shares().of_open(file));
        let direct = self.direct_read(&file_system, file, offset, length as usize);
        if direct.is_some() {
            return self.read_later(file_system, plan, None, direct);
        }
        if length <= SMALL_READ {
            let mut bytes = vec![0; length as usize];
            match file_system.read(file, offset, &mut bytes, Effort::Cached) {
                Attempt::Done(result) => {
                    let outcome = read_outcome(state, result, |len| {
                        bytes.truncate(len);
                        PayloadBytes::Small(bytes)
                    });
                    self.complete_now(state, op, outcome);
                }
                Attempt::WouldBlock => self.read_later(file_system, plan, None, None),
            }
            return;
        }
        if !self.may_keep(state, length as usize) {
            let outcome = Outcome::Failed(Status::INSUFFICIENT_RESOURCES);
            return self.complete_now(state, op, outcome);
        }
        let reserved = self.reserve(state, length as usize);
        if access == Access::Opaque
            && reserved.is_some()
            && let Some(view) = self.view(&file_system, file, offset, length as usize)
        {
            let whole = Ok(view.len());
            let outcome = read_outcome(state, whole, |_| PayloadBytes::View(view));
            return self.complete_now(state, op, outcome);
        }
        let buffer =
            reserved.map(|reserved| (reserved, self.handle().pool().take(length as usize)));
        let Some((reserved, Some(mut buffer))) = buffer else {
            self.read_later(file_system, plan, None, None);
            return;
        };
        match file_system.read(file, offset, &mut buffer[..length as usize], Effort::Cached) {
            Attempt::Done(result) => {
                let outcome = read_outcome(state, result, |len| PayloadBytes::Large(buffer, len));
                self.complete_now(state, op, outcome);
            }
            Attempt::WouldBlock => {
                self.read_later(file_system, plan, Some((reserved, buffer)), None);
            }
        }
    }

    /// What is sent from where the file has it in memory, which spares a copy. The kernel copies
    /// it when it is sent: nobody may look at it before.
    fn view(
        &self,
        file_system: &Arc<dyn FileSystem>,
        file: LocalOpen,
        offset: u64,
        length: usize,
    ) -> Option<View> {
        if !self.transport.sends_files() || length < VIEW_BYTES_MIN {
            return None;
        }
        let descriptor = file_system.descriptor(file)?;
        self.worker.view(descriptor.fd.as_fd(), offset, length)
    }

    /// Reads on the ring where the file has a descriptor, on a thread where not.
    fn read_later(
        self: &Rc<Self>,
        file_system: Arc<dyn FileSystem>,
        plan: &ReadPlan,
        buffer: Option<(Reserved, Buffer)>,
        direct: Option<DirectRead>,
    ) {
        let &ReadPlan {
            op,
            file,
            offset,
            length,
            access: _,
            delivery: _,
        } = plan;
        let connection = Rc::clone(self);
        self.run(op, async move {
            let room = direct::room(direct.as_ref(), length as usize);
            let held = match buffer {
                Some(held) => Ok(held),
                None => connection.buffer_for_answer(room).await,
            };
            let (_reserved, buffer) = match held {
                Ok(held) => held,
                Err(status) => return Outcome::Failed(status),
            };
            let span = Span {
                file,
                offset,
                length: length as usize,
            };
            let (result, buffer) = connection
                .read_file(&file_system, span, buffer, direct)
                .await;
            let state = &mut *connection.state.borrow_mut();
            read_outcome(state, result, |len| PayloadBytes::Large(buffer, len))
        });
    }

    async fn buffer_for_answer(
        self: &Rc<Self>,
        bytes: usize,
    ) -> Result<(Reserved, Buffer), Status> {
        let reserved = self.reserve_or_wait(bytes).await?;
        Ok((reserved, self.handle().pool().take_or_wait(bytes).await))
    }

    async fn read_file(
        &self,
        file_system: &Arc<dyn FileSystem>,
        span: Span,
        mut buffer: Buffer,
        direct: Option<DirectRead>,
    ) -> (Result<usize, Status>, Buffer) {
        let Span {
            file,
            offset,
            length,
        } = span;
        let mut filled = 0;
        if let Some(direct) = direct {
            let result;
            (result, buffer) = self.read_direct(file_system, span, buffer, direct).await;
            match result {
                Ok(count) if count < length => filled = count,
                whole_or_failed => return (whole_or_failed, buffer),
            }
        }
        let Some(descriptor) = file_system.descriptor(file) else {
            return (Err(Status::FILE_CLOSED), buffer);
        };
        // The ring's own reference: the open may be closed while the read runs.
        let file = match descriptor.fd.try_clone() {
            Ok(fd) => File::from(fd),
            Err(error) => return (Err(data_status(&error)), buffer),
        };
        while filled < length {
            let at = offset + filled as u64;
            // Reads need no credentials: the file was opened under them.
            let read = self
                .handle()
                .read_at(&file, buffer, filled..length, at, None);
            let (result, returned) = read.await;
            buffer = returned;
            match result {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) => return (Err(data_status(&error)), buffer),
            }
        }
        (Ok(filled), buffer)
    }

    fn write(self: &Rc<Self>, state: &mut State, plan: WritePlan, frame: &mut Frame<'_>) {
        let WritePlan {
            op,
            file,
            offset,
            data,
            through,
        } = plan;
        let file_system = Arc::clone(self.worker.shares().of_open(file));
        if let WriteData::Remote(pieces) = data {
            let target = Target {
                file_system,
                file,
                offset,
                through,
            };
            return self.write_remote(op, target, pieces);
        }
        let is_in_buffer = matches!(
            (&data, &*frame),
            (WriteData::Inbound(_), Frame::Owned(Some(_), _))
        );
        let bytes = match &data {
            WriteData::Inbound(range) => frame
                .bytes()
                .get(range.clone())
                .expect("the core names bytes of its frame"),
            WriteData::Owned(bytes) => &bytes[..],
            WriteData::Remote(_) => unreachable!("it went another way"),
        };
        let direct = match is_in_buffer {
            true => self.direct_write(&file_system, file, offset, bytes),
            false => None,
        };
        if direct.is_none()
            && let Attempt::Done(result) =
                file_system.write(file, offset, bytes, through, Effort::Cached)
        {
            return self.complete_now(state, op, write_outcome(result));
        }
        let source = match (data, frame) {
            (WriteData::Inbound(range), Frame::Owned(buffer @ Some(_), whole)) => {
                let range = whole.start + range.start..whole.start + range.end;
                Source::Buffer(buffer.take().expect("it is some"), range)
            }
            (WriteData::Inbound(range), frame) => Source::Bytes(frame.bytes()[range].to_vec()),
            (WriteData::Owned(bytes), _) => Source::Bytes(bytes),
            (WriteData::Remote(_), _) => unreachable!("it went another way"),
        };
        let connection = Rc::clone(self);
        self.run(op, async move {
            let target = Target {
                file_system,
                file,
                offset,
                through,
            };
            write_outcome(match (direct, source) {
                (Some(direct), Source::Buffer(buffer, range)) => {
                    connection.write_direct(target, buffer, range, direct).await
                }
                (_, source) => connection.write_later(target, source).await,
            })
        });
    }

    /// Writes on the ring what a buffer holds, on a thread the rest.
    async fn write_later(&self, target: Target, source: Source) -> Result<usize, Status> {
        let Target {
            file_system,
            file,
            offset,
            through,
        } = target;
        if let (Source::Buffer(..), Some(offset), false) = (&source, offset, through)
            && !file_system.gates_writes()
            && let Some(descriptor) = file_system.descriptor(file)
            && let Some(personality) = self.worker.personality(&descriptor.token)?
        {
            return self
                .write_file(descriptor, source, offset, personality)
                .await;
        }
        let write = move || match file_system.write(
            file,
            offset,
            source.bytes(),
            through,
            Effort::Blocking,
        ) {
            Attempt::Done(result) => result,
            Attempt::WouldBlock => unreachable!("a blocking write blocks"),
        };
        self.handle().blocking(write).await
    }

    async fn write_file(
        &self,
        descriptor: Descriptor,
        source: Source,
        offset: u64,
        personality: Personality,
    ) -> Result<usize, Status> {
        let Source::Buffer(mut buffer, range) = source else {
            unreachable!("asked before")
        };
        let file = descriptor
            .fd
            .try_clone()
            .map_err(|error| data_status(&error))?;
        let file = File::from(file);
        let mut written = 0;
        while written < range.len() {
            let left = range.start + written..range.end;
            let at = offset + written as u64;
            let write = self
                .handle()
                .write_at(&file, buffer, left, at, Some(personality.clone()));
            let (result, returned) = write.await;
            buffer = returned;
            match result.map_err(|error| data_status(&error))? {
                0 => return Err(Status::DISK_FULL),
                count => written += count,
            }
        }
        Ok(written)
    }

    fn file(self: &Rc<Self>, state: &mut State, op: OpId, operation: FileOp) {
        if let FileOp::OnOpen(target, Operation::CopyRange(plan)) = operation
            && plan.source.share != target.share
        {
            return self.copy_between(op, target, plan);
        }
        let file_system = Arc::clone(self.worker.shares().of_operation(&operation));
        match file_system.execute(&operation, Effort::Cached) {
            Attempt::Done(outcome) => self.complete_now(state, op, outcome.into()),
            Attempt::WouldBlock => {
                let handle = self.handle().clone();
                self.run(op, async move {
                    let execute = move || match file_system.execute(&operation, Effort::Blocking) {
                        Attempt::Done(outcome) => outcome,
                        Attempt::WouldBlock => unreachable!("a blocking operation blocks"),
                    };
                    handle.blocking(execute).await.into()
                });
            }
        }
    }

    fn store(self: &Rc<Self>, op: OpId, operation: StoreOp) {
        let shared = Arc::clone(&self.worker.shared);
        let handle = self.handle().clone();
        self.run(op, async move {
            let execute = move || shared.store.execute(operation);
            handle.blocking(execute).await.into()
        });
    }

    /// Copies from one share to another, on a thread.
    fn copy_between(self: &Rc<Self>, op: OpId, target: LocalOpen, plan: CopyPlan) {
        let shares = self.worker.shares();
        let [from, to] = [plan.source, target].map(|file| Arc::clone(shares.of_open(file)));
        let handle = self.handle().clone();
        self.run(op, async move {
            let copy = move || vfs::copy::between(&*from, &*to, target, &plan);
            handle.blocking(copy).await.into()
        });
    }

    /// Takes a login a leg further. A refusal is told no sooner than the delay.
    fn authenticate(self: &Rc<Self>, state: &mut State, op: OpId, leg: Authenticate) {
        let authenticated = state.logins.step(leg, self.peer);
        match &authenticated {
            Authenticated::Refused(..) => {
                let delay = self.handle().sleep(self.worker.failed_login_delay());
                self.run(op, async move {
                    delay.await;
                    Outcome::Authenticated(authenticated)
                });
                return;
            }
            Authenticated::Accepted(accepted) => {
                state.permit.log_in();
                self.stream.trust();
                self.log_login(&accepted.account);
            }
            Authenticated::Continue(_) => {}
        }
        self.complete_now(state, op, Outcome::Authenticated(authenticated));
    }
}

/// Keeps what a read brought and tells the core how much it is.
fn read_outcome(
    state: &mut State,
    result: Result<usize, Status>,
    payload: impl FnOnce(usize) -> PayloadBytes,
) -> Outcome {
    match result {
        Ok(len) => {
            let payload: Payload = state.payloads.keep(payload(len));
            Outcome::Read(payload)
        }
        Err(status) => Outcome::Failed(status),
    }
}

fn write_outcome(result: Result<usize, Status>) -> Outcome {
    match result {
        Ok(len) => Outcome::Written(u32::try_from(len).expect("a WRITE has 32 bits of length")),
        Err(status) => Outcome::Failed(status),
    }
}

/// What an error of the ring means to a client.
fn data_status(error: &io::Error) -> Status {
    let errno = rustix::io::Errno::from_io_error(error).unwrap_or(rustix::io::Errno::IO);
    vfs::errno::status(errno, vfs::errno::Context::Data)
}
