//! A connection on a device: identifier, queue pair, completions, and the memory of operations.
//!
//! The device owns the memory of an operation from the post to the completion. When a connection
//! ends, the queue pair is destroyed first: from then on the device accesses no memory, and all
//! operations return theirs.

mod bound;
mod exposure;
mod retained;

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use slab::Slab;

use self::bound::{Bound, make_queue_pair};
use self::exposure::{EXPOSED_MAX, Exposure};
use self::retained::Retained;
use super::channel::{CmEvent, Depths, Id};
use super::device::{Device, Devices, Window, name};
use super::failure::{completion_failure, refused};
use super::ffi;
use super::posting::Request;
use super::readiness::Readiness;
use super::work::one_sided;
use crate::operand::{Exposed, Piece, RemoteRegion, Sink};
use crate::provider::{Attributes, Event, Failure, Limits, Network, QueuePair, Wait, WorkId};
use crate::slots::{Slot, Slots, Stock};

/// Largest SEND in bytes. Every device takes more, SMB Direct needs less.
const MESSAGE_BYTES: usize = 1 << 20;

/// Number of polls after which a poll also reads the events of RDMA-CM, although no task has
/// waited: for a busy queue pair, or one that is polled again and again. Reading costs a system
/// call.
const POLLS_PER_REPORT: u32 = 64;

/// Bit of the id of a receive. Ids of operations do not have it.
const RECEIVE: u64 = 1 << 63;

/// One connection.
pub(super) struct VerbsQueuePair {
    devices: Arc<Devices>,
    state: State,
    /// `None` after the end.
    id: Option<Id>,
    /// Set once the device is known.
    device: Option<Bound>,
    readiness: Readiness,
    peer: SocketAddr,
    local: SocketAddr,
    attributes: Attributes,
    /// The requested depths; the negotiated ones once connected.
    depths: Depths,
    operations: Slab<Operation>,
    receives: Slab<Slot>,
    /// Receives that wait for space in the queue.
    waiting_receives: VecDeque<Slot>,
    exposures: HashMap<u32, Exposure>,
    windows: Vec<Window>,
    /// Memory for copies of short pieces.
    copies: Option<Stock>,
    /// Memory that the peer accesses instead of small regions.
    slots: Option<Slots>,
    events: VecDeque<Event>,
    polls: u32,
    /// The descriptor may have become readable.
    is_waiting: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// RDMA-CM resolves the address.
    Resolving,
    /// RDMA-CM resolves the route.
    Routing,
    /// The connection request is sent.
    Connecting,
    /// The peer's request is accepted.
    Accepting,
    Connected,
    /// The last event is queued or delivered.
    Ended,
}

/// The order of the fields matters: registrations end before the memory is freed.
struct Operation {
    _retained: Retained,
    work: Work,
    /// Number of requests without a completion.
    left: usize,
    failure: Option<Failure>,
}

enum Work {
    Send(WorkId, Vec<Piece>),
    Write(WorkId, Vec<Piece>),
    Read(WorkId, Sink),
    Bind,
    Invalidate(u32),
}

impl VerbsQueuePair {
    /// Starts to connect.
    pub(super) fn connect(
        devices: Arc<Devices>,
        address: SocketAddr,
        attributes: &Attributes,
    ) -> io::Result<Self> {
        let id = Id::new(devices.library())?;
        id.resolve_address(address)?;
        let mut pair = Self::new(devices, id, State::Resolving, attributes)?;
        pair.peer = address;
        Ok(pair)
    }

    /// Accepts the request of a peer that offers these depths.
    pub(super) fn accept(
        devices: Arc<Devices>,
        id: Id,
        offered: Depths,
        attributes: &Attributes,
        receives: Vec<Slot>,
    ) -> io::Result<Self> {
        let mut pair = Self::new(devices, id, State::Accepting, attributes)?;
        pair.waiting_receives.extend(receives);
        pair.bind()?;
        if let Some(Event::Disconnected(failure)) = pair.events.pop_back() {
            return Err(failure.into());
        }
        pair.depths = pair.depths.min(offered);
        pair.id().accept(pair.depths)?;
        Ok(pair)
    }

