//! A frame in processing: its members run one after the other, and each may wait.
//! \[MS-SMB2\] 3.3.5.2.7

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crypto::SigningKey;
use wire::compound::Members;
use wire::{AsyncId, Command, Header, SessionId, Status, TreeId};

use super::Connection;
use super::login::LoginStep;
use super::reply::Answer;
use super::waits::Waiter;
use crate::effect::{AnsweredRequest, Effects, Outcome};
use crate::file::ShareId;
use crate::id::OpId;
use crate::server::audit::Draft;
use crate::server::config::Share;
use crate::server::context::{Body, Parked, Progress, RelatedOpen, Reply};
use crate::server::outstanding_request::OutstandingRequest;
use crate::server::session::Session;
use crate::server::step::Step;
use crate::server::tree::TreeConnect;
use crate::time::{Instant, Now};
use crate::violation::Violation;

/// A frame within its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::server) struct TaskId(pub(super) u64);

/// A frame with members that have no answer yet.
#[derive(Debug)]
pub(in crate::server) struct Task {
    pub(in crate::server) id: TaskId,
    /// The session that encrypted the frame; `None` for a frame in clear text.
    pub(in crate::server) encrypted_by: Option<SessionId>,
    /// The session that encrypts the answer; `None` for an answer in clear text.
    pub(in crate::server) encrypt_for: Option<Arc<Session>>,
    pub(in crate::server) chain: Chain,
    /// Answers that go out together.
    pub(in crate::server) answers: Vec<Answer>,
    /// The member that waits.
    pub(super) current: Option<Pending>,
    /// The members after it.
    pub(super) rest: Vec<u8>,
}

/// The ids that a related member inherits from the previous one. \[MS-SMB2\] 3.3.5.2.7.2
#[derive(Debug, Default)]
pub(in crate::server) struct Chain {
    pub(in crate::server) session: Option<SessionId>,
    pub(in crate::server) tree: Option<TreeId>,
    pub(super) open: RelatedOpen,
}

/// The part of a request that its response needs.
#[derive(Debug)]
pub(in crate::server) struct Request {
    /// The header of the request. SESSION_SETUP and TREE_CONNECT put the new ids here.
    pub(in crate::server) header: Header,
    /// The key that signs the answer.
    pub(in crate::server) sign: Option<Arc<SigningKey>>,
    /// The session; `None` if the request has no valid one.
    pub(in crate::server) session: Option<Arc<Session>>,
    /// Set once an interim response went out.
    pub(super) async_id: Option<AsyncId>,
    /// Set once it waited: unlike that of any other request of the connection.
    pub(super) number: Option<u64>,
    /// Whether the client canceled the request: a handler with several operations may stop.
    pub(super) is_cancelled: bool,
    /// Its count on the open that it acts on, until it is answered.
    pub(super) outstanding: Option<OutstandingRequest>,
    /// The key of client memory that the response invalidates.
    pub(super) invalidate: Option<u32>,
    /// The share of its tree, once it is found.
    pub(in crate::server) share: Option<ShareId>,
    /// Bytes of the file that it read or wrote.
    pub(super) transferred: u32,
    /// Its event for the audit log, if its share may select it.
    pub(in crate::server) audit: Option<Box<Draft>>,
    /// Time at which the request started.
    pub(super) started: Instant,
}

/// A request that waits.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) request: Request,
    /// The operation of the driver that the request waits for.
    pub(super) op: Option<OpId>,
    then: Then,
}

/// The continuation of a waiting request.
#[derive(Debug)]
pub(in crate::server) enum Then {
    /// A command that acts on a tree.
    Handler(Arc<Session>, Arc<TreeConnect>, Step),
    /// A leg of a login.
    Login(LoginStep),
    /// A session that enters a share, while the file system looks for its root directory.
    TreeConnect(Arc<Session>, Arc<Share>),
    /// LOGOFF or TREE_DISCONNECT: the answer, once everything is closed.
    Teardown(Reply),
}

/// The result of a member.
pub(in crate::server) enum Flow {
    /// The answer.
    Done(Reply),
    /// CANCEL has none.
    Silence,
    /// The driver must complete an operation first.
    Wait(OpId, Then),
    /// Another event must happen first: the end of a drain, or a notice of another connection.
    WaitUnasked(Then),
    /// The request waits for another client, such as for the break of an oplock.
    Park(Parked, Then),
    /// The connection ends.
    End(Violation),
}

/// A member of a frame.
#[derive(Clone, Copy)]
pub(super) struct Part<'m> {
    /// From its header to its end, padding included.
    pub(super) message: &'m [u8],
    /// Where it starts in the frame of this call; `None` if that frame is no longer available.
    pub(super) frame_offset: Option<usize>,
    /// Whether no member follows.
    pub(super) is_last: bool,
}

