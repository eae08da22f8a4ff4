//! QUIC listeners: incoming connections, and the worker that serves each.
//!
//! Every worker has a socket for each address. The kernel passes each datagram to the worker with
//! the number in its connection id. The client chooses the connection id of its first packets, so
//! any worker may receive them. If another worker serves the connection, the packets and their
//! retransmissions are forwarded to it. After the first response, the client uses a connection id
//! of the right worker.

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
use quinn_proto::{ConnectionId, EndpointConfig, ServerConfig};
use ring::{Handle, Udp};

use super::endpoint::{Arrived, Endpoint};
use super::identity::{Identity, first_identifier};
use super::link::Link;
use super::settings::Settings;
use super::stream::Stream;
use crate::Refusal;

/// Most incoming connections of one socket that wait for a decision. The server decides about them
/// in their order.
const INCOMING_MAX: usize = 1024;
/// Most forwarded connections that may still retransmit their first packets.
const FORWARDED_MAX: usize = 4096;
/// Time for which a forwarded connection is known: after it, clients give up their handshake.
const FORWARDED_TIME: Duration = Duration::from_secs(30);
/// Most forwarded retransmissions of one connection. Clients double the time between them.
const RETRANSMISSIONS_MAX: u8 = 16;
/// Most packets of one connection that are forwarded at once.
const PACKETS_MAX: usize = 4;
/// Most bytes of all packets that arrive between the first packet and the decision.
const EARLY_BYTES: u64 = 1 << 20;

/// Returns the current TLS configuration.
pub(crate) type Certificates = dyn Fn() -> Arc<rustls::ServerConfig> + Send + Sync;

