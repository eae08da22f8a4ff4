//! A worker: one thread, one ring, its listeners and its connections.

mod server_driver;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use net::TcpOptions;
use net::quic;
use net::{Endpoint, Transport};
use proto::carrier::Carrier;
use proto::id::ConnectionId;
use proto::notice::Notice;
use proto::server;
use proto::time;
use proto::time::Now;
use proto::token::Token;
use rdma::Provider;
use ring::{Handle, Listener, NoView, Personality, Receiver, SendError, Sender, Signal};
use ring::{View, Views};
use tracing::{debug, error, warn};
use wire::Status;

use crate::accounts::Realms;
use crate::connection::Connection;
use crate::gate::{Gate, Permit};
use crate::interfaces::{self, Entry};
use crate::personalities::Personalities;
use crate::placement::{Placement, Seat};
use crate::quic::Handed;
use crate::share::Shares;
use crate::smbdirect::{Direct, Knock};
use crate::status::ConnectionStatus;
use crate::store::Store;
use server_driver::ServerDriver;

/// Bits of a [`ConnectionId`] that number the connections of one worker; the rest is the worker.
const CONNECTION_BITS: u32 = 48;
/// Refused connections between two lines of the log that say so.
pub(crate) const REFUSALS_PER_LINE: u64 = 100;
/// How often the network interfaces are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// Windows into files of one worker: 4 GiB of addresses, for which the kernel has tables of 8 MiB.
const WINDOWS_MAX: usize = 64;
/// How often a worker looks whether files are mapped that nobody reads any more.
const FORGET_EVERY: Duration = Duration::from_secs(1);

/// What all workers share.
pub(crate) struct Shared {
    pub(crate) core: Arc<server::Server>,
    pub(crate) shares: Shares,
    pub(crate) realms: Realms,
    pub(crate) gate: Arc<Gate>,
    pub(crate) times: Times,
    /// Bytes of buffers that the answers of one connection may take.
    pub(crate) answer_bytes: usize,
    /// How SMB Direct is spoken.
    pub(crate) smb_direct: net::smbdirect::Settings,
    pub(crate) placement: Arc<Placement>,
    /// What the kernel is told of each connection of TCP.
    pub(crate) tcp: TcpOptions,
    pub(crate) reach: Reach,
    /// The clock of the core starts here.
    pub(crate) started: Instant,
    /// A way to each worker, once all are there.
    pub(crate) mailboxes: OnceLock<Vec<Sender<Message>>>,
    /// Messages that a full mailbox did not take.
    pub(crate) untold: AtomicU64,
    /// Records of the core that survive a crash.
    pub(crate) store: Box<dyn Store>,
}

/// Where clients are told that they can reach the server.
#[derive(Debug)]
pub(crate) struct Reach {
    pub(crate) entries: Vec<Entry>,
    pub(crate) listen: Vec<IpAddr>,
    /// Where SMB Direct is listened for, if it is.
    pub(crate) rdma: OnceLock<Devices>,
}

/// Devices of RDMA, and where they listen.
#[derive(Debug)]
pub(crate) struct Devices {
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) listen: Vec<IpAddr>,
}

impl Devices {
    /// The addresses of devices that listen: some may be left out, for TCP to have their port.
    fn addresses(&self) -> std::io::Result<Vec<IpAddr>> {
        let all = self.provider.addresses()?.into_iter().map(|(ip, _)| ip);
        Ok(interfaces::heard(all, &self.listen))
    }
}

impl Shared {
    /// Looks which interfaces there are now, for clients that ask. It may take a while: devices are
    /// asked.
    pub(crate) fn look_at_interfaces(&self) {
        let Reach {
            entries,
            listen,
            rdma,
        } = &self.reach;
        let rdma = rdma.get().map_or(Ok(Vec::new()), Devices::addresses);
        let rdma = rdma.unwrap_or_else(|error| {
            warn!(%error, "the devices of RDMA are not known");
            Vec::new()
        });
        match interfaces::list(entries, listen, &rdma) {
            Ok(interfaces) => self.core.set_interfaces(&interfaces),
            Err(error) => warn!(%error, "the network interfaces are not known"),
        }
    }

    /// Has file systems tell what others do to shares. They hold nothing of the server.
    pub(crate) fn hear(self: &Arc<Self>) {
        let shared = Arc::downgrade(self);
        self.shares.listen(move |share, events| {
            if let Some(shared) = shared.upgrade() {
                let mail = shared.core.local_events(share, events);
                mail.into_iter()
                    .for_each(|(to, notice)| shared.notify(to, notice));
            }
        });
    }

    pub(crate) fn mailboxes(&self) -> &[Sender<Message>] {
        let mailboxes = self.mailboxes.get();
        mailboxes.expect("set before the first connection")
    }

