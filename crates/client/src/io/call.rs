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
use crate::io::opens::Objects;
use crate::io::slot::{Filler, GivenUp, Pickup, slot};

/// Cost of a request beside its data, in bytes. It spreads requests without data over channels.
const COST: u64 = 4 << 10;

/// The session as its calls see it: it sends further requests of theirs and chooses other channels.
pub(crate) trait Requester: Send + Sync {
    /// Whether this is the process that connected.
    fn is_here(&self) -> bool;

    /// Starts a request.
    fn request(self: Arc<Self>, request: Request, memory: Memory) -> Pending;

    /// Number of the current session: the count of sessions that were lost before it.
    fn generation(&self) -> u64;

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
    /// Whether the client sent the request, lost the connection, and sent it again. Its effect may
    /// be that of the first time.
    pub(crate) was_repeated: bool,
}

impl Done {
    /// The result of a request without a response.
    fn failed(cause: Cause, memory: Memory) -> Self {
        Self {
            replies: Err(cause),
            memory,
            was_repeated: false,
        }
    }

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
    /// The tree connect and the open of the request.
    pub(crate) objects: Objects,
    /// Number of the session for which the request has the numbers of its tree and its open.
    pub(crate) generation: u64,
    /// Whether the request is part of a login in place of a lost session.
    pub(crate) is_resuming: bool,
    /// As [`Done::was_repeated`].
    pub(crate) was_repeated: bool,
    /// Whether the request opens the file of `objects`.
    opens: bool,
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
    pub(crate) fn finish(self, mut done: Done) {
        let Self {
            cleanup,
            requester,
            waiting,
            objects,
            was_repeated,
            opens,
            ..
        } = self;
        done.was_repeated = was_repeated;
        if let (true, Some(open), Ok(replies)) = (opens, &objects.open, &done.replies)
            && let Some(Ok(Reply::Created(created))) = replies.first()
        {
            // Before the channel can leave the session, so that the open is in the table then.
            open.opened(created);
        }
        // A WRITE is done before its caller continues.
        drop(objects);
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
        self.finish(Done::failed(cause, memory));
    }

    /// Completes a call that needs no response of the server.
    fn succeed(mut self, reply: Reply) {
        let memory = std::mem::take(&mut self.memory);
        self.finish(Done {
            replies: Ok(vec![Ok(reply)]),
            ..Done::failed(Cause::Canceled, memory)
        });
    }

    /// Gives the request the numbers of its tree and its open in the session number `generation`.
    /// Returns `None` if the call is completed, because the server has closed one of them.
    pub(crate) fn in_session(mut self: Box<Self>, generation: u64) -> Option<Box<Self>> {
        let is_old = self.generation != generation;
        self.generation = generation;
        let request = self.request.as_mut().expect("no channel has the call");
        match renumber(request, &self.objects, is_old) {
            Ok(()) => Some(self),
            Err(_) if matches!(request.steps[..], [Step::Close { .. }]) => {
                self.succeed(Reply::Closed(None));
                None
            }
            Err(reason) => {
                self.fail(Cause::Lost(reason));
                None
            }
        }
    }
}

/// Sets the numbers of the tree and the open. `is_old`: whether the request has those of another
/// session.
fn renumber(request: &mut Request, objects: &Objects, is_old: bool) -> Result<(), Arc<str>> {
    let unknown = || Arc::from("the server has closed the session of the request");
    match (&objects.tree, request.tree) {
        (Some(tree), _) => request.tree = Some(tree.id()?),
        (None, Some(_)) if is_old => return Err(unknown()),
        (None, _) => {}
    }
    for step in &mut request.steps {
        let Some(FileRef::Id(id)) = file_of(step) else {
            continue;
        };
        match &objects.open {
            Some(open) => *id = open.file_id()?,
            None if is_old => return Err(unknown()),
            None => {}
        }
    }
    Ok(())
}

/// The file of a step.
fn file_of(step: &mut Step) -> Option<&mut FileRef> {
    match step {
        Step::Close { file, .. }
        | Step::Flush(file)
        | Step::Read { file, .. }
        | Step::Write { file, .. }
        | Step::QueryDirectory { file, .. }
        | Step::QueryInfo { file, .. }
        | Step::SetInfo { file, .. }
        | Step::ChangeNotify { file, .. }
        | Step::Lock { file, .. } => Some(file),
        Step::Ioctl { file, .. } => file.as_mut(),
        Step::TreeConnect(_)
        | Step::TreeDisconnect
        | Step::Logoff
        | Step::Echo
        | Step::Create(_)
        | Step::AcknowledgeOplock { .. }
        | Step::AcknowledgeLease { .. } => None,
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
fn close_detached(
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
            let closed = || Cause::Lost("the client was closed".into());
            done.unwrap_or_else(|_| Done::failed(closed(), Memory::None))
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
    objects: Objects,
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
        objects,
        generation: requester.generation(),
        is_resuming: false,
        was_repeated: false,
        opens: matches!(request.steps.first(), Some(Step::Create(_))),
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
