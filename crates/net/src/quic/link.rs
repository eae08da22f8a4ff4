//! One connection: what quinn-proto makes of it, and who waits for it.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use quinn_proto::crypto::rustls::HandshakeData;
use quinn_proto::{
    ConnectionClose, ConnectionError, ConnectionEvent, ConnectionHandle, Dir, EndpointEvent, Event,
    ReadError, ReadableError, SendStream, StreamEvent, StreamId, Transmit, VarInt, WriteError,
};

use super::endpoint::Endpoint;
use super::listen::Door;
use super::samba;
use super::settings::Congestion;
use crate::tls;

/// Batches that one connection sends before others have their turn.
const BATCHES_PER_TURN: usize = 8;
/// Datagrams after which the peer hears that they have come, and how long fewer may wait for more
/// or for something to be sent anyway. RFC 9000 13.2.2 would have two, and lets who knows better do
/// better: an acknowledgement costs both sides as much as a datagram of data.
const DATAGRAMS_UNANSWERED: u32 = 64;
const UNANSWERED_FOR: Duration = Duration::from_millis(1);
/// How long a connection that this side has ended may take to deliver what was sent.
const LINGER: Duration = Duration::from_secs(3);
/// By how much what goes to an address that may be made up may exceed what came from it, and the
/// bytes that came at least. RFC 9000 8.1, 14.1
const AMPLIFICATION: u64 = 3;
const FIRST_DATAGRAM: u64 = 1200;
/// What a connection is closed with when all is well.
const NO_ERROR: VarInt = VarInt::from_u32(0);

/// A connection.
pub(crate) struct Link {
    endpoint: Weak<Endpoint>,
    key: ConnectionHandle,
    peer: SocketAddr,
    state: RefCell<State>,
    /// It is among those that will be driven.
    pub(crate) is_stirred: Cell<bool>,
}

struct State {
    connection: quinn_proto::Connection,
    /// The one stream, once it is there.
    stream: Option<StreamId>,
    /// Why no more is to be had from it.
    end: Option<End>,
    /// Bytes of the largest WRITE that the client is to be told of.
    write_hint: Option<u32>,
    /// Ends the connection once all that was sent has arrived, or then.
    linger: Option<Instant>,
    /// Datagrams that have come since something was sent.
    unanswered: u32,
    /// Bytes that were sent to an address that nobody has shown to be its own.
    unproven: Option<u64>,
    /// When the endpoint will look at the timers.
    armed: Option<Instant>,
    opener: Option<Waker>,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// What a connection has found out about its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Who decides how much may be under way.
    pub congestion: Congestion,
    /// Bytes that may be under way.
    pub window: u64,
    /// The round trip, smoothed.
    pub round_trip: Duration,
    /// Bytes of the largest datagram that it takes.
    pub datagram: u16,
    /// Datagrams that were sent, and those of them that were lost.
    pub sent: u64,
    /// See `sent`.
    pub lost: u64,
}

/// How a connection ended.
#[derive(Clone, Debug)]
pub(crate) enum End {
    /// One side has closed it.
    Closed,
    /// The peer has ended the handshake with this alert of TLS.
    Alert(u8),
    /// It is lost.
    Lost(io::ErrorKind, String),
}

impl End {
    pub(crate) fn error(&self) -> io::Error {
        match self {
            Self::Closed => io::ErrorKind::ConnectionAborted.into(),
            Self::Alert(alert) => io::Error::other(tls::Error::from_alert(*alert)),
            Self::Lost(kind, reason) => io::Error::new(*kind, reason.clone()),
        }
    }
}

impl State {
    fn wake_all(&mut self) {
        let wakers = [&mut self.opener, &mut self.reader, &mut self.writer];
        let wakers = wakers.into_iter().filter_map(Option::take);
        wakers.for_each(Waker::wake);
    }

    fn end(&mut self, end: End) {
        self.end.get_or_insert(end);
        self.wake_all();
    }