    /// Tells a connection of any worker.
    fn notify(&self, connection: ConnectionId, notice: Notice) {
        let worker = (connection.0 >> CONNECTION_BITS) as usize;
        // Through the mailbox even to the caller's worker: a connection is never entered from
        // another's.
        self.tell(worker, Message::Notice(connection, notice));
    }

    /// Notifies the driver of the server that its next timeout may be earlier than before.
    pub(crate) fn arm_server_timer(&self) {
        self.tell(0, Message::ArmServerTimer);
    }

    /// Hands a worker a notice, or a client, who does without it if the worker is far behind.
    pub(crate) fn tell(&self, worker: usize, message: Message) {
        match self.mailboxes()[worker].send(message) {
            Ok(()) => {}
            Err(SendError::Full(_)) => {
                let lost = self.untold.fetch_add(1, Ordering::Relaxed);
                if lost.is_multiple_of(REFUSALS_PER_LINE) {
                    let lost = lost + 1;
                    warn!(
                        worker,
                        lost, "the worker is far behind: clients or notices are lost"
                    );
                }
            }
            Err(SendError::Closed(_)) => debug!(worker, "a message came after the worker's end"),
        }
    }
}

/// The worker of a connection, and its number there.
pub(crate) fn parts_of(id: ConnectionId) -> (u64, u64) {
    (id.0 >> CONNECTION_BITS, id.0 & ((1 << CONNECTION_BITS) - 1))
}

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) failed_login_delay: Duration,
    pub(crate) frame_timeout: Duration,
    pub(crate) shutdown_grace: Duration,
}

/// What a worker is told from outside.
#[derive(Debug)]
pub(crate) enum Message {
    /// One of its connections is told something.
    Notice(ConnectionId, Notice),
    /// Another worker has accepted a connection for this one.
    Accepted(Arrival),
    /// Another worker's socket got the first packet of a client of QUIC for this one: at which of
    /// its doors.
    Handed(usize, Box<Handed>),
    /// And a repetition of such a packet.
    Again(usize, quic::Handover),
    /// Somebody wants to know of its connections.
    Describe(mpsc::Sender<Vec<(ConnectionId, ConnectionStatus)>>),
    /// The first worker has a client of SMB Direct for this one.
    Knocked(Knock),
    /// The next timeout of the core's server may be earlier than before. Only for worker 0.
    ArmServerTimer,
    /// Take nothing new, finish what runs, and end.
    Stop,
}

/// A connection on its way to its worker.
#[derive(Debug)]
pub(crate) struct Arrival {
    transport: Transport,
    socket: TcpStream,
    peer: SocketAddr,
    permit: Permit,
    seat: Seat,
}

/// One worker, on its own thread.
pub(crate) struct Worker {
    pub(crate) handle: Handle,
    pub(crate) index: usize,
    pub(crate) shared: Arc<Shared>,
    /// Its sockets of QUIC, in the order of the addresses.
    doors: RefCell<Vec<quic::Listener>>,
    connections: RefCell<BTreeMap<ConnectionId, Rc<Connection>>>,
    last_connection: Cell<u64>,
    refused: Cell<u64>,
    /// Clients of QUIC that did not get as far as to be served.
    pub(crate) handshakes_failed: Cell<u64>,
    personalities: RefCell<Personalities>,
    /// Files that are sent from the memory where the kernel has them.
    views: RefCell<Views>,
    is_forgetting_views: Cell<bool>,
    /// The server stops.
    pub(crate) stopping: Signal,
    /// A connection ended.
    left: Signal,
}

impl Worker {
    pub(crate) fn new(handle: Handle, index: usize, shared: Arc<Shared>) -> Rc<Self> {
        Rc::new(Self {
            handle,
            index,
            shared,
            doors: RefCell::default(),
            connections: RefCell::default(),
            last_connection: Cell::new(0),
            refused: Cell::new(0),
            handshakes_failed: Cell::new(0),
            personalities: RefCell::default(),
            views: RefCell::new(Views::new(WINDOWS_MAX)),
            is_forgetting_views: Cell::default(),
            stopping: Signal::default(),
            left: Signal::default(),
        })
    }