/// The configuration of a QUIC server: transport parameters and TLS certificates. All worker
/// threads of the server share it.
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
    /// Makes the configuration with the parameters `settings`. The listeners call `certificates`
    /// for each connection; it returns the TLS configuration. `reset_key` is a secret for stateless
    /// resets. It must stay the same when the server restarts, so that clients accept that their
    /// connection no longer exists. RFC 9000 10.3
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
            .max_incoming(INCOMING_MAX)
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

    /// The configuration for a new connection that receives at most `window` bytes ahead. The
    /// window of its stream is larger, so that the connection can widen its window later.
    fn config_with(&self, window: u32) -> Arc<ServerConfig> {
        let config = self.config();
        if window >= self.settings.receive_window {
            return config;
        }
        let mut transport = self.settings.transport(1);
        transport.receive_window(window.into());
        let mut config = (*config).clone();
        config.transport_config(Arc::new(transport));
        Arc::new(config)
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
                Err(error) => {
                    let code = Refusal::Certificate.code();
                    tracing::warn!(
                        %error,
                        code, "cannot use the new certificate: using the old one"
                    );
                }
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

/// An event of a [`Listener`], which [`Listener::next_event`] returns.
#[derive(Debug)]
pub enum ListenerEvent {
    /// A client wants to connect. This worker accepts, refuses or forwards the attempt.
    Incoming(Incoming),
    /// A client sent a first packet again, which this worker had forwarded. The caller sends the
    /// [`Handover`] to the worker with this index.
    Retransmission(usize, Handover),
}

/// The first packets of a QUIC connection that one worker thread forwards to another one. The
/// receiving worker passes them to [`Listener::take_over`].
#[derive(Debug)]
pub struct Handover(Vec<Arrived>);

/// The QUIC listener of one worker thread on one address. Clones refer to the same listener.
#[derive(Clone)]
pub struct Listener {
    endpoint: Rc<Endpoint>,
}

impl Listener {
    /// Listens on a bound socket, one of `workers` sockets on its address. `worker` is the index of
    /// the calling worker and the number of its socket. It is a part of all connection IDs of this
    /// listener, by which the kernel finds the socket.
    ///
    /// # Errors
    /// The system refuses an option of the socket.
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
        let state = ListenState {
            server: Arc::clone(server),
            queue: RefCell::default(),
            forwarded: RefCell::default(),
        };
        let endpoint = Endpoint::start(handle, socket, Arc::new(config), Some(state));
        Ok(Self { endpoint })
    }

    /// Waits for the next connection attempt of a client, or for a packet that this worker must
    /// pass to another worker. One task at a time may wait. The number of attempts that wait for
    /// this call has a limit; the listener ignores further ones.
    pub async fn next_event(&self) -> ListenerEvent {
        poll_fn(|context| {
            let mut queue = self.state().queue.borrow_mut();
            let Some(event) = queue.events.pop_front() else {
                queue.waker = Some(context.waker().clone());
                return Poll::Pending;
            };
            drop(queue);
            Poll::Ready(match event {
                Queued::Incoming(incoming, packets) => ListenerEvent::Incoming(Incoming {
                    listener: self.clone(),
                    peer: incoming.remote_address(),
                    incoming: Some(incoming),
                    packets,
                }),
                Queued::Retransmission(worker, arrived) => {
                    ListenerEvent::Retransmission(worker, Handover(vec![arrived]))
                }
            })
        })
        .await
    }

    /// Processes packets of a connection attempt that another worker has forwarded to this one.
    /// Returns the connection attempt if the packets start one; `None` if they belong to a known
    /// connection or are not valid.
    #[must_use]
    pub fn take_over(&self, handover: Handover) -> Option<Incoming> {
        let Handover(packets) = handover;
        let now = Instant::now();
        let mut taken = None;
        for arrived in packets {
            let peer = arrived.peer;
            if let Some(incoming) = self.endpoint.receive_datagram(now, arrived) {
                taken = Some(Incoming {
                    listener: self.clone(),
                    incoming: Some(Box::new(incoming)),
                    peer,
                    packets: Vec::new(),
                });
            }
        }
        taken
    }

    /// Accepts no more connections and closes all existing ones. Returns when the closing packets
    /// are sent.
    pub async fn close(&self) {
        let events = std::mem::take(&mut self.state().queue.borrow_mut().events);
        for event in events {
            if let Queued::Incoming(incoming, _) = event {
                self.endpoint.proto.borrow_mut().ignore(*incoming);
            }
        }
        self.endpoint.close();
        self.endpoint.ended().await;
    }

    fn state(&self) -> &ListenState {
        self.endpoint
            .listen
            .as_ref()
            .expect("a listener's endpoint listens")
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener")
            .field("local", &self.endpoint.local_addr())
            .finish_non_exhaustive()
    }
}

/// A connection attempt of a QUIC client, which the server accepts, refuses or forwards. Dropping
/// it ignores the attempt: the client receives no response.
pub struct Incoming {
    listener: Listener,
    /// `None` once the server has decided.
    incoming: Option<Box<quinn_proto::Incoming>>,
    peer: SocketAddr,
    /// All received packets of the attempt, for another worker.
    packets: Vec<Arrived>,
}

impl Incoming {
    /// Returns the address of the client. Before address validation an attacker can forge it.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Returns whether [`request_validation`](Self::request_validation) is possible. False if the
    /// client has already proved its address with the token of an earlier Retry packet.
    #[must_use]
    pub fn may_be_validated(&self) -> bool {
        self.incoming
            .as_deref()
            .is_some_and(quinn_proto::Incoming::may_retry)
    }

