//! RDMA-CM: identifiers, which correspond to sockets in TCP, and the channels that report their
//! events.

use std::ffi::{c_int, c_void};
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};

use super::ffi;
use super::library::Library;
use super::raw_address::{RawAddress, socket_address};

/// Time limit for resolving an address or a route.
const RESOLVE_TIMEOUT_MS: c_int = 5_000;

/// An event channel. Reading events never blocks.
pub(super) struct Channel {
    library: &'static Library,
    raw: NonNull<ffi::EventChannel>,
}

// SAFETY: librdmacm is thread-safe; a channel is a descriptor on the heap, which only `drop` frees.
unsafe impl Send for Channel {}

/// An event of an identifier. It is copied out of the library's memory, and the original is
/// acknowledged.
#[derive(Debug)]
pub(super) struct CmEvent {
    /// The identifier; for a connection request, the new one.
    pub(super) id: *mut ffi::CmId,
    pub(super) kind: c_int,
    /// 0, a negated errno, or the network's reason for a rejection.
    pub(super) status: c_int,
    pub(super) peer: Depths,
}

/// Numbers of READs in flight: outgoing ones, and incoming ones that this side answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Depths {
    pub(super) initiator: u8,
    pub(super) responder: u8,
}

impl Depths {
    pub(super) fn min(self, other: Self) -> Self {
        Self {
            initiator: self.initiator.min(other.initiator),
            responder: self.responder.min(other.responder),
        }
    }
}

impl Channel {
    pub(super) fn new(library: &'static Library) -> io::Result<Self> {
        let raw = library.calls.run(|| {
            // SAFETY: takes no arguments; returns null or a channel that the caller destroys.
            let raw = unsafe { (library.create_event_channel)() };
            NonNull::new(raw).ok_or_else(no_device)
        })?;
        let channel = Self { library, raw };
        set_nonblocking(channel.fd())?;
        Ok(channel)
    }

    fn fd(&self) -> c_int {
        // SAFETY: the channel lives until `drop`, and nothing changes the descriptor.
        unsafe { (*self.raw.as_ptr()).fd }
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open as long as the channel, which is borrowed.
        unsafe { BorrowedFd::borrow_raw(self.fd()) }
    }

    /// Takes the next event. `None` if no event waits.
    pub(super) fn next(&self) -> io::Result<Option<CmEvent>> {
        if !self.is_readable() {
            return Ok(None);
        }
        self.library.calls.run(|| self.take())
    }

    /// A check before the read: callers ask often, and this is cheaper than a call on another
    /// thread.
    fn is_readable(&self) -> bool {
        let mut poll = libc::pollfd {
            fd: self.fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one descriptor, which is open; the call does not wait.
        unsafe { libc::poll(&raw mut poll, 1, 0) != 0 }
    }

    fn take(&self) -> io::Result<Option<CmEvent>> {
        let mut raw = ptr::null_mut();
        // SAFETY: the channel is alive, and `raw` is written on success only.
        let result = unsafe { (self.library.get_cm_event)(self.raw.as_ptr(), &raw mut raw) };
        if result != 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(None),
                _ => Err(error),
            };
        }
        // SAFETY: on success it points to an event, which lives until it is acknowledged.
        let event = unsafe { &*raw };
        let copied = CmEvent {
            id: event.id,
            kind: event.event,
            status: event.status,
            peer: Depths {
                initiator: event.conn.initiator_depth,
                responder: event.conn.responder_resources,
            },
        };
        // SAFETY: acknowledged once, and not used after this.
        unsafe { (self.library.ack_cm_event)(raw) };
        Ok(Some(copied))
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // SAFETY: made by `new`, destroyed only here; its identifiers are destroyed (`Id` holds the
        // channel) and all events are acknowledged.
        unsafe { (self.library.destroy_event_channel)(self.raw.as_ptr()) };
    }
}

/// An identifier with a separate channel.
pub(super) struct Id {
    library: &'static Library,
    raw: NonNull<ffi::CmId>,
    channel: Channel,
}

// SAFETY: librdmacm is thread-safe, the identifier is heap memory, and `Id` is its only owner.
unsafe impl Send for Id {}

