//! One UDP socket with its QUIC connections, and the task that drives them.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use quinn_proto::{ConnectionHandle, DatagramEvent, EcnCodepoint, EndpointConfig, Transmit};
use ring::{Datagrams, Handle, Outgoing, Sleep, Udp};

use super::identity::is_handshake;
use super::link::Link;
use super::listen::ListenState;

/// Batches of datagrams that are received before connections send and readers run. With 64 KiB per
/// batch, readers copy from the cache of the processor.
const BATCHES_PER_TURN: usize = 8;
/// Pause after an error of the socket, for example out of memory.
const PAUSE: Duration = Duration::from_millis(100);

/// A UDP socket and its connections, all on one thread.
pub(crate) struct Endpoint {
    pub(crate) handle: Handle,
    pub(crate) socket: Udp,
    pub(crate) proto: RefCell<quinn_proto::Endpoint>,
    links: RefCell<HashMap<ConnectionHandle, Rc<Link>>>,
    /// Connections that must be driven: they may have packets to send, or events.
    ready: RefCell<VecDeque<Rc<Link>>>,
    /// Time at which each connection must be driven at the latest.
    deadlines: RefCell<BTreeSet<(Instant, ConnectionHandle)>>,
    /// A batch that waits because the send buffer of the socket is full. Later packets wait for it.
    blocked: RefCell<Option<Blocked>>,
    /// Buffer for packets before they are sent.
    packets: RefCell<Vec<u8>>,
    driver: RefCell<Option<Waker>>,
    /// Nothing is received before it is over.
    pause: RefCell<Option<Sleep>>,
    /// Tasks that wait until all connections have ended.
    ending: RefCell<Vec<Waker>>,
    /// `None` for a client.
    pub(crate) listen: Option<ListenState>,
    pub(crate) is_closing: Cell<bool>,
}

type Blocked = Pin<Box<dyn Future<Output = Vec<u8>>>>;

impl Endpoint {
    /// Makes an endpoint, and starts the task that drives it.
    pub(crate) fn start(
        handle: &Handle,
        socket: Udp,
        config: Arc<EndpointConfig>,
        listen: Option<ListenState>,
    ) -> Rc<Self> {
        let server = listen.as_ref().map(|listen| listen.config(u32::MAX));
        let proto = quinn_proto::Endpoint::new(config, server, true, None);
        let endpoint = Rc::new(Self {
            handle: handle.clone(),
            socket,
            proto: RefCell::new(proto),
            links: RefCell::default(),
            ready: RefCell::default(),
            deadlines: RefCell::default(),
            blocked: RefCell::default(),
            packets: RefCell::default(),
            driver: RefCell::default(),
            pause: RefCell::default(),
            ending: RefCell::default(),
            listen,
            is_closing: Cell::new(false),
        });
        handle.spawn(Rc::clone(&endpoint).drive());
        endpoint
    }

    /// Adds a connection, and sends its first packets.
    pub(crate) fn add(
        self: &Rc<Self>,
        key: ConnectionHandle,
        connection: quinn_proto::Connection,
    ) -> Rc<Link> {
        let link = Rc::new(Link::new(self, key, connection));
        self.links.borrow_mut().insert(key, Rc::clone(&link));
        link.drive(Instant::now());
        link
    }

    /// Removes an ended connection.
    pub(crate) fn remove(&self, key: ConnectionHandle, armed: Option<Instant>) {
        if let Some(armed) = armed {
            self.deadlines.borrow_mut().remove(&(armed, key));
        }
        let link = self.links.borrow_mut().remove(&key);
        drop(link);
        if self.links.borrow().is_empty() {
            self.wake();
        }
        self.wake_ending();
    }

