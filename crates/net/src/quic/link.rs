//! One QUIC connection: its quinn-proto state, and the tasks that wait for it.

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
use super::listen::ListenState;
use super::samba;
use super::settings::Congestion;
use crate::{Refusal, tls};

/// Batches of packets that one connection sends before other connections are driven.
const BATCHES_PER_TURN: usize = 8;
/// Number of received datagrams that are acknowledged at once, and the longest delay of an
/// acknowledgement for fewer. RFC 9000 13.2.2 recommends two datagrams and allows other values: an
/// acknowledgement costs both sides as much as a datagram of data.
const DATAGRAMS_UNANSWERED: u32 = 64;
const UNANSWERED_FOR: Duration = Duration::from_millis(1);
/// Longest time that a closed connection stays open to deliver its sent data.
const LINGER: Duration = Duration::from_secs(3);
/// Limit for data to an address that is not validated, as a multiple of the data received from it,
/// and the length of the first datagram. RFC 9000 8.1, 14.1
const AMPLIFICATION: u64 = 3;
const FIRST_DATAGRAM: u64 = 1200;
/// Application error code of a regular close.
const NO_ERROR: VarInt = VarInt::from_u32(0);

/// One QUIC connection of an [`Endpoint`].
pub(crate) struct Link {
    endpoint: Weak<Endpoint>,
    key: ConnectionHandle,
    peer: SocketAddr,
    state: RefCell<State>,
    /// The connection is in the endpoint's queue of connections to drive.
    pub(crate) is_scheduled: Cell<bool>,
}

struct State {
    connection: quinn_proto::Connection,
    /// The stream of the connection; `None` before it is opened.
    stream: Option<StreamId>,
    /// Reason why the connection has ended; `None` while it is open.
    end: Option<End>,
    /// Largest WRITE that the server offers to this client, in bytes; `None` without a special
    /// limit.
    write_hint: Option<u32>,
    /// Time at which the connection closes, unless all sent data arrive earlier.
    linger: Option<Instant>,
    /// Number of datagrams received since the last send.
    unanswered: u32,
    /// Bytes sent to the peer before its address is validated; `None` afterwards.
    unvalidated: Option<u64>,
    /// Time at which the endpoint drives the connection.
    armed: Option<Instant>,
    opener: Option<Waker>,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// Measurements of the network path of a QUIC connection at the time of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Congestion controller of the connection.
    pub congestion: Congestion,
    /// Congestion window in bytes: maximum of sent bytes in flight.
    pub window: u64,
    /// Smoothed round-trip time of the path, a moving average (RFC 9002 5.3).
    pub round_trip: Duration,
    /// Largest datagram in bytes, without the headers of UDP and IP, that the network path
    /// transports.
    pub datagram: u16,
    /// Number of datagrams that this end sent on the connection.
    pub sent: u64,
    /// Number of sent datagrams that were lost.
    pub lost: u64,
}

/// Reason why a connection has ended.
#[derive(Clone, Debug)]
pub(crate) enum End {
    /// One of the peers has closed it.
    Closed,
    /// The peer has ended the handshake with this TLS alert.
    Alert(u8),
    /// The connection is lost.
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