impl Id {
    pub(super) fn new(library: &'static Library) -> io::Result<Self> {
        let channel = Channel::new(library)?;
        let mut raw = ptr::null_mut();
        let channel_raw = channel.raw.as_ptr();
        library.calls.run(|| {
            // SAFETY: the channel is alive and outlives the identifier; `raw` is written on
            // success.
            check(unsafe {
                (library.create_id)(channel_raw, &raw mut raw, ptr::null_mut(), ffi::PS_TCP)
            })
        })?;
        let raw = NonNull::new(raw).expect("success makes an identifier");
        Ok(Self {
            library,
            raw,
            channel,
        })
    }

    /// Takes over the identifier of a connection request. A separate channel lets its owner be
    /// another thread than the listener's.
    pub(super) fn of_request(library: &'static Library, raw: *mut ffi::CmId) -> io::Result<Self> {
        let raw = NonNull::new(raw).expect("a request has an identifier");
        let destroy = || {
            // SAFETY: the event of a request makes this process the identifier's owner, and the
            // event is acknowledged; the identifier has no queue pair yet.
            library
                .calls
                .run(|| unsafe { (library.destroy_id)(raw.as_ptr()) })
        };
        let channel = Channel::new(library).inspect_err(|_| {
            destroy();
        })?;
        let migrated = library.calls.run(|| {
            // SAFETY: both are alive and owned here. No event of the identifier is unacknowledged.
            check(unsafe { (library.migrate_id)(raw.as_ptr(), channel.raw.as_ptr()) })
        });
        migrated.inspect_err(|_| {
            destroy();
        })?;
        Ok(Self {
            library,
            raw,
            channel,
        })
    }

    pub(super) fn channel(&self) -> &Channel {
        &self.channel
    }

    /// Whether this is the identifier of an event.
    pub(super) fn is(&self, raw: *mut ffi::CmId) -> bool {
        self.raw.as_ptr() == raw
    }

    fn get(&self) -> &ffi::CmId {
        // SAFETY: alive until `drop`. The library changes it only in calls of this owner.
        unsafe { self.raw.as_ref() }
    }

    /// The device that the identifier is bound to, if any.
    pub(super) fn context(&self) -> Option<NonNull<ffi::Context>> {
        NonNull::new(self.get().verbs)
    }

    pub(super) fn local_addr(&self) -> SocketAddr {
        socket_address(&self.get().source).unwrap_or(UNKNOWN)
    }

    pub(super) fn peer_addr(&self) -> SocketAddr {
        socket_address(&self.get().destination).unwrap_or(UNKNOWN)
    }

    /// Makes a call on the thread with the right credentials.
    fn call(&self, call: impl FnOnce(&Library, *mut ffi::CmId) -> c_int) -> io::Result<()> {
        let (library, raw) = (self.library, self.raw.as_ptr());
        library.calls.run(|| check(call(library, raw)))
    }

    /// Binds to an address. An address of a device also binds to that device.
    pub(super) fn bind(&self, address: &RawAddress) -> io::Result<()> {
        let address = address.pointer();
        // SAFETY: the address is readable and has the length of its family.
        self.call(|library, raw| unsafe { (library.bind_addr)(raw, address) })
    }

    fn set_option(&self, option: c_int, value: c_int) -> io::Result<()> {
        let mut value = value;
        let (value, bytes) = ((&raw mut value).cast::<c_void>(), size_of::<c_int>());
        self.call(|library, raw| {
            // SAFETY: these options take an `int`, which is readable during the call.
            unsafe { (library.set_option)(raw, ffi::OPTION_ID, option, value, bytes) }
        })
    }

    /// Listens on an address. The channel reports connection requests.
    pub(super) fn listen(&self, address: SocketAddr, backlog: c_int) -> io::Result<()> {
        self.set_option(ffi::OPTION_ID_REUSEADDR, 1)?;
        if address.is_ipv6() {
            self.set_option(ffi::OPTION_ID_AFONLY, 1)?;
        }
        self.bind(&RawAddress::from(address))?;
        // SAFETY: the identifier is alive and bound.
        self.call(|library, raw| unsafe { (library.listen)(raw, backlog) })
    }

    /// Starts to find a device that reaches the address. The channel reports the result.
    pub(super) fn resolve_address(&self, address: SocketAddr) -> io::Result<()> {
        let address = RawAddress::from(address);
        let (from, to) = (ptr::null_mut(), address.pointer());
        // SAFETY: the address is readable and has the length of its family; no source is given.
        self.call(|library, raw| unsafe {
            (library.resolve_addr)(raw, from, to, RESOLVE_TIMEOUT_MS)
        })
    }

