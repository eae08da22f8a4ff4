//! Names of files: deletions, and what responses show of names in scenarios with the SMB3 POSIX
//! extensions.

use wire::access::{AccessMask, CreateDisposition, CreateOptions};
use wire::create::CreateAction;
use wire::fscc::{DispositionFlags, FileDispositionInformationEx, FileInfoClass};
use wire::{FileId, Header, Status};

use super::answers::REFUSALS;
use super::call::{Call, Intent, Opening};
use super::{Client, Deletion, Shared, State};
use crate::check::contents::Span;
use crate::check::names::Shown;

/// Failures of a CREATE that show that a file exists.
const EXISTS: [Status; 2] = [Status::DELETE_PENDING, Status::SHARING_VIOLATION];

impl Client {
    /// Renames or deletes the file of a POSIX open; opens one if there is none.
    pub(super) fn change_a_name(&mut self, shared: &mut Shared<'_>) {
        let usable = self.slots.iter().filter(|(number, slot)| {
            let may = slot.access.contains(AccessMask::DELETE) && self.may_move(**number, shared);
            slot.state == State::Open && slot.is_posix && may
        });
        let usable: Vec<_> = usable.map(|(it, slot)| (*it, slot.file_id)).collect();
        if usable.is_empty() {
            return self.create_one(shared);
        }
        let (slot, file_id) = self.choices.pick(&usable);
        let call = match self.choices.below(2) {
            0 => self.rename(slot, file_id, shared),
            _ => self.delete(slot, file_id, shared),
        };
        self.submit(vec![call], shared);
    }

    /// Marks the file of an open for deletion, or withdraws that; with the SMB3 POSIX extensions
    /// the name usually goes with this open.
    pub(super) fn delete(&mut self, slot: u64, file_id: FileId, shared: &Shared<'_>) -> Call {
        let is_to_go = [self.choices.below(2) as u8];
        let checks_names = shared.scenario.posix > 0;
        let Some(open) = self.slots.get_mut(&slot) else {
            return Call::flush(file_id);
        };
        if is_to_go == [0] && !checks_names {
            return Call::set_info(Intent::Any, file_id, FileInfoClass::DISPOSITION, &is_to_go);
        }
        // A second request would change nothing.
        if checks_names && open.deletion != Deletion::None {
            return Call::flush(file_id);
        }
        let is_posix = open.is_posix && !self.choices.per_mille(200);
        if checks_names {
            open.deletion = Deletion::Requested;
        }
        let key = open.key;
        let intent = Intent::Delete {
            slot,
            key,
            is_posix,
        };
        if !is_posix {
            return Call::set_info(intent, file_id, FileInfoClass::DISPOSITION, &[1]);
        }
        let flags = DispositionFlags::DELETE | DispositionFlags::POSIX_SEMANTICS;
        let mut buffer = Vec::new();
        FileDispositionInformationEx { flags }.encode(&mut buffer);
        Call::set_info(intent, file_id, FileInfoClass::DISPOSITION_EX, &buffer)
    }

    /// Processes the response to a CREATE that succeeded.
    pub(super) fn has_created(
        &self,
        opening: &Opening,
        key: u64,
        action: CreateAction,
        span: Span,
        shared: &mut Shared<'_>,
    ) {
        if shared.scenario.posix == 0 {
            return;
        }
        shared.report.posix_opens += u64::from(opening.is_posix);
        match action {
            CreateAction::CREATED => shared.names.took(Some(key), &opening.path, span, true),
            _ => (shared.names).observe(&opening.path, Shown::File(key), span),
        }
        if opening.options.contains(CreateOptions::DELETE_ON_CLOSE) {
            let by = (self.id, opening.slot);
            shared.names.marked(Some(key), None, span.start, by);
        }
    }

    /// Processes the response to a CREATE that failed.
    pub(super) fn has_not_created(
        &self,
        opening: &Opening,
        header: &Header,
        span: Span,
        shared: &mut Shared<'_>,
    ) {
        if shared.scenario.posix == 0 {
            return;
        }
        let name = &opening.path;
        let may_create = !matches!(
            opening.disposition,
            CreateDisposition::OPEN | CreateDisposition::OVERWRITE
        );
        match header.status {
            Status::OBJECT_NAME_NOT_FOUND => shared.names.observe(name, Shown::Nothing, span),
            Status::OBJECT_NAME_COLLISION => shared.names.observe(name, Shown::Something, span),
            // The file exists before the server compares it with other opens of it.
            _ if may_create => shared.names.took(None, name, span, false),
            status if EXISTS.contains(&status) => {
                shared.names.observe(name, Shown::Something, span);
            }
            _ => {}
        }
    }

    /// Processes the response to a rename or a deletion.
    pub(super) fn has_changed_names(
        &mut self,
        intent: &Intent,
        header: &Header,
        span: Span,
        shared: &mut Shared<'_>,
    ) {
        if shared.scenario.posix == 0 {
            return;
        }
        let is_done = header.status == Status::SUCCESS;
        match intent {
            Intent::Rename { to, .. } if header.status == Status::OBJECT_NAME_COLLISION => {
                shared.names.observe(to, Shown::Something, span);
            }
            _ if REFUSALS.contains(&header.status) => {}
            Intent::Rename { slot, key, to } => {
                let is_posix = self.slots.get(slot).is_some_and(|slot| slot.is_posix);
                shared.report.posix_renames += u64::from(is_posix && is_done);
                shared.names.took(*key, to, span, is_done);
            }
            Intent::Delete {
                slot,
                key,
                is_posix,
            } => {
                shared
                    .names
                    .marked(*key, None, span.start, (self.id, *slot));
                let slot = self.slots.get_mut(slot).filter(|_| is_done && *is_posix);
                if let Some(slot) = slot {
                    slot.deletion = Deletion::Posix;
                }
            }
            _ => {}
        }
    }

    /// Processes the response to a CLOSE.
    pub(super) fn has_closed(
        &mut self,
        number: u64,
        header: &Header,
        span: Span,
        shared: &mut Shared<'_>,
    ) {
        let slot = self.slots.remove(&number);
        let (Some(slot), Status::SUCCESS) = (slot, header.status) else {
            return;
        };
        let by = (self.id, number);
        shared
            .refused_locks
            .closed(by, span.end.unwrap_or(u64::MAX));
        // With errors of the disk, the name may stay.
        let is_removed = slot.deletion == Deletion::Posix && shared.scenario.faults.disk_error == 0;
        if let Some(key) = slot.key.filter(|_| is_removed) {
            shared.names.removed(key, span, by);
        }
    }

    /// A request has lost its connection.
    pub(super) fn names_are_lost(
        &self,
        intent: &Intent,
        start: u64,
        link: u64,
        shared: &mut Shared<'_>,
    ) {
        if shared.scenario.posix == 0 {
            return;
        }
        match intent {
            Intent::Create(opening) => {
                shared.names.perhaps_took(None, &opening.path, start, link);
                if opening.options.contains(CreateOptions::DELETE_ON_CLOSE) {
                    let by = (self.id, opening.slot);
                    (shared.names).marked(None, Some(&opening.path), start, by);
                }
            }
            Intent::Rename { key, to, .. } => {
                shared.names.perhaps_took(*key, to, start, link);
            }
            Intent::Delete { slot, key, .. } => {
                let by = (self.id, *slot);
                shared.names.marked(*key, None, start, by);
            }
            _ => {}
        }
    }
}