    fn new(
        devices: Arc<Devices>,
        id: Id,
        state: State,
        attributes: &Attributes,
    ) -> io::Result<Self> {
        let readiness = Readiness::new()?;
        readiness.watch(id.channel().descriptor())?;
        // RDMA-CM stores it in one byte, in which 255 has a special meaning.
        let reads = u8::try_from(attributes.reads.min(254)).expect("within a byte");
        Ok(Self {
            devices,
            state,
            peer: id.peer_addr(),
            local: id.local_addr(),
            id: Some(id),
            device: None,
            readiness,
            attributes: attributes.clone(),
            depths: Depths {
                initiator: reads,
                responder: reads,
            },
            operations: Slab::new(),
            receives: Slab::new(),
            waiting_receives: VecDeque::new(),
            exposures: HashMap::new(),
            windows: Vec::new(),
            copies: None,
            slots: None,
            events: VecDeque::new(),
            polls: 0,
            is_waiting: false,
        })
    }

    fn id(&self) -> &Id {
        self.id.as_ref().expect("there until the end")
    }

    /// Makes the queue pair on the device of the identifier, and posts receives.
    fn bind(&mut self) -> io::Result<()> {
        let context = self.id().context();
        let context = context.ok_or_else(|| io::Error::other("the address has no device"))?;
        // SAFETY: the identifier is bound to the device.
        let device = unsafe { self.devices.of(context) }?;
        let capabilities = device.capabilities();
        self.depths = self.depths.min(Depths {
            initiator: capabilities.initiator_depth,
            responder: capabilities.responder_resources,
        });
        let bound = make_queue_pair(self.id(), &device, &self.attributes)?;
        let bound = self.device.insert(bound);
        self.readiness.watch(bound.completions.descriptor())?;
        self.readiness.watch(device.removal().as_fd())?;
        (self.peer, self.local) = (self.id().peer_addr(), self.id().local_addr());
        tracing::debug!(device = name(&device), ?capabilities, peer = %self.peer, "queue pair");
        self.post_waiting_receives();
        Ok(())
    }

    fn post_waiting_receives(&mut self) {
        let Some(bound) = &mut self.device else {
            return;
        };
        while self.receives.len() < bound.posting.receives_max() {
            let Some(mut slot) = self.waiting_receives.pop_front() else {
                return;
            };
            let keys = match bound.completions.device().known(slot.memory()) {
                Ok(keys) => keys,
                Err(error) => {
                    self.waiting_receives.push_front(slot);
                    return self.end(Failure::Device(error.to_string()));
                }
            };
            let sge = ffi::Sge {
                addr: slot.as_mut_ptr().addr() as u64,
                length: length(slot.len()),
                lkey: keys.local,
            };
            let index = self.receives.insert(slot);
            // SAFETY: `receives` owns the slot until the completion, or until the end of the queue
            // pair.
            let posted = unsafe { bound.posting.receive(RECEIVE | index as u64, sge) };
            if let Err(error) = posted {
                return self.end(Failure::Device(error.to_string()));
            }
        }
    }

