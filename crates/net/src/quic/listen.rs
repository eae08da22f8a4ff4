//! The server's side: who knocks, who is let in, and at which worker.
//!
//! Every worker has a socket for each address, and the kernel gives each datagram to the worker
//! whose number is in the connection's identifier. The identifier of a client's first packets is
//! the client's, so that they come to any worker; where another one is to serve the connection, the
//! packet is handed over, and so is every repetition of it. From the answer on the client uses an
//! identifier of the right worker.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use aws_lc_rs::hmac;
use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::{ConnectionId, EndpointConfig, Incoming, ServerConfig};
use ring::{Handle, Udp};

use super::endpoint::{Arrived, Endpoint};
use super::identity::{Identity, first_identifier};
use super::link::Link;
use super::settings::Settings;
use super::stream::Stream;

/// Connections that have been asked for and not been decided about, on one socket. They are decided
/// about in the turn in which they come.
const KNOCKS_MAX: usize = 1024;
/// Connections that were handed over and may see their first packets again.
const MOVED_MAX: usize = 4096;
/// For how long that may be: what a client takes to give a handshake up.
const MOVED_FOR: Duration = Duration::from_secs(30);
/// Repetitions that are handed over for one connection: a client doubles its pauses.
const REPEATS_MAX: u8 = 16;
/// Packets of one that are handed over with it.
const PACKETS_MAX: usize = 4;
/// Bytes of packets that come between a knock and the decision, in all.
const EARLY_BYTES: u64 = 1 << 20;

/// Where the certificates are that serve now.
pub(crate) type Certificates = dyn Fn() -> Arc<rustls::ServerConfig> + Send + Sync;

/// What all workers share.
pub struct Server {
    settings: Settings,
    certificates: Box<Certificates>,
    endpoint: EndpointConfig,
    current: Mutex<Current>,
}

struct Current {
    tls: Arc<rustls::ServerConfig>,
    config: Arc<ServerConfig>,
}

impl Server {
    /// Listens with what `certificates` gives, which is asked for each connection. `reset_key`: a
    /// secret that stays the same when the server is started again, so that the clients of the one
    /// before are believed to be told that it is gone. RFC 9000 10.3
    ///
    /// # Errors
    /// The certificates cannot be used with QUIC, which is TLS 1.3 only.
    pub fn new(
        settings: Settings,
        certificates: Box<Certificates>,
        reset_key: &[u8; 32],
    ) -> io::Result<Arc<Self>> {
        let tls = certificates();
        let mut config = ServerConfig::with_crypto(quic(&tls)?);
        config
            .transport_config(Arc::new(settings.transport(1)))
            .migration(false)
            .max_incoming(KNOCKS_MAX)
            .incoming_buffer_size(EARLY_BYTES / 16)
            .incoming_buffer_size_total(EARLY_BYTES);
        let reset_key = hmac::Key::new(hmac::HMAC_SHA256, reset_key);
        let mut endpoint = EndpointConfig::new(Arc::new(reset_key));
        endpoint
            .max_udp_payload_size(super::connect::DATAGRAM_MAX)
            .expect("within what the protocol allows");
        Ok(Arc::new(Self {
            settings,
            certificates,
            endpoint,
            current: Mutex::new(Current {
                tls,
                config: Arc::new(config),
            }),
        }))
    }

