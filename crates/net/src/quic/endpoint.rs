//! One UDP socket with its connections, and the task that drives them.

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
use super::listen::Door;

/// Batches that are received before the connections answer and their readers run: at 64 KiB each
/// what a reader copies is still in the processor's cache.
const BATCHES_PER_TURN: usize = 8;
/// How long nothing is received after the system had no memory for it, or whatever it was.
const PAUSE: Duration = Duration::from_millis(100);

/// A socket and its connections. They are all on one thread.
pub(crate) struct Endpoint {
    pub(crate) handle: Handle,
    pub(crate) socket: Udp,
    pub(crate) proto: RefCell<quinn_proto::Endpoint>,
    links: RefCell<HashMap<ConnectionHandle, Rc<Link>>>,
    /// Connections that have something to send or to say.
    stirred: RefCell<VecDeque<Rc<Link>>>,
    /// When connections are to be looked at, no later than each wants it.
    deadlines: RefCell<BTreeSet<(Instant, ConnectionHandle)>>,
    /// A batch that found the socket full. Nothing else is sent meanwhile.
    blocked: RefCell<Option<Blocked>>,
    /// Where packets are written before they are sent.
    packets: RefCell<Vec<u8>>,
    driver: RefCell<Option<Waker>>,
    /// Until when nothing is received.
    pause: RefCell<Option<Sleep>>,
    /// Who waits until all connections have ended.
    ending: RefCell<Vec<Waker>>,
    /// For one that listens.
    pub(crate) door: Option<Door>,
    pub(crate) is_closing: Cell<bool>,
}

type Blocked = Pin<Box<dyn Future<Output = Vec<u8>>>>;