    fn connected_device(&self) -> io::Result<&Arc<Device>> {
        let bound = self.device.as_ref();
        let bound = bound.ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected))?;
        Ok(bound.completions.device())
    }

    /// Queues the requests of an operation, which start with the next flush. An operation without
    /// requests is done.
    fn start(&mut self, work: Work, requests: Vec<Request>, retained: Retained) {
        if requests.is_empty() {
            return self.finished(work, Ok(()));
        }
        let Some(bound) = &mut self.device else {
            return self.finished(work, Err(Failure::Flushed));
        };
        let index = self.operations.insert(Operation {
            work,
            left: requests.len(),
            failure: None,
            _retained: retained,
        });
        bound.posting.queue(index as u64, requests);
    }

    /// Reports an operation that cannot start; this ends the connection.
    fn cannot_start(&mut self, work: Work, error: &io::Error) {
        if self.state == State::Ended {
            return self.finished(work, Err(Failure::Flushed));
        }
        let failure = Failure::Device(error.to_string());
        self.finished(work, Err(failure.clone()));
        self.end(failure);
    }

    fn finished(&mut self, work: Work, result: Result<(), Failure>) {
        match work {
            Work::Send(id, pieces) => self.report(Event::Sent(id, pieces, result)),
            Work::Write(id, pieces) => self.report(Event::Written(id, pieces, result)),
            Work::Read(id, sink) => self.report(Event::Read(id, sink, result)),
            Work::Bind => {}
            Work::Invalidate(key) => self.invalidated(key),
        }
    }

    fn report(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// Takes all completions. Returns whether there were any.
    fn poll_completions(&mut self) -> bool {
        let mut has_any = false;
        while let Some(bound) = &mut self.device {
            let completions = match bound.completions.poll() {
                Ok(completions) if completions.is_empty() => break,
                Ok(completions) => completions,
                Err(error) => {
                    self.end(Failure::Device(error.to_string()));
                    return true;
                }
            };
            has_any = true;
            if let Some(failure) = self.complete(&completions) {
                self.end(failure);
            }
        }
        has_any
    }

    /// Handles completions. The first failure ends the connection; all later completions are only
    /// flushed.
    fn complete(&mut self, completions: &[ffi::Wc]) -> Option<Failure> {
        let mut first = None;
        for completion in completions {
            let failure = if completion.wr_id & RECEIVE != 0 {
                self.complete_receive(completion)
            } else {
                self.complete_request(completion)
            };
            first = first.or(failure);
        }
        first
    }

    fn complete_receive(&mut self, completion: &ffi::Wc) -> Option<Failure> {
        let slot = self.receives.remove((completion.wr_id & !RECEIVE) as usize);
        if let Err(failure) = completion_failure(self.devices.library(), completion) {
            self.report(Event::Unused(slot));
            return self.ended(failure);
        }
        // A message may arrive before the event that the connection is established.
        self.connected();
        if let Some(key) = completion.invalidated_key() {
            self.invalidated_by_peer(key);
        }
        let bytes = (completion.byte_len as usize).min(slot.len());
        self.report(Event::Received(slot, bytes));
        None
    }

    fn complete_request(&mut self, completion: &ffi::Wc) -> Option<Failure> {
        if let Some(bound) = &mut self.device {
            bound.posting.completed();
        }
        let index = completion.wr_id as usize;
        let result = completion_failure(self.devices.library(), completion);
        let operation = self.operations.get_mut(index)?;
        operation.left -= 1;
        if let Err(failure) = result {
            // The operation keeps its memory until the queue pair is destroyed, because other
            // requests may be in flight.
            operation.failure.get_or_insert_with(|| failure.clone());
            return self.ended(failure);
        }
        if operation.left == 0 && operation.failure.is_none() {
            let operation = self.operations.remove(index);
            self.finished(operation.work, Ok(()));
        }
        None
    }

    /// The reason for the end of a connection after a failed operation. If operations are flushed
    /// without a failure on this side, the peer has ended the connection. While connecting, the
    /// event of RDMA-CM has the reason.
    fn ended(&self, failure: Failure) -> Option<Failure> {
        match (failure, self.state) {
            (Failure::Flushed, State::Connected) => Some(Failure::PeerDisconnected),
            (Failure::Flushed, _) => None,
            (failure, _) => Some(failure),
        }
    }

    fn connected(&mut self) {
        if !matches!(self.state, State::Connected | State::Ended) {
            self.state = State::Connected;
            self.report(Event::Connected);
        }
    }

    /// Handles the events of RDMA-CM.
    fn poll_reports(&mut self) {
        while let Some(id) = &self.id {
            match id.channel().next() {
                Ok(Some(event)) => self.handle_event(&event),
                Ok(None) => return,
                Err(error) => return self.end(Failure::Device(error.to_string())),
            }
        }
    }

    fn handle_event(&mut self, event: &CmEvent) {
        if !self.id().is(event.id) {
            return;
        }
        let result = match (event.kind, self.state) {
            (ffi::EVENT_ADDR_RESOLVED, State::Resolving) => self.address_resolved(),
            (ffi::EVENT_ROUTE_RESOLVED, State::Routing) => self.route_resolved(),
            (ffi::EVENT_ESTABLISHED, _) => {
                self.established(event);
                Ok(())
            }
            (ffi::EVENT_ADDR_ERROR, _) => return self.end(refused("address", event.status)),
            (ffi::EVENT_ROUTE_ERROR, _) => return self.end(refused("route", event.status)),
            (ffi::EVENT_CONNECT_ERROR, _) => return self.end(refused("connect", event.status)),
            (ffi::EVENT_UNREACHABLE, _) => return self.end(refused("unreachable", event.status)),
            (ffi::EVENT_REJECTED, _) => return self.end(refused("rejected", event.status)),
            (ffi::EVENT_DISCONNECTED, _) => {
                // Messages that the peer sent before the end still count.
                self.poll_completions();
                return self.end(Failure::PeerDisconnected);
            }
            (ffi::EVENT_DEVICE_REMOVAL, _) => {
                return self.end(removed());
            }
            _ => Ok(()),
        };
        if let Err(error) = result {
            // siw resolves the peer only when it starts to connect.
            self.end(Failure::Refused(error.to_string()));
        }
    }

    fn address_resolved(&mut self) -> io::Result<()> {
        self.bind()?;
        if self.state == State::Resolving {
            self.state = State::Routing;
            self.id().resolve_route()?;
        }
        Ok(())
    }

    fn route_resolved(&mut self) -> io::Result<()> {
        self.state = State::Connecting;
        self.id().connect(self.depths)
    }

    fn established(&mut self, event: &CmEvent) {
        if self.state == State::Connecting {
            // iWARP reports its own values, other networks report the peer's, and 0 if the peer
            // sent none.
            let network = self.connected_device().map(|it| it.capabilities().network);
            let reads = match network {
                Ok(Network::Iwarp) => event.peer.responder,
                _ => event.peer.initiator,
            };
            if reads != 0 {
                self.depths.initiator = self.depths.initiator.min(reads);
            }
        }
        self.connected();
    }

    /// Posts queued requests, as far as the queue has space.
    fn post(&mut self) {
        if self.state != State::Connected {
            return;
        }
        let Some(bound) = &mut self.device else {
            return;
        };
        // SAFETY: `operations` and `exposures` own all memory, registrations and windows of the
        // requests until their completion, or until the end of the queue pair.
        if let Err(error) = unsafe { bound.posting.post() } {
            self.end(Failure::Device(format!(
                "the device did not accept a request: {error}"
            )));
        }
    }

    /// Ends the connection, in the order of the module's documentation.
    fn end(&mut self, failure: Failure) {
        if self.state == State::Ended {
            return;
        }
        self.state = State::Ended;
        let id = self.id.take().expect("there until the end");
        id.disconnect();
        // rxe counts a bound window as a user of its queue pair, and waits for it. From here on the
        // peer accesses nothing, and all posted operations fail.
        self.close_windows();
        id.destroy_qp();
        self.free_operations();
        self.free_exposures();
        self.copies = None;
        self.slots = None;
        if let Some(bound) = self.device.take() {
            bound.completions.device().forget_unused();
        }
        self.report(Event::Disconnected(failure));
    }

    /// Returns the memory of all operations. The device has forgotten them.
    fn free_operations(&mut self) {
        for operation in std::mem::take(&mut self.operations) {
            let (_, operation) = operation;
            if !matches!(operation.work, Work::Invalidate(_)) {
                let failure = operation.failure.unwrap_or(Failure::Flushed);
                self.finished(operation.work, Err(failure));
            }
        }
        let posted = std::mem::take(&mut self.receives).into_iter();
        let posted = posted.map(|(_, slot)| slot).collect::<Vec<_>>();
        let waiting = std::mem::take(&mut self.waiting_receives);
        for slot in posted.into_iter().chain(waiting) {
            self.report(Event::Unused(slot));
        }
    }
}

