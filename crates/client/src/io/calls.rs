//! The pending requests of a channel, by their ids.
//!
//! A request is done when its response has arrived and its memory is released. The response to a
//! WRITE can arrive while the send still holds its bytes, and a READ can time out while its data
//! arrive.

use std::collections::BTreeMap;

use net::smbdirect::Exposed;
use net::{PayloadBytes, PayloadSource};
use proto::client::request::Reply;
use proto::client::{Fate, Request, RequestId};
use proto::effect::PayloadToken;
use ring::{FileRange, Pool, Region, Source};

use crate::error::Cause;
use crate::io::call::{Call, Done, Memory};

/// Longest payload of a WRITE in bytes that is copied behind its header: a separate part of a send
/// would cost more.
const COPIED_BYTES: usize = 4 << 10;

/// The result of a request.
pub(crate) enum Outcome {
    Answer(Vec<Result<Reply, Cause>>),
    Lost(Request, Fate),
}

impl Outcome {
    /// Completes the call. The outcome is an answer.
    pub(crate) fn complete(self, mut call: Call) {
        let replies = match self {
            Self::Answer(replies) => Ok(replies),
            Self::Lost(..) => Err(Cause::Lost("the connection was closed".into())),
        };
        let memory = std::mem::take(&mut call.memory);
        call.finish(Done {
            replies,
            memory,
            was_repeated: false,
        });
    }
}

struct Entry {
    call: Box<Call>,
    /// The file that the memory of the call is a copy of, if the transport does not send files.
    file: Option<FileRange>,
    /// Whether a send or a receive holds the memory.
    is_away: bool,
    /// Data of a response that arrived while the server could still access the memory for them.
    early: Vec<u8>,
    outcome: Option<Outcome>,
}

impl Entry {
    /// Reads the bytes of a WRITE from their file.
    fn load(&mut self, mut range: FileRange) -> Source {
        let mut bytes = vec![0; range.len];
        range.load(&mut bytes);
        self.file = Some(range);
        Region::from(bytes).into()
    }
}

/// The requests of a channel.
pub(crate) struct Calls {
    /// Whether the transport sends ranges of files.
    sends_files: bool,
    table: BTreeMap<RequestId, Entry>,
    /// Requests with an outcome whose memory is released.
    finished: Vec<RequestId>,
    /// Requests that another channel may send again.
    lost: Vec<(Box<Call>, Request, Fate)>,
}

impl Calls {
    pub(crate) fn new(sends_files: bool) -> Self {
        Self {
            sends_files,
            table: BTreeMap::new(),
            finished: Vec::new(),
            lost: Vec::new(),
        }
    }

    pub(crate) fn insert(&mut self, call: Box<Call>) {
        let entry = Entry {
            call,
            file: None,
            is_away: false,
            early: Vec::new(),
            outcome: None,
        };
        self.table.insert(entry.call.id, entry);
    }

    pub(crate) fn has(&self, id: RequestId) -> bool {
        self.table.contains_key(&id)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Sets the outcome of a request.
    pub(crate) fn settle(&mut self, id: RequestId, outcome: Outcome) {
        let Some(entry) = self.table.get_mut(&id) else {
            return;
        };
        entry.outcome = Some(outcome);
        if !entry.is_away {
            self.finished.push(id);
        }
    }

    /// Takes a request that is done.
    pub(crate) fn next_finished(&mut self) -> Option<(Box<Call>, Outcome)> {
        let mut id = self.finished.pop()?;
        // A request that was sent again is done when its memory is released again.
        while self.is_away(id) {
            id = self.finished.pop()?;
        }
        let mut entry = self.table.remove(&id)?;
        let outcome = entry.outcome.take()?;
        if let Some(range) = entry.file.take() {
            entry.call.memory = Memory::SourceFile(range);
        }
        Some((entry.call, outcome))
    }

    /// Stores a request that another channel may send again.
    pub(crate) fn keep_lost(&mut self, call: Box<Call>, outcome: Outcome) {
        if let Outcome::Lost(request, fate) = outcome {
            self.lost.push((call, request, fate));
        }
    }

    /// Whether requests are stored that another channel may send again.
    pub(crate) fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// Takes the stored requests.
    pub(crate) fn take_lost(&mut self) -> Vec<(Box<Call>, Request, Fate)> {
        std::mem::take(&mut self.lost)
    }

    /// Takes all pending requests.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = Call> + use<> {
        let table = std::mem::take(&mut self.table);
        table.into_values().map(|entry| *entry.call)
    }

    /// Takes the destination of a READ to receive into it.
    pub(crate) fn take_destination(&mut self, id: RequestId, pool: &Pool) -> Option<Region> {
        let entry = self.table.get_mut(&id)?;
        let region = match std::mem::take(&mut entry.call.memory) {
            Memory::Wanted(len) => fresh(len, pool),
            memory => memory.into_region()?,
        };
        entry.is_away = true;
        Some(region)
    }