    /// Writes the next packets. quinn-proto exceeds the limit for an address that is not validated
    /// by up to one datagram. That datagram is dropped here, as if it were lost.
    fn write(&mut self, now: Instant, most: usize, packets: &mut Vec<u8>) -> Option<Transmit> {
        let mut transmit = self.connection.poll_transmit(now, most, packets)?;
        let Some(sent) = &mut self.unvalidated else {
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
            unvalidated: is_server.then_some(0),
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
            is_scheduled: Cell::new(false),
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

    /// Returns true once the connection is closed. Only its closing packet may still be sent.
    pub(crate) fn is_closed(&self) -> bool {
        self.state.borrow().connection.is_closed()
    }

    /// Processes a datagram and wakes the waiting tasks. Returns true if the acknowledgement can
    /// wait:
    /// the endpoint then has a deadline for it.
    pub(crate) fn take(&self, event: ConnectionEvent, now: Instant) -> bool {
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        // The certificate verifier logs refused peers, and does not know their address.
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
        self.poll_events(state, now);
        if state.unanswered == 1 {
            state.armed = Some(endpoint.arm(self.key, state.armed, now + UNANSWERED_FOR));
        }
        true
    }

    /// Notes that the peer has proved its address.
    pub(crate) fn validate_address(&self) {
        self.state.borrow_mut().unvalidated = None;
    }

    /// Handles the expired deadline of the connection.
    pub(crate) fn expire(&self, now: Instant) {
        let mut state = self.state.borrow_mut();
        state.armed = None;
        state.connection.handle_timeout(now);
        if state.linger.is_some_and(|linger| linger <= now) {
            state.linger = None;
            state.connection.close(now, NO_ERROR, Bytes::new());
        }
    }

    /// Schedules the connection to be driven.
    fn schedule(self: &Rc<Self>) {
        if let Some(endpoint) = self.endpoint.upgrade() {
            endpoint.schedule(self);
        }
    }

    /// Handles events, sends packets, and sets the deadline.
    pub(crate) fn drive(self: &Rc<Self>, now: Instant) {
        let Some(endpoint) = self.endpoint.upgrade() else {
            return;
        };
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        state.unanswered = 0;
        self.poll_events(state, now);
        let is_more = send(&endpoint, state, now);
        self.poll_events(state, now);
        if self.forward_events(&endpoint, state) {
            state.wake_all();
            let armed = state.armed.take();
            return endpoint.remove(self.key, armed);
        }
        if state.connection.is_closed() {
            endpoint.wake_ending();
        }
        let wanted = [state.connection.poll_timeout(), state.linger];
        if let Some(wanted) = wanted.into_iter().flatten().min() {
            state.armed = Some(endpoint.arm(self.key, state.armed, wanted));
        }
        if is_more {
            endpoint.schedule(self);
        }
    }

    /// Handles the events of quinn-proto.
    fn poll_events(&self, state: &mut State, now: Instant) {
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
                // All sent data have arrived: the closing connection can end.
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
        state.unvalidated = None;
        let data = state.connection.crypto_session().handshake_data();
        let data = data.and_then(|data| data.downcast::<HandshakeData>().ok());
        let protocol = data.and_then(|data| data.protocol);
        if protocol.as_deref() != Some(tls::ALPN) {
            // TLS refuses peers with other protocols. This peer has sent no protocol.
            let reason = Bytes::from_static(b"the protocol is smb");
            state.connection.close(now, NO_ERROR, reason);
            let reason = "the peer does not offer the protocol SMB (ALPN)".to_owned();
            return state.end(End::Lost(io::ErrorKind::InvalidData, reason));
        }
        if state.connection.side().is_client() {
            state.stream = state.connection.streams().open(Dir::Bi);
            state.opener.take().into_iter().for_each(Waker::wake);
        }
        if self.limits_samba_writes()
            && let Ok(Some(parameters)) = state.connection.crypto_session().transport_parameters()
            && samba::is_samba(&parameters)
        {
            tracing::debug!(
                peer = %self.peer,
                "limiting the WRITEs of a Samba client with a slow QUIC library"
            );
            state.write_hint = Some(samba::WRITE_BYTES);
        }
    }

    fn limits_samba_writes(&self) -> bool {
        let endpoint = self.endpoint.upgrade();
        endpoint.is_some_and(|endpoint| {
            endpoint
                .listen
                .as_ref()
                .is_some_and(ListenState::limits_samba_writes)
        })
    }

    /// Grants the client of a server the whole receive window.
    pub(crate) fn trust(self: &Rc<Self>) {
        let endpoint = self.endpoint.upgrade();
        let window = endpoint.and_then(|it| it.listen.as_ref().map(ListenState::receive_window));
        let Some(window) = window else { return };
        let mut state = self.state.borrow_mut();
        state.connection.set_receive_window(window.into());
        drop(state);
        self.schedule();
    }

    /// Largest WRITE that the server offers to this client, in bytes; `None` without a special
    /// limit.
    pub(crate) fn write_hint(&self) -> Option<u32> {
        self.state.borrow().write_hint
    }

    fn lost(&self, state: &mut State, reason: ConnectionError) {
        let end = match reason {
            ConnectionError::ApplicationClosed(_) | ConnectionError::LocallyClosed => End::Closed,
            // Before the stream is opened, the task that waits for it logs the error.
            ConnectionError::TransportError(error) if state.stream.is_none() => {
                End::Lost(io::ErrorKind::InvalidData, error.to_string())
            }
            ConnectionError::TransportError(error) => {
                let (peer, code) = (self.peer, Refusal::QuicProtocol.code());
                tracing::warn!(%peer, %error, code, "disconnecting: the peer violates QUIC");
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

    /// Passes the events of the connection to the endpoint. Returns true once the connection is
    /// drained.
    fn forward_events(&self, endpoint: &Endpoint, state: &mut State) -> bool {
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

    /// Ready once the stream is opened. An error means that the connection has ended.
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

    /// Ready once the connection is drained: no more packets of the peer are expected.
    /// RFC 9000 10.2
    pub(crate) fn poll_drained(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state.borrow_mut();
        if state.connection.is_drained() {
            return Poll::Ready(());
        }
        state.opener = Some(context.waker().clone());
        Poll::Pending
    }

    /// Passes at most `most` received bytes to `take`, in order. Returns 0 once the peer has
    /// finished the stream.
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
            // The stream was read to its end before.
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
            self.schedule();
        }
        result
    }

    /// Calls `write` with the send stream. Pending while the stream has no space.
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

    /// Sends written data, as far as flow and congestion control allow.
    pub(crate) fn flush(self: &Rc<Self>) {
        match self.endpoint.upgrade() {
            Some(endpoint) if endpoint.can_send() => self.drive(Instant::now()),
            Some(endpoint) => endpoint.schedule(self),
            None => {}
        }
    }

    /// Finishes the sending direction. With `and_connection` it closes the connection once all sent
    /// data have arrived.
    pub(crate) fn finish_stream(self: &Rc<Self>, and_connection: bool) {
        let now = Instant::now();
        let mut state = self.state.borrow_mut();
        if let Some(stream) = state.stream {
            // It fails if the direction is finished already.
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

    /// Closes the connection once all sent data have arrived.
    pub(crate) fn finish(self: &Rc<Self>) {
        self.finish_stream(true);
    }

    /// Sends a closing packet and removes the connection at once. Lost data are not sent again.
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

    /// Handles an ICMP error about the peer. It ends the connection only during the handshake:
    /// later errors may be forged.
    pub(crate) fn unreachable(&self, error: &io::Error) {
        if self.state.borrow().connection.is_handshaking() {
            self.fail(error);
        }
    }

    /// Ends the connection after an error of the socket.
    pub(crate) fn fail(&self, error: &io::Error) {
        let end = End::Lost(error.kind(), error.to_string());
        self.state.borrow_mut().end(end);
    }
}

/// The TLS alert in a CONNECTION_CLOSE frame: CRYPTO_ERROR. RFC 9000 20.1
fn alert(close: &ConnectionClose) -> Option<u8> {
    let code = u64::from(close.error_code);
    let alert = code.checked_sub(0x100)?;
    u8::try_from(alert).ok()
}

/// Sends some batches of packets. Returns true if more may be left.
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
