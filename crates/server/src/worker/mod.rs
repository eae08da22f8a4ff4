//! A worker: one thread with its ring, its listeners and its connections.

mod accepting;
mod listen;
mod memory;
mod quic;
mod reclaim;
mod server_driver;
mod smbdirect;
mod tcp;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use net::Transport;
use proto::id::ConnectionId;
use proto::login::AccountsRevision;
use proto::notice::Notice;
use ring::{Handle, Receiver, Signal};
use tracing::{error, warn};

use crate::client_address::ClientAddress;
use crate::codes::{EndedConnection, Reason as _};
use crate::connection::Connection;
use crate::connection_id;
use crate::counters::{RefusedConnection, WorkerLoad};
use crate::gate::Permit;
use crate::listeners::ListenerId;
use crate::message::Message;
use crate::placement::Slot;
use crate::shared::{EVENTS_PER_LOG_LINE, Shared};
use crate::status::ConnectionStatus;
use crate::worker_context::WorkerContext;
use accepting::Accepting;
use server_driver::ServerDriver;

/// Time between two reads of the network interfaces.
const INTERFACES_INTERVAL: Duration = Duration::from_secs(30);

/// Time between two checks for a changed user file.
const USERS_INTERVAL: Duration = Duration::from_secs(1);
/// Number of checks of the user file between two look-ups of the groups of users: five minutes.
const GROUPS_ROUNDS: u32 = 300;

/// One worker, on its own thread.
pub(crate) struct Worker {
    context: Rc<WorkerContext>,
    listeners: RefCell<BTreeMap<ListenerId, Accepting>>,
    connections: RefCell<BTreeMap<ConnectionId, Rc<Connection>>>,
    /// Number of the last connection.
    last_connection: Cell<u64>,
    /// Number of refused connections.
    refused: Cell<u64>,
    /// Number of failed QUIC handshakes.
    handshakes_failed: Cell<u64>,
    /// Raised when a connection ends.
    disconnected: Signal,
}

impl Worker {
    pub(crate) fn new(handle: Handle, index: usize, shared: Arc<Shared>) -> Rc<Self> {
        Rc::new(Self {
            context: WorkerContext::new(handle, index, shared),
            listeners: RefCell::default(),
            connections: RefCell::default(),
            last_connection: Cell::new(0),
            refused: Cell::new(0),
            handshakes_failed: Cell::new(0),
            disconnected: Signal::default(),
        })
    }

    /// Serves until the server stops.
    pub(crate) async fn run(self: Rc<Self>, mut mailbox: Receiver<Message>) {
        let tasks = self.start_tasks();
        let server_driver = ServerDriver::new(Rc::clone(&self.context));
        while let Some(message) = mailbox.recv().await {
            match message {
                Message::Notice(connection, notice) => self.deliver(connection, notice),
                Message::Accepted(accepted) => self.serve_tcp(accepted),
                Message::QuicClient(client) => self.accept_forwarded_quic(*client),
                Message::QuicRetransmission { listener, handover } => {
                    self.drop_retransmission(listener, handover);
                }
                Message::SmbDirectClient(client) => self.serve_smb_direct(client),
                Message::Listen(request) => self.listen(*request),
                Message::AcceptClients { listener, accepts } => {
                    self.accept_clients(listener, accepts);
                }
                Message::CloseListener(listener) => self.close_listener(listener),
                Message::Reconfigured => self.context.refresh_live(),
                Message::Describe(reply) => {
                    // The requester may have given up.
                    let _ = reply.send(self.describe());
                }
                Message::Measure(reply) => {
                    let _ = reply.send(self.measure(mailbox.len()));
                }
                Message::ArmServerTimer => server_driver.arm(),
                Message::Stop => break,
            }
        }
        tasks.iter().for_each(ring::JoinHandle::abort);
        self.stop_accepting();
        self.context.stopping.raise();
        let grace = self.context.shutdown_grace();
        let all_ended = self.handle().timeout(grace, self.all_disconnected());
        if all_ended.await.is_err() {
            let left = self.connections.borrow().len();
            warn!(
                left,
                "stopping while connections are still open: they did not end in time"
            );
        }
        self.close_quic_listeners().await;
    }

    /// Starts the tasks that run until the server stops.
    fn start_tasks(self: &Rc<Self>) -> Vec<ring::JoinHandle<()>> {
        let mut tasks = Vec::new();
        let reclaiming = Rc::clone(self).reclaim_memory();
        tasks.push(self.handle().spawn(reclaiming));
        if self.context.index == 0 {
            let refreshing = Rc::clone(self).refresh_interfaces();
            tasks.push(self.handle().spawn(refreshing));
            let watching = Rc::clone(self).watch_memory();
            tasks.push(self.handle().spawn(watching));
            let watching = Rc::clone(self).watch_accounts();
            tasks.push(self.handle().spawn(watching));
        }
        tasks
    }

