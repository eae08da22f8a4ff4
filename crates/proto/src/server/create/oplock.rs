//! Oplocks of a CREATE: which it breaks, and which it gets. \[MS-SMB2\] 3.3.5.9

use wire::access::{AccessMask, CreateOptions, OplockLevel};
use wire::{FileId, Status};

use super::wanted::Wanted;
use super::{Entered, admit};
use crate::file::Opened;
use crate::server::context::{Context, Parked};
use crate::server::fsa::OpenRecord;
use crate::server::fsa::oplock::{Arrival, Entrance, Granted, Held, Holder, Mail, is_stat_only};

/// Enters what was opened in the table of open files, unless an oplock is to be broken first.
pub(super) fn enter(
    context: &mut Context<'_>,
    wanted: &Wanted,
    opened: &Opened,
    granted: AccessMask,
) -> Result<Option<Parked>, Status> {
    let patience = context.patience();
    let key = opened.metadata.key;
    let checked = admit::checked_sharing(wanted, granted);
    let arrival = Arrival {
        checked,
        overwrites: wanted.overwrites() && !opened.created,
        patience,
    };
    let record = OpenRecord {
        file: opened.file,
        sharing: admit::sharing(wanted, granted),
        path: opened.path.clone(),
        delete_on_close: wanted.options.contains(CreateOptions::DELETE_ON_CLOSE),
        held: Held::nothing(is_stat_only(checked.access)),
    };
    let mut mail = Mail::new();
    let files = &context.server.files;
    let entrance = files.enter(key, record, &arrival, &mut mail);
    context.post(mail);
    Ok(match entrance? {
        Entrance::Entered => None,
        Entrance::Wait(until) => Some(Parked::new(&patience, key, until)),
    })
}

impl Entered {
    /// The file was emptied: whoever began to cache it in the meantime is told.
    pub(super) fn emptied(&self, context: &mut Context<'_>) {
        let mut mail = Mail::new();
        let key = self.opened.metadata.key;
        context.server.files.end_level_two(key, &mut mail);
        context.post(mail);
    }

    /// Grants what may be had of the oplock that was asked for.
    pub(super) fn grant(&self, context: &Context<'_>, file_id: FileId) -> Granted {
        let holder = Holder {
            connection: context.connection,
            session: context.session.id,
            file_id,
        };
        let (key, file) = (self.opened.metadata.key, self.opened.file);
        let files = &context.server.files;
        files.grant(key, file, self.wanted_oplock(context), &holder)
    }

    /// None for a directory, nor for who only looks at attributes of a file that is there: as
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
