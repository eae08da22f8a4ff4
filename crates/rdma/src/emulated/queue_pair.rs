//! One connection of the emulation.
//!
//! Exposed memory returns to its owner only when the peer cannot access it any more. That is so
//! when the peer has confirmed a withdrawal, has invalidated the region with a SEND, or has shut
//! down its direction of the socket. The peer does the last in the one thread of its queue pair,
//! between two one-sided operations.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::mem::ManuallyDrop;
use std::net::SocketAddr;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use ring::{VIEW_BYTES_MIN, View, Views};

use crate::emulated::faults::{Faults, Injector};
use crate::emulated::message::{Announced, HEADER_BYTES, Header, Message, VERSION};
use crate::emulated::peer_memory::{Access, PeerMemory, REGIONS_MAX};
use crate::emulated::sys::{self, Arrived, BATCH, Far, Near};
use crate::operand::{Exposed, Piece, RemoteRegion, Sink};
use crate::provider::{Attributes, Event, Failure, Limits, QueuePair, Wait, WorkId};
use crate::slots::Slot;

/// Largest message in bytes. It exceeds the messages of SMB Direct and fits the queue of a socket.
const MESSAGE_BYTES: usize = 64 << 10;
/// Number of pieces of one message.
const PIECES_MAX: u32 = 30;
/// Send buffer of the socket in bytes.
const SEND_BUFFER_BYTES: i32 = 4 << 20;
/// Number of messages that one poll receives, so that other tasks of the thread run.
const MESSAGES_PER_POLL: usize = 4 * BATCH;
/// Number of mapped windows into files per queue pair.
const WINDOWS_MAX: usize = 16;
/// Limit of the peer's receive count.
const RECEIVES_MAX: u32 = 1 << 20;
/// Limit of queued messages other than SENDs. The peer can cause such messages: each withdrawal
/// needs an answer.
const ANSWERS_MAX: usize = 2 * REGIONS_MAX;

/// Counters of all queue pairs and of all keys.
static QUEUE_PAIRS: AtomicU64 = AtomicU64::new(0);
static KEYS: AtomicU64 = AtomicU64::new(0);

/// The addresses of both peers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    pub(crate) local: SocketAddr,
    pub(crate) peer: SocketAddr,
}

#[derive(Debug)]
pub(crate) struct EmulatedQueuePair {
    socket: OwnedFd,
    ends: Ends,
    /// The process of the peer.
    process: libc::pid_t,
    limits: Limits,
    state: State,
    /// Posted receives.
    receives: VecDeque<Slot>,
    /// Number of posted receives that the peer does not know of yet.
    unreported: u32,
    /// Number of the peer's receives that no SEND has used.
    peer_receives: u32,
    outgoing: VecDeque<Outgoing>,
    /// Number of queued messages other than SENDs.
    answers: usize,
    /// The socket is full.
    is_blocked: bool,
    /// The last poll reached its limit.
    has_more: bool,
    /// Regions that the peer may access, by key.
    exposed: BTreeMap<u32, Exposed>,
    /// Keys that were withdrawn and that the peer has not confirmed.
    withdrawing: BTreeSet<u32>,
    /// Memory of the peer that this side may access.
    peer_memory: PeerMemory,
    /// Mapped files for writes to the peer.
    views: Views,
    injector: Injector,
    /// Events of lost completions.
    lost: Vec<Event>,
    events: VecDeque<Event>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// The peer has not sent its hello yet.
    Connecting,
    Open,
    /// The connection has ended, but the peer may still access exposed memory.
    Closing(Failure),
    Closed,
}

/// A queued message.
#[derive(Debug)]
struct Outgoing {
    message: Message,
    /// The operation of a SEND.
    work: Option<(WorkId, Vec<Piece>)>,
    /// Encoded just before the message is sent.
    header: [u8; HEADER_BYTES],
}