    /// Sends a Retry packet. The client must connect again, with a token that only a client at this
    /// address receives. RFC 9000 8.1.2
    pub fn request_validation(mut self) {
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

    /// Refuses the connection: the client receives the QUIC error CONNECTION_REFUSED.
    pub fn refuse(mut self) {
        let Some(incoming) = self.incoming.take() else {
            return;
        };
        let endpoint = &self.listener.endpoint;
        let mut bytes = Vec::new();
        let answer = endpoint.proto.borrow_mut().refuse(*incoming, &mut bytes);
        endpoint.respond(&bytes, &answer);
    }

    /// Forwards the attempt to the worker with the index `worker`. The caller sends the returned
    /// packets to that worker, which passes them to [`Listener::take_over`].
    ///
    /// # Errors
    /// Too many attempts were forwarded recently, or the first packet has no valid connection ID.
    /// The caller gets the attempt back and serves it on this worker.
    pub fn hand_over(mut self, worker: usize) -> Result<Handover, Self> {
        let state = self.listener.state();
        let first = self.packets.first();
        let Some(id) = first.and_then(|first| first_identifier(&first.bytes)) else {
            return Err(self);
        };
        if !state
            .forwarded
            .borrow_mut()
            .insert(id, worker, Instant::now())
        {
            return Err(self);
        }
        Ok(Handover(std::mem::take(&mut self.packets)))
    }

    /// Accepts the connection. Returns when the handshake is complete and the client has opened its
    /// stream. Dropping the future drops the connection.
    ///
    /// # Errors
    /// The client violates the protocol, closes the connection, or times out.
    pub async fn accept(self) -> io::Result<crate::Stream> {
        self.accept_or(u32::MAX, |_| ()).await
    }

    /// Accepts the connection and returns when the handshake is complete and the client has opened
    /// its stream. Until [`Stream::trust`](crate::Stream::trust), the client can send at most
    /// `window` bytes that the server has not read. After a failure this function calls `on_error`
    /// at once, but returns the error only when the client sends no more packets. Dropping the
    /// future drops the connection.
    ///
    /// # Errors
    /// The client violates the protocol, closes the connection, or times out.
    pub async fn accept_or(
        mut self,
        window: u32,
        on_error: impl FnOnce(&io::Error),
    ) -> io::Result<crate::Stream> {
        let incoming = self.incoming.take().ok_or(io::ErrorKind::NotConnected)?;
        let endpoint = &self.listener.endpoint;
        let config = self.listener.state().config(window);
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
                on_error(&error);
                return Err(error);
            }
        };
        let opening = Opening(Some(endpoint.add(key, connection)));
        opening.opened(on_error).await
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if let Some(incoming) = self.incoming.take() {
            self.listener.endpoint.proto.borrow_mut().ignore(*incoming);
        }
    }
}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming")
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}

/// A connection before the client has opened its stream.
struct Opening(Option<Rc<Link>>);

