//! One call: a request, its memory, and the future that waits for it.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use proto::client::request::{FileRef, Reply};
use proto::client::{Fate, Request, RequestId, Step};
use ring::{FileRange, Region, Source};
use wire::lock::{LockElement, LockFlags};
use wire::{FileId, TreeId};

use crate::error::Cause;
use crate::io::slot::{Filler, GivenUp, Pickup, slot};

/// Cost of a request beside its data, in bytes. It spreads requests without data over channels.
const COST: u64 = 4 << 10;

/// The session as its calls see it: it sends further requests of theirs and chooses other channels.
pub(crate) trait Requester: Send + Sync {
    /// Whether this is the process that connected.
    fn is_here(&self) -> bool;

    /// Starts a request.
    fn request(self: Arc<Self>, request: Request, memory: Memory) -> Pending;

    /// Cancels a request whose caller does not wait for the response any more.
    fn cancel(&self, id: RequestId);

    /// Sends a call again that its channel lost, or fails it where that is not safe.
    fn lost(&self, call: Box<Call>, fate: Fate, reason: &Arc<str>);
}

/// Memory of a request.
#[derive(Debug, Default)]
pub(crate) enum Memory {
    /// None, or a send or receive holds it.
    #[default]
    None,
    /// Bytes that a WRITE sends.
    Source(Source),
    /// Memory that a READ fills.
    Destination(Region),
    /// This count of bytes for a READ, from the pool of the channel that receives the response. The
    /// channel takes them when the data arrive, so it reuses the same few buffers while they are in
    /// the processor's cache.
    Wanted(usize),
    /// As `Wanted` for several READs in one message; the count of bytes of all together.
    WantedEach(usize),
    /// Data of several READs, one part for each that succeeded, in their order.
    Parts(Vec<Region>),
    /// Bytes that a WRITE sends, in a local file.
    SourceFile(FileRange),
}

impl Memory {
    /// The filled memory of a READ.
    pub(crate) fn into_region(self) -> Option<Region> {
        match self {
            Self::Destination(region) => Some(region),
            _ => None,
        }
    }

    /// The first `count` bytes of the filled memory.
    pub(crate) fn filled(self, count: usize) -> Region {
        let region = self.into_region();
        let mut region = region.unwrap_or_else(|| Vec::new().into());
        assert!(
            region.set_len(count),
            "a READ returns at most the requested bytes"
        );
        region
    }

    /// The data of several READs.
    pub(crate) fn into_parts(self) -> Vec<Region> {
        match self {
            Self::Parts(parts) => parts,
            Self::Destination(region) => vec![region],
            _ => Vec::new(),
        }
    }

    /// The memory of a WRITE.
    pub(crate) fn into_source(self) -> Option<Source> {
        match self {
            Self::Source(source) => Some(source),
            _ => None,
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Source(source) => source.len(),
            Self::Destination(region) => region.len(),
            Self::Wanted(len) | Self::WantedEach(len) => *len,
            Self::Parts(parts) => parts.iter().map(|part| part.len()).sum(),
            Self::SourceFile(range) => range.len,
        }
    }
}

/// The result of a call.
#[derive(Debug)]
pub(crate) struct Done {
    /// One result for each step.
    pub(crate) replies: Result<Vec<Result<Reply, Cause>>, Cause>,
    /// Memory of the request.
    pub(crate) memory: Memory,
}

impl Done {
    /// The result of the only step, or of the first that failed, or of the last.
    pub(crate) fn only(self) -> (Result<Reply, Cause>, Memory) {
        let reply = match self.replies {
            Err(cause) => Err(cause),
            Ok(replies) => last_or_failed(replies),
        };
        (reply, self.memory)
    }

    /// The results of all steps; the first that failed fails all.
    pub(crate) fn all(self) -> (Result<Vec<Reply>, Cause>, Memory) {
        let replies = self
            .replies
            .and_then(|replies| replies.into_iter().collect());
        (replies, self.memory)
    }
}

fn last_or_failed(replies: Vec<Result<Reply, Cause>>) -> Result<Reply, Cause> {
    let mut last = Err(Cause::Malformed("the response has no reply".to_owned()));
    for reply in replies {
        last = Ok(reply?);
    }
    last
}

/// A request on its way to a channel.
pub(crate) struct Call {
    pub(crate) id: RequestId,
    /// `None` while a channel has it.
    pub(crate) request: Option<Request>,
    pub(crate) memory: Memory,
    /// Cost for the choice of a channel, in bytes.
    pub(crate) cost: u64,
    requester: Arc<dyn Requester>,
    cleanup: Cleanup,
    waiting: Filler<Done>,
}

/// The state of the server that must be undone if the caller does not take the result.
#[derive(Clone)]
enum Cleanup {
    Nothing,
    /// An open in this tree; whether its messages are encrypted.
    Open(Option<TreeId>, bool),
    /// A tree connect.
    Tree,
    /// Locked ranges: the request that unlocks them.
    Locks(Box<Request>),
}

impl Call {
    /// Completes the call.
    pub(crate) fn finish(self, done: Done) {
        let Self {
            cleanup,
            requester,
            waiting,
            ..
        } = self;
        if let Err(done) = waiting.fill(done) {
            clean_up(&cleanup, &requester, done);
        }
    }

