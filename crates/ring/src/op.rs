//! Operations in the ring: their memory and their completions.

use std::any::Any;
use std::collections::VecDeque;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;

use crate::buffer::Buffer;
use crate::pipe::Pipe;
use crate::region::Region;
use crate::sys::RawAddress;
use crate::udp::Arrivals;
use crate::waker::RuntimeWaker;

/// User data of completions that only end a sleep of the ring.
pub(crate) const WAKE: u64 = u64::MAX;
/// User data of completions that the driver ignores.
pub(crate) const IGNORE: u64 = u64::MAX - 1;
/// User data of the poll on the eventfd.
pub(crate) const EVENTFD: u64 = u64::MAX - 2;

/// Unread completions of a multishot operation after which the driver stops it. The stream or
/// listener arms it again with its next read. So one peer cannot take all receive chunks of a
/// worker, nor all its descriptors.
const UNREAD_MAX: usize = 16;

/// Memory of an upper module that the kernel works on. The module boxes it, so that its address
/// stays the same while the box moves into the operation and back.
pub(crate) trait Pinned: Any {}

impl dyn Pinned {
    /// Returns the value with the type that the module has boxed.
    pub(crate) fn downcast<T: Pinned>(self: Box<Self>) -> Box<T> {
        let any: Box<dyn Any> = self;
        any.downcast().expect("an operation returns its hold")
    }
}

/// The memory and the descriptors that the kernel works on. They stay in the operation until its
/// last completion.
///
/// The variants name types of the modules below this one. An upper module passes its descriptor and
/// its boxed memory as trait objects. Neither costs an allocation: the reference count and the box
/// exist already.
#[expect(
    dead_code,
    reason = "most fields only keep alive the memory that the kernel uses"
)]
pub(crate) enum Hold {
    /// A receive from a socket into provided buffers.
    Receive(Rc<TcpStream>),
    /// A multishot accept.
    Accept(Rc<TcpListener>),
    /// A connect. The kernel reads the address. The caller takes the socket back with the result.
    Connect(OwnedFd, Box<RawAddress>),
    /// A receive from a socket into a region.
    Fill(Rc<TcpStream>, Region),
    /// A send on a socket. The kernel reads the message header in the box and all that it refers
    /// to.
    Send(Rc<dyn AsFd>, Box<dyn Pinned>),
    /// A read or a write of a file.
    File(Arc<dyn AsFd>, Buffer),
    /// A sync of a file.
    Sync(Arc<dyn AsFd>),
    /// A wait for the readiness of a descriptor.
    Poll(Rc<dyn AsFd>),
    /// A move of pages from a file into a pipe, or from a pipe into a socket.
    Splice(Rc<TcpStream>, Rc<Pipe>, Option<Arc<fs::File>>),
    /// A multishot receive of datagrams. The kernel reads the message header in the arrivals.
    Datagrams(Rc<dyn AsFd>, Rc<Arrivals>),
    /// A message to another ring. The second field keeps the number of that ring's descriptor from
    /// being reused.
    Message(Arc<RuntimeWaker>, Arc<OwnedFd>),
}

/// One completion as the kernel reported it.
#[derive(Debug)]
pub(crate) struct Completion {
    /// Result: a count, a descriptor, or a negated errno.
    pub(crate) result: i32,
    /// Number of the provided buffer that has the data.
    pub(crate) chunk: Option<u16>,
    /// Copy of the data, where another stream needed its chunk.
    pub(crate) spilled: Option<Box<[u8]>>,
}

impl Completion {
    /// A completion without a copy of its data.
    pub(crate) fn new(result: i32, chunk: Option<u16>) -> Self {
        Self {
            result,
            chunk,
            spilled: None,
        }
    }
}

/// One operation. The table holds it from the submit until the driver hands out the last
/// completion.
pub(crate) struct Op {
    pub(crate) hold: Hold,
    pub(crate) waker: Option<Waker>,
    first: Option<Completion>,
    more: VecDeque<Completion>,
    /// The kernel has posted the last completion.
    pub(crate) is_finished: bool,
    /// No future awaits the completions any more.
    pub(crate) is_orphan: bool,
    /// The driver has queued a cancel.
    pub(crate) is_canceled: bool,
}

impl Op {
    pub(crate) fn new(hold: Hold) -> Self {
        Self {
            hold,
            waker: None,
            first: None,
            more: VecDeque::new(),
            is_finished: false,
            is_orphan: false,
            is_canceled: false,
        }
    }

    /// Adds a completion. The first needs no allocation.
    pub(crate) fn push(&mut self, completion: Completion) {
        if self.first.is_none() && self.more.is_empty() {
            self.first = Some(completion);
        } else {
            self.more.push_back(completion);
        }
    }

    /// Takes the oldest completion.
    pub(crate) fn pop(&mut self) -> Option<Completion> {
        self.first.take().or_else(|| self.more.pop_front())
    }

    /// The completions that no future has taken yet.
    pub(crate) fn unread_mut(&mut self) -> impl Iterator<Item = &mut Completion> {
        self.first.iter_mut().chain(self.more.iter_mut())
    }

    /// Whether the driver must stop the operation because too many completions wait. A receive of
    /// datagrams never floods: its few buffers bound it, and a socket always reads.
    pub(crate) fn is_flooded(&self) -> bool {
        self.unread() >= UNREAD_MAX && !matches!(self.hold, Hold::Datagrams(..))
    }

    /// Number of completions that no future has taken yet.
    pub(crate) fn unread(&self) -> usize {
        usize::from(self.first.is_some()) + self.more.len()
    }
}