fn removed() -> Failure {
    Failure::Device("the device is removed".to_owned())
}

fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("no operation has 4 GiB")
}

impl QueuePair for VerbsQueuePair {
    fn limits(&self) -> Limits {
        let Some(bound) = &self.device else {
            return NO_LIMITS;
        };
        let capabilities = bound.completions.device().capabilities();
        Limits {
            receives: u32::try_from(bound.posting.receives_max()).unwrap_or(u32::MAX),
            sends: bound.posting.sends_max(),
            pieces: bound.posting.pieces_max(),
            message_bytes: MESSAGE_BYTES,
            reads: self.depths.initiator.into(),
            exposed: capabilities.regions.min(EXPOSED_MAX),
            remote_invalidation: capabilities.has_windows,
        }
    }

    fn peer_addr(&self) -> SocketAddr {
        self.peer
    }

    fn local_addr(&self) -> SocketAddr {
        self.local
    }

    fn post_receive(&mut self, slot: Slot) {
        if self.state == State::Ended {
            return self.report(Event::Unused(slot));
        }
        self.waiting_receives.push_back(slot);
        self.post_waiting_receives();
    }

    fn post_send(&mut self, id: WorkId, pieces: Vec<Piece>, invalidate: Option<u32>) {
        let mut retained = Retained::default();
        match self.pieces(&pieces, &mut retained) {
            Ok(local) => {
                let request = Request::Send { local, invalidate };
                self.start(Work::Send(id, pieces), vec![request], retained);
            }
            Err(error) => self.cannot_start(Work::Send(id, pieces), &error),
        }
    }