    /// Serves until the server stops.
    pub(crate) async fn run(
        self: Rc<Self>,
        listeners: Vec<(Endpoint, Listener)>,
        doors: Vec<quic::Listener>,
        direct: Direct,
        mut mailbox: Receiver<Message>,
    ) {
        let mut accepting: Vec<_> = listeners
            .into_iter()
            .map(|(endpoint, listener)| {
                self.handle
                    .spawn(Rc::clone(&self).accept(endpoint.transport, listener))
            })
            .collect();
        for (number, door) in doors.iter().enumerate() {
            let answering = Rc::clone(&self).answer(number, door.clone());
            accepting.push(self.handle.spawn(answering));
        }
        *self.doors.borrow_mut() = doors;
        if let Some(provider) = direct.provider {
            for listener in direct.listeners {
                let knocking = Rc::clone(&self).accept_direct(listener, Arc::clone(&provider));
                accepting.push(self.handle.spawn(knocking));
            }
        }
        if self.index == 0 {
            let looking = Rc::clone(&self).keep_looking_at_interfaces();
            accepting.push(self.handle.spawn(looking));
        }
        let server_driver = ServerDriver::new(Rc::clone(&self));
        while let Some(message) = mailbox.recv().await {
            match message {
                Message::Notice(connection, notice) => self.deliver(connection, notice),
                Message::Accepted(arrival) => self.admit(arrival),
                Message::Handed(door, handed) => self.handed(door, *handed),
                Message::Knocked(knock) => self.let_in_direct(knock),
                Message::Again(door, handover) => self.again(door, handover),
                Message::Describe(answer) => {
                    // Who asked may have given up.
                    let _ = answer.send(self.describe());
                }
                Message::ArmServerTimer => server_driver.arm(),
                Message::Stop => break,
            }
        }
        accepting.iter().for_each(ring::JoinHandle::abort);
        self.stopping.raise();
        let grace = self.shutdown_grace();
        if self.handle.timeout(grace, self.emptied()).await.is_err() {
            let left = self.connections.borrow().len();
            warn!(left, "connections did not end in time");
        }
        self.close_doors().await;
    }

    fn describe(&self) -> Vec<(ConnectionId, ConnectionStatus)> {
        let connections = self.connections.borrow();
        let each = connections.iter();
        each.map(|(id, connection)| (*id, connection.describe(*id)))
            .collect()
    }

    async fn emptied(&self) {
        while !self.connections.borrow().is_empty() {
            self.left.lower();
            self.left.raised().await;
        }
    }

    /// A range of a file, if the kernel has it in memory. That it says to those who might write
    /// the file: to this process, if not to whom it acts for.
    pub(crate) fn view(
        self: &Rc<Self>,
        file: BorrowedFd<'_>,
        offset: u64,
        bytes: usize,
    ) -> Option<View> {
        if !self.is_forgetting_views.replace(true) {
            self.handle.spawn(Rc::clone(self).forget_views());
        }
        let mut views = self.views.borrow_mut();
        let mut found = views.find(file, offset, bytes);
        if matches!(found, Err(NoView::Hidden)) && vfs::identity::own().is_ok() {
            found = views.find(file, offset, bytes);
        }
        found.ok()
    }

    /// Lets go of files that nobody reads any more.
    async fn forget_views(self: Rc<Self>) {
        loop {
            self.handle.sleep(FORGET_EVERY).await;
            if !self.views.borrow_mut().forget_unused() {
                self.is_forgetting_views.set(false);
                return;
            }
        }
    }

    async fn keep_looking_at_interfaces(self: Rc<Self>) {
        loop {
            self.handle.sleep(LOOK_EVERY).await;
            let shared = Arc::clone(&self.shared);
            let looking = self.handle.blocking(move || shared.look_at_interfaces());
            looking.await;
            // A full mailbox may have lost an earlier message.
            self.shared.arm_server_timer();
        }
    }

    async fn accept(self: Rc<Self>, transport: Transport, listener: Listener) {
        loop {
            match listener.accept_socket().await {
                Ok(socket) => self.place(transport, socket),
                Err(error) => warn!(%error, %transport, "accepting failed"),
            }
        }
    }

    /// Lets a connection in and finds the worker that serves it.
    fn place(self: &Rc<Self>, transport: Transport, socket: TcpStream) {
        // A peer that is gone again has no address.
        let Ok(peer) = socket.peer_addr() else { return };
        let address = peer.ip().to_canonical();
        let permit = match self.shared.gate.enter(address) {
            Ok(permit) => permit,
            Err(limit) => return self.refuse(peer.ip(), limit),
        };
        let near = self.shared.placement.near(&socket);
        let seat = self.shared.placement.take(address, self.index, near);
        let worker = seat.worker;
        let arrival = Arrival {
            transport,
            socket,
            peer,
            permit,
            seat,
        };
        if worker == self.index {
            self.admit(arrival);
        } else {
            self.shared.tell(worker, Message::Accepted(arrival));
        }
    }

