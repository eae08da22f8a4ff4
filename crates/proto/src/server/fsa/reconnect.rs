//! Opens that lose their session, and clients that reconnect to them.

use alloc::vec::Vec;

use wire::SessionId;
use wire::create_context::LeaseState;

use super::FileTable;
use super::caching::{BreakTarget, HolderId, LeaseId};
use crate::file::{FileKey, LocalOpen};

impl FileTable {
    /// The holder of the caching rights of an open; `None` once the open is closed.
    pub(crate) fn holder(&self, key: FileKey, open: LocalOpen) -> Option<HolderId> {
        let files = self.files.lock();
        Some(files.stream(key)?.open(open)?.holder)
    }

    /// The caching rights of the oplock or lease of an open; `None` while a break of them is in
    /// progress.
    pub(crate) fn unbroken_rights(&self, key: FileKey, open: LocalOpen) -> Option<LeaseState> {
        let files = self.files.lock();
        let holder = files.stream(key).and_then(|stream| {
            let id = stream.open(open)?.holder;
            stream.holders.iter().find(|holder| holder.id() == id)
        });
        match holder {
            Some(holder) if holder.is_breaking() => None,
            Some(holder) => Some(holder.rights_before_break()),
            None => Some(LeaseState::NONE),
        }
    }

    /// The session that receives the break notifications of an open: the one that made it or that
    /// reconnected to it last.
    pub(crate) fn session_of(&self, key: FileKey, open: LocalOpen) -> Option<SessionId> {
        let files = self.files.lock();
        let record = files.stream(key)?.open(open)?;
        record.target.as_ref().map(|target| target.session)
    }

    /// The opens of a lease, each with its session.
    pub(crate) fn targets_of_lease(&self, lease: LeaseId) -> Vec<BreakTarget> {
        let files = self.files.lock();
        let stream = files.leased(lease).and_then(|key| files.stream(key));
        let opens = stream.into_iter().flat_map(|stream| &stream.opens);
        let own = opens.filter(|open| open.holder == HolderId::Lease(lease));
        own.filter_map(|open| open.target.clone()).collect()
    }

    /// Sets the receiver of break notifications for an open that has moved to another session.
    pub(crate) fn retarget(&self, key: FileKey, open: LocalOpen, target: &BreakTarget) {
        let mut files = self.files.lock();
        let stream = files.stream_mut(key);
        if let Some(record) = stream.and_then(|stream| stream.open_mut(open)) {
            record.target = Some(target.clone());
        }
    }
}
