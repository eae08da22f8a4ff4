//! Disk quotas: use and limits of disk space of accounts on a file system.

use alloc::vec::Vec;

use wire::security::Sid;

/// Whether a file system counts the disk space of each user, and limits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum QuotaState {
    /// The file system does not count the disk space of users.
    #[default]
    None,
    /// The file system counts the disk space of users, without limits.
    Counted,
    /// The file system limits the disk space of users.
    Limited,
}

/// The accounts of the quotas that a query returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuotaSelection {
    /// These accounts, users or groups, in this order. An account that the server does not know has
    /// no use and no limits.
    Of(Vec<Sid>),
    /// The users that have a quota, in the order of their uids.
    Users {
        /// The first user.
        from: FirstUser,
        /// Maximum number of users.
        limit: usize,
    },
}

/// The first user of a list of quotas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstUser {
    /// The first user with at least this uid.
    Uid(u32),
    /// The user with this SID, or the next one.
    Sid(Sid),
}

/// Use and limits of disk space of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskQuota {
    /// The uid of a user or the gid of a group; 0 for an account that the server does not know.
    pub id: u32,
    /// Disk space of the account's files in bytes.
    pub used: u64,
    /// The limits of the account.
    pub limits: QuotaLimits,
}

/// Limits of the disk space of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaLimits {
    /// SID of the account.
    pub sid: Sid,
    /// Bytes from which the account receives a warning (the soft limit); `None` for no limit.
    pub threshold: Option<u64>,
    /// Bytes that the account cannot exceed (the hard limit); `None` for no limit.
    pub limit: Option<u64>,
}