impl Task {
    pub(in crate::server) fn new(id: TaskId, session: Option<Arc<Session>>) -> Self {
        Self {
            id,
            encrypted_by: session.as_ref().map(|session| session.id),
            encrypt_for: session,
            chain: Chain::default(),
            answers: Vec::new(),
            current: None,
            rest: Vec::new(),
        }
    }

    /// Upper bound of the bytes of the responses, apart from payloads of the driver. It is the same
    /// while the task waits.
    pub(super) fn response_bytes(&self) -> usize {
        let finished: usize = self.answers.iter().map(Answer::head_len).sum();
        let pending = match self.current.as_ref().map(|pending| &pending.then) {
            Some(Then::Handler(_, _, step)) => step.response_len(),
            _ => 0,
        };
        finished + pending
    }

    /// Whether no member follows the one that waits.
    pub(super) fn is_last(&self) -> bool {
        self.rest.is_empty()
    }

    /// Whether the member that waits is a CREATE.
    pub(super) fn awaits_create(&self) -> bool {
        let pending = self.current.as_ref();
        pending.is_some_and(|pending| pending.request.header.command == Command::CREATE)
    }

    /// Whether the answer to a CREATE of the frame has not been sent yet.
    pub(super) fn hides_an_open(&self) -> bool {
        self.answers.iter().any(Answer::is_of_create)
    }

    /// Whether a request of this session, and of this tree if one is named, acts on it.
    pub(super) fn acts_on(&self, session: SessionId, tree: Option<TreeId>) -> bool {
        match self.current.as_ref().map(|pending| &pending.then) {
            Some(Then::Handler(its_session, its_tree, _)) => {
                its_session.id == session && tree.is_none_or(|tree| tree == its_tree.id)
            }
            Some(Then::TreeConnect(its_session, _)) => its_session.id == session && tree.is_none(),
            Some(Then::Login(_) | Then::Teardown(_)) | None => false,
        }
    }
}

impl Connection {
    pub(in crate::server) fn task_id(&mut self) -> TaskId {
        TaskId(self.number())
    }

    /// Runs the members that `bytes` hold; `offset` says where they lie in the frame of this
    /// call. Their headers were checked when the frame came.
    pub(super) fn run(
        &mut self,
        now: Now,
        mut task: Task,
        bytes: &[u8],
        offset: Option<usize>,
        effects: &mut Effects,
    ) {
        let mut position = 0;
        for member in Members::new(bytes) {
            let message = member.expect("the members were walked when the frame came");
            let header = Header::decode(message).expect("the headers were read then");
            let mut request = Request::new(header, now.instant);
            let frame_offset = offset.map(|offset| offset + position);
            position += message.len();
            let part = Part {
                message,
                frame_offset,
                is_last: position == bytes.len(),
            };
            let flow = self.serve(now, &mut task, &mut request, part, effects);
            if !self.take(now, &mut task, request, flow, effects) {
                // Members behind one that waits are copied: their frame goes with this call.
                task.rest = bytes[position..].to_vec();
                self.put_aside(task, effects);
                return;
            }
        }
        self.send(&mut task, effects);
    }

    /// Goes on with the request of a task that waited.
    pub(super) fn resume(&mut self, now: Now, id: TaskId, outcome: Outcome, effects: &mut Effects) {
        let mut task = self.tasks.remove(id).expect("a task that waits is kept");
        let pending = task.current.take().expect("a task that is kept waits");
        let Pending {
            mut request,
            op: _,
            then,
        } = pending;
        let flow = match then {
            Then::Handler(session, tree, step) => {
                let place = (session.clone(), tree.clone());
                let mut context = self.context(now, &mut task, &mut request, place, None, effects);
                let progress = step.resume(&mut context, outcome);
                progress.map(|progress| Flow::of(progress, session, tree))
            }
            Then::Login(step) => {
                self.resume_login(now, task.id, &mut request, step, outcome, effects)
            }
            Then::TreeConnect(session, share) => {
                let entry = (&*session, share);
                self.resume_tree_connect(&mut task, &mut request, entry, outcome)
            }
            Then::Teardown(reply) => Ok(Flow::Done(reply)),
        };
        if self.take(now, &mut task, request, flow, effects) {
            let rest = core::mem::take(&mut task.rest);
            self.run(now, task, &rest, None, effects);
        } else {
            self.put_aside(task, effects);
        }
    }