    /// Writes the next packets. quinn-proto gives an address that may be made up one datagram more
    /// than it should where the limit is no multiple of its length: that one counts as lost.
    fn write(&mut self, now: Instant, most: usize, packets: &mut Vec<u8>) -> Option<Transmit> {
        let mut transmit = self.connection.poll_transmit(now, most, packets)?;
        let Some(sent) = &mut self.unproven else {
            return Some(transmit);
        };
        let received = FIRST_DATAGRAM + self.connection.stats().udp_rx.bytes;
        let left = (AMPLIFICATION * received).saturating_sub(*sent);
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        if transmit.size > left {
            let segment = transmit.segment_size.unwrap_or(transmit.size);
            transmit.size = left - left % segment;
        }
        *sent += transmit.size as u64;
        (transmit.size > 0).then_some(transmit)
    }
}

impl Link {
    pub(crate) fn new(
        endpoint: &Rc<Endpoint>,
        key: ConnectionHandle,
        connection: quinn_proto::Connection,
    ) -> Self {
        let peer = connection.remote_address();
        let is_server = connection.side().is_server();
        let state = State {
            connection,
            stream: None,
            end: None,
            write_hint: None,
            linger: None,
            unanswered: 0,
            unproven: is_server.then_some(0),
            armed: None,
            opener: None,
            reader: None,
            writer: None,
        };
        Self {
            endpoint: Rc::downgrade(endpoint),
            key,
            peer,
            state: RefCell::new(state),
            is_stirred: Cell::new(false),
        }
    }

    pub(crate) fn peer_addr(&self) -> SocketAddr {
        self.peer
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        let endpoint = self.endpoint.upgrade();
        let endpoint = endpoint.ok_or(io::ErrorKind::NotConnected)?;
        let mut local = endpoint.local_addr();
        if let Some(ip) = self.state.borrow().connection.local_ip() {
            local.set_ip(ip);
        }
        Ok(local)
    }

    pub(crate) fn path(&self) -> Path {
        let connection = &self.state.borrow().connection;
        let stats = connection.stats().path;
        Path {
            congestion: Congestion::of(connection),
            window: stats.cwnd,
            round_trip: stats.rtt,
            datagram: stats.current_mtu,
            sent: stats.sent_packets,
            lost: stats.lost_packets,
        }
    }

    /// Whether nothing more will be sent but, perhaps, that it is over.
    pub(crate) fn is_closed(&self) -> bool {
        self.state.borrow().connection.is_closed()
    }

    /// Takes a datagram in, and wakes who waits for it. `true`: the answer can wait, for as long as
    /// this has asked the endpoint to.
    pub(crate) fn take(&self, event: ConnectionEvent, now: Instant) -> bool {
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        // Who verifies certificates logs whom it refuses, and does not know the address.
        let is_handshaking = state.connection.is_handshaking();
        let handshake =
            is_handshaking.then(|| tracing::warn_span!("handshake", peer = %self.peer).entered());
        state.connection.handle_event(event);
        drop(handshake);
        state.unanswered += 1;
        let can_wait = state.unanswered < DATAGRAMS_UNANSWERED
            && !state.connection.is_handshaking()
            && state.linger.is_none();
        let Some(endpoint) = self.endpoint.upgrade().filter(|_| can_wait) else {
            return false;
        };
        self.hear(state, now);
        if state.unanswered == 1 {
            state.armed = Some(endpoint.arm(self.key, state.armed, now + UNANSWERED_FOR));
        }
        true
    }

    /// The peer has shown that its address is its own.
    pub(crate) fn prove(&self) {
        self.state.borrow_mut().unproven = None;
    }

    /// Its time has come, or it has moved.
    pub(crate) fn expire(&self, now: Instant) {
        let mut state = self.state.borrow_mut();
        state.armed = None;
        state.connection.handle_timeout(now);
        if state.linger.is_some_and(|linger| linger <= now) {
            state.linger = None;
            state.connection.close(now, NO_ERROR, Bytes::new());
        }
    }

    /// Has it driven soon.
    fn stir(self: &Rc<Self>) {
        if let Some(endpoint) = self.endpoint.upgrade() {
            endpoint.stir(self);
        }
    }