    /// The configuration for a new connection.
    fn config(&self) -> Arc<ServerConfig> {
        let tls = (self.certificates)();
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(&tls, &current.tls) {
            match quic(&tls) {
                Ok(crypto) => {
                    let mut config = (*current.config).clone();
                    config.crypto = crypto;
                    current.config = Arc::new(config);
                }
                Err(error) => tracing::warn!(%error, "the new certificate cannot be used"),
            }
            current.tls = tls;
        }
        Arc::clone(&current.config)
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

fn quic(tls: &Arc<rustls::ServerConfig>) -> io::Result<Arc<QuicServerConfig>> {
    let config = QuicServerConfig::try_from(Arc::clone(tls));
    config.map(Arc::new).map_err(io::Error::other)
}

/// What came to a socket that the server must decide about.
#[derive(Debug)]
pub enum Arrival {
    /// Somebody wants to connect.
    Knock(Knock),
    /// A repetition of what was handed over to that worker.
    Again(usize, Handover),
}

/// First packets on their way to another worker, for [`Listener::take_over`] there.
#[derive(Debug)]
pub struct Handover(Vec<Arrived>);

/// A worker's socket on one address.
#[derive(Clone)]
pub struct Listener {
    endpoint: Rc<Endpoint>,
}

impl Listener {
    /// Serves a socket that is bound. `worker` of `workers`: which one of those on the address.
    ///
    /// # Errors
    /// The socket cannot be used.
    pub fn new(
        handle: &Handle,
        socket: UdpSocket,
        server: &Arc<Server>,
        worker: u16,
        workers: u16,
    ) -> io::Result<Self> {
        let socket = Udp::new(handle, socket, server.settings.socket())?;
        let identity = Identity { worker, workers };
        let mut config = server.endpoint.clone();
        config.cid_generator(move || Box::new(identity));
        let door = Door {
            server: Arc::clone(server),
            arrivals: RefCell::default(),
            moved: RefCell::default(),
        };
        let endpoint = Endpoint::start(handle, socket, Arc::new(config), Some(door));
        Ok(Self { endpoint })
    }

    /// The next that came.
    pub async fn arrival(&self) -> Arrival {
        poll_fn(|context| {
            let mut arrivals = self.door().arrivals.borrow_mut();
            let Some(came) = arrivals.queue.pop_front() else {
                arrivals.waker = Some(context.waker().clone());
                return Poll::Pending;
            };
            drop(arrivals);
            Poll::Ready(match came {
                Came::Knock(incoming, packets) => Arrival::Knock(Knock {
                    listener: self.clone(),
                    peer: incoming.remote_address(),
                    incoming: Some(incoming),
                    packets,
                }),
                Came::Again(worker, arrived) => Arrival::Again(worker, Handover(vec![arrived])),
            })
        })
        .await
    }

    /// Takes in what another worker's socket got.
    #[must_use]
    pub fn take_over(&self, handover: Handover) -> Option<Knock> {
        let Handover(packets) = handover;
        let now = Instant::now();
        let mut knock = None;
        for arrived in packets {
            let peer = arrived.peer;
            if let Some(incoming) = self.endpoint.hand_in(now, arrived) {
                knock = Some(Knock {
                    listener: self.clone(),
                    incoming: Some(Box::new(incoming)),
                    peer,
                    packets: Vec::new(),
                });
            }
        }
        knock
    }

    /// Takes nothing new and ends what is there, so that the peers know.
    pub async fn close(&self) {
        let came = std::mem::take(&mut self.door().arrivals.borrow_mut().queue);
        for came in came {
            if let Came::Knock(incoming, _) = came {
                self.endpoint.proto.borrow_mut().ignore(*incoming);
            }
        }
        self.endpoint.close();
        self.endpoint.ended().await;
    }

    fn door(&self) -> &Door {
        self.endpoint.door.as_ref().expect("a listener has a door")
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener")
            .field("local", &self.endpoint.local_addr())
            .finish_non_exhaustive()
    }
}

/// Somebody who wants to connect. Dropped, it is not answered.
pub struct Knock {
    listener: Listener,
    /// Until it is decided.
    incoming: Option<Box<Incoming>>,
    peer: SocketAddr,
    /// All that has come from it, for another worker.
    packets: Vec<Arrived>,
}

impl Knock {
    /// Who.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Whether it can be asked to show that its address is its own, and has not been.
    #[must_use]
    pub fn may_be_asked(&self) -> bool {
        self.incoming.as_deref().is_some_and(Incoming::may_retry)
    }

    /// Has the client come again with a token that only who has its address gets. RFC 9000 8.1.2
    pub fn ask(mut self) {
        let Some(incoming) = self.incoming.take() else {
            return;
        };
        let endpoint = &self.listener.endpoint;
        let mut bytes = Vec::new();
        let answer = endpoint.proto.borrow_mut().retry(*incoming, &mut bytes);
        match answer {
            Ok(transmit) => endpoint.respond(&bytes, &transmit),
            Err(error) => self.incoming = Some(Box::new(error.into_incoming())),
        }
    }

    /// Says no.
    pub fn refuse(mut self) {
        let Some(incoming) = self.incoming.take() else {
            return;
        };
        let endpoint = &self.listener.endpoint;
        let mut bytes = Vec::new();
        let answer = endpoint.proto.borrow_mut().refuse(*incoming, &mut bytes);
        endpoint.respond(&bytes, &answer);
    }

    /// Has another worker serve it.
    ///
    /// # Errors
    /// The knock, where too many were handed over lately: let it in here.
    pub fn hand_over(mut self, worker: usize) -> Result<Handover, Self> {
        let door = self.listener.door();
        let first = self.packets.first();
        let Some(id) = first.and_then(|first| first_identifier(&first.bytes)) else {
            return Err(self);
        };
        if !door.moved.borrow_mut().note(id, worker, Instant::now()) {
            return Err(self);
        }
        Ok(Handover(std::mem::take(&mut self.packets)))
    }

    /// Lets it in, and waits for the end of the handshake and for the stream. Dropped before that,
    /// the connection is forgotten.
    ///
    /// # Errors
    /// The client breaks the rules, or gives up.
    pub async fn accept(self) -> io::Result<crate::Stream> {
        self.accept_or(|_| ()).await
    }

    /// As [`Knock::accept`], and `told` hears of a failure before the client does not ask any more.
    ///
    /// # Errors
    /// The client breaks the rules, or gives up.
    pub async fn accept_or(mut self, told: impl FnOnce(&io::Error)) -> io::Result<crate::Stream> {
        let incoming = self.incoming.take().ok_or(io::ErrorKind::NotConnected)?;
        let endpoint = &self.listener.endpoint;
        let config = self.listener.door().config();
        let mut bytes = Vec::new();
        let now = Instant::now();
        let accepted = endpoint
            .proto
            .borrow_mut()
            .accept(*incoming, now, &mut bytes, Some(config));
        let (key, connection) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                if let Some(transmit) = error.response {
                    endpoint.respond(&bytes, &transmit);
                }
                let error = error.cause.into();
                told(&error);
                return Err(error);
            }
        };
        let opening = Opening(Some(endpoint.add(key, connection)));
        opening.opened(told).await
    }
}

