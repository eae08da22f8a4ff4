//! The resumption of a session that has lost all its channels. \[MS-SMB2\] 3.2.4.4, 3.2.7.1
//!
//! The client logs in again and names the lost session, which the server then ends. It connects to
//! the shares, reconnects to its durable opens, and opens the files again that it only reads. The
//! requests of the program wait meanwhile.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use net::Transport;
use proto::client::request::{Create, FileRef, Reply};
use proto::client::{Request, Role, Step, Violation};
use ring::Handle;
use tracing::{debug, info, warn};
use wire::tree_connect::ShareFlags;
use wire::{FileId, Guid};

use crate::error::{Cause, ConnectCause};
use crate::io::call::Pending;
use crate::io::dispatch::Dispatch;
use crate::io::leases::run_all;
use crate::io::message::{Open, Target};
use crate::io::opens::OpenState;
use crate::io::pauses::Pauses;
use crate::io::slot::slot;
use crate::io::tree::TreeState;

/// Time limit of one connection attempt: a later one may find another route.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The reason why an attempt failed.
enum Failed {
    /// A later attempt can succeed.
    ForNow(Arc<str>),
    /// The server refuses the login.
    Finally(Arc<str>),
}

/// Resumes the session of the lost channel `target`, within its time limit. `open` opens a channel.
pub(crate) async fn run(handle: Handle, target: Target, open: impl Fn(Open)) {
    let dispatch = Arc::clone(&target.dispatch);
    let mut resumption = Resumption {
        dispatch: &dispatch,
        failed: Some("the connection was closed".into()),
    };
    let mut pauses = Pauses::within(target.reconnect_timeout);
    let ways = ways(&target);
    for way in ways.iter().cycle() {
        let attempt = attempt(&target, *way, &open);
        let failed = match handle.timeout(pauses.left(), attempt).await {
            Ok(Ok(())) if dispatch.resumed() => {
                resumption.failed = None;
                return;
            }
            Ok(Ok(())) => "the connection was lost again".into(),
            Ok(Err(Failed::ForNow(reason))) => reason,
            Ok(Err(Failed::Finally(reason))) => {
                warn!(%reason, "the session cannot be resumed");
                resumption.failed = Some(reason);
                return;
            }
            Err(_) => "the server did not respond in time".into(),
        };
        let (address, transport) = way;
        debug!(%address, %transport, reason = %failed, "the session is not resumed yet");
        resumption.failed = Some(failed);
        match pauses.next() {
            Some(pause) if dispatch.is_resuming() => handle.sleep(pause).await,
            _ => return,
        }
    }
}

/// A resumption in progress. If it fails or the thread ends, the requests that wait fail.
struct Resumption<'a> {
    dispatch: &'a Dispatch,
    failed: Option<Arc<str>>,
}

impl Drop for Resumption<'_> {
    fn drop(&mut self) {
        if let Some(reason) = &self.failed {
            self.dispatch.not_resumed(reason);
        }
    }
}

/// The addresses and transports to try: that of the lost channel first.
fn ways(target: &Target) -> Vec<(SocketAddr, Transport)> {
    let first = (target.address, target.transport);
    let others = target.dispatch.ways();
    let others = others.into_iter().filter(|way| *way != first);
    std::iter::once(first).chain(others).collect()
}

async fn attempt(
    target: &Target,
    (address, transport): (SocketAddr, Transport),
    open: &impl Fn(Open),
) -> Result<(), Failed> {
    let dispatch = &target.dispatch;
    let lost = dispatch.current_session().expect("it was logged in");
    let (ready, opened) = slot();
    open(Open {
        target: Target {
            address,
            transport,
            connect_timeout: target.connect_timeout.min(CONNECT_TIMEOUT),
            ..target.clone()
        },
        role: Role::Resuming(lost),
        after: Duration::ZERO,
        ready,
    });
    match opened.await {
        Ok(Ok(())) => {}
        Ok(Err(cause)) => return Err(of_login(&cause)),
        Err(_) => return Err(Failed::ForNow("the client was closed".into())),
    }
    reconnect_trees(dispatch).await?;
    let (reclaimed, lost) = reclaim_opens(dispatch).await?;
    info!(%address, %transport, reclaimed, lost, "the session is resumed");
    Ok(())
}

fn of_login(cause: &ConnectCause) -> Failed {
    let reason = cause.to_string().into();
    match cause {
        ConnectCause::Io(_) => Failed::ForNow(reason),
        ConnectCause::Violation(Violation::Closed | Violation::Asked | Violation::TimedOut) => {
            Failed::ForNow(reason)
        }
        ConnectCause::Violation(_) => Failed::Finally(reason),
    }
}

/// Sends a request on the new channel.
fn start(dispatch: &Arc<Dispatch>, tree: Option<&TreeState>, step: Step) -> Pending {
    let mut request = Request::new(tree.and_then(|tree| tree.id().ok()), vec![step]);
    request.encrypt = tree.is_some_and(|tree| tree.encrypt);
    dispatch.start_resuming(request)
}

/// Waits for the response. A refusal of the server is the inner error.
async fn finish(pending: Pending) -> Result<Result<Reply, Cause>, Failed> {
    match pending.await.only().0 {
        Err(Cause::Lost(reason)) => Err(Failed::ForNow(reason)),
        Err(Cause::TimedOut) => Err(Failed::ForNow("the server does not respond".into())),
        result => Ok(result),
    }
}