    /// Hears what happened, sends what there is to send, and sets the timer.
    pub(crate) fn drive(self: &Rc<Self>, now: Instant) {
        let Some(endpoint) = self.endpoint.upgrade() else {
            return;
        };
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        state.unanswered = 0;
        self.hear(state, now);
        let is_more = send(&endpoint, state, now);
        self.hear(state, now);
        if self.tell(&endpoint, state) {
            state.wake_all();
            let armed = state.armed.take();
            return endpoint.remove(self.key, armed);
        }
        if state.connection.is_closed() {
            endpoint.hear_of_end();
        }
        let wanted = [state.connection.poll_timeout(), state.linger];
        if let Some(wanted) = wanted.into_iter().flatten().min() {
            state.armed = Some(endpoint.arm(self.key, state.armed, wanted));
        }
        if is_more {
            endpoint.stir(self);
        }
    }

    /// Takes what quinn-proto says has happened.
    fn hear(&self, state: &mut State, now: Instant) {
        while let Some(event) = state.connection.poll() {
            match event {
                Event::Connected => self.connected(state, now),
                Event::ConnectionLost { reason } => self.lost(state, reason),
                Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
                    let opened = state.connection.streams().accept(Dir::Bi);
                    if state.stream.is_none() {
                        state.stream = opened;
                    }
                    state.opener.take().into_iter().for_each(Waker::wake);
                }
                Event::Stream(StreamEvent::Readable { .. }) => {
                    state.reader.take().into_iter().for_each(Waker::wake);
                }
                Event::Stream(StreamEvent::Writable { .. }) => {
                    state.writer.take().into_iter().for_each(Waker::wake);
                }
                // All that was sent has arrived: nothing keeps a connection that is to end.
                Event::Stream(StreamEvent::Finished { .. }) if state.linger.is_some() => {
                    state.linger = None;
                    state.connection.close(now, NO_ERROR, Bytes::new());
                }
                Event::Stream(StreamEvent::Stopped { .. }) => {
                    state.writer.take().into_iter().for_each(Waker::wake);
                }
                _ => {}
            }
        }
    }

    fn connected(&self, state: &mut State, now: Instant) {
        state.unproven = None;
        let data = state.connection.crypto_session().handshake_data();
        let data = data.and_then(|data| data.downcast::<HandshakeData>().ok());
        let protocol = data.and_then(|data| data.protocol);
        if protocol.as_deref() != Some(tls::ALPN) {
            // TLS itself refuses those who name others; this is who names none.
            let reason = Bytes::from_static(b"the protocol is smb");
            state.connection.close(now, NO_ERROR, reason);
            let reason = "the peer does not speak SMB".to_owned();
            return state.end(End::Lost(io::ErrorKind::InvalidData, reason));
        }
        if state.connection.side().is_client() {
            state.stream = state.connection.streams().open(Dir::Bi);
            state.opener.take().into_iter().for_each(Waker::wake);
        }
        if self.spares_samba()
            && let Ok(Some(parameters)) = state.connection.crypto_session().transport_parameters()
            && samba::is_samba(&parameters)
        {
            tracing::debug!(peer = %self.peer, "Samba's client with a QUIC library: small WRITEs");
            state.write_hint = Some(samba::WRITE_BYTES);
        }
    }

    fn spares_samba(&self) -> bool {
        let endpoint = self.endpoint.upgrade();
        endpoint.is_some_and(|endpoint| endpoint.door.as_ref().is_some_and(Door::spares_samba))
    }

    /// Bytes of the largest WRITE that the client is to be told of, if there is a reason for one.
    pub(crate) fn write_hint(&self) -> Option<u32> {
        self.state.borrow().write_hint
    }

    fn lost(&self, state: &mut State, reason: ConnectionError) {
        let end = match reason {
            ConnectionError::ApplicationClosed(_) | ConnectionError::LocallyClosed => End::Closed,
            // Before there is a stream, who waits for it says so.
            ConnectionError::TransportError(error) if state.stream.is_none() => {
                End::Lost(io::ErrorKind::InvalidData, error.to_string())
            }
            ConnectionError::TransportError(error) => {
                tracing::warn!(peer = %self.peer, %error, "disconnecting: QUIC's rules");
                End::Lost(io::ErrorKind::InvalidData, error.to_string())
            }
            ConnectionError::ConnectionClosed(close) if alert(&close).is_some() => {
                tracing::debug!(peer = %self.peer, %close, "the peer ends the handshake");
                alert(&close).map_or(End::Closed, End::Alert)
            }
            reason => {
                tracing::debug!(peer = %self.peer, %reason, "QUIC connection lost");
                let text = reason.to_string();
                End::Lost(io::Error::from(reason).kind(), text)
            }
        };
        state.end(end);
    }

    /// Tells the endpoint what it must know; `true`: the connection has ended for good.
    fn tell(&self, endpoint: &Endpoint, state: &mut State) -> bool {
        while let Some(event) = state.connection.poll_endpoint_events() {
            let is_drained = event.is_drained();
            let mut proto = endpoint.proto.borrow_mut();
            let answer = proto.handle_event(self.key, event);
            drop(proto);
            if let Some(answer) = answer {
                state.connection.handle_event(answer);
            }
            if is_drained {
                return true;
            }
        }
        false
    }

    /// Ready when the stream is there. `Err`: it never will be.
    pub(crate) fn poll_opened(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.state.borrow_mut();
        if let Some(end) = &state.end {
            return Poll::Ready(Err(end.error()));
        }
        if state.stream.is_some() {
            return Poll::Ready(Ok(()));
        }
        state.opener = Some(context.waker().clone());
        Poll::Pending
    }

    /// Ready when nothing is expected of the peer any more, not even what was under way when the
    /// connection ended. RFC 9000 10.2
    pub(crate) fn poll_drained(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state.borrow_mut();
        if state.connection.is_drained() {
            return Poll::Ready(());
        }
        state.opener = Some(context.waker().clone());
        Poll::Pending
    }

    /// Reads at most `most` bytes that are there, in order, and gives them to `take`. 0: the peer
    /// has finished.
    pub(crate) fn poll_read(
        self: &Rc<Self>,
        context: &mut Context<'_>,
        most: usize,
        mut take: impl FnMut(&[u8]),
    ) -> Poll<Result<usize, End>> {
        let mut state = self.state.borrow_mut();
        let Some(stream) = state.stream else {
            return Poll::Ready(Err(End::Closed));
        };
        let mut recv = state.connection.recv_stream(stream);
        let mut chunks = match recv.read(true) {
            Ok(chunks) => chunks,
            // It was read to its end before.
            Err(ReadableError::ClosedStream) => return Poll::Ready(Ok(0)),
            Err(ReadableError::IllegalOrderedRead) => unreachable!("every read is ordered"),
        };
        let mut done = 0;
        let mut is_reset = false;
        let is_over = loop {
            if done == most {
                break false;
            }
            match chunks.next(most - done) {
                Ok(Some(chunk)) => {
                    take(&chunk.bytes);
                    done += chunk.bytes.len();
                }
                Ok(None) => break true,
                Err(ReadError::Blocked) => break false,
                Err(ReadError::Reset(_)) => {
                    is_reset = true;
                    break true;
                }
            }
        };
        let must_send = chunks.finalize().should_transmit();
        let result = if done > 0 || is_over && !is_reset {
            Poll::Ready(Ok(done))
        } else if is_reset {
            let reason = "the stream was reset".to_owned();
            Poll::Ready(Err(End::Lost(io::ErrorKind::ConnectionReset, reason)))
        } else if let Some(end) = &state.end {
            Poll::Ready(Err(end.clone()))
        } else {
            state.reader = Some(context.waker().clone());
            Poll::Pending
        };
        drop(state);
        if must_send {
            self.stir();
        }
        result
    }

    /// Writes what there is room for, by `write`.
    pub(crate) fn poll_write<T>(
        &self,
        context: &mut Context<'_>,
        write: impl FnOnce(&mut SendStream<'_>) -> Result<T, WriteError>,
    ) -> Poll<io::Result<T>> {
        let mut state = self.state.borrow_mut();
        if let Some(end) = &state.end {
            return Poll::Ready(Err(end.error()));
        }
        let stream = state.stream.ok_or(io::ErrorKind::NotConnected)?;
        match write(&mut state.connection.send_stream(stream)) {
            Ok(written) => Poll::Ready(Ok(written)),
            Err(WriteError::Blocked) => {
                state.writer = Some(context.waker().clone());
                Poll::Pending
            }
            Err(error @ (WriteError::Stopped(_) | WriteError::ClosedStream)) => {
                Poll::Ready(Err(io::Error::new(io::ErrorKind::BrokenPipe, error)))
            }
        }
    }

    /// Sends what was written, as far as it may now.
    pub(crate) fn flush(self: &Rc<Self>) {
        match self.endpoint.upgrade() {
            Some(endpoint) if endpoint.can_send() => self.drive(Instant::now()),
            Some(endpoint) => endpoint.stir(self),
            None => {}
        }
    }

    /// Ends what this side sends; `true`: and the connection, once all of it has arrived.
    pub(crate) fn finish_stream(self: &Rc<Self>, and_connection: bool) {
        let now = Instant::now();
        let mut state = self.state.borrow_mut();
        if let Some(stream) = state.stream {
            // It may be finished already.
            let _ = state.connection.send_stream(stream).finish();
        }
        if and_connection && state.end.is_none() {
            if state.stream.is_some() && !state.connection.is_handshaking() {
                state.linger = Some(now + LINGER);
            } else {
                state.connection.close(now, NO_ERROR, Bytes::new());
            }
            state.end(End::Closed);
        }
        drop(state);
        self.flush();
    }

    /// Ends the connection once all that was sent has arrived.
    pub(crate) fn finish(self: &Rc<Self>) {
        self.finish_stream(true);
    }

    /// Tells the peer that this is the end, and forgets the connection at once. What was sent and
    /// lost stays so.
    pub(crate) fn cut(&self) {
        let now = Instant::now();
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        state.end(End::Closed);
        let Some(endpoint) = self.endpoint.upgrade() else {
            return;
        };
        if state.connection.is_drained() {
            return;
        }
        state.connection.close(now, NO_ERROR, Bytes::new());
        if endpoint.can_send() {
            let mtu = usize::from(state.connection.current_mtu());
            let segments = endpoint.socket.segments(mtu);
            endpoint.transmit(|packets| state.write(now, segments, packets));
        }
        let mut proto = endpoint.proto.borrow_mut();
        let _ = proto.handle_event(self.key, EndpointEvent::drained());
        drop(proto);
        let armed = state.armed.take();
        endpoint.remove(self.key, armed);
    }

    /// The network says that the peer is not there. Believed only of one that never answered.
    pub(crate) fn unreachable(&self, error: &io::Error) {
        if self.state.borrow().connection.is_handshaking() {
            self.fail(error);
        }
    }

    /// Nothing will come any more.
    pub(crate) fn fail(&self, error: &io::Error) {
        let end = End::Lost(error.kind(), error.to_string());
        self.state.borrow_mut().end(end);
    }
}

/// The alert of TLS in a close: CRYPTO_ERROR. RFC 9000 20.1
fn alert(close: &ConnectionClose) -> Option<u8> {
    let code = u64::from(close.error_code);
    let alert = code.checked_sub(0x100)?;
    u8::try_from(alert).ok()
}

/// Sends what there is, for a while; `true`: there may be more.
fn send(endpoint: &Endpoint, state: &mut State, now: Instant) -> bool {
    for _ in 0..BATCHES_PER_TURN {
        if !endpoint.can_send() {
            return true;
        }
        let mtu = usize::from(state.connection.current_mtu());
        let segments = endpoint.socket.segments(mtu);
        let write = |packets: &mut Vec<u8>| state.write(now, segments, packets);
        if endpoint.transmit(write).is_none() {
            return false;
        }
    }
    true
}
