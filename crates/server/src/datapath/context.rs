//! What an operation of the data path needs to know about its connection.

use std::cell::{Cell, RefCell};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use net::{Framing, Outbox, Payloads, Stream, Transport};
use proto::effect::Outcome;
use proto::login::Account;
use proto::server::ledger::{Charge, Resource};
use ring::{Buffer, Handle, Holder, JobSource, Signal, TaskQueue};
use wire::Status;

use super::logins::Logins;
use super::rdma_quota::RdmaQuota;
use crate::counters::{StoreOperation, Wait};
use crate::worker_context::WorkerContext;

/// Longest time that a request waits for a buffer of the pool. Clients give up after 60 s.
const BUFFER_TIMEOUT: Duration = Duration::from_secs(30);
/// The same for a member of a compound if other members hold buffers.
const COMPOUND_BUFFER_TIMEOUT: Duration = Duration::from_secs(3);

/// One connection, as the operations of the data path see it. Running operations keep it alive.
pub(crate) struct Context {
    pub(crate) worker: Rc<WorkerContext>,
    pub(crate) peer: SocketAddr,
    pub(crate) transport: Transport,
    pub(crate) stream: Stream,
    /// Raised when the connection ends.
    pub(crate) ended: Signal,
    /// Raised when the connection receives nothing any more.
    pub(crate) input_ended: Signal,
    pub(crate) output: RefCell<Output>,
    /// Bytes of pool buffers that running READs hold.
    pub(super) reading: Cell<usize>,
    /// READs that wait for bytes of the quota of responses.
    pub(super) readers: TaskQueue,
    /// Bytes that the running send holds.
    pub(crate) sending: Cell<usize>,
    /// Bytes of the running send that are in plain memory.
    pub(crate) sending_in_memory: Cell<usize>,
    /// The responses in plain memory, counted for the user; `None` before the login.
    pub(crate) answers: RefCell<Option<Charge>>,
    /// Raised when response memory is released: after a send, or when a READ ends.
    pub(crate) released: Signal,
    /// The buffers of the connection, which count for its user.
    pub(crate) holder: Holder,
    /// The connection and its user, for the threads that run blocking operations in turn.
    pub(crate) source: Cell<JobSource>,
    /// Time of the last progress of the frame that arrives in a buffer; `None` without one.
    pub(crate) arriving: Cell<Option<Instant>>,
    /// Raised when the arriving frame must give its buffer back.
    pub(crate) give_back: Signal,
    pub(super) logins: RefCell<Logins>,
    /// Quota of the buffers for RDMA.
    pub(super) rdma: Rc<RdmaQuota>,
}

/// The responses of a connection, from the data of a READ to the bytes of a frame.
pub(crate) struct Output {
    pub(crate) framing: Framing,
    /// Frames that wait for the running send to end.
    pub(crate) outbox: Outbox,
    /// Data of READs for responses that are not sent yet.
    pub(crate) payloads: Payloads,
}

/// A started operation: its outcome, or the future that completes it.
///
/// The data path never calls the core. The connection passes an immediate outcome to the core in
/// the same call, and spawns a task for a pending one.
#[expect(
    clippy::large_enum_variant,
    reason = "an outcome is moved once, and a box would cost an allocation for each operation"
)]
pub(crate) enum Started<F> {
    /// The operation has completed.
    Done(Outcome),
    /// The operation waits for the ring, a thread, memory or the client.
    Pending(F),
}

impl Context {
    pub(crate) fn new(
        worker: Rc<WorkerContext>,
        transport: Transport,
        stream: Stream,
        peer: SocketAddr,
    ) -> Rc<Self> {
        let holder = worker.handle.pool().holder();
        Rc::new(Self {
            holder,
            source: Cell::default(),
            arriving: Cell::default(),
            give_back: Signal::default(),
            worker,
            peer,
            transport,
            stream,
            ended: Signal::default(),
            input_ended: Signal::default(),
            output: RefCell::new(Output {
                framing: Framing::new(transport),
                outbox: Outbox::default(),
                payloads: Payloads::default(),
            }),
            reading: Cell::default(),
            readers: TaskQueue::default(),
            sending: Cell::default(),
            sending_in_memory: Cell::default(),
            answers: RefCell::default(),
            released: Signal::default(),
            logins: RefCell::default(),
            rdma: Rc::default(),
        })
    }

    /// Counts buffers, responses and blocking operations of the connection for the user of a login.
    pub(crate) fn charge(&self, account: &Account) {
        let user = self.worker.shared.core.ledger().user(account);
        let mut hasher = DefaultHasher::new();
        (account.kind as u8, user.name()).hash(&mut hasher);
        // Group 0 is for connections without a login.
        let group = hasher.finish() | 1;
        self.holder.set_group(group);
        let source = self.source.get();
        self.source.set(JobSource { group, ..source });
        let mut charge = user.none_of(Resource::ResponseBytes);
        let mut answers = self.answers.borrow_mut();
        charge.set(answers.as_ref().map_or(0, Charge::amount));
        *answers = Some(charge);
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.worker.handle
    }

    /// Takes a buffer of the pool. Waits for its turn while the pool is short.
    ///
    /// # Errors
    /// INSUFFICIENT_RESOURCES after a time limit.
    pub(super) async fn buffer(&self, bytes: usize) -> Result<Buffer, Status> {
        if let Some(buffer) = self.holder.take(bytes) {
            return Ok(buffer);
        }
        self.worker.shortage.raise();
        let limit = match self.output.borrow().payloads.buffer_bytes() {
            0 => BUFFER_TIMEOUT,
            _ => COMPOUND_BUFFER_TIMEOUT,
        };
        let waiting = self
            .handle()
            .timeout(limit, self.holder.take_or_wait(bytes));
        let buffer = self.waited(Wait::Buffer, waiting).await;
        buffer.map_err(|_| Status::INSUFFICIENT_RESOURCES)
    }

    /// Awaits a file operation on the ring or on a thread, and counts its time. The two readings of
    /// the clock are a small part of such an operation.
    pub(super) async fn timed<T>(
        &self,
        operation: StoreOperation,
        running: impl Future<Output = T>,
    ) -> T {
        let start = Instant::now();
        let result = running.await;
        let counters = &self.worker.counters;
        counters.count_store(operation, start.elapsed());
        result
    }

    /// Awaits a future, and counts its time as a wait.
    pub(crate) async fn waited<T>(&self, wait: Wait, waiting: impl Future<Output = T>) -> T {
        let start = Instant::now();
        let result = waiting.await;
        self.worker.counters.count_wait(wait, start.elapsed());
        result
    }

    /// Waits until response memory is released.
    pub(crate) async fn released(&self) {
        self.released.lower();
        self.released.raised().await;
    }
}