    /// Starts to find a route. The channel reports the result.
    pub(super) fn resolve_route(&self) -> io::Result<()> {
        // SAFETY: the identifier is alive; in a wrong state the call only fails.
        self.call(|library, raw| unsafe { (library.resolve_route)(raw, RESOLVE_TIMEOUT_MS) })
    }

    /// Makes the queue pair and returns it. It lives until [`destroy_qp`](Self::destroy_qp).
    ///
    /// # Safety
    /// The protection domain and the completion queues live longer than the queue pair.
    pub(super) unsafe fn create_qp(
        &self,
        pd: *mut ffi::Pd,
        attributes: &mut ffi::QpInitAttr,
    ) -> io::Result<NonNull<ffi::Qp>> {
        // SAFETY: the identifier is alive; the caller guarantees the rest.
        self.call(|library, raw| unsafe { (library.create_qp)(raw, pd, attributes) })?;
        Ok(NonNull::new(self.get().qp).expect("success makes a queue pair"))
    }

    /// Destroys the queue pair, if any. After this the device accesses none of its memory.
    pub(super) fn destroy_qp(&self) {
        if self.get().qp.is_null() {
            return;
        }
        let (library, raw) = (self.library, self.raw.as_ptr());
        // SAFETY: the queue pair exists, and this call makes the library forget it.
        library.calls.run(|| unsafe { (library.destroy_qp)(raw) });
    }

    /// Starts to connect the queue pair. The channel reports the result.
    pub(super) fn connect(&self, depths: Depths) -> io::Result<()> {
        let mut param = connection_parameters(depths);
        // SAFETY: the parameters are readable during the call, and have no private data.
        self.call(|library, raw| unsafe { (library.connect)(raw, &raw mut param) })
    }

    /// Accepts a request. The channel reports when both peers are ready.
    pub(super) fn accept(&self, depths: Depths) -> io::Result<()> {
        let mut param = connection_parameters(depths);
        // SAFETY: as in `connect`.
        self.call(|library, raw| unsafe { (library.accept)(raw, &raw mut param) })
    }

    /// Rejects a request. A failure means that the peer has disconnected before.
    pub(super) fn reject(&self) {
        // SAFETY: the identifier is alive; without private data.
        let _ = self.call(|library, raw| unsafe { (library.reject)(raw, ptr::null(), 0) });
    }

    /// Ends the connection, if any. In another state the call fails, which is harmless.
    pub(super) fn disconnect(&self) {
        // SAFETY: the identifier is alive.
        let _ = self.call(|library, raw| unsafe { (library.disconnect)(raw) });
    }
}

impl Drop for Id {
    fn drop(&mut self) {
        self.destroy_qp();
        // SAFETY: made or taken over by this owner, destroyed only here, without a queue pair; all
        // its events are acknowledged. The channel is dropped after this.
        let _ = self.call(|library, raw| unsafe { (library.destroy_id)(raw) });
    }
}

const UNKNOWN: SocketAddr = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0);

/// Number of retransmissions of a lost packet; 7 is the maximum. Linux's SMB Direct uses 6.
const RETRY_COUNT: u8 = 6;

fn connection_parameters(depths: Depths) -> ffi::ConnParam {
    ffi::ConnParam {
        private_data: ptr::null(),
        private_data_len: 0,
        responder_resources: depths.responder,
        initiator_depth: depths.initiator,
        flow_control: 0,
        retry_count: RETRY_COUNT,
        // SMB Direct's credits guarantee that the peer has a receive. [MS-SMBD] 3.1.1.1
        rnr_retry_count: 0,
        srq: 0,
        qp_num: 0,
    }
}

/// Converts a result by the library's convention: -1 and errno for an error.
pub(super) fn check(result: c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The error when opening fails, because there is no device or its kernel module is not loaded.
fn no_device() -> io::Error {
    let error = io::Error::last_os_error();
    let text = format!("no RDMA device, or no kernel module rdma_ucm: {error}");
    io::Error::new(error.kind(), text)
}

/// Makes all later calls on the descriptor non-blocking.
pub(super) fn set_nonblocking(fd: c_int) -> io::Result<()> {
    // SAFETY: F_GETFL has no argument and changes nothing.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    if flags < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the flags are the current ones and one more.
    check(unsafe { libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK) })
}