impl Endpoint {
    /// Starts the task that drives it.
    pub(crate) fn start(
        handle: &Handle,
        socket: Udp,
        config: Arc<EndpointConfig>,
        door: Option<Door>,
    ) -> Rc<Self> {
        let server = door.as_ref().map(Door::config);
        let proto = quinn_proto::Endpoint::new(config, server, true, None);
        let endpoint = Rc::new(Self {
            handle: handle.clone(),
            socket,
            proto: RefCell::new(proto),
            links: RefCell::default(),
            stirred: RefCell::default(),
            deadlines: RefCell::default(),
            blocked: RefCell::default(),
            packets: RefCell::default(),
            driver: RefCell::default(),
            pause: RefCell::default(),
            ending: RefCell::default(),
            door,
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

    /// Forgets a connection that has ended.
    pub(crate) fn remove(&self, key: ConnectionHandle, armed: Option<Instant>) {
        if let Some(armed) = armed {
            self.deadlines.borrow_mut().remove(&(armed, key));
        }
        let link = self.links.borrow_mut().remove(&key);
        drop(link);
        if self.links.borrow().is_empty() {
            self.wake();
        }
        self.hear_of_end();
    }

    /// A connection has ended, or been told to.
    pub(crate) fn hear_of_end(&self) {
        let waiting = std::mem::take(&mut *self.ending.borrow_mut());
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Ends all connections, takes no new ones, and lets the task end after the last.
    pub(crate) fn close(&self) {
        self.is_closing.set(true);
        let links: Vec<_> = self.links.borrow().values().cloned().collect();
        links.iter().for_each(Link::finish);
        self.wake();
    }

    /// Waits until all peers have been told that it is over.
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

    /// Has a connection driven soon.
    pub(crate) fn stir(&self, link: &Rc<Link>) {
        if !link.is_stirred.replace(true) {
            self.stirred.borrow_mut().push_back(Rc::clone(link));
            self.wake();
        }
    }

    /// Sees to it that a connection is looked at by `wanted`; tells when that will be.
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

    /// Whether something can be sent.
    pub(crate) fn can_send(&self) -> bool {
        self.blocked.borrow().is_none()
    }

    /// Writes packets with `write` and sends them; `None` where there are none.
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

    /// Serves the socket until it is closed and nobody is left.
    async fn drive(self: Rc<Self>) {
        let _farewell = Farewell(&self);
        let mut sleep = None;
        let result = poll_fn(|context| self.poll_drive(&mut sleep, context)).await;
        if let Err(error) = result {
            tracing::warn!(%error, local = %self.socket.local_addr(), "QUIC has ended");
            self.fail(&error);
        }
    }

    fn poll_drive(
        &self,
        sleep: &mut Option<(Instant, Sleep)>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        // What is stirred up from here on is found below: it need not wake this task again.
        self.driver.borrow_mut().take();
        self.poll_blocked(context);
        let is_more = match self.receive(context) {
            Ok(is_more) => is_more,
            Err(error) => return Poll::Ready(Err(error)),
        };
        let now = Instant::now();
        self.expire(now);
        self.answer(now);
        self.poll_blocked(context);
        if self.is_closing.get() && self.links.borrow().is_empty() && self.can_send() {
            return Poll::Ready(Ok(()));
        }
        let is_left = self.can_send() && !self.stirred.borrow().is_empty();
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

    /// Takes in what has arrived; `true`: there may be more.
    fn receive(&self, context: &mut Context<'_>) -> io::Result<bool> {
        for _ in 0..BATCHES_PER_TURN {
            if self.pauses(context) {
                return Ok(false);
            }
            match self.socket.poll_recv(context) {
                Poll::Pending => return Ok(false),
                Poll::Ready(Ok(datagrams)) => self.datagrams(datagrams),
                Poll::Ready(Err(error)) => self.heard(error)?,
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

    /// What the network says about datagrams that were sent. A client's socket is connected: where
    /// nobody listens, or somebody in between lets none through, waiting is of no use.
    ///
    /// A server's goes on after a pause, whatever else it says: the system goes on sending a part
    /// of the clients there.
    fn heard(&self, error: io::Error) -> io::Result<()> {
        match error.kind() {
            io::ErrorKind::ConnectionRefused
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::PermissionDenied => {
                let links: Vec<_> = self.links.borrow().values().cloned().collect();
                links.iter().for_each(|link| link.unreachable(&error));
                Ok(())
            }
            _ if self.door.is_none() || is_end(&error) => Err(error),
            _ => {
                tracing::warn!(%error, local = %self.local_addr(), "QUIC pauses");
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
            match &self.door {
                Some(door) => door.datagram(self, now, datagram),
                None => drop(self.hand_in(now, datagram)),
            }
        }
    }

    /// Gives a datagram to the connection that it is for; or there is a new one.
    pub(crate) fn hand_in(&self, now: Instant, datagram: Arrived) -> Option<quinn_proto::Incoming> {
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
                    // It is for an identifier that this side made up and told that address alone.
                    if is_handshake {
                        link.prove();
                    }
                    if !link.take(event, now) {
                        self.stir(&link);
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

    /// Sends what belongs to no connection. What finds the socket full is lost.
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

    /// Tells connections that their time has come.
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
                self.stir(&link);
            }
        }
    }

    /// Drives each connection that was stirred once.
    fn answer(&self, now: Instant) {
        let count = self.stirred.borrow().len();
        for _ in 0..count {
            if !self.can_send() {
                return;
            }
            let link = self.stirred.borrow_mut().pop_front();
            let Some(link) = link else { return };
            link.is_stirred.set(false);
            link.drive(now);
        }
    }

    /// Whether a deadline has passed already; if not, wakes at the first.
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

    /// The address that the peers of this socket see, as far as the system knows.
    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.socket.local_addr()
    }
}

/// Whether nothing will ever be received again: there is no such socket, or no runtime any more.
fn is_end(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::BADF | Errno::NOTSOCK | Errno::CANCELED))
}

/// A datagram that has arrived.
#[derive(Clone, Debug)]
pub(crate) struct Arrived {
    pub(crate) bytes: BytesMut,
    pub(crate) peer: SocketAddr,
    pub(crate) local: Option<std::net::IpAddr>,
    pub(crate) ecn: u8,
}

/// Tells the peers when the task ends before the connections, as it does with the runtime.
struct Farewell<'a>(&'a Rc<Endpoint>);

impl Drop for Farewell<'_> {
    fn drop(&mut self) {
        let links: Vec<_> = self.0.links.borrow_mut().drain().collect();
        for (_, link) in links {
            link.cut();
        }
        self.0.stirred.borrow_mut().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_socket_that_is_gone_ends_a_server() {
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
