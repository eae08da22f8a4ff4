//! The events of the audit log: what a request does becomes a draft when it starts, and an event
//! when it has its result. A share that selects nothing costs a look at its rules.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use wire::Status;

use crate::audit::{Action, Closing, Event, Name, Object, Operation, Selection};
use crate::effect::{Effect, Effects};
use crate::login::AccountKind;
use crate::path::SharePath;
use crate::report::ShareRefusal;
use crate::server::Server;
use crate::server::config::Share;
use crate::server::open::Open;
use crate::server::session::Session;

/// The event of a request without its result.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) event: Event,
    share: Arc<Share>,
    /// Whether a success is no event: the operation happens later.
    pub(crate) is_refusal_only: bool,
}

impl Draft {
    /// The draft of an event of a share.
    pub(crate) fn new(session: &Session, share: &Arc<Share>, action: Action) -> Box<Self> {
        Box::new(Self {
            event: event(session, share, action),
            share: share.clone(),
            is_refusal_only: false,
        })
    }

    /// The server refuses to connect the session to the share.
    pub(crate) fn refuse(&mut self, refusal: ShareRefusal) {
        self.event.action = Action::Connect {
            refusal: Some(refusal),
        };
    }

    /// The request has its result: makes the event, if the share selects it.
    pub(crate) fn finish(self: Box<Self>, status: Status, effects: &mut Effects) {
        let Self {
            mut event,
            share,
            is_refusal_only,
        } = *self;
        event.status = status;
        if !is_refusal_only || status != Status::SUCCESS {
            push(event, &share, effects);
        }
    }
}

/// An event of a session in a share.
fn event(session: &Session, share: &Share, action: Action) -> Event {
    let account = session.state.lock().account.clone();
    Event {
        share: Some(share.name.clone()),
        ..Event::new(Some(session.id), &account, action)
    }
}

/// Requests the event, if the share selects it.
pub(crate) fn push(event: Event, share: &Share, effects: &mut Effects) {
    if event.is_selected(share.audit.selection()) {
        effects.push(Effect::Audit(Box::new(event)));
    }
}

/// An open as the object of an event.
pub(crate) fn object(open: &Open, path: SharePath) -> Object {
    Object {
        name: Name::Path(path),
        is_directory: Some(open.is_directory),
        open: Some(open.id.persistent),
    }
}

/// Whether the end of an open may be an event.
fn has_ends(selection: Selection) -> bool {
    let ends = [Operation::Close, Operation::Read, Operation::Write];
    ends.iter().any(|end| selection.has_any(*end))
}

/// The end of an open that is still in the table of open files; `None` if its share does not select
/// it.
pub(crate) fn closing(server: &Server, open: &Open, session: Option<&Session>) -> Option<Event> {
    let selection = open.share.audit.selection();
    if selection.is_empty() || !has_ends(selection) {
        return None;
    }
    let closing = Closing {
        granted: open.granted,
        read: open.bytes_read.load(Ordering::Relaxed),
        written: open.bytes_written.load(Ordering::Relaxed),
        is_modified: open.is_modified.load(Ordering::Relaxed),
    };
    let path = server.files.path(open.key, open.file).unwrap_or_default();
    let event = of_open(open, session, path, Action::Close(closing));
    event.is_selected(selection).then_some(event)
}

/// The removal of the file with the last close of an open; `None` if its share does not select it.
pub(crate) fn deletion(
    open: &Open,
    session: Option<&Session>,
    path: &SharePath,
) -> Option<Box<Event>> {
    let selection = open.share.audit.selection();
    let is_wanted = selection.has_any(Operation::Delete);
    is_wanted.then(|| Box::new(of_open(open, session, path.clone(), Action::Delete)))
}

/// An event of an open. Without a session, it is that of the user that made the open.
fn of_open(open: &Open, session: Option<&Session>, path: SharePath, action: Action) -> Event {
    let mut event = match session {
        Some(session) => event(session, &open.share, action),
        None => Event {
            session: None,
            user: open.owner().name().to_string(),
            kind: AccountKind::Named,
            share: Some(open.share.name.clone()),
            object: None,
            action,
            status: Status::SUCCESS,
        },
    };
    event.object = Some(object(open, path));
    event
}

/// Requests the event of a removal with its result.
pub(crate) fn removed(
    event: Option<Box<Event>>,
    share: &Share,
    result: Result<(), Status>,
    effects: &mut Effects,
) {
    if let Some(mut event) = event {
        event.status = result.err().unwrap_or(Status::SUCCESS);
        push(*event, share, effects);
    }
}

/// A TREE_CONNECT to a share that does not exist.
pub(crate) fn unknown_share(session: &Session, name: &str, effects: &mut Effects) {
    let account = session.state.lock().account.clone();
    let action = Action::Connect { refusal: None };
    let event = Event {
        share: Some(String::from(name)),
        status: Status::BAD_NETWORK_NAME,
        ..Event::new(Some(session.id), &account, action)
    };
    effects.push(Effect::Audit(Box::new(event)));
}