impl EmulatedQueuePair {
    pub(crate) fn new(
        socket: OwnedFd,
        ends: Ends,
        attributes: &Attributes,
        faults: Faults,
    ) -> io::Result<Self> {
        let process = sys::peer_process(socket.as_fd())?;
        sys::set_send_buffer(socket.as_fd(), SEND_BUFFER_BYTES);
        let limits = Limits {
            receives: attributes.receives,
            sends: attributes.sends,
            pieces: attributes.pieces.min(PIECES_MAX),
            message_bytes: MESSAGE_BYTES,
            reads: attributes.reads,
            exposed: REGIONS_MAX as u32,
            remote_invalidation: true,
        };
        let number = QUEUE_PAIRS.fetch_add(1, Ordering::Relaxed);
        let mut queue_pair = Self {
            socket,
            ends,
            process,
            limits,
            state: State::Connecting,
            receives: VecDeque::new(),
            unreported: 0,
            peer_receives: 0,
            outgoing: VecDeque::new(),
            answers: 0,
            is_blocked: false,
            has_more: false,
            exposed: BTreeMap::new(),
            withdrawing: BTreeSet::new(),
            peer_memory: PeerMemory::default(),
            views: Views::new(WINDOWS_MAX),
            injector: Injector::new(faults, number),
            lost: Vec::new(),
            events: VecDeque::new(),
        };
        queue_pair.queue(Message::Hello { version: VERSION });
        Ok(queue_pair)
    }

    fn is_over(&self) -> bool {
        matches!(self.state, State::Closing(_) | State::Closed)
    }

    /// Counts an operation. Returns false if the connection has ended, perhaps by an injected
    /// fault.
    fn begin(&mut self) -> bool {
        if !self.is_over() && self.injector.ends() {
            self.end(Failure::Device("an injected fault".into()));
        }
        !self.is_over()
    }

    /// Reports a successful operation, unless a fault loses its completion.
    fn report(&mut self, event: Event) {
        if self.injector.loses() {
            self.lost.push(event);
        } else {
            self.events.push_back(event);
        }
    }

    /// Reports a late event. The end of the connection stays the last event.
    fn report_late(&mut self, event: Event) {
        let end = self
            .events
            .pop_back_if(|last| matches!(last, Event::Disconnected(_)));
        self.events.push_back(event);
        self.events.extend(end);
    }

    /// Ends the connection, now or when the peer has released all exposed memory.
    fn end(&mut self, failure: Failure) {
        if self.is_over() {
            return;
        }
        self.peer_memory.clear();
        sys::end_sending(self.socket.as_fd());
        self.state = State::Closing(failure);
        if self.exposed.is_empty() {
            self.close();
        }
    }

    /// The peer has shut down its direction, so it has released all exposed memory.
    fn peer_ended(&mut self) {
        self.end(match self.state {
            State::Connecting => Failure::Refused("the peer has closed the connection".into()),
            _ => Failure::PeerDisconnected,
        });
        self.close();
    }

    /// Returns all memory to its owners and reports the end.
    fn close(&mut self) {
        let State::Closing(failure) = &self.state else {
            return;
        };
        let failure = failure.clone();
        self.state = State::Closed;
        let lost = std::mem::take(&mut self.lost);
        self.events.extend(lost.into_iter().map(flushed));
        let unsent = std::mem::take(&mut self.outgoing);
        let unsent = unsent.into_iter().filter_map(|outgoing| outgoing.work);
        let sent = |(id, pieces)| Event::Sent(id, pieces, Err(Failure::Flushed));
        self.events.extend(unsent.map(sent));
        self.events
            .extend(self.receives.drain(..).map(Event::Unused));
        let exposed = std::mem::take(&mut self.exposed);
        let revoked = |(key, memory)| Event::Revoked(key, memory);
        self.events.extend(exposed.into_iter().map(revoked));
        self.events.push_back(Event::Disconnected(failure));
    }
}

/// Sending.
impl EmulatedQueuePair {
    fn queue(&mut self, message: Message) {
        self.answers += 1;
        self.outgoing.push_back(Outgoing {
            message,
            work: None,
            header: [0; HEADER_BYTES],
        });
    }

    /// Sends until the queue is empty or the socket is full.
    fn send_queued(&mut self) {
        self.is_blocked = false;
        while !self.is_over() && self.may_send_next() {
            let count = self.sendable();
            if count == 0 {
                return self.fail_without_receive();
            }
            for (index, outgoing) in self.outgoing.range_mut(..count).enumerate() {
                let posted = if index == 0 { self.unreported } else { 0 };
                let message = outgoing.message;
                outgoing.header = Header { posted, message }.encode();
            }
            let messages = self.outgoing.range(..count).map(|outgoing| {
                let work = outgoing.work.as_ref();
                (&outgoing.header, work.map_or(&[][..], |(_, pieces)| pieces))
            });
            match sys::send(self.socket.as_fd(), messages) {
                Ok(count) => self.sent(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.is_blocked = true;
                    return;
                }
                // The peer's end comes after the messages that it sent before.
                Err(_) => return,
            }
        }
    }