    fn handle(&self) -> &Handle {
        &self.context.handle
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.context.shared
    }

    fn describe(&self) -> Vec<(ConnectionId, ConnectionStatus)> {
        let connections = self.connections.borrow();
        let each = connections.iter();
        each.map(|(id, connection)| (*id, connection.describe(*id)))
            .collect()
    }

    /// The load of the worker. `messages` is the number of waiting messages.
    fn measure(&self, messages: usize) -> WorkerLoad {
        let pool = self.handle().pool();
        let mut load = WorkerLoad {
            jobs: self.handle().blocking_jobs() as u64,
            messages: messages as u64,
            buffers: pool.buffers_out() as u64,
            pool_bytes: pool.used_bytes() as u64,
            ..WorkerLoad::default()
        };
        for connection in self.connections.borrow().values() {
            connection.add_load(&mut load);
        }
        load
    }

    async fn all_disconnected(&self) {
        while !self.connections.borrow().is_empty() {
            self.disconnected.lower();
            self.disconnected.raised().await;
        }
    }

    /// Reads the network interfaces again and again.
    async fn refresh_interfaces(self: Rc<Self>) {
        loop {
            self.handle().sleep(INTERFACES_INTERVAL).await;
            let shared = Arc::clone(self.shared());
            let refreshing = self.handle().blocking(move || shared.refresh_interfaces());
            refreshing.await;
            // A full mailbox may have lost an earlier message.
            self.shared().arm_server_timer();
        }
    }

    /// Reads the user file each time it has changed, and looks up the groups of users then and
    /// every five minutes. The sessions of changed accounts end also if no client logs in. Writes
    /// the last uses of app passwords. Releases the directories and addresses of a former
    /// configuration that are not in use any more.
    async fn watch_accounts(self: Rc<Self>) {
        let shared = self.shared();
        let mut known = AccountsRevision::default();
        for round in (1..=GROUPS_ROUNDS).cycle() {
            self.handle().sleep(USERS_INTERVAL).await;
            let work = Arc::clone(shared);
            let check = move || {
                let (accounts, revision) = work.current_accounts();
                if round == GROUPS_ROUNDS || revision != known {
                    work.refresh_groups();
                }
                work.last_use.write_if_due(&accounts.users, false);
                work.release_former();
                revision
            };
            // If too many logins wait, the next round does it.
            if let Some(revision) = shared.login_threads.run(check).await {
                known = revision;
            }
        }
    }

    /// Serves a connection after the handshake of its transport. `uses` counts the connection for
    /// its listener.
    fn serve(
        self: &Rc<Self>,
        transport: Transport,
        stream: net::Stream,
        peer: SocketAddr,
        (permit, slot): (Permit, Slot),
        uses: Option<Arc<()>>,
    ) {
        self.last_connection.set(self.last_connection.get() + 1);
        self.context.counters.count_accepted(transport);
        let id = connection_id::new(self.context.index, self.last_connection.get());
        let context = Rc::clone(&self.context);
        let connection = Connection::new(id, context, transport, stream, peer, permit);
        self.connections
            .borrow_mut()
            .insert(id, Rc::clone(&connection));
        let worker = Rc::clone(self);
        let serving = self.handle().spawn(Rc::clone(&connection).serve());
        self.handle().spawn(async move {
            // If a bug panics, only the connection of this task ends.
            if serving.await.is_err() {
                let code = EndedConnection::ServerBug.code();
                error!(%peer, code, "disconnecting: a bug in the server (see the panic message)");
                let closing = worker.handle().spawn(Rc::clone(&connection).abandon());
                if closing.await.is_err() {
                    error!(%peer, "cannot close the opens of the connection: they stay open");
                }
            }
            worker.connections.borrow_mut().remove(&id);
            worker.disconnected.raise();
            drop((slot, uses));
        });
    }

    /// Counts a refused connection. Only some have a log line.
    fn log_refused(&self, address: ClientAddress, limit: &'static str) {
        let reason = RefusedConnection::of_key(limit);
        self.context.counters.count_refused_connection(reason);
        let refused = self.refused.get();
        self.refused.set(refused + 1);
        if refused.is_multiple_of(EVENTS_PER_LOG_LINE) {
            let (code, refused) = (reason.code(), refused + 1);
            match reason {
                RefusedConnection::Hosts => {
                    let key = limit;
                    warn!(%address, key, refused, code, "connections refused: address not allowed");
                }
                _ => warn!(%address, limit, refused, code, "connections refused: limit reached"),
            }
        }
    }

    fn deliver(&self, connection: ConnectionId, notice: Notice) {
        let connection = self.connections.borrow().get(&connection).cloned();
        // A closed connection needs no notices.
        if let Some(connection) = connection {
            connection.guarded(|| connection.notice(notice));
        }
    }
}
