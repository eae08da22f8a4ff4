//! Caching rights of a CREATE: which it breaks, and which it gets. \[MS-SMB2\] 3.3.5.9

use wire::access::{AccessMask, CreateOptions, OplockLevel};
use wire::{FileId, Status};

use super::wanted::Wanted;
use super::{Entered, admit};
use crate::file::Opened;
use crate::server::context::{Context, Parked};
use crate::server::fsa::caching::{
    BreakTarget, Granted, HolderId, OpenAttempt, is_stat_only, of_oplock,
};
use crate::server::fsa::{Admission, OpenRecord};
use crate::server::notices::Notices;

/// Enters the open in the table of open files, unless it has to wait for the break of another
/// client's caching rights.
pub(super) fn enter(
    context: &mut Context<'_>,
    wanted: &Wanted,
    opened: &Opened,
    granted: AccessMask,
) -> Result<Option<Parked>, Status> {
    let wait = context.break_wait();
    let key = opened.metadata.key;
    let checked = admit::checked_sharing(wanted, granted);
    let attempt = OpenAttempt {
        checked,
        overwrites: wanted.overwrites() && !opened.created,
        wait,
    };
    let record = OpenRecord {
        file: opened.file,
        sharing: admit::sharing(wanted, granted),
        path: opened.path.clone(),
        delete_on_close: wanted.options.contains(CreateOptions::DELETE_ON_CLOSE),
        is_stat_only: is_stat_only(checked.access),
        holder: HolderId::Open(opened.file),
        target: None,
    };
    let mut notices = Notices::new();
    let files = &context.server.files;
    let admission = files.enter(key, record, &attempt, &mut notices);
    context.post(notices);
    Ok(match admission? {
        Admission::Entered => None,
        Admission::Wait(until) => Some(Parked::new(&wait, key, until)),
    })
}

impl Entered {
    /// The file was truncated: breaks the rights of clients that began to cache it in the meantime.
    pub(super) fn emptied(&self, context: &mut Context<'_>) {
        let wait = context.break_wait();
        let mut notices = Notices::new();
        let (key, file) = (self.opened.metadata.key, self.opened.file);
        let files = &context.server.files;
        files.break_read_caching(key, file, wait.deadline, &mut notices);
        context.post(notices);
    }

    /// Grants as much of the requested oplock as the other opens permit.
    pub(super) fn grant(&self, context: &Context<'_>, file_id: FileId) -> Granted {
        let target = BreakTarget {
            connection: context.connection,
            session: context.session.id,
            file_id,
        };
        let (key, file) = (self.opened.metadata.key, self.opened.file);
        let files = &context.server.files;
        files.grant(key, file, of_oplock(self.wanted_oplock(context)), &target)
    }

    /// None for a directory, nor for an open that only reads attributes of an existing file: as
    /// Samba has it.
    fn wanted_oplock(&self, context: &Context<'_>) -> OplockLevel {
        let checked = admit::checked_sharing(&self.wanted, self.granted);
        let only_looks = !self.opened.created && is_stat_only(checked.access);
        let has_none = self.opened.metadata.is_directory() || only_looks;
        if has_none || !context.tree.share.oplocks {
            OplockLevel::NONE
        } else {
            self.wanted.oplock
        }
    }
}