async fn reconnect_trees(dispatch: &Arc<Dispatch>) -> Result<(), Failed> {
    let trees = dispatch.opens(|table| table.trees());
    let started: Vec<_> = trees
        .iter()
        .map(|tree| start(dispatch, None, Step::TreeConnect(tree.name.clone())))
        .collect();
    for (tree, pending) in trees.iter().zip(started) {
        let id = match finish(pending).await? {
            Ok(Reply::TreeConnected {
                tree: id, flags, ..
            }) if flags.contains(ShareFlags::ENCRYPT_DATA) == tree.encrypt => Ok(id),
            Ok(_) => Err("the server changed the share".into()),
            Err(cause) => Err(format!("the server refuses the share: {cause}").into()),
        };
        if let Err(reason) = &id {
            warn!(share = tree.name, %reason, "no tree connect after the loss of the connection");
        }
        tree.set(id);
    }
    Ok(())
}

/// Reclaims the opens. Returns the count of those that remain open, and of those that are lost.
async fn reclaim_opens(dispatch: &Arc<Dispatch>) -> Result<(usize, usize), Failed> {
    let opens = dispatch.opens(|table| table.opens());
    let reclaimed = reclaim(dispatch, &opens).await?;
    let left: Vec<_> = opens
        .iter()
        .zip(&reclaimed)
        .filter(|(_, is_reclaimed)| !**is_reclaimed)
        .map(|(open, _)| Arc::clone(open))
        .collect();
    let reopened = reopen(dispatch, &left).await?;
    let reason: Arc<str> = "the server closed the file when the connection was lost".into();
    let mut lost = 0;
    for (open, _) in left.iter().zip(reopened).filter(|(_, is_open)| !*is_open) {
        warn!(path = open.path(), "an open is lost with its connection");
        open.lose(&reason);
        lost += 1;
    }
    end_leases(&opens);
    Ok((opens.len() - lost, lost))
}

/// Runs the callbacks of leases that have lost their last open. They may block.
fn end_leases(opens: &[Arc<OpenState>]) {
    let (open, lost): (Vec<_>, Vec<_>) = opens.iter().partition(|open| open.file_id().is_ok());
    for lease in lost.iter().filter_map(|open| open.lease.as_ref()) {
        let has_lease = |open: &&Arc<OpenState>| {
            let other = open.lease.as_ref();
            other.is_some_and(|other| Arc::ptr_eq(other, lease))
        };
        if !open.iter().any(has_lease)
            && let Some((event, callbacks)) = lease.end()
            && !callbacks.is_empty()
        {
            std::thread::spawn(move || run_all(&callbacks, event));
        }
    }
}

/// Reconnects to the durable opens. Returns for each open whether it remains.
async fn reclaim(dispatch: &Arc<Dispatch>, opens: &[Arc<OpenState>]) -> Result<Vec<bool>, Failed> {
    let started = opens.iter().map(|open| {
        let create = open.reconnect()?;
        Some(create_in(dispatch, open, create))
    });
    each(started, opens, |open, result| {
        let created = match result {
            Ok(Reply::Created(created)) => created,
            Ok(_) => return false,
            Err(cause) => {
                debug!(path = open.path(), reason = %cause, "no durable open");
                return false;
            }
        };
        let is_same = open.reclaimed(&created);
        if !is_same {
            close(dispatch, &open.tree, created.file_id);
        }
        is_same
    })
    .await
}

/// Opens files again by their paths. Returns for each open whether that is possible.
async fn reopen(dispatch: &Arc<Dispatch>, opens: &[Arc<OpenState>]) -> Result<Vec<bool>, Failed> {
    let creates: Vec<Option<Create>> = opens.iter().map(|open| open.reopen(guid())).collect();
    let started = opens.iter().zip(&creates).map(|(open, create)| {
        let create = create.clone()?;
        Some(create_in(dispatch, open, create))
    });
    let mut creates = creates.iter();
    each(started, opens, |open, result| {
        let create = creates.next().expect("one for each open").as_ref();
        let (Ok(Reply::Created(created)), Some(create)) = (result, create) else {
            return false;
        };
        let is_same = open.reopened(create, &created);
        if !is_same {
            close(dispatch, &open.tree, created.file_id);
        }
        is_same
    })
    .await
}

fn create_in(dispatch: &Arc<Dispatch>, open: &OpenState, create: Create) -> Pending {
    start(dispatch, Some(&open.tree), Step::Create(create))
}

/// Waits for the response of each open that has a request, and takes it.
async fn each(
    started: impl Iterator<Item = Option<Pending>>,
    opens: &[Arc<OpenState>],
    mut take: impl FnMut(&OpenState, Result<Reply, Cause>) -> bool,
) -> Result<Vec<bool>, Failed> {
    let started: Vec<_> = started.collect();
    let mut taken = Vec::with_capacity(opens.len());
    for (open, pending) in opens.iter().zip(started) {
        let result = match pending {
            Some(pending) => finish(pending).await?,
            None => Err(Cause::Canceled),
        };
        taken.push(take(open, result));
    }
    Ok(taken)
}

/// Closes a file that is not the expected one.
fn close(dispatch: &Arc<Dispatch>, tree: &TreeState, file: FileId) {
    let file = FileRef::Id(file);
    drop(start(
        dispatch,
        Some(tree),
        Step::Close { file, query: false },
    ));
}

/// A random CreateGuid.
fn guid() -> Guid {
    let entropy = auth::fresh_entropy();
    Guid(*entropy.first_chunk().expect("the entropy has 32 bytes"))
}
