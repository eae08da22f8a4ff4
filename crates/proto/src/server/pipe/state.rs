//! What a pipe holds: what was written and is not a call yet, what was answered and is not read
//! yet, and the reads that wait.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use wire::Status;
use wire::rpc::FaultStatus;

use super::endpoint::{Action, Broken, Call, Endpoint};
use super::service::Service;
use crate::id::{ConnectionId, OpId};
use crate::notice::Notice;
use crate::server::notices::Notices;

/// Maximum length of a write in bytes. The pipe takes a write at once; fragments are much shorter.
pub(super) const MAX_WRITE: usize = 32 << 10;
/// Bytes of answers that a client may leave unread: with more, nothing is taken of what it wrote
/// until it reads. The answer that goes beyond may be of any length.
const MAX_UNREAD: usize = 16 << 10;
/// Reads that may wait for one pipe: the credits of a connection.
const MAX_WAITING: usize = 8192;

/// The buffered data of a pipe.
#[derive(Debug)]
pub(super) struct State {
    endpoint: Endpoint,
    /// Answers, a fragment each; of the first a part may have been read.
    unread: VecDeque<Vec<u8>>,
    /// Bytes of the first that are read.
    read: usize,
    unread_len: usize,
    /// Reads that wait for data, the oldest first.
    waiting: VecDeque<(ConnectionId, OpId)>,
    /// Reads of no bytes, which wait for the end.
    lingering: Vec<(ConnectionId, OpId)>,
    /// 1 for messages, as set by FilePipeInformation. A read never crosses fragments in either
    /// mode.
    pub(super) read_mode: u32,
    /// Whether the last call waits for the driver. The next one starts after its answer.
    is_busy: bool,
    /// The client wrote invalid data: only buffered responses can still be read.
    is_broken: bool,
    is_closed: bool,
}

impl State {
    pub(super) fn new(service: Service, group: u32) -> Self {
        Self {
            endpoint: Endpoint::new(service, group),
            unread: VecDeque::new(),
            read: 0,
            unread_len: 0,
            waiting: VecDeque::new(),
            lingering: Vec::new(),
            read_mode: 1,
            is_busy: false,
            is_broken: false,
            is_closed: false,
        }
    }

    /// Takes what the client writes. Do the calls of [`Self::next_call`] afterwards. What is kept
    /// of earlier writes is less than a fragment: else the client is to read first.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Status> {
        if self.is_closed || self.is_broken {
            return Err(Status::PIPE_DISCONNECTED);
        }
        if bytes.len() > MAX_WRITE {
            return Err(Status::INVALID_PARAMETER);
        }
        if self.unread_len > MAX_UNREAD {
            return Err(Status::PIPE_BUSY);
        }
        self.endpoint.push(bytes);
        Ok(())
    }

    /// The next call to be done; the caller answers it. Fragments that need no call are answered
    /// here.
    pub(super) fn next_call(&mut self) -> Option<Call> {
        while !self.is_broken {
            // The next is taken once the client has read.
            if self.is_busy || self.unread_len > MAX_UNREAD {
                return None;
            }
            match self.endpoint.next() {
                Ok(Some(Action::Answer(fragment))) => self.put(fragment),
                Ok(Some(Action::Call(call))) => {
                    self.is_busy = true;
                    return Some(call);
                }
                Ok(None) => return None,
                Err(Broken) => self.is_broken = true,
            }
        }
        None
    }

    /// Adds the response of a call.
    pub(super) fn answer(&mut self, call: &Call, result: Result<Vec<u8>, FaultStatus>) {
        self.is_busy = false;
        for fragment in call.answer(result) {
            self.put(fragment);
        }
    }

    fn put(&mut self, fragment: Vec<u8>) {
        self.unread_len += fragment.len();
        self.unread.push_back(fragment);
    }

    /// Takes bytes of the first answer, and says whether more of it is left.
    pub(super) fn read(&mut self, max_len: usize) -> Option<(Vec<u8>, bool)> {
        let first = self.unread.front()?;
        let left = &first[self.read..];
        let taken = left[..left.len().min(max_len)].to_vec();
        self.unread_len -= taken.len();
        let has_more = taken.len() < left.len();
        if has_more {
            self.read += taken.len();
        } else {
            self.unread.pop_front();
            self.read = 0;
        }
        Some((taken, has_more))
    }

    /// Returns the unread bytes of the first fragment, and the number of unread fragments.
    pub(super) fn peek(&self) -> (&[u8], usize) {
        let first = self.unread.front().map(|first| &first[self.read..]);
        (first.unwrap_or(&[]), self.unread.len())
    }

    /// Bytes that wait to be read.
    pub(super) fn unread_len(&self) -> usize {
        self.unread_len
    }

    /// Why nothing will ever come, if so.
    pub(super) fn is_over(&self) -> Option<Status> {
        match (self.is_closed, self.is_broken) {
            (true, _) => Some(Status::PIPE_BROKEN),
            (false, true) => Some(Status::PIPE_DISCONNECTED),
            (false, false) => None,
        }
    }

    /// Lets a read wait: for data, or for the end alone.
    pub(super) fn wait(
        &mut self,
        waiter: (ConnectionId, OpId),
        for_data: bool,
    ) -> Result<(), Status> {
        if self.waiting.len() + self.lingering.len() >= MAX_WAITING {
            return Err(Status::INSUFFICIENT_RESOURCES);
        }
        match for_data {
            true => self.waiting.push_back(waiter),
            false => self.lingering.push(waiter),
        }
        Ok(())
    }

    /// A read waits no more.
    pub(super) fn forget(&mut self, waiter: (ConnectionId, OpId)) {
        self.waiting.retain(|other| *other != waiter);
        self.lingering.retain(|other| *other != waiter);
    }

    /// The reads to wake: the one that has waited longest, if there is data, and all if none will
    /// come. Each read wakes the next.
    pub(super) fn wake(&mut self) -> Notices {
        let (data, end) = match self.is_over() {
            Some(_) => (self.waiting.len(), self.lingering.len()),
            None => (usize::from(!self.unread.is_empty()), 0),
        };
        let data = data.min(self.waiting.len());
        let woken = self.waiting.drain(..data);
        (woken.chain(self.lingering.drain(..end)))
            .map(|(connection, op)| (connection, Notice::PipeReadable(op)))
            .collect()
    }

    /// Closes the pipe. Returns the notices that wake its waiting reads.
    pub(super) fn end(&mut self) -> Notices {
        self.is_closed = true;
        self.wake()
    }
}