    /// Whether the next message may be sent: only the hello before the peer's hello.
    fn may_send_next(&self) -> bool {
        self.outgoing.front().is_some_and(|front| {
            self.state != State::Connecting || matches!(front.message, Message::Hello { .. })
        })
    }

    /// Number of queued messages that need no receive of the peer or have one.
    fn sendable(&self) -> usize {
        let most = match self.state {
            State::Connecting => 1,
            _ => BATCH,
        };
        let mut left = self.peer_receives;
        let has_receive = |outgoing: &&Outgoing| {
            let needed = u32::from(outgoing.work.is_some());
            let has = left >= needed;
            left = left.saturating_sub(needed);
            has
        };
        let messages = self.outgoing.iter().take(most);
        messages.take_while(has_receive).count()
    }

    fn fail_without_receive(&mut self) {
        let first = self.outgoing.pop_front().and_then(|first| first.work);
        let (id, pieces) = first.expect("only a SEND needs a receive");
        let failure = Failure::ReceiverNotReady;
        let failed = Event::Sent(id, pieces, Err(failure.clone()));
        self.events.push_back(failed);
        self.end(failure);
    }

    fn sent(&mut self, count: usize) {
        if count > 0 {
            self.unreported = 0;
        }
        for _ in 0..count {
            let sent = self.outgoing.pop_front().expect("a queued message");
            match sent.work {
                None => self.answers -= 1,
                Some((id, pieces)) => {
                    self.peer_receives -= 1;
                    self.report(Event::Sent(id, pieces, Ok(())));
                }
            }
        }
    }
}