impl Drop for Knock {
    fn drop(&mut self) {
        if let Some(incoming) = self.incoming.take() {
            self.listener.endpoint.proto.borrow_mut().ignore(*incoming);
        }
    }
}

impl fmt::Debug for Knock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Knock")
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}

/// A connection whose stream is not there yet.
struct Opening(Option<Rc<Link>>);

impl Opening {
    async fn opened(mut self, told: impl FnOnce(&io::Error)) -> io::Result<crate::Stream> {
        if let Some(link) = &self.0
            && let Err(error) = poll_fn(|context| link.poll_opened(context)).await
        {
            told(&error);
            // What the client sent before it knew is answered with the reason still. Forgotten at
            // once it would be answered with a reset, which may come first and says nothing.
            poll_fn(|context| link.poll_drained(context)).await;
            return Err(error);
        }
        let link = self.0.take().ok_or(io::ErrorKind::NotConnected)?;
        Ok(crate::Stream::Quic(Stream::new(link)))
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        if let Some(link) = self.0.take() {
            link.cut();
        }
    }
}

/// What an endpoint needs to listen.
pub(crate) struct Door {
    server: Arc<Server>,
    arrivals: RefCell<Arrivals>,
    moved: RefCell<Moved>,
}

#[derive(Default)]
struct Arrivals {
    /// No more than [`KNOCKS_MAX`], and what is repeated of them.
    queue: VecDeque<Came>,
    waker: Option<Waker>,
}

enum Came {
    Knock(Box<Incoming>, Vec<Arrived>),
    Again(usize, Arrived),
}