impl Opening {
    async fn opened(mut self, on_error: impl FnOnce(&io::Error)) -> io::Result<crate::Stream> {
        if let Some(link) = &self.0
            && let Err(error) = poll_fn(|context| link.poll_opened(context)).await
        {
            on_error(&error);
            // Packets that the client sent before the close still receive the reason. Without the
            // connection they would receive a stateless reset, which may overtake the reason.
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

/// The state of an endpoint that listens.
pub(crate) struct ListenState {
    server: Arc<Server>,
    queue: RefCell<Queue>,
    forwarded: RefCell<Forwarded>,
}

#[derive(Default)]
struct Queue {
    /// At most [`INCOMING_MAX`] incoming connections, and retransmissions.
    events: VecDeque<Queued>,
    waker: Option<Waker>,
}

/// An event of a listener before the server takes it.
enum Queued {
    Incoming(Box<quinn_proto::Incoming>, Vec<Arrived>),
    Retransmission(usize, Arrived),
}

impl Queue {
    /// Keeps another packet of a queued attempt: a ClientHello with large keys needs two packets.
    fn add(&mut self, id: &ConnectionId, copy: Arrived) {
        let known = self.events.iter_mut().find_map(|event| match event {
            Queued::Incoming(incoming, packets) if incoming.orig_dst_cid() == id => Some(packets),
            _ => None,
        });
        if let Some(packets) = known.filter(|packets| packets.len() < PACKETS_MAX) {
            packets.push(copy);
        }
    }
}

impl ListenState {
    /// The configuration for a new connection that receives at most `window` bytes ahead.
    pub(crate) fn config(&self, window: u32) -> Arc<ServerConfig> {
        self.server.config_with(window)
    }

    /// Bytes that a client can send ahead after its login.
    pub(crate) fn receive_window(&self) -> u32 {
        self.server.settings.receive_window
    }

    /// Returns true if the server limits the WRITEs of some Samba clients.
    pub(crate) fn limits_samba_writes(&self) -> bool {
        self.server.settings.limit_samba_writes
    }

    /// Processes a datagram of the socket.
    pub(crate) fn datagram(&self, endpoint: &Endpoint, now: Instant, datagram: Arrived) {
        let Some(id) = first_identifier(&datagram.bytes) else {
            // The datagram does not start a connection.
            let incoming = endpoint.receive_datagram(now, datagram);
            return incoming.into_iter().for_each(|incoming| {
                endpoint.proto.borrow_mut().ignore(incoming);
            });
        };
        if endpoint.is_closing.get() {
            return;
        }
        let known = self.forwarded.borrow_mut().retransmitted(id, now);
        match known {
            Some(Some(worker)) => self.push(Queued::Retransmission(worker, datagram)),
            // The client has sent too many retransmissions.
            Some(None) => {}
            None => {
                let copy = datagram.clone();
                match endpoint.receive_datagram(now, datagram) {
                    Some(incoming) => self.push(Queued::Incoming(Box::new(incoming), vec![copy])),
                    None => self.queue.borrow_mut().add(&id, copy),
                }
            }
        }
    }

    fn push(&self, event: Queued) {
        let mut queue = self.queue.borrow_mut();
        queue.events.push_back(event);
        queue.waker.take().into_iter().for_each(Waker::wake);
    }
}

/// Forwarded connections, by the connection id of their first packets.
#[derive(Default)]
struct Forwarded {
    workers: HashMap<ConnectionId, (usize, u8)>,
    order: VecDeque<(Instant, ConnectionId)>,
}

impl Forwarded {
    /// Adds a connection. Returns false if the table is full.
    fn insert(&mut self, id: ConnectionId, worker: usize, now: Instant) -> bool {
        self.forget(now);
        if self.workers.len() >= FORWARDED_MAX {
            return false;
        }
        if self.workers.insert(id, (worker, 0)).is_none() {
            self.order.push_back((now, id));
        }
        true
    }

    /// The worker of a forwarded connection; `Some(None)` after too many retransmissions.
    fn retransmitted(&mut self, id: ConnectionId, now: Instant) -> Option<Option<usize>> {
        self.forget(now);
        let (worker, count) = self.workers.get_mut(&id)?;
        *count = count.saturating_add(1);
        Some((*count <= RETRANSMISSIONS_MAX).then_some(*worker))
    }

    fn forget(&mut self, now: Instant) {
        while let Some((since, id)) = self.order.front()
            && now.saturating_duration_since(*since) > FORWARDED_TIME
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
    fn forwarded_connections_are_known_for_a_while() {
        let mut forwarded = Forwarded::default();
        let (start, id) = (Instant::now(), ConnectionId::new(&[1; 8]));
        assert_eq!(forwarded.retransmitted(id, start), None);
        assert!(forwarded.insert(id, 3, start));
        for _ in 0..RETRANSMISSIONS_MAX {
            assert_eq!(forwarded.retransmitted(id, start), Some(Some(3)));
        }
        assert_eq!(forwarded.retransmitted(id, start), Some(None));
        assert_eq!(
            forwarded.retransmitted(id, start + 2 * FORWARDED_TIME),
            None
        );
        for number in 0..FORWARDED_MAX as u64 {
            let id = ConnectionId::new(&number.to_be_bytes());
            assert!(forwarded.insert(id, 0, start));
        }
        assert!(!forwarded.insert(id, 0, start));
        assert!(forwarded.insert(id, 0, start + 2 * FORWARDED_TIME));
        assert_eq!(forwarded.order.len(), 1);
    }
}
