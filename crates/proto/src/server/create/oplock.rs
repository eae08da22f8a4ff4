//! Caching rights of a CREATE: which it breaks, and which it gets. \[MS-SMB2\] 3.3.5.9

use wire::access::{AccessMask, CreateOptions};
use wire::create_context::{Lease, LeaseFlags, LeaseState};
use wire::dialect::Dialect;
use wire::{FileId, Guid, Status};

use super::wanted::Wanted;
use super::{Entered, admit};
use crate::file::Opened;
use crate::server::context::{Context, Parked};
use crate::server::fsa::caching::{
    BreakTarget, CachingRequest, Granted, HolderId, LeaseId, LeaseTerms, OpenAttempt, is_stat_only,
    of_oplock,
};
use crate::server::fsa::{Admission, OpenRecord};
use crate::server::notices::Notices;

/// The result of [`enter`].
pub(super) enum Entry {
    /// The open is in the table of open files.
    Entered,
    /// The request waits for the break of another client's caching rights, and then starts again.
    Wait(Parked),
    /// The name was removed meanwhile: the request starts again.
    Removed,
}

/// Enters the open in the table of open files.
pub(super) fn enter(
    context: &mut Context<'_>,
    wanted: &Wanted,
    opened: &Opened,
    granted: AccessMask,
) -> Result<Entry, Status> {
    let wait = context.break_wait();
    let key = opened.metadata.key;
    let requested = requested_lease(context, wanted);
    let lease = lease_of(context, wanted, opened);
    let checked = admit::checked_sharing(wanted, granted);
    let attempt = OpenAttempt {
        checked,
        overwrites: wanted.overwrites() && !opened.created,
        is_retry: wanted.is_retry,
        removals: wanted.removals,
        lease: requested,
        wait,
    };
    let record = OpenRecord {
        file: opened.file,
        sharing: admit::sharing(wanted, granted),
        path: opened.path.clone(),
        delete_on_close: wanted.options.contains(CreateOptions::DELETE_ON_CLOSE),
        is_stat_only: is_stat_only(checked.access),
        holder: lease.map_or(HolderId::Open(opened.file), HolderId::Lease),
        parent_lease: parent_lease(wanted),
        target: None,
    };
    let mut notices = Notices::new();
    let files = &context.server.files;
    let admission = files.enter(key, record, &attempt, &mut notices);
    context.post(notices);
    Ok(match admission? {
        Admission::Entered => Entry::Entered,
        Admission::Removed => Entry::Removed,
        Admission::Wait(until) => Entry::Wait(Parked::new(&wait, key, until)),
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

    /// Grants as much of the requested oplock or lease as the other opens permit.
    pub(super) fn grant(&self, context: &Context<'_>, file_id: FileId) -> Granted {
        let request = CachingRequest {
            wanted: self.wanted_rights(context),
            terms: self.wanted.lease().map(terms).unwrap_or_default(),
            is_directory: self.opened.metadata.is_directory(),
            now: context.now.instant,
            size: self.opened.metadata.size,
            target: BreakTarget {
                connection: context.connection,
                session: context.session.id,
                file_id,
            },
        };
        let (key, file) = (self.opened.metadata.key, self.opened.file);
        context.server.files.grant(key, file, &request)
    }

    /// Whether the open asks for a lease on a directory.
    pub(super) fn wants_directory_lease(&self, context: &Context<'_>) -> bool {
        let is_directory = self.opened.metadata.is_directory();
        is_directory && lease_of(context, &self.wanted, &self.opened).is_some()
    }

    /// An open that only reads attributes of an existing file gets a lease and no oplock, as with
    /// Samba. A directory has leases and no oplocks.
    fn wanted_rights(&self, context: &Context<'_>) -> LeaseState {
        if !context.tree.share.oplocks {
            return LeaseState::NONE;
        }
        if let Some(lease) = self.wanted.lease() {
            return lease.lease_state;
        }
        let checked = admit::checked_sharing(&self.wanted, self.granted);
        let only_looks = !self.opened.created && is_stat_only(checked.access);
        match only_looks || self.opened.metadata.is_directory() {
            true => LeaseState::NONE,
            false => of_oplock(self.wanted.oplock),
        }
    }
}

/// The lease that a client asks for; `None` if the dialect has none. Leases exist from 2.1 on,
/// those of version 2 from 3.0 on. \[MS-SMB2\] 3.3.5.9
fn requested_lease(context: &Context<'_>, wanted: &Wanted) -> Option<LeaseId> {
    let lease = wanted.lease()?;
    let first = match lease.v2 {
        Some(_) => Dialect::SMB_3_0,
        None => Dialect::SMB_2_1,
    };
    (context.dialect >= first).then_some(LeaseId {
        client: context.session.origin.client_guid,
        key: lease.lease_key,
    })
}

/// The lease that an open joins; `None` if the client asks for none, or if the share or a limit
/// permits none. A lease of version 1 is not for directories.
fn lease_of(context: &Context<'_>, wanted: &Wanted, opened: &Opened) -> Option<LeaseId> {
    let id = requested_lease(context, wanted)?;
    let is_v2 = wanted.lease()?.v2.is_some();
    let share = &context.tree.share;
    let is_permitted = match opened.metadata.is_directory() {
        true => is_v2 && share.directory_leases && context.server.leases_directories(share),
        false => true,
    };
    if !is_permitted || !share.oplocks {
        return None;
    }
    let limits = &context.config.limits;
    let has_space = context.server.files.has_space_for_lease(id, limits);
    has_space.then_some(id)
}

/// The key of the lease on the parent directory. \[MS-SMB2\] 2.2.13.2.10
fn parent_lease(wanted: &Wanted) -> Option<Guid> {
    let lease = wanted.lease()?;
    let is_set = lease.lease_flags.contains(LeaseFlags::PARENT_LEASE_KEY_SET);
    lease.v2.filter(|_| is_set).map(|v2| v2.parent_lease_key)
}

fn terms(lease: &Lease) -> LeaseTerms {
    LeaseTerms {
        is_v2: lease.v2.is_some(),
        epoch: lease.v2.map_or(0, |v2| v2.epoch),
    }
}