/// Receiving.
impl EmulatedQueuePair {
    fn take_in(&mut self) {
        let mut arrived = [Arrived::default(); BATCH];
        let mut taken = 0;
        self.has_more = false;
        while self.state != State::Closed {
            if taken >= MESSAGES_PER_POLL {
                self.has_more = true;
                return;
            }
            let slots = self.receives.make_contiguous();
            let wanted = sys::batch(slots.len());
            let count = match sys::receive(self.socket.as_fd(), slots, &mut arrived) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // The peer has disappeared and left unread messages. Its own messages can still be
                // read, and the end follows them.
                Err(error) if error.raw_os_error() == Some(libc::ECONNRESET) => continue,
                Err(error) => return self.end(Failure::Device(error.to_string())),
            };
            self.handle(&arrived[..count]);
            taken += count;
            if count < wanted {
                return;
            }
        }
    }

    /// Handles messages. The payload of each is in the receive of the same number.
    fn handle(&mut self, arrived: &[Arrived]) {
        let count = arrived.len().min(self.receives.len());
        let slots: Vec<Slot> = self.receives.drain(..count).collect();
        let mut slots = slots.into_iter();
        let mut unused = Vec::new();
        for message in arrived {
            let slot = slots.next();
            // The socket reports the end again and again; nothing follows it.
            if self.state == State::Closed {
                unused.extend(slot);
            } else if message.bytes == 0 {
                unused.extend(slot);
                self.peer_ended();
            } else {
                let result = self.handle_one(message, slot, &mut unused);
                result.unwrap_or_else(|failure| self.end(failure));
            }
        }
        if self.state == State::Closed {
            let unused = unused.into_iter().map(Event::Unused);
            return unused.for_each(|event| self.report_late(event));
        }
        for slot in unused.into_iter().rev() {
            self.receives.push_front(slot);
        }
    }

    fn handle_one(
        &mut self,
        arrived: &Arrived,
        slot: Option<Slot>,
        unused: &mut Vec<Slot>,
    ) -> Result<(), Failure> {
        let message = match self.decode(arrived) {
            Ok(message) => message,
            Err(failure) => {
                unused.extend(slot);
                return Err(failure);
            }
        };
        if let Message::Send { invalidate } = message {
            return self.received(arrived, slot, invalidate, unused);
        }
        unused.extend(slot);
        if arrived.bytes > HEADER_BYTES || arrived.is_truncated {
            return Err(Failure::Protocol("bytes after a header".into()));
        }
        self.handle_control(message)
    }

    /// Decodes a header and counts the receives of the peer.
    fn decode(&mut self, arrived: &Arrived) -> Result<Message, Failure> {
        if arrived.bytes < HEADER_BYTES {
            return Err(Failure::Protocol("a message without a header".into()));
        }
        let header = Header::decode(&arrived.header)?;
        let posted = self.peer_receives.checked_add(header.posted);
        self.peer_receives = posted
            .filter(|posted| *posted <= RECEIVES_MAX)
            .ok_or_else(|| Failure::Protocol("too many receives".into()))?;
        Ok(header.message)
    }

    fn received(
        &mut self,
        arrived: &Arrived,
        slot: Option<Slot>,
        invalidate: Option<u32>,
        unused: &mut Vec<Slot>,
    ) -> Result<(), Failure> {
        if let Some(key) = invalidate {
            let Some(memory) = self.exposed.remove(&key) else {
                unused.extend(slot);
                return Err(Failure::Protocol("an unknown key is invalidated".into()));
            };
            self.events.push_back(Event::Revoked(key, memory));
            self.close_if_done();
        }
        match (slot, &self.state) {
            (None, State::Open) => Err(Failure::ReceiverNotReady),
            (Some(slot), State::Open) if !arrived.is_truncated => {
                let bytes = arrived.bytes - HEADER_BYTES;
                self.events.push_back(Event::Received(slot, bytes));
                Ok(())
            }
            (slot, state) => {
                let failure = match state {
                    State::Connecting => Failure::Protocol("a message before hello".into()),
                    _ => Failure::TooLong,
                };
                unused.extend(slot);
                Err(failure)
            }
        }
    }

    /// Handles all messages of the emulation itself.
    fn handle_control(&mut self, message: Message) -> Result<(), Failure> {
        match message {
            Message::Hello { version } => self.handle_hello(version),
            _ if self.state == State::Connecting => {
                Err(Failure::Protocol("a message before hello".into()))
            }
            Message::Posted => Ok(()),
            Message::Announce(_) if self.is_over() => Ok(()),
            Message::Announce(region) => self.peer_memory.add(region),
            Message::Withdraw { key } => {
                self.peer_memory.remove(key);
                if self.answers >= ANSWERS_MAX {
                    return Err(Failure::Protocol("too many unread answers".into()));
                }
                self.queue(Message::Withdrawn { key });
                Ok(())
            }
            Message::Withdrawn { key } => {
                if !self.withdrawing.remove(&key) {
                    return Err(Failure::Protocol(
                        "a confirmation without a withdrawal".into(),
                    ));
                }
                if let Some(memory) = self.exposed.remove(&key) {
                    self.events.push_back(Event::Revoked(key, memory));
                }
                self.close_if_done();
                Ok(())
            }
            Message::Send { .. } => unreachable!("handled before"),
        }
    }

    fn handle_hello(&mut self, version: u32) -> Result<(), Failure> {
        if self.is_over() {
            return Ok(());
        }
        if self.state != State::Connecting {
            return Err(Failure::Protocol("hello twice".into()));
        }
        if version != VERSION {
            let why = format!("version {version}, not {VERSION}");
            return Err(Failure::Protocol(why));
        }
        self.state = State::Open;
        self.events.push_back(Event::Connected);
        Ok(())
    }

    fn close_if_done(&mut self) {
        if self.exposed.is_empty() {
            self.close();
        }
    }
}

fn flushed(event: Event) -> Event {
    let flushed = Err(Failure::Flushed);
    match event {
        Event::Sent(id, pieces, _) => Event::Sent(id, pieces, flushed),
        Event::Written(id, pieces, _) => Event::Written(id, pieces, flushed),
        Event::Read(id, sink, _) => Event::Read(id, sink, flushed),
        other => other,
    }
}

/// One-sided operations.
impl EmulatedQueuePair {
    fn write(&mut self, pieces: &[Piece], remote: &[RemoteRegion]) -> Result<(), Failure> {
        let bytes = pieces.iter().map(|piece| piece.bytes().len()).sum();
        let far = self.find(remote, bytes, Access::Write)?;
        let near = Near::Pieces(pieces);
        finish(sys::write_far(self.process, near, &far), bytes)
    }