    /// Whether the request takes the buffer of a received frame as its memory. If so, its memory is
    /// away until [`Self::placed`].
    pub(crate) fn keeps_frame(&mut self, id: RequestId) -> bool {
        let Some(entry) = self.table.get_mut(&id) else {
            return false;
        };
        let keeps = matches!(entry.call.memory, Memory::Wanted(_) | Memory::WantedEach(_));
        if keeps {
            entry.call.memory = Memory::None;
            entry.is_away = true;
        }
        keeps
    }

    /// Returns the destination of a READ.
    pub(crate) fn placed(&mut self, id: RequestId, destination: Region) {
        self.come_home(id, Memory::Destination(destination));
    }

    /// Whether a request has several READs.
    pub(crate) fn wants_each(&self, id: RequestId) -> bool {
        let entry = self.table.get(&id);
        entry.is_some_and(|entry| matches!(entry.call.memory, Memory::WantedEach(_)))
    }

    /// Sets the data of each of several READs.
    pub(crate) fn bring_each(&mut self, id: RequestId, parts: Vec<Region>) {
        self.come_home(id, Memory::Parts(parts));
    }

    /// Copies data to their destination, now or when the destination is released. Returns the count
    /// of bytes.
    pub(crate) fn copy_to_destination(&mut self, id: RequestId, bytes: &[u8]) -> u32 {
        let Some(entry) = self.table.get_mut(&id) else {
            return 0;
        };
        match &mut entry.call.memory {
            Memory::Destination(region) => region[..bytes.len()].copy_from_slice(bytes),
            memory @ Memory::Wanted(_) => *memory = Memory::Destination(bytes.to_vec().into()),
            // A server may send the data in the response although memory was registered.
            _ if entry.is_away => entry.early = bytes.to_vec(),
            _ => return 0,
        }
        u32::try_from(bytes.len()).expect("a frame is shorter than 4 GiB")
    }

    /// Takes the memory of a request to register it for RDMA. Returns `None` for a request that has
    /// an outcome, because its caller waits for the memory.
    pub(crate) fn lend(&mut self, id: RequestId, pool: &Pool) -> Option<Exposed> {
        let entry = self.table.get_mut(&id)?;
        if entry.outcome.is_some() {
            return None;
        }
        let memory = match std::mem::take(&mut entry.call.memory) {
            memory @ (Memory::None | Memory::WantedEach(_) | Memory::Parts(_)) => {
                entry.call.memory = memory;
                return None;
            }
            Memory::Source(source) => Exposed::ToRead(source),
            Memory::Destination(region) => Exposed::ToWrite(region),
            Memory::Wanted(len) => Exposed::ToWrite(fresh(len, pool)),
            Memory::SourceFile(range) => Exposed::ToRead(entry.load(range)),
        };
        entry.is_away = true;
        Some(memory)
    }

    /// Returns the memory of a request.
    pub(crate) fn come_home(&mut self, id: RequestId, memory: Memory) {
        let Some(entry) = self.table.get_mut(&id) else {
            return;
        };
        entry.call.memory = memory;
        entry.is_away = false;
        if let Memory::Destination(region) = &mut entry.call.memory {
            let early = std::mem::take(&mut entry.early);
            region[..early.len()].copy_from_slice(&early);
        }
        if entry.outcome.is_some() {
            self.finished.push(id);
        }
    }
}

impl Calls {
    /// Whether a send or a receive holds the memory of a request.
    pub(crate) fn is_away(&self, id: RequestId) -> bool {
        self.table.get(&id).is_some_and(|entry| entry.is_away)
    }
}

impl PayloadSource for Calls {
    fn take(&mut self, token: PayloadToken) -> Option<PayloadBytes> {
        let entry = self.table.get_mut(&RequestId(token.0))?;
        if let Memory::Source(source) = &entry.call.memory
            && source.len() <= COPIED_BYTES
        {
            return Some(PayloadBytes::Small(source.to_vec()));
        }
        let sends_files = self.sends_files;
        let bytes = match std::mem::take(&mut entry.call.memory) {
            Memory::Source(source) => PayloadBytes::Lent(source),
            Memory::SourceFile(range) if sends_files => PayloadBytes::File(range),
            Memory::SourceFile(range) => PayloadBytes::Lent(entry.load(range)),
            _ => return None,
        };
        entry.is_away = true;
        Some(bytes)
    }

    fn give_back_file(&mut self, token: PayloadToken, range: FileRange) {
        self.come_home(RequestId(token.0), Memory::SourceFile(range));
    }

    fn give_back(&mut self, token: PayloadToken, source: Source) {
        self.come_home(RequestId(token.0), Memory::Source(source));
    }
}

