//! What an operation of the data path needs to know about its connection.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;

use net::{Framing, Outbox, Payloads, Stream, Transport};
use proto::effect::Outcome;
use ring::{Handle, Signal};

use super::logins::Logins;
use super::rdma_quota::RdmaQuota;
use crate::worker_context::WorkerContext;

/// One connection, as the operations of the data path see it. Running operations keep it alive.
pub(crate) struct Context {
    pub(crate) worker: Rc<WorkerContext>,
    pub(crate) peer: SocketAddr,
    pub(crate) transport: Transport,
    pub(crate) stream: Stream,
    /// Raised when the connection ends.
    pub(crate) ended: Signal,
    pub(crate) output: RefCell<Output>,
    /// Bytes of pool buffers that running READs hold.
    pub(super) reading: Cell<usize>,
    /// Bytes that the running send holds.
    pub(crate) sending: Cell<usize>,
    /// Raised when response memory is released: after a send, or when a READ ends.
    pub(crate) released: Signal,
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
        Rc::new(Self {
            worker,
            peer,
            transport,
            stream,
            ended: Signal::default(),
            output: RefCell::new(Output {
                framing: Framing::new(transport),
                outbox: Outbox::default(),
                payloads: Payloads::default(),
            }),
            reading: Cell::default(),
            sending: Cell::default(),
            released: Signal::default(),
            logins: RefCell::default(),
            rdma: Rc::default(),
        })
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.worker.handle
    }

    /// Waits until response memory is released.
    pub(crate) async fn released(&self) {
        self.released.lower();
        self.released.raised().await;
    }
}