    /// Writes the bytes of a view. Returns false if the file was truncated meanwhile, or if the
    /// peer does not have the memory that it announced; the next operation finds out which.
    fn write_view(&mut self, view: &View, remote: &[RemoteRegion]) -> Result<bool, Failure> {
        let far = self.find(remote, view.len(), Access::Write)?;
        let result = sys::write_far(self.process, Near::View(view), &far);
        Ok(result.is_ok_and(|written| written == view.len()))
    }

    fn read(&mut self, into: &mut [u8], remote: &[RemoteRegion]) -> Result<(), Failure> {
        let bytes = into.len();
        let far = self.find(remote, bytes, Access::Read)?;
        if self.injector.tears() {
            // Like a device that is unplugged between two packets.
            let half = &mut into[..bytes / 2];
            finish(sys::read_far(self.process, half, &far), bytes / 2)?;
            return Err(Failure::Device("torn, as was asked for".into()));
        }
        finish(sys::read_far(self.process, into, &far), bytes)
    }

    fn find(
        &mut self,
        remote: &[RemoteRegion],
        bytes: usize,
        access: Access,
    ) -> Result<Vec<Far>, Failure> {
        if self.injector.uses_wrong_key() {
            return Err(Failure::RemoteAccess);
        }
        let far = self.peer_memory.find(remote, bytes, access)?;
        // Another process may have the process id of a peer that has ended.
        if sys::is_peer_gone(self.socket.as_fd()) {
            return Err(Failure::PeerDisconnected);
        }
        Ok(far)
    }
}

fn finish(result: io::Result<usize>, wanted: usize) -> Result<(), Failure> {
    match result {
        Ok(done) if done == wanted => Ok(()),
        // The peer has announced memory that it does not have.
        Ok(_) => Err(Failure::RemoteAccess),
        Err(error) => Err(match error.raw_os_error() {
            Some(libc::EFAULT) => Failure::RemoteAccess,
            Some(libc::ESRCH) => Failure::PeerDisconnected,
            _ => Failure::Device(format!("cannot access memory of the peer: {error}")),
        }),
    }
}

impl QueuePair for EmulatedQueuePair {
    fn limits(&self) -> Limits {
        self.limits
    }

    fn peer_addr(&self) -> SocketAddr {
        self.ends.peer
    }

    fn local_addr(&self) -> SocketAddr {
        self.ends.local
    }

    fn post_receive(&mut self, slot: Slot) {
        if self.is_over() {
            return self.report_late(Event::Unused(slot));
        }
        assert!(
            self.receives.len() < self.limits.receives as usize,
            "no more receives are posted than the limits allow"
        );
        self.receives.push_back(slot);
        self.unreported += 1;
    }

    fn post_send(&mut self, id: WorkId, pieces: Vec<Piece>, invalidate: Option<u32>) {
        let bytes: usize = pieces.iter().map(|piece| piece.bytes().len()).sum();
        assert!(bytes <= MESSAGE_BYTES, "a SEND keeps to the limits");
        assert!(
            pieces.len() <= self.limits.pieces as usize,
            "a SEND has no more pieces than the limits allow"
        );
        if !self.begin() {
            return self.report_late(Event::Sent(id, pieces, Err(Failure::Flushed)));
        }
        if invalidate.is_some_and(|key| !self.peer_memory.remove(key)) {
            let failed = Event::Sent(id, pieces, Err(Failure::RemoteAccess));
            self.events.push_back(failed);
            return self.end(Failure::RemoteAccess);
        }
        self.outgoing.push_back(Outgoing {
            message: Message::Send { invalidate },
            work: Some((id, pieces)),
            header: [0; HEADER_BYTES],
        });
    }

    fn post_write(&mut self, id: WorkId, pieces: Vec<Piece>, remote: &[RemoteRegion]) {
        let result = match self.begin() {
            true => self.write(&pieces, remote),
            false => Err(Failure::Flushed),
        };
        match result {
            Ok(()) => self.report(Event::Written(id, pieces, Ok(()))),
            Err(failure) => {
                self.report_late(Event::Written(id, pieces, Err(failure.clone())));
                self.end(failure);
            }
        }
    }