    /// Processes the result of a member. Returns whether the next member may run.
    fn take(
        &mut self,
        now: Now,
        task: &mut Task,
        mut request: Request,
        flow: Result<Flow, Status>,
        effects: &mut Effects,
    ) -> bool {
        if request.async_id.is_some() {
            self.tasks.async_requests -= 1;
        }
        match flow {
            Ok(Flow::Wait(op, then)) => {
                self.waits.insert(op, Waiter::Task(task.id));
                self.wait(now, task, request, Some(op), then);
                false
            }
            Ok(Flow::WaitUnasked(then)) => {
                self.wait(now, task, request, None, then);
                false
            }
            Ok(Flow::Park(parked, then)) => {
                self.waits.park(parked, task.id);
                let holds_answers_back = request.header.command == Command::SET_INFO;
                self.wait(now, task, request, Some(parked.op), then);
                // The event may depend on them: the holder may be a member before it, and
                // acknowledges nothing for an open before the response to its CREATE. Windows holds
                // the answers before a rename back: smbtorture smb2.compound_async.rename_last.
                if !holds_answers_back {
                    self.send(task, effects);
                }
                false
            }
            Ok(Flow::End(violation)) => {
                self.end(violation, effects);
                false
            }
            Ok(Flow::Silence) => true,
            Ok(Flow::Done(reply)) => {
                request.audit_result(reply.status, effects);
                task.answers.push(Answer::new(now.instant, request, reply));
                !self.is_over
            }
            Err(status) => {
                if request.header.command == Command::CREATE {
                    // [MS-SMB2] 3.3.5.2.7.2: related members fail with the same status.
                    task.chain.open = RelatedOpen::Failed(status);
                }
                request.audit_result(status, effects);
                let body = Body::Error;
                let answer = Answer::new(now.instant, request, Reply { status, body });
                task.answers.push(answer);
                !self.is_over
            }
        }
    }

    fn wait(
        &mut self,
        now: Now,
        task: &mut Task,
        mut request: Request,
        op: Option<OpId>,
        then: Then,
    ) {
        if request.async_id.is_some() {
            self.tasks.async_requests += 1;
        } else if request.number.is_none() && may_be_async(request.header.command) && !self.is_over
        {
            // From the first wait on, however many there are.
            let number = self.number();
            request.number = Some(number);
            let at = now.instant.after(self.config.limits.interim_after);
            self.tasks.schedule_interim(at, task.id, number);
        }
        task.current = Some(Pending { request, op, then });
    }

    /// Stores a waiting task. Releases the payloads of a task that has ended.
    fn put_aside(&mut self, task: Task, effects: &mut Effects) {
        if task.current.is_some() {
            self.tasks.insert(task);
        } else {
            for answer in task.answers {
                answer.release(effects);
            }
        }
    }
}

impl Request {
    pub(in crate::server) fn new(header: Header, started: Instant) -> Self {
        Self {
            header,
            sign: None,
            session: None,
            async_id: None,
            number: None,
            is_cancelled: false,
            outstanding: None,
            invalidate: None,
            share: None,
            transferred: 0,
            audit: None,
            started,
        }
    }

    /// Makes its event for the audit log.
    fn audit_result(&mut self, status: Status, effects: &mut Effects) {
        if let Some(draft) = self.audit.take() {
            draft.finish(status, effects);
        }
    }

    /// Describes the request, which has its result `now`, for statistics.
    pub(super) fn answered(&self, now: Instant, status: Status) -> AnsweredRequest {
        AnsweredRequest {
            command: self.header.command,
            status,
            share: self.share,
            bytes: self.transferred,
            duration: now.since(self.started),
        }
    }
}

impl Flow {
    /// Converts the result of a handler. The request continues with its initial session and tree.
    pub(super) fn of(
        progress: Progress<Step>,
        session: Arc<Session>,
        tree: Arc<TreeConnect>,
    ) -> Self {
        match progress {
            Progress::Done(reply) => Self::Done(reply),
            Progress::Wait(op, step) => Self::Wait(op, Then::Handler(session, tree, step)),
            Progress::Park(parked, step) => Self::Park(parked, Then::Handler(session, tree, step)),
            Progress::End(violation) => Self::End(violation),
        }
    }
}

/// Whether a request may be answered with an interim response. Windows never does so for
/// SESSION_SETUP, and macOS would not understand it. Nor does it for a rename that waits for the
/// break of a lease: smbtorture smb2.compound_async.rename_non_compound_no_async.
fn may_be_async(command: Command) -> bool {
    !matches!(
        command,
        Command::SESSION_SETUP
            | Command::LOGOFF
            | Command::TREE_CONNECT
            | Command::TREE_DISCONNECT
            | Command::CLOSE
            | Command::SET_INFO
    )
}