/// Memory of the channel's pool, or of the system when the pool is almost empty: callers that hold
/// much memory leave enough for the channel.
fn fresh(len: usize, pool: &Pool) -> Region {
    let buffer = pool.take(len).filter(|buffer| !buffer.is_scarce());
    match buffer {
        Some(buffer) => Region::of_buffer(buffer, 0..len),
        None => Region::from(vec![0; len]),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proto::client::Step;
    use ring::{Config, Runtime};

    use super::*;
    use crate::io::call::{Requester, call};
    use crate::io::dispatch::Dispatch;
    use crate::io::opens::Objects;

    fn with_call(memory: Memory) -> (Calls, RequestId, crate::io::call::Pending) {
        let request = Request::new(None, vec![Step::Echo]);
        let requester = Dispatch::new() as Arc<dyn Requester>;
        let (call, pending) = call(&requester, request, memory, Objects::default());
        let id = call.id;
        let mut calls = Calls::new(false);
        calls.insert(call);
        (calls, id, pending)
    }

    fn runtime() -> Runtime {
        Runtime::new(&Config::default()).expect("a runtime")
    }

    #[test]
    fn data_that_arrive_while_their_memory_is_away_wait_for_it() {
        let pool = runtime().handle().pool();
        let memory = Memory::Destination(vec![0; 4].into());
        let (mut calls, id, _pending) = with_call(memory);
        let Some(Exposed::ToWrite(region)) = calls.lend(id, &pool) else {
            panic!("the memory is lent");
        };
        assert_eq!(calls.copy_to_destination(id, b"abc"), 3);
        calls.settle(id, Outcome::Answer(Vec::new()));
        assert!(calls.next_finished().is_none());
        calls.come_home(id, Memory::Destination(region));
        let (call, _) = calls.next_finished().expect("all is there");
        let Memory::Destination(region) = &call.memory else {
            panic!("the memory is back");
        };
        assert_eq!(region[..], *b"abc\0");
    }

    #[test]
    fn a_request_that_is_sent_again_keeps_its_memory() {
        let bytes = vec![7; 2 * COPIED_BYTES];
        let memory = Memory::Source(Region::from(bytes.clone()).into());
        let (mut calls, id, _pending) = with_call(memory);
        let token = PayloadToken(id.0);
        let send = |calls: &mut Calls| match calls.take(token) {
            Some(PayloadBytes::Lent(source)) => source,
            _ => panic!("the memory is there"),
        };
        let first = send(&mut calls);
        let request = Request::new(None, vec![Step::Echo]);
        calls.settle(id, Outcome::Lost(request, Fate::Sent));
        // A second try waited for the first to give the memory back.
        calls.give_back(token, first);
        let second = send(&mut calls);
        assert!(calls.next_finished().is_none(), "its memory is away");
        calls.give_back(token, second);
        let (call, _) = calls.next_finished().expect("all is there");
        assert!(matches!(&call.memory, Memory::Source(source) if source[..] == bytes));
    }

    #[test]
    fn memory_of_the_channel_is_taken_when_data_arrive() {
        let runtime = runtime();
        let pool = runtime.handle().pool();
        let (mut calls, id, _pending) = with_call(Memory::Wanted(100_000));
        assert_eq!(pool.buffers_out(), 0);
        let region = calls.take_destination(id, &pool).expect("memory");
        assert_eq!((region.len(), pool.buffers_out()), (100_000, 1));
        let address = region.as_ptr();
        calls.placed(id, region);
        calls.settle(id, Outcome::Answer(Vec::new()));
        drop(calls.next_finished().expect("it is done"));
        assert_eq!(pool.buffers_out(), 0);
        let (mut calls, id, _pending) = with_call(Memory::Wanted(90_000));
        let region = calls.take_destination(id, &pool).expect("memory");
        assert_eq!(region.as_ptr(), address, "the same again");
    }

    #[test]
    fn callers_with_much_memory_leave_some_for_the_channel() {
        let mut config = Config::default();
        config.buffers.total_bytes = 16 << 20;
        let runtime = Runtime::new(&config).expect("a runtime");
        let pool = runtime.handle().pool();
        let kept: Vec<_> = (0..100).map(|_| fresh(1 << 20, &pool)).collect();
        assert!(kept.iter().all(|region| region.len() == 1 << 20));
        assert!(pool.buffers_out() <= 8, "{} are out", pool.buffers_out());
        assert!(pool.take(1 << 20).is_some());
    }

    #[test]
    fn a_frame_becomes_the_memory_only_of_a_request_that_accepts_any_memory() {
        let (mut calls, id, _pending) = with_call(Memory::Destination(vec![0; 4].into()));
        assert!(!calls.keeps_frame(id));
        let (mut calls, id, _pending) = with_call(Memory::Wanted(4));
        assert!(calls.keeps_frame(id));
        assert!(!calls.keeps_frame(id), "one frame is enough");
        calls.settle(id, Outcome::Answer(Vec::new()));
        assert!(calls.next_finished().is_none());
        calls.placed(id, vec![1, 2].into());
        let (call, _) = calls.next_finished().expect("all is there");
        assert!(matches!(&call.memory, Memory::Destination(region) if region[..] == [1, 2]));
    }
}