    fn write_file(
        &mut self,
        file: BorrowedFd<'_>,
        offset: u64,
        length: usize,
        remote: &[RemoteRegion],
    ) -> bool {
        if length < VIEW_BYTES_MIN {
            return false;
        }
        let is_written = match self.views.find(file, offset, length) {
            Ok(view) if self.begin() => self.write_view(&view, remote),
            _ => Ok(false),
        };
        is_written.unwrap_or_else(|failure| {
            self.end(failure);
            false
        })
    }

    fn post_read(
        &mut self,
        id: WorkId,
        mut sink: Sink,
        range: Range<usize>,
        remote: &[RemoteRegion],
    ) {
        let result = match self.begin() {
            true => self.read(&mut sink.bytes_mut()[range], remote),
            false => Err(Failure::Flushed),
        };
        match result {
            Ok(()) => self.report(Event::Read(id, sink, Ok(()))),
            Err(failure) => {
                self.report_late(Event::Read(id, sink, Err(failure.clone())));
                self.end(failure);
            }
        }
    }

    fn expose(&mut self, mut memory: Exposed) -> Result<RemoteRegion, (io::Error, Exposed)> {
        let refused = |kind: io::ErrorKind, memory| Err((io::Error::from(kind), memory));
        if self.is_over() {
            return refused(io::ErrorKind::NotConnected, memory);
        }
        if self.exposed.len() >= REGIONS_MAX {
            return refused(io::ErrorKind::QuotaExceeded, memory);
        }
        let Ok(length) = u32::try_from(memory.len()) else {
            return refused(io::ErrorKind::InvalidInput, memory);
        };
        let key = self.new_key();
        let address = memory.start() as u64;
        self.queue(Message::Announce(Announced {
            key,
            address,
            length,
            is_to_write: memory.is_to_write(),
        }));
        self.exposed.insert(key, memory);
        Ok(RemoteRegion {
            address,
            key,
            length,
        })
    }

    fn revoke(&mut self, key: u32) {
        let is_exposed = self.exposed.contains_key(&key);
        if !self.is_over() && is_exposed && self.withdrawing.insert(key) {
            self.queue(Message::Withdraw { key });
        }
    }

    fn flush(&mut self) {
        self.send_queued();
        if self.unreported > 0 && !self.is_over() && !self.is_blocked && self.outgoing.is_empty() {
            self.queue(Message::Posted);
            self.send_queued();
        }
    }

    fn poll(&mut self, events: &mut Vec<Event>) {
        self.views.forget_unused();
        self.take_in();
        self.send_queued();
        events.extend(self.events.drain(..));
    }

    fn arm(&mut self) -> Wait {
        if self.has_more || !self.events.is_empty() {
            Wait::No
        } else if self.is_blocked() {
            Wait::ReadableOrWritable
        } else {
            Wait::Readable
        }
    }

    fn is_blocked(&self) -> bool {
        self.is_blocked && !self.is_over()
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn disconnect(&mut self) {
        self.end(Failure::Disconnected);
    }
}

impl EmulatedQueuePair {
    /// A key without a region. Consecutive keys differ in many bits, as those of devices do.
    fn new_key(&self) -> u32 {
        loop {
            let number = KEYS.fetch_add(1, Ordering::Relaxed);
            let key = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32;
            if !self.exposed.contains_key(&key) && !self.withdrawing.contains(&key) {
                return key;
            }
        }
    }
}

impl Drop for EmulatedQueuePair {
    /// Exposed memory stays allocated until the peer has released it.
    fn drop(&mut self) {
        let exposed = std::mem::take(&mut self.exposed);
        if exposed.is_empty() {
            return;
        }
        sys::end_sending(self.socket.as_fd());
        // Without a thread that waits, the memory is leaked, not freed.
        let exposed = ManuallyDrop::new(exposed);
        let Ok(socket) = self.socket.try_clone() else {
            return;
        };
        let wait = move || {
            sys::wait_for_end(socket.as_fd());
            drop(ManuallyDrop::into_inner(exposed));
        };
        let thread = std::thread::Builder::new().name("rdma-exposed".into());
        // If the thread does not start, the closure is dropped and the memory stays leaked.
        drop(thread.spawn(wait));
    }
}
