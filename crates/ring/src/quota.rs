//! Disk quotas of users and groups: quotactl_fd(2), since Linux 5.14, which names the file system
//! by a descriptor. Libraries offer only quotactl(2), which needs a block device.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

/// The kind of accounts that a quota is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaKind {
    /// Users: an id is a uid.
    User,
    /// Groups: an id is a gid.
    Group,
}

/// Whether a file system counts the disk space of accounts, and whether it limits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct QuotaState {
    /// Whether the file system counts the disk space of each user.
    pub counts_users: bool,
    /// Whether the limits of users have an effect.
    pub limits_users: bool,
}

/// Use and limits of disk space of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DiskQuota {
    /// The uid or gid of the account.
    pub id: u32,
    /// Disk space of the account's files in bytes.
    pub used: u64,
    /// Bytes that the account should not exceed for longer than the grace time; 0 for no limit.
    pub soft_limit: u64,
    /// Bytes that the account cannot exceed; 0 for no limit.
    pub hard_limit: u64,
}

/// Bytes of a block, the unit of limits (QIF_DQBLKSIZE).
const BLOCK: u64 = 1024;
/// Q_XGETQSTAT and Q_GETNEXTQUOTA, which libc lacks. linux/dqblk_xfs.h, linux/quota.h
const Q_XGETQSTAT: libc::c_int = 0x5805;
const Q_GETNEXTQUOTA: libc::c_int = 0x80_0009;
/// The limits of blocks in `valid`. linux/quota.h
const QIF_BLIMITS: u32 = 1;
/// Bits of `qs_flags`.
const USERS_COUNTED: u16 = 1;
const USERS_LIMITED: u16 = 2;

/// `struct if_nextdqblk` of linux/quota.h. The first nine fields are those of `struct if_dqblk`.
#[repr(C)]
#[derive(Default)]
struct Entry {
    block_hard_limit: u64,
    block_soft_limit: u64,
    used_bytes: u64,
    inode_hard_limit: u64,
    inode_soft_limit: u64,
    used_inodes: u64,
    block_time: u64,
    inode_time: u64,
    valid: u32,
    id: u32,
}

const _: () = assert!(size_of::<Entry>() == 72);

/// `struct fs_quota_stat` of linux/dqblk_xfs.h.
#[repr(C)]
#[derive(Default)]
struct State {
    version: i8,
    flags: u16,
    padding: i8,
    files: [u64; 6],
    records: u32,
    times: [i32; 3],
    warnings: [u16; 2],
}

const _: () = assert!(size_of::<State>() == 80);

/// Calls quotactl_fd(2), which reads or writes `argument`.
///
/// # Safety
/// `Argument` is the structure of the command.
unsafe fn call<Argument>(
    fd: BorrowedFd<'_>,
    (command, kind): (libc::c_int, QuotaKind),
    id: u32,
    argument: &mut Argument,
) -> io::Result<()> {
    let kind = match kind {
        QuotaKind::User => libc::USRQUOTA,
        QuotaKind::Group => libc::GRPQUOTA,
    };
    // The kernel takes the command as an unsigned number.
    let command = (command << 8 | kind) as libc::c_uint;
    let fd = fd.as_raw_fd();
    // SAFETY: the caller passes the structure of the command, which is borrowed during the call.
    // The descriptor is borrowed, so it stays open.
    let result = unsafe {
        libc::syscall(
            libc::SYS_quotactl_fd,
            fd,
            command,
            id,
            ptr::from_mut(argument),
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Queries whether the file system of an open file counts and limits disk space.
///
/// # Errors
/// ENOSYS for a kernel or a file system without quotas.
pub fn quota_state(fd: BorrowedFd<'_>) -> io::Result<QuotaState> {
    let mut state = State::default();
    // SAFETY: the structure is that of Q_XGETQSTAT.
    unsafe { call(fd, (Q_XGETQSTAT, QuotaKind::User), 0, &mut state) }?;
    Ok(QuotaState {
        counts_users: state.flags & USERS_COUNTED != 0,
        limits_users: state.flags & USERS_LIMITED != 0,
    })
}

/// Queries the quota of the account `id` on the file system of an open file.
///
/// # Errors
/// EPERM for another account than that of the calling thread without CAP_SYS_ADMIN, ESRCH while the
/// file system counts no accounts of this kind, ENOSYS for a kernel or a file system without
/// quotas.
pub fn quota_of(fd: BorrowedFd<'_>, kind: QuotaKind, id: u32) -> io::Result<DiskQuota> {
    let mut entry = Entry::default();
    // SAFETY: the structure starts with that of Q_GETQUOTA.
    unsafe { call(fd, (libc::Q_GETQUOTA, kind), id, &mut entry) }?;
    entry.id = id;
    Ok(entry.into())
}

/// Queries the quota of the first account with at least the id `from` that has one.
///
/// # Errors
/// Those of [`quota_of`], and ENOENT or ESRCH after the last account.
pub fn next_quota(fd: BorrowedFd<'_>, kind: QuotaKind, from: u32) -> io::Result<DiskQuota> {
    let mut entry = Entry::default();
    // SAFETY: the structure is that of Q_GETNEXTQUOTA.
    unsafe { call(fd, (Q_GETNEXTQUOTA, kind), from, &mut entry) }?;
    Ok(entry.into())
}

/// Sets the limits of `quota.id`, in bytes, rounded up to 1 KiB. Other fields have no effect.
///
/// # Errors
/// EPERM without CAP_SYS_ADMIN, ERANGE for limits that the file system cannot store, and those of
/// [`quota_of`].
pub fn set_quota(fd: BorrowedFd<'_>, kind: QuotaKind, quota: &DiskQuota) -> io::Result<()> {
    let mut entry = Entry {
        block_hard_limit: quota.hard_limit.div_ceil(BLOCK),
        block_soft_limit: quota.soft_limit.div_ceil(BLOCK),
        valid: QIF_BLIMITS,
        ..Entry::default()
    };
    // SAFETY: the structure starts with that of Q_SETQUOTA.
    unsafe { call(fd, (libc::Q_SETQUOTA, kind), quota.id, &mut entry) }
}

impl From<Entry> for DiskQuota {
    fn from(entry: Entry) -> Self {
        Self {
            id: entry.id,
            used: entry.used_bytes,
            soft_limit: entry.block_soft_limit.saturating_mul(BLOCK),
            hard_limit: entry.block_hard_limit.saturating_mul(BLOCK),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_file_system_without_quotas_says_so() {
        let Ok(proc) = File::open("/proc/self/status") else {
            return;
        };
        let found = quota_of(proc.as_fd(), QuotaKind::User, 0);
        assert!(found.is_err(), "procfs has no quotas: {found:?}");
        let state = quota_state(proc.as_fd());
        assert!(!state.is_ok_and(|state| state.counts_users));
    }
}
