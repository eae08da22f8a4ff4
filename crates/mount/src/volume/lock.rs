//! Byte-range locks of programs: fcntl(2) and flock(2).

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use fuser::{Errno, FileHandle};
use smbeam_client::{File, OpenOptions, Status};

use super::{Answer, Volume};
use crate::errno::errno;
use crate::handles::lock;
use crate::locks::{Held, Lock, LockTable};
use crate::opens::OpenFile;

/// First and longest pause between two attempts for a lock that another client holds.
const PAUSES: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(250)];

/// The state of locks after a request.
enum Attempt {
    Done,
    /// Another program or client has a lock in the range.
    Conflict,
}

impl Volume {
    /// Acquires or releases a lock. `wanted` is `None` for a release of `range` of `owner`. A
    /// request that waits ends with EINTR when its thread has a signal.
    pub(crate) async fn set_lock(
        &self,
        handle: FileHandle,
        change: Lock,
        is_release: bool,
        waits: bool,
    ) -> Answer<()> {
        let open = self.file(handle)?;
        // Other clients read the range when they have the lock.
        self.flush_held(&open.opens).await;
        let mut pause = PAUSES[0];
        loop {
            match self.try_lock(&open, &change, is_release).await? {
                Attempt::Done => return Ok(()),
                Attempt::Conflict if !waits => return Err(Errno::EAGAIN),
                Attempt::Conflict if has_signal(change.pid) => return Err(Errno::EINTR),
                Attempt::Conflict => self.timer.sleep(pause).await,
            }
            pause = (pause * 2).min(PAUSES[1]);
        }
    }

    async fn try_lock(
        &self,
        open: &Arc<OpenFile>,
        change: &Lock,
        is_release: bool,
    ) -> Answer<Attempt> {
        let mut table = open.opens.locks.table.lock().await;
        if !is_release && table.conflict(change).is_some() {
            return Ok(Attempt::Conflict);
        }
        let mut next = table.clone();
        let wanted = (!is_release).then(|| change.clone());
        next.replace(change.owner, &change.range, wanted);
        if next.locks.is_empty() && table.held.is_empty() {
            *table = LockTable::default();
            return Ok(Attempt::Done);
        }
        let holder = self.lock_holder(open).await?;
        let attempt = transition(&holder, &mut table.held, &next.wanted()).await?;
        if matches!(attempt, Attempt::Done) {
            table.locks = next.locks;
        }
        if table.held.is_empty() {
            let holder = lock(&open.opens.locks.holder).take();
            if let Some(holder) = holder {
                // The locks are released; no request uses the open.
                let _ = holder.close().await;
            }
        }
        Ok(attempt)
    }

    /// The open that has the locks of an inode. It can read and write, if the user may, because
    /// reads and writes of all opens of this machine use it.
    async fn lock_holder(&self, open: &Arc<OpenFile>) -> Answer<File> {
        if let Some(holder) = lock(&open.opens.locks.holder).clone() {
            return Ok(holder);
        }
        let options = OpenOptions::new()
            .read(true)
            .write(true)
            .directory(false)
            .follow(false);
        let holder = match self.path(open.ino) {
            Ok(path) => self.share.open(&path, &options).await.ok(),
            Err(_) => None,
        };
        // The open of the program does as well, as long as it is open.
        let holder = holder.unwrap_or_else(|| open.file.clone());
        *lock(&open.opens.locks.holder) = Some(holder.clone());
        Ok(holder)
    }

    /// Returns the first lock that conflicts with `wanted`.
    pub(crate) async fn find_lock(&self, handle: FileHandle, wanted: Lock) -> Answer<Option<Lock>> {
        let open = self.file(handle)?;
        {
            let table = open.opens.locks.table.lock().await;
            if let Some(found) = table.conflict(&wanted) {
                return Ok(Some(found.clone()));
            }
            let own = |held: &Lock| held.owner == wanted.owner;
            if table.locks.iter().any(own) {
                // The server knows only one owner here, so it cannot tell others apart.
                return Ok(None);
            }
        }
        match self.try_lock(&open, &wanted, false).await? {
            Attempt::Done => {
                self.try_lock(&open, &wanted, true).await?;
                Ok(None)
            }
            // The server does not say which lock it is, and another client has no process here.
            Attempt::Conflict => Ok(Some(Lock {
                pid: 0,
                is_exclusive: true,
                ..wanted
            })),
        }
    }