    fn admit(self: &Rc<Self>, arrival: Arrival) {
        let Arrival {
            transport,
            socket,
            peer,
            permit,
            seat,
        } = arrival;
        // A peer that has already gone makes this fail; its end shows with the first receive.
        if let Err(error) = self.shared.tcp.apply(&socket) {
            debug!(%error, %peer, "the options of TCP are not taken");
        }
        let stream = match ring::Stream::new(&self.handle, socket) {
            Ok(stream) => net::Stream::from(stream),
            Err(error) => return warn!(%error, %peer, "a connection cannot be served"),
        };
        self.serve(transport, stream, peer, permit, seat);
    }

    /// Serves a connection that is ready for frames.
    pub(crate) fn serve(
        self: &Rc<Self>,
        transport: Transport,
        stream: net::Stream,
        peer: SocketAddr,
        permit: Permit,
        seat: Seat,
    ) {
        self.last_connection.set(self.last_connection.get() + 1);
        let id = ((self.index as u64) << CONNECTION_BITS) | self.last_connection.get();
        let id = ConnectionId(id);
        let connection = Connection::new(id, Rc::clone(self), transport, stream, peer, permit);
        self.connections
            .borrow_mut()
            .insert(id, Rc::clone(&connection));
        let worker = Rc::clone(self);
        let serving = self.handle.spawn(Rc::clone(&connection).serve());
        self.handle.spawn(async move {
            // A bug that panics ends the connection that met it, and no other.
            if serving.await.is_err() {
                error!(%peer, "serving the connection failed");
                let closing = worker.handle.spawn(connection.abandon());
                if closing.await.is_err() {
                    error!(%peer, "what the connection had open stays open");
                }
            }
            worker.connections.borrow_mut().remove(&id);
            worker.left.raise();
            drop(seat);
        });
    }

    pub(crate) fn refuse(&self, address: IpAddr, limit: &'static str) {
        let refused = self.refused.get();
        self.refused.set(refused + 1);
        if refused.is_multiple_of(REFUSALS_PER_LINE) {
            warn!(%address, limit, refused = refused + 1, "connections refused");
        }
    }

    /// The core of a new connection.
    pub(crate) fn new_core(&self, id: ConnectionId, carrier: Carrier) -> server::Connection {
        let mut entropy = [0; 32];
        getrandom::fill(&mut entropy).expect("the kernel has random bytes");
        let server = Arc::clone(&self.shared.core);
        server::Connection::new(server, id, carrier, entropy, self.now())
    }

    /// The time, as the core has it.
    pub(crate) fn now(&self) -> Now {
        let wall = SystemTime::now();
        let since = wall
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
        Now {
            instant: time::Instant(self.shared.started.elapsed()),
            wall: wire::FileTime::from_unix(seconds, since.subsec_nanos()),
        }
    }

    pub(crate) fn shares(&self) -> &Shares {
        &self.shared.shares
    }

    pub(crate) fn realms(&self) -> &Realms {
        &self.shared.realms
    }

    pub(crate) fn failed_login_delay(&self) -> Duration {
        self.shared.times.failed_login_delay
    }

    pub(crate) fn smb_direct(&self) -> &net::smbdirect::Settings {
        &self.shared.smb_direct
    }

    pub(crate) fn frame_timeout(&self) -> Duration {
        self.shared.times.frame_timeout
    }

    /// Bytes of buffers that the answers of one connection may take.
    pub(crate) fn answer_bytes(&self) -> usize {
        self.shared.answer_bytes
    }

    pub(crate) fn shutdown_grace(&self) -> Duration {
        self.shared.times.shutdown_grace
    }

    /// Tells a connection of any worker.
    pub(crate) fn notify(&self, connection: ConnectionId, notice: Notice) {
        self.shared.notify(connection, notice);
    }

    pub(crate) fn gate(&self) -> &Arc<Gate> {
        &self.shared.gate
    }

    pub(crate) fn placement(&self) -> &Arc<Placement> {
        &self.shared.placement
    }

    pub(crate) fn door(&self, number: usize) -> Option<quic::Listener> {
        self.doors.borrow().get(number).cloned()
    }

    pub(crate) fn doors(&self) -> Vec<quic::Listener> {
        self.doors.borrow().clone()
    }

    fn deliver(&self, connection: ConnectionId, notice: Notice) {
        let connection = self.connections.borrow().get(&connection).cloned();
        // One that is gone has nothing to be told any more.
        if let Some(connection) = connection {
            connection.guarded(|| connection.notice(notice));
        }
    }

    /// The credentials under which the ring writes for a token; `None` where writes have to go
    /// to a thread.
    pub(crate) fn personality(&self, token: &Arc<Token>) -> Result<Option<Personality>, Status> {
        let register = || {
            vfs::identity::assume(token)?;
            Ok(self.handle.register_personality().ok())
        };
        self.personalities.borrow_mut().of(token, register)
    }
}
