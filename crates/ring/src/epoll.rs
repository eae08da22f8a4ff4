//! The epoll driver: readiness of sockets, edge-triggered.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use slab::Slab;

use crate::config::{Stats, count};
use crate::sys;
use crate::wait::Wait;
use crate::waker::RuntimeWaker;

/// Events that one call returns at most. The next turn takes the rest.
const EVENTS_PER_TURN: usize = 256;
/// Token of the eventfd.
const EVENTFD: u64 = u64::MAX;

/// Direction of data on a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From the peer.
    Read,
    /// To the peer.
    Write,
}

/// Readiness of one direction of a socket. It is ready until a call returns EAGAIN.
struct Readiness {
    is_ready: bool,
    waker: Option<Waker>,
}

impl Readiness {
    const NEW: Self = Self {
        is_ready: true,
        waker: None,
    };

    fn set(&mut self) -> Option<Waker> {
        self.is_ready = true;
        self.waker.take()
    }
}

struct Source {
    read: Readiness,
    write: Readiness,
}

/// The epoll driver. It belongs to one thread.
pub(crate) struct Epoll {
    fd: OwnedFd,
    sources: RefCell<Slab<Source>>,
    events: RefCell<Vec<libc::epoll_event>>,
    stats: Rc<Cell<Stats>>,
}

impl Epoll {
    pub(crate) fn new(waker: &Arc<RuntimeWaker>, stats: Rc<Cell<Stats>>) -> io::Result<Self> {
        let fd = sys::epoll_create()?;
        sys::epoll_add(fd.as_fd(), waker.eventfd(), EVENTFD)?;
        let empty = libc::epoll_event { events: 0, u64: 0 };
        let events = RefCell::new(vec![empty; EVENTS_PER_TURN]);
        Ok(Self {
            fd,
            sources: RefCell::default(),
            events,
            stats,
        })
    }

    /// Adds a descriptor and returns its token.
    pub(crate) fn add(&self, fd: BorrowedFd<'_>) -> io::Result<usize> {
        let source = Source {
            read: Readiness::NEW,
            write: Readiness::NEW,
        };
        let token = self.sources.borrow_mut().insert(source);
        if let Err(error) = sys::epoll_add(self.fd.as_fd(), fd, token as u64) {
            self.sources.borrow_mut().remove(token);
            return Err(error);
        }
        Ok(token)
    }

    /// Removes a descriptor.
    pub(crate) fn remove(&self, token: usize, fd: BorrowedFd<'_>) {
        let result = sys::epoll_delete(self.fd.as_fd(), fd);
        assert!(
            result.is_ok(),
            "a watched socket can be removed: {result:?}"
        );
        let source = self.sources.borrow_mut().remove(token);
        drop(source);
    }

    /// Ready unless the last call returned EAGAIN and no event has arrived since.
    pub(crate) fn poll_ready(
        &self,
        token: usize,
        direction: Direction,
        context: &mut Context<'_>,
    ) -> Poll<()> {
        let mut sources = self.sources.borrow_mut();
        let side = side(&mut sources[token], direction);
        if side.is_ready {
            return Poll::Ready(());
        }
        side.waker = Some(context.waker().clone());
        Poll::Pending
    }

    /// Marks a direction as not ready, after a call has returned EAGAIN.
    pub(crate) fn clear_ready(&self, token: usize, direction: Direction) {
        side(&mut self.sources.borrow_mut()[token], direction).is_ready = false;
    }

    /// Waits for `wait` at most, and wakes the tasks that the events concern.
    pub(crate) fn turn(&self, wait: Wait) -> io::Result<()> {
        count(&self.stats, |stats| stats.enters += 1);
        let mut events = self.events.borrow_mut();
        let result = sys::epoll_wait(self.fd.as_fd(), &mut events, milliseconds(wait));
        let filled = match result {
            Ok(filled) => filled,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) => return Err(error),
        };
        count(&self.stats, |stats| stats.cqes += filled as u64);
        events[..filled]
            .iter()
            .for_each(|event| self.dispatch(event));
        Ok(())
    }

    fn dispatch(&self, event: &libc::epoll_event) {
        let (token, events) = (event.u64, event.events as i32);
        if token == EVENTFD {
            return;
        }
        let (mut reader, mut writer) = (None, None);
        if let Some(source) = self.sources.borrow_mut().get_mut(token as usize) {
            let is_broken = events & (libc::EPOLLERR | libc::EPOLLHUP) != 0;
            if is_broken || events & (libc::EPOLLIN | libc::EPOLLRDHUP) != 0 {
                reader = source.read.set();
            }
            if is_broken || events & libc::EPOLLOUT != 0 {
                writer = source.write.set();
            }
        }
        reader.into_iter().chain(writer).for_each(Waker::wake);
    }
}

fn side(source: &mut Source, direction: Direction) -> &mut Readiness {
    match direction {
        Direction::Read => &mut source.read,
        Direction::Write => &mut source.write,
    }
}

/// Timeout for epoll_wait(2), rounded up: a wake-up before a deadline would have nothing to do.
fn milliseconds(wait: Wait) -> i32 {
    match wait {
        Wait::No => 0,
        Wait::Forever => -1,
        Wait::For(duration) => {
            let rounded = duration + Duration::from_nanos(999_999);
            i32::try_from(rounded.as_millis()).unwrap_or(i32::MAX)
        }
    }
}