    /// Releases all locks of an owner on an inode.
    pub(crate) async fn release_locks(&self, open: &Arc<OpenFile>, owner: u64) {
        let is_owner = |held: &Lock| held.owner == owner;
        if !open
            .opens
            .locks
            .table
            .lock()
            .await
            .locks
            .iter()
            .any(is_owner)
        {
            return;
        }
        let all = Lock {
            owner,
            pid: 0,
            range: 0..u64::MAX,
            is_exclusive: false,
        };
        if let Err(error) = self.try_lock(open, &all, true).await {
            tracing::warn!(ino = open.ino, ?error, "locks were not released");
        }
    }

    /// The open of the server for reads and writes of a program: the one with locks, if there are
    /// any.
    pub(super) fn file_for(&self, open: &OpenFile) -> File {
        let holder = lock(&open.opens.locks.holder).clone();
        holder.unwrap_or_else(|| open.file.clone())
    }
}

/// Makes the locks of the server equal to `wanted`. After a conflict it has the earlier ones.
async fn transition(holder: &File, held: &mut Vec<Held>, wanted: &[Held]) -> Answer<Attempt> {
    let before = held.clone();
    match change(holder, held, wanted).await {
        Ok(()) => Ok(Attempt::Done),
        Err(error) if error == Errno::EAGAIN => {
            // Another client can have taken a part meanwhile; then this machine has lost it.
            if let Err(error) = change(holder, held, &before).await {
                tracing::warn!(?error, "a lock was lost to another client");
            }
            Ok(Attempt::Conflict)
        }
        Err(error) => Err(error),
    }
}

async fn change(holder: &File, held: &mut Vec<Held>, wanted: &[Held]) -> Answer<()> {
    let surplus: Vec<Held> = held
        .iter()
        .filter(|it| !wanted.contains(it))
        .cloned()
        .collect();
    for old in surplus {
        let done = holder.unlock(old.range.clone()).await;
        held.retain(|it| *it != old);
        match done {
            Err(error) if error.status() != Some(Status::RANGE_NOT_LOCKED) => {
                return Err(errno(&error));
            }
            _ => {}
        }
    }
    for new in wanted {
        if held.contains(new) {
            continue;
        }
        let done = holder.lock(new.range.clone(), new.kind, false).await;
        done.map_err(|error| errno(&error))?;
        held.push(new.clone());
    }
    Ok(())
}

/// Whether a thread has a signal that ends its request. The kernel does not report that to a file
/// system that does not know interrupts, and the library does not. proc_pid_status(5)
fn has_signal(thread: u32) -> bool {
    // A thread that has ended waits for nothing.
    let status = fs::read_to_string(format!("/proc/{thread}/status"));
    status.map_or(thread != 0, |status| is_signaled(&status))
}

fn is_signaled(status: &str) -> bool {
    let mask = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
            .unwrap_or(0)
    };
    let pending = mask("SigPnd:") | mask("ShdPnd:");
    pending & !mask("SigBlk:") & !mask("SigIgn:") != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_counts_if_the_thread_receives_it() {
        let status = |pending: &str, blocked: &str, ignored: &str| {
            format!("SigPnd:\t{pending}\nShdPnd:\t0\nSigBlk:\t{blocked}\nSigIgn:\t{ignored}\n")
        };
        assert!(!is_signaled(&status("0000", "0000", "0000")));
        assert!(is_signaled(&status("0100", "0000", "0000")));
        assert!(!is_signaled(&status("0100", "0100", "0000")));
        assert!(!is_signaled(&status("0100", "0000", "0100")));
        assert!(is_signaled("ShdPnd:\t100\n"));
    }
}