    /// The channel of the call was lost, or ended before the call reached it.
    pub(crate) fn lost(self: Box<Self>, fate: Fate, reason: &Arc<str>) {
        let requester = Arc::clone(&self.requester);
        requester.lost(self, fate, reason);
    }

    /// Fails the call.
    pub(crate) fn fail(mut self, cause: Cause) {
        let memory = std::mem::take(&mut self.memory);
        self.finish(Done {
            replies: Err(cause),
            memory,
        });
    }
}

/// Closes the opens and releases the locks of a call whose caller does not take the result.
fn clean_up(cleanup: &Cleanup, requester: &Arc<dyn Requester>, done: Done) {
    let Ok(replies) = done.replies else { return };
    for reply in replies.into_iter().flatten() {
        match (cleanup, reply) {
            (Cleanup::Open(tree, encrypt), Reply::Created(created)) => {
                close_detached(requester, *tree, *encrypt, created.file_id);
            }
            (Cleanup::Locks(unlock), Reply::Done) => {
                drop(Arc::clone(requester).request(Request::clone(unlock), Memory::None));
            }
            (Cleanup::Tree, Reply::TreeConnected { tree, .. }) => {
                let request = Request::new(Some(tree), vec![Step::TreeDisconnect]);
                drop(Arc::clone(requester).request(request, Memory::None));
            }
            _ => {}
        }
    }
}

/// Closes a file in the background.
pub(crate) fn close_detached(
    requester: &Arc<dyn Requester>,
    tree: Option<TreeId>,
    encrypt: bool,
    file: FileId,
) {
    let close = Step::Close {
        file: FileRef::Id(file),
        query: false,
    };
    let mut request = Request::new(tree, vec![close]);
    request.encrypt = encrypt;
    drop(Arc::clone(requester).request(request, Memory::None));
}

/// The future of a pending request. A drop cancels a request that may wait long; any other request
/// continues, and the client undoes the state that its response reports.
pub(crate) struct Pending {
    id: RequestId,
    requester: Arc<dyn Requester>,
    may_wait: bool,
    cleanup: Cleanup,
    pickup: Pickup<Done>,
}

impl Pending {
    /// Id of the request.
    pub(crate) fn id(&self) -> RequestId {
        self.id
    }
}

impl Future for Pending {
    type Output = Done;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Done> {
        let pickup = Pin::new(&mut self.pickup);
        pickup.poll(context).map(|done| {
            done.unwrap_or_else(|_| Done {
                replies: Err(Cause::Lost("the client was closed".into())),
                memory: Memory::None,
            })
        })
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.requester.is_here() {
            return;
        }
        match self.pickup.give_up() {
            GivenUp::Early if self.may_wait => self.requester.cancel(self.id),
            GivenUp::Late(done) => clean_up(&self.cleanup, &self.requester, done),
            GivenUp::Early | GivenUp::Done => {}
        }
    }
}

/// Makes a call and its future.
pub(crate) fn call(
    requester: &Arc<dyn Requester>,
    request: Request,
    memory: Memory,
) -> (Box<Call>, Pending) {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let id = RequestId(LAST.fetch_add(1, Ordering::Relaxed) + 1);
    let (waiting, pickup) = slot();
    let cleanup = cleanup(&request);
    let pending = Pending {
        id,
        requester: Arc::clone(requester),
        may_wait: request.steps.iter().any(may_wait),
        cleanup: cleanup.clone(),
        pickup,
    };
    let call = Call {
        id,
        cost: COST + memory.len() as u64,
        cleanup,
        request: Some(request),
        memory,
        requester: Arc::clone(requester),
        waiting,
    };
    (Box::new(call), pending)
}

/// Whether the server may delay the response until another client acts.
fn may_wait(step: &Step) -> bool {
    matches!(step, Step::ChangeNotify { .. } | Step::Lock { .. })
}

fn cleanup(request: &Request) -> Cleanup {
    match (request.steps.first(), request.steps.last()) {
        (Some(Step::Create(_)), Some(Step::Close { .. })) => Cleanup::Nothing,
        (Some(Step::Create(_)), _) => Cleanup::Open(request.tree, request.encrypt),
        (Some(Step::TreeConnect(_)), _) => Cleanup::Tree,
        (Some(Step::Lock { file, locks, .. }), _) => match unlocking(locks) {
            Some(locks) => Cleanup::Locks(Box::new(unlock(request, *file, locks))),
            None => Cleanup::Nothing,
        },
        _ => Cleanup::Nothing,
    }
}

/// The elements that release locks; `None` if a request releases locks itself.
fn unlocking(locks: &[LockElement]) -> Option<Vec<LockElement>> {
    let takes = |lock: &LockElement| lock.flags != LockFlags::UNLOCK;
    let undo = |lock: &LockElement| LockElement {
        flags: LockFlags::UNLOCK,
        ..*lock
    };
    locks
        .iter()
        .all(takes)
        .then(|| locks.iter().map(undo).collect())
}

fn unlock(request: &Request, file: FileRef, locks: Vec<LockElement>) -> Request {
    let step = Step::Lock {
        file,
        sequence: 0,
        locks,
    };
    let mut unlock = Request::new(request.tree, vec![step]);
    unlock.encrypt = request.encrypt;
    unlock
}