impl Arrivals {
    /// Keeps what else has come from who knocks: a ClientHello with large keys takes two packets.
    fn add(&mut self, id: &ConnectionId, copy: Arrived) {
        let known = self.queue.iter_mut().find_map(|came| match came {
            Came::Knock(incoming, packets) if incoming.orig_dst_cid() == id => Some(packets),
            _ => None,
        });
        if let Some(packets) = known.filter(|packets| packets.len() < PACKETS_MAX) {
            packets.push(copy);
        }
    }
}

impl Door {
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        self.server.config()
    }

    /// Whether Samba's clients are told of small WRITEs.
    pub(crate) fn spares_samba(&self) -> bool {
        self.server.settings.spare_samba
    }

    /// Takes a datagram in that came to the socket.
    pub(crate) fn datagram(&self, endpoint: &Endpoint, now: Instant, datagram: Arrived) {
        let Some(id) = first_identifier(&datagram.bytes) else {
            // Not the start of anything.
            let incoming = endpoint.hand_in(now, datagram);
            return incoming.into_iter().for_each(|incoming| {
                endpoint.proto.borrow_mut().ignore(incoming);
            });
        };
        if endpoint.is_closing.get() {
            return;
        }
        let known = self.moved.borrow_mut().repeated(id, now);
        match known {
            Some(Some(worker)) => self.came(Came::Again(worker, datagram)),
            // Repeated too often.
            Some(None) => {}
            None => {
                let copy = datagram.clone();
                match endpoint.hand_in(now, datagram) {
                    Some(incoming) => self.came(Came::Knock(Box::new(incoming), vec![copy])),
                    None => self.arrivals.borrow_mut().add(&id, copy),
                }
            }
        }
    }

    fn came(&self, came: Came) {
        let mut arrivals = self.arrivals.borrow_mut();
        arrivals.queue.push_back(came);
        arrivals.waker.take().into_iter().for_each(Waker::wake);
    }
}

/// Connections that were handed over, by the identifier of their first packets.
#[derive(Default)]
struct Moved {
    workers: HashMap<ConnectionId, (usize, u8)>,
    order: VecDeque<(Instant, ConnectionId)>,
}

impl Moved {
    /// Notes one; `false`: there is no room.
    fn note(&mut self, id: ConnectionId, worker: usize, now: Instant) -> bool {
        self.forget(now);
        if self.workers.len() >= MOVED_MAX {
            return false;
        }
        if self.workers.insert(id, (worker, 0)).is_none() {
            self.order.push_back((now, id));
        }
        true
    }

    /// Where one is that was handed over; `Some(None)`: it does not matter any more.
    fn repeated(&mut self, id: ConnectionId, now: Instant) -> Option<Option<usize>> {
        self.forget(now);
        let (worker, count) = self.workers.get_mut(&id)?;
        *count = count.saturating_add(1);
        Some((*count <= REPEATS_MAX).then_some(*worker))
    }

    fn forget(&mut self, now: Instant) {
        while let Some((since, id)) = self.order.front()
            && now.saturating_duration_since(*since) > MOVED_FOR
        {
            self.workers.remove(id);
            self.order.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_handed_over_is_known_for_a_while() {
        let mut moved = Moved::default();
        let (start, id) = (Instant::now(), ConnectionId::new(&[1; 8]));
        assert_eq!(moved.repeated(id, start), None);
        assert!(moved.note(id, 3, start));
        for _ in 0..REPEATS_MAX {
            assert_eq!(moved.repeated(id, start), Some(Some(3)));
        }
        assert_eq!(moved.repeated(id, start), Some(None));
        assert_eq!(moved.repeated(id, start + 2 * MOVED_FOR), None);
        for number in 0..MOVED_MAX as u64 {
            let id = ConnectionId::new(&number.to_be_bytes());
            assert!(moved.note(id, 0, start));
        }
        assert!(!moved.note(id, 0, start));
        assert!(moved.note(id, 0, start + 2 * MOVED_FOR));
        assert_eq!(moved.order.len(), 1);
    }
}
