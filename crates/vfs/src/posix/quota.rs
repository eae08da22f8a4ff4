//! Disk quotas of users and groups, as the kernel counts and limits them. It checks the right of
//! the user: only root may query the quotas of others and set limits.

use std::io;
use std::os::fd::AsFd;

use proto::disk_quota::{DiskQuota, FirstUser, QuotaLimits, QuotaSelection, QuotaState};
use proto::file::Outcome;
use ring::QuotaKind;
use rustix::io::Errno;
use wire::Status;
use wire::security::Sid;

use super::Posix;
use super::file::OpenFile;
use crate::accounts::UnixAccount;
use crate::errno::{Context, status};
use crate::{Effort, Step, Stop};

/// The largest limit in bytes that is not rounded to one without effect.
const LIMIT_MIN: u64 = 1;

impl Posix {
    /// Queries quotas of the file system that holds an open file.
    pub(super) fn query_quotas(
        &self,
        file: &OpenFile,
        selection: &QuotaSelection,
        effort: Effort,
    ) -> Step<Outcome> {
        // The kernel may have to read an entry from the disk.
        if effort == Effort::Cached {
            return Err(Stop::WouldBlock);
        }
        let quotas = match selection {
            QuotaSelection::Of(sids) => {
                let quotas: Result<Vec<_>, _> =
                    sids.iter().map(|sid| self.quota_of(file, sid)).collect();
                quotas?
            }
            QuotaSelection::Users { from, limit } => self.list_quotas(file, *from, *limit)?,
        };
        Ok(Outcome::Quotas(quotas))
    }

    /// Sets the limits of accounts on the file system that holds an open file.
    pub(super) fn set_quotas(
        &self,
        file: &OpenFile,
        quotas: &[QuotaLimits],
        effort: Effort,
    ) -> Step<Outcome> {
        if effort == Effort::Cached {
            return Err(Stop::WouldBlock);
        }
        for quota in quotas {
            let account = self.account_of(&quota.sid).ok_or(Status::NO_SUCH_USER)?;
            let (kind, id) = kind_and_id(account);
            // 0 would be no limit.
            let limit = |limit: Option<u64>| limit.map_or(0, |limit| limit.max(LIMIT_MIN));
            let quota = ring::DiskQuota {
                id,
                soft_limit: limit(quota.threshold),
                hard_limit: limit(quota.limit),
                used: 0,
            };
            ring::set_quota(file.fd.as_fd(), kind, &quota).map_err(|error| refusal(&error))?;
        }
        Ok(Outcome::Done)
    }

    fn account_of(&self, sid: &Sid) -> Option<UnixAccount> {
        UnixAccount::of_unix_sid(sid).or_else(|| self.accounts.to_unix(sid))
    }

    fn quota_of(&self, file: &OpenFile, sid: &Sid) -> Step<DiskQuota> {
        let found = match self.account_of(sid) {
            None => ring::DiskQuota::default(),
            Some(account) => {
                let (kind, id) = kind_and_id(account);
                let found = ring::quota_of(file.fd.as_fd(), kind, id);
                found.map_err(|error| refusal(&error))?
            }
        };
        Ok(disk_quota(*sid, &found))
    }

    /// The quotas of at most `limit` users from one on.
    fn list_quotas(&self, file: &OpenFile, from: FirstUser, limit: usize) -> Step<Vec<DiskQuota>> {
        let mut uid = match from {
            FirstUser::Uid(uid) => Some(uid),
            FirstUser::Sid(sid) => match self.account_of(&sid) {
                Some(UnixAccount::User(uid)) => Some(uid),
                _ => return Err(Status::INVALID_PARAMETER.into()),
            },
        };
        let mut quotas = Vec::new();
        while let Some(from) = uid.filter(|_| quotas.len() < limit) {
            let found = match ring::next_quota(file.fd.as_fd(), QuotaKind::User, from) {
                Ok(found) => found,
                Err(error) if is_end(file, &error) => break,
                Err(error) => return Err(refusal(&error).into()),
            };
            uid = found.id.checked_add(1);
            let account = UnixAccount::User(found.id);
            let sid = self.accounts.shown(account).unwrap_or(account.unix_sid());
            quotas.push(disk_quota(sid, &found));
        }
        Ok(quotas)
    }
}

/// Whether the kernel knows no further user. ESRCH stands for a file system without quotas as well.
fn is_end(file: &OpenFile, error: &io::Error) -> bool {
    match Errno::from_io_error(error) {
        Some(Errno::NOENT) => true,
        Some(Errno::SRCH) => state(file) != QuotaState::None,
        _ => false,
    }
}

/// Whether the file system of an open file counts and limits the disk space of users.
pub(super) fn state(file: &OpenFile) -> QuotaState {
    match ring::quota_state(file.fd.as_fd()) {
        Ok(state) if state.limits_users => QuotaState::Limited,
        Ok(state) if state.counts_users => QuotaState::Counted,
        _ => QuotaState::None,
    }
}

fn kind_and_id(account: UnixAccount) -> (QuotaKind, u32) {
    match account {
        UnixAccount::User(uid) => (QuotaKind::User, uid),
        UnixAccount::Group(gid) => (QuotaKind::Group, gid),
    }
}

fn disk_quota(sid: Sid, found: &ring::DiskQuota) -> DiskQuota {
    let limit = |bytes: u64| (bytes > 0).then_some(bytes);
    DiskQuota {
        id: found.id,
        used: found.used,
        limits: QuotaLimits {
            sid,
            threshold: limit(found.soft_limit),
            limit: limit(found.hard_limit),
        },
    }
}

/// The status for a query that the kernel refuses.
fn refusal(error: &io::Error) -> Status {
    let errno = Errno::from_io_error(error).unwrap_or(Errno::IO);
    match errno {
        Errno::NOSYS | Errno::SRCH | Errno::OPNOTSUPP | Errno::NOTTY | Errno::INVAL => {
            Status::NOT_SUPPORTED
        }
        Errno::RANGE => Status::INVALID_PARAMETER,
        errno => status(errno, Context::Attributes),
    }
}