    fn post_write(&mut self, id: WorkId, pieces: Vec<Piece>, remote: &[RemoteRegion]) {
        let mut retained = Retained::default();
        match self.pieces(&pieces, &mut retained) {
            Ok(local) => {
                let most = self.limits().pieces as usize;
                let requests = one_sided(&local, remote, most).into_iter();
                let requests = requests.map(Request::Write).collect();
                self.start(Work::Write(id, pieces), requests, retained);
            }
            Err(error) => self.cannot_start(Work::Write(id, pieces), &error),
        }
    }

    fn post_read(
        &mut self,
        id: WorkId,
        mut sink: Sink,
        range: Range<usize>,
        remote: &[RemoteRegion],
    ) {
        let mut retained = Retained::default();
        let local = self.sink(&mut sink, range, &mut retained);
        let work = Work::Read(id, sink);
        match local {
            Ok(_) if self.depths.initiator == 0 => {
                let error = io::Error::other("the peer answers no RDMA READs");
                self.cannot_start(work, &error);
            }
            // iWARP supports one piece per request only.
            Ok(local) => {
                let requests = one_sided(&[local], remote, 1).into_iter();
                self.start(work, requests.map(Request::Read).collect(), retained);
            }
            Err(error) => self.cannot_start(work, &error),
        }
    }

    fn expose(&mut self, memory: Exposed) -> Result<RemoteRegion, (io::Error, Exposed)> {
        self.expose_region(memory)
    }

    fn revoke(&mut self, key: u32) {
        self.revoke_region(key);
    }

    fn flush(&mut self) {
        self.post();
    }

    fn poll(&mut self, events: &mut Vec<Event>) {
        if let Some(bound) = &mut self.device
            && let Err(error) = bound.completions.take_event()
        {
            self.end(Failure::Device(error.to_string()));
        }
        self.polls = self.polls.wrapping_add(1);
        let has_waited = std::mem::take(&mut self.is_waiting);
        let is_connecting = self.state != State::Connected;
        if has_waited || is_connecting || self.polls.is_multiple_of(POLLS_PER_REPORT) {
            self.poll_reports();
        }
        self.poll_completions();
        if let Ok(device) = self.connected_device()
            && device.removal().is_raised()
        {
            self.end(removed());
        }
        self.post_waiting_receives();
        self.post();
        events.extend(self.events.drain(..));
    }

    fn arm(&mut self) -> Wait {
        if !self.events.is_empty() {
            return Wait::No;
        }
        self.is_waiting = true;
        let Some(bound) = &mut self.device else {
            return Wait::Readable;
        };
        if let Err(error) = bound.completions.arm() {
            self.end(Failure::Device(error.to_string()));
        }
        // Completions between the last poll and this call have no event.
        self.poll_completions();
        if self.events.is_empty() {
            Wait::Readable
        } else {
            Wait::No
        }
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.readiness.as_fd()
    }

    fn disconnect(&mut self) {
        self.end(Failure::Disconnected);
    }
}

const NO_LIMITS: Limits = Limits {
    receives: 0,
    sends: 0,
    pieces: 0,
    message_bytes: 0,
    reads: 0,
    exposed: 0,
    remote_invalidation: false,
};

impl Drop for VerbsQueuePair {
    fn drop(&mut self) {
        self.end(Failure::Disconnected);
    }
}

impl fmt::Debug for VerbsQueuePair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerbsQueuePair")
            .field("state", &self.state)
            .field("peer", &self.peer)
            .field("operations", &self.operations.len())
            .field("receives", &self.receives.len())
            .field("exposures", &self.exposures.len())
            .finish_non_exhaustive()
    }
}
