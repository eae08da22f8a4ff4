//! The parts of a request that its event of the audit log has.

use core::sync::atomic::Ordering;

use wire::access::CreateOptions;
use wire::create_context::{find, name};
use wire::fscc::{
    DispositionFlags, FileAllocationInformation, FileDispositionInformation,
    FileDispositionInformationEx, FileEndOfFileInformation, FileInfoClass, FileLinkInformation,
    FileLinkInformationEx, FileRenameInformation, FileRenameInformationEx, InfoType,
};
use wire::query_info::SecurityInformation;
use wire::{Utf16, create, set_info};

use crate::audit::{Action, Attributes, Name, Object, Opening, Operation, Selection};
use crate::path::SharePath;
use crate::server::audit::{Draft, object};
use crate::server::context::Context;
use crate::server::open::Open;

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
