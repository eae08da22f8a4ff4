//! The events of the audit log: what a request does becomes a draft when it starts, and an event
//! when it has its result. A share that selects nothing costs a look at its rules.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use wire::access::CreateOptions;
use wire::create_context::{find, name};
use wire::fscc::{
    DispositionFlags, FileAllocationInformation, FileDispositionInformation,
    FileDispositionInformationEx, FileEndOfFileInformation, FileInfoClass, FileLinkInformation,
    FileLinkInformationEx, FileRenameInformation, FileRenameInformationEx, InfoType,
};
use wire::query_info::SecurityInformation;
use wire::{Status, Utf16, create, set_info};

use crate::audit::{
    Action, Attributes, Closing, Event, Name, Object, Opening, Operation, Selection,
};
use crate::effect::{Effect, Effects};
use crate::login::AccountKind;
use crate::path::SharePath;
use crate::report::ShareRefusal;
use crate::server::Server;
use crate::server::config::Share;
use crate::server::context::Context;
use crate::server::open::Open;
use crate::server::session::Session;

/// The event of a request without its result.
#[derive(Debug)]
pub(crate) struct Draft {
    event: Event,
    share: Arc<Share>,
    /// Whether a success is no event: the operation happens later.
    is_refusal_only: bool,
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
fn object(open: &Open, path: SharePath) -> Object {
    Object {
        name: Name::Path(path),
        is_directory: Some(open.is_directory),
        open: Some(open.id.persistent),
    }
}

/// A name as the client sent it, where it is not a path.
fn raw(name: Utf16<'_>) -> Name {
    Name::Raw(name.0.to_vec())
}

/// The new name in a rename.
fn target(name: Utf16<'_>) -> Name {
    match SharePath::from_wire_target(name) {
        Ok(path) => Name::Path(path),
        Err(_) => raw(name),
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

impl Context<'_> {
    fn selection(&self) -> Selection {
        self.tree.share.audit.selection()
    }

    /// Notes a CREATE, which may fail.
    pub(crate) fn audit_create(&mut self, request: &create::Request<'_>) {
        let selection = self.selection();
        if !selection.has_any(Operation::Open) && !selection.has_any(Operation::Create) {
            return;
        }
        let has_posix = self.has_posix && self.tree.share.posix;
        let path = match has_posix && find(&request.contexts, name::POSIX).is_some() {
            true => SharePath::from_posix_wire(request.name),
            false => SharePath::from_wire(request.name),
        };
        let opening = Opening {
            requested: request.desired_access,
            granted: None,
            disposition: request.create_disposition,
            deletes_on_close: (request.create_options).contains(CreateOptions::DELETE_ON_CLOSE),
            result: None,
        };
        let mut draft = Draft::new(&self.session, &self.tree.share, Action::Open(opening));
        draft.event.object = Some(Object {
            name: path.map_or_else(|_| raw(request.name), Name::Path),
            is_directory: None,
            open: None,
        });
        *self.audit = Some(draft);
    }

    /// Completes the event of a CREATE that succeeds.
    pub(crate) fn audit_opened(
        &mut self,
        open: &Open,
        path: &SharePath,
        did: create::CreateAction,
    ) {
        let Some(draft) = self.audit.as_mut() else {
            return;
        };
        if let Action::Open(opening) = &mut draft.event.action {
            opening.granted = Some(open.granted);
            opening.result = Some(did);
        }
        draft.event.object = Some(object(open, path.clone()));
    }

    /// Notes an operation on an open, which may fail.
    fn audit_on(&mut self, open: &Open, operation: Operation, action: impl FnOnce() -> Action) {
        if self.selection().has_any(operation) {
            let mut draft = Draft::new(&self.session, &self.tree.share, action());
            let path = self.server.files.path(open.key, open.file);
            draft.event.object = Some(object(open, path.unwrap_or_default()));
            *self.audit = Some(draft);
        }
    }

    /// Notes a change of a reparse point.
    pub(crate) fn audit_reparse(&mut self, open: &Open) {
        let action = || Action::Attributes(Attributes::Reparse);
        self.audit_on(open, Operation::Attributes, action);
    }

    /// Notes a SET_INFO.
    pub(crate) fn audit_set_info(&mut self, open: &Open, request: &set_info::Request<'_>) {
        if self.selection().is_empty() {
            return;
        }
        match request.info_type {
            InfoType::FILE => {
                let class = FileInfoClass(request.file_info_class);
                self.audit_set_file(open, class, request.buffer);
            }
            InfoType::SECURITY => {
                let parts = SecurityInformation(request.additional_information);
                self.audit_on(open, Operation::Security, || Action::Security(parts));
            }
            InfoType::QUOTA => self.audit_on(open, Operation::Quota, || Action::Quota),
            _ => {}
        }
    }

    fn audit_set_file(&mut self, open: &Open, class: FileInfoClass, buffer: &[u8]) {
        match class {
            FileInfoClass::BASIC => {
                let action = || Action::Attributes(Attributes::Basic);
                self.audit_on(open, Operation::Attributes, action);
            }
            FileInfoClass::FULL_EA => {
                let action = || Action::Attributes(Attributes::Extended);
                self.audit_on(open, Operation::Attributes, action);
            }
            FileInfoClass::RENAME | FileInfoClass::RENAME_EX => {
                if let Some(to) = renamed(class, buffer) {
                    let replaces = false;
                    let action = || Action::Rename { to, replaces };
                    self.audit_on(open, Operation::Rename, action);
                }
            }
            FileInfoClass::LINK | FileInfoClass::LINK_EX => {
                if let Some(to) = renamed(class, buffer) {
                    let replaces = false;
                    self.audit_on(open, Operation::Link, || Action::Link { to, replaces });
                }
            }
            FileInfoClass::ALLOCATION | FileInfoClass::END_OF_FILE => {
                if let Some(bytes) = new_size(class, buffer) {
                    self.audit_on(open, Operation::Resize, || Action::Resize { bytes });
                }
            }
            FileInfoClass::DISPOSITION | FileInfoClass::DISPOSITION_EX
                if deletes(class, buffer) =>
            {
                self.audit_on(open, Operation::Delete, || Action::Delete);
                // The last close deletes.
                let draft = self.audit.iter_mut();
                draft.for_each(|draft| draft.is_refusal_only = true);
            }
            _ => {}
        }
    }

    /// The rename or the link of the request replaces a file.
    pub(crate) fn audit_replaces(&mut self) {
        let action = self.audit.as_mut().map(|draft| &mut draft.event.action);
        if let Some(Action::Rename { replaces, .. } | Action::Link { replaces, .. }) = action {
            *replaces = true;
        }
    }

    /// Completes the event of a rename that succeeds.
    pub(crate) fn audit_renamed(&mut self, new: &SharePath) {
        let action = self.audit.as_mut().map(|draft| &mut draft.event.action);
        if let Some(Action::Rename { to, .. }) = action {
            *to = Name::Path(new.clone());
        }
    }

    /// Counts bytes that were read through an open, for the event at its end.
    pub(crate) fn count_read(&self, open: &Open, bytes: u64) {
        if !open.share.audit.selection().is_empty() {
            open.bytes_read.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// The same for written bytes.
    pub(crate) fn count_written(&self, open: &Open, bytes: u64) {
        if !open.share.audit.selection().is_empty() {
            open.bytes_written.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}

/// The new name in a request to rename or to link.
fn renamed(class: FileInfoClass, buffer: &[u8]) -> Option<Name> {
    let name = match class {
        FileInfoClass::RENAME => FileRenameInformation::decode(buffer).ok()?.name,
        FileInfoClass::RENAME_EX => FileRenameInformationEx::decode(buffer).ok()?.name,
        FileInfoClass::LINK => FileLinkInformation::decode(buffer).ok()?.name,
        _ => FileLinkInformationEx::decode(buffer).ok()?.name,
    };
    Some(target(name))
}

/// The new size in a request to change it.
fn new_size(class: FileInfoClass, buffer: &[u8]) -> Option<u64> {
    match class {
        FileInfoClass::ALLOCATION => {
            let information = FileAllocationInformation::decode(buffer).ok()?;
            Some(information.allocation_size)
        }
        _ => Some(FileEndOfFileInformation::decode(buffer).ok()?.end_of_file),
    }
}

/// Whether a request marks a file for deletion.
fn deletes(class: FileInfoClass, buffer: &[u8]) -> bool {
    match class {
        FileInfoClass::DISPOSITION => FileDispositionInformation::decode(buffer)
            .is_ok_and(|information| information.is_delete_pending),
        _ => FileDispositionInformationEx::decode(buffer)
            .is_ok_and(|information| information.flags.contains(DispositionFlags::DELETE)),
    }
}