    /// Wakes the tasks in [`ended`](Self::ended) after a connection was closed.
    pub(crate) fn wake_ending(&self) {
        let waiting = std::mem::take(&mut *self.ending.borrow_mut());
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Closes all connections and accepts no new ones. The task ends after the last one.
    pub(crate) fn close(&self) {
        self.is_closing.set(true);
        let links: Vec<_> = self.links.borrow().values().cloned().collect();
        links.iter().for_each(Link::finish);
        self.wake();
    }

    /// Waits until all connections have sent their closing packets.
    pub(crate) async fn ended(&self) {
        poll_fn(|context| {
            self.ending.borrow_mut().push(context.waker().clone());
            match self.links.borrow().values().all(|link| link.is_closed()) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }

    /// Schedules a connection to be driven by the task.
    pub(crate) fn schedule(&self, link: &Rc<Link>) {
        if !link.is_scheduled.replace(true) {
            self.ready.borrow_mut().push_back(Rc::clone(link));
            self.wake();
        }
    }

    /// Schedules a connection to be driven at `wanted` at the latest. `armed` is the scheduled time
    /// so far. Returns the new one.
    pub(crate) fn arm(
        &self,
        key: ConnectionHandle,
        armed: Option<Instant>,
        wanted: Instant,
    ) -> Instant {
        if let Some(armed) = armed {
            if armed <= wanted {
                return armed;
            }
            self.deadlines.borrow_mut().remove(&(armed, key));
        }
        let mut deadlines = self.deadlines.borrow_mut();
        let is_first = deadlines.first().is_none_or(|first| wanted < first.0);
        deadlines.insert((wanted, key));
        drop(deadlines);
        if is_first {
            self.wake();
        }
        wanted
    }

    fn wake(&self) {
        let waker = self.driver.borrow_mut().take();
        waker.into_iter().for_each(Waker::wake);
    }

    /// Returns true if the socket accepts packets.
    pub(crate) fn can_send(&self) -> bool {
        self.blocked.borrow().is_none()
    }

    /// Sends the packets that `write` writes into the buffer; `None` if there are none.
    pub(crate) fn transmit(
        &self,
        write: impl FnOnce(&mut Vec<u8>) -> Option<Transmit>,
    ) -> Option<()> {
        let mut packets = self.packets.borrow_mut();
        packets.clear();
        let transmit = write(&mut packets)?;
        let outgoing = Outgoing {
            segment: transmit.segment_size,
            peer: transmit.destination,
            local: transmit.src_ip,
            ecn: transmit.ecn.map_or(0, |ecn| ecn as u8),
        };
        packets.truncate(transmit.size);
        if self.socket.try_send(&packets, &outgoing).is_err() {
            let socket = self.socket.clone();
            let bytes = std::mem::take(&mut *packets);
            let sending = async move { socket.send(bytes, outgoing).await };
            *self.blocked.borrow_mut() = Some(Box::pin(sending));
            self.wake();
        }
        Some(())
    }

    /// Drives the socket until it is closed and the last connection has ended.
    async fn drive(self: Rc<Self>) {
        let _cut = CutOnDrop(&self);
        let mut sleep = None;
        let result = poll_fn(|context| self.poll_drive(&mut sleep, context)).await;
        if let Err(error) = result {
            tracing::warn!(
                %error,
                local = %self.socket.local_addr(),
                "the QUIC socket has failed: its connections are lost"
            );
            self.fail(&error);
        }
    }

    fn poll_drive(
        &self,
        sleep: &mut Option<(Instant, Sleep)>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        // Connections that are scheduled from here on are driven below: they need not wake this
        // task.
        self.driver.borrow_mut().take();
        self.poll_blocked(context);
        let is_more = match self.receive(context) {
            Ok(is_more) => is_more,
            Err(error) => return Poll::Ready(Err(error)),
        };
        let now = Instant::now();
        self.expire(now);
        self.drive_ready(now);
        self.poll_blocked(context);
        if self.is_closing.get() && self.links.borrow().is_empty() && self.can_send() {
            return Poll::Ready(Ok(()));
        }
        let is_left = self.can_send() && !self.ready.borrow().is_empty();
        if is_more || is_left || self.poll_deadline(sleep, context) {
            context.waker().wake_by_ref();
        }
        *self.driver.borrow_mut() = Some(context.waker().clone());
        Poll::Pending
    }

    fn poll_blocked(&self, context: &mut Context<'_>) {
        let mut blocked = self.blocked.borrow_mut();
        if let Some(sending) = blocked.as_mut()
            && let Poll::Ready(bytes) = sending.as_mut().poll(context)
        {
            *blocked = None;
            *self.packets.borrow_mut() = bytes;
        }
    }

    /// Receives datagrams. Returns true if more may be available.
    fn receive(&self, context: &mut Context<'_>) -> io::Result<bool> {
        for _ in 0..BATCHES_PER_TURN {
            if self.pauses(context) {
                return Ok(false);
            }
            match self.socket.poll_recv(context) {
                Poll::Pending => return Ok(false),
                Poll::Ready(Ok(datagrams)) => self.datagrams(datagrams),
                Poll::Ready(Err(error)) => self.socket_error(error)?,
            }
        }
        Ok(true)
    }

    fn pauses(&self, context: &mut Context<'_>) -> bool {
        let mut pause = self.pause.borrow_mut();
        let is_on = |sleep: &mut Sleep| Pin::new(sleep).poll(context).is_pending();
        let pauses = pause.as_mut().is_some_and(is_on);
        if !pauses {
            *pause = None;
        }
        pauses
    }

    /// Handles an error of the socket: ICMP errors about sent datagrams, and errors of the system.
    /// The socket of a client is connected, so an ICMP error means that its server is unreachable.
    ///
    /// A server continues after a pause: the kernel would still pass datagrams to a closed worker.
    fn socket_error(&self, error: io::Error) -> io::Result<()> {
        match error.kind() {
            io::ErrorKind::ConnectionRefused
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::PermissionDenied => {
                let links: Vec<_> = self.links.borrow().values().cloned().collect();
                links.iter().for_each(|link| link.unreachable(&error));
                Ok(())
            }
            _ if self.listen.is_none() || is_end(&error) => Err(error),
            _ => {
                tracing::warn!(
                    %error,
                    local = %self.local_addr(),
                    "cannot receive on a QUIC socket: trying again"
                );
                *self.pause.borrow_mut() = Some(self.handle.sleep(PAUSE));
                Ok(())
            }
        }
    }

    fn datagrams(&self, datagrams: Datagrams) {
        let now = Instant::now();
        let Datagrams {
            mut bytes,
            segment,
            peer,
            local,
            ecn,
        } = datagrams;
        while !bytes.is_empty() {
            let length = segment.min(bytes.len());
            let datagram = Arrived {
                bytes: bytes.split_to(length),
                peer,
                local,
                ecn,
            };
            match &self.listen {
                Some(listen) => listen.datagram(self, now, datagram),
                None => drop(self.receive_datagram(now, datagram)),
            }
        }
    }

    /// Passes a datagram to its connection. Returns the new connection if it starts one.
    pub(crate) fn receive_datagram(
        &self,
        now: Instant,
        datagram: Arrived,
    ) -> Option<quinn_proto::Incoming> {
        let Arrived {
            bytes,
            peer,
            local,
            ecn,
        } = datagram;
        let ecn = EcnCodepoint::from_bits(ecn);
        let is_handshake = is_handshake(&bytes);
        let mut answer = Vec::new();
        let mut proto = self.proto.borrow_mut();
        let event = proto.handle(now, peer, local, ecn, bytes, &mut answer);
        drop(proto);
        match event? {
            DatagramEvent::ConnectionEvent(key, event) => {
                let link = self.links.borrow().get(&key).cloned();
                if let Some(link) = link {
                    // Only a peer at this address can know the connection id, which this side
                    // chose.
                    if is_handshake {
                        link.validate_address();
                    }
                    if !link.take(event, now) {
                        self.schedule(&link);
                    }
                }
                None
            }
            DatagramEvent::NewConnection(incoming) => Some(incoming),
            DatagramEvent::Response(transmit) => {
                self.respond(&answer, &transmit);
                None
            }
        }
    }

    /// Sends a packet without a connection. It is dropped if the send buffer is full.
    pub(crate) fn respond(&self, bytes: &[u8], transmit: &Transmit) {
        let outgoing = Outgoing {
            segment: None,
            peer: transmit.destination,
            local: transmit.src_ip,
            ecn: 0,
        };
        if self.can_send() {
            let _ = self.socket.try_send(&bytes[..transmit.size], &outgoing);
        }
    }

    /// Handles the expired deadlines.
    fn expire(&self, now: Instant) {
        loop {
            let mut deadlines = self.deadlines.borrow_mut();
            let Some(&(at, key)) = deadlines.first().filter(|first| first.0 <= now) else {
                return;
            };
            deadlines.remove(&(at, key));
            drop(deadlines);
            let link = self.links.borrow().get(&key).cloned();
            if let Some(link) = link {
                link.expire(now);
                self.schedule(&link);
            }
        }
    }

    /// Drives each scheduled connection once.
    fn drive_ready(&self, now: Instant) {
        let count = self.ready.borrow().len();
        for _ in 0..count {
            if !self.can_send() {
                return;
            }
            let link = self.ready.borrow_mut().pop_front();
            let Some(link) = link else { return };
            link.is_scheduled.set(false);
            link.drive(now);
        }
    }

    /// Returns true if a deadline has passed. Otherwise the task wakes at the first one.
    fn poll_deadline(
        &self,
        sleep: &mut Option<(Instant, Sleep)>,
        context: &mut Context<'_>,
    ) -> bool {
        let first = self.deadlines.borrow().first().map(|first| first.0);
        let Some(first) = first else {
            *sleep = None;
            return false;
        };
        let sleep = match sleep {
            Some((at, sleep)) if *at == first => sleep,
            _ => &mut sleep.insert((first, self.handle.sleep_until(first))).1,
        };
        Pin::new(sleep).poll(context).is_ready()
    }

    fn fail(&self, error: &io::Error) {
        let links: Vec<_> = self.links.borrow().values().cloned().collect();
        links.iter().for_each(|link| link.fail(error));
    }

    /// The local address of the socket. It may be unspecified.
    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.socket.local_addr()
    }
}

/// Returns true if the socket cannot receive any more: it is closed, or the runtime has ended.
fn is_end(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::BADF | Errno::NOTSOCK | Errno::CANCELED))
}

/// A received datagram.
#[derive(Clone, Debug)]
pub(crate) struct Arrived {
    pub(crate) bytes: BytesMut,
    pub(crate) peer: SocketAddr,
    pub(crate) local: Option<std::net::IpAddr>,
    pub(crate) ecn: u8,
}

/// Closes the connections if the task ends before them, as it does when the runtime ends.
struct CutOnDrop<'a>(&'a Rc<Endpoint>);

impl Drop for CutOnDrop<'_> {
    fn drop(&mut self) {
        let links: Vec<_> = self.0.links.borrow_mut().drain().collect();
        for (_, link) in links {
            link.cut();
        }
        self.0.ready.borrow_mut().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_closed_socket_ends_a_server() {
        use rustix::io::Errno;
        for errno in [Errno::NOMEM, Errno::NOBUFS, Errno::IO, Errno::PERM] {
            assert!(!is_end(&errno.into()), "{errno}");
        }
        assert!(!is_end(&io::Error::other("something")));
        for errno in [Errno::BADF, Errno::NOTSOCK, Errno::CANCELED] {
            assert!(is_end(&errno.into()), "{errno}");
        }
    }
}
