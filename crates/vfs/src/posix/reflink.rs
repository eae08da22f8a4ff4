//! Ranges of files that share their extents: FICLONERANGE.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use proto::file::{ClonePlan, FileKind, Outcome};
use proto::token::Token;
use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use wire::Status;

use super::Posix;
use super::directory::Run;
use super::file::OpenFile;
use super::stat::as_own;
use crate::errno::{Context, status};
use crate::{Effort, Step, Stop};

impl Posix {
    /// Makes a range of this open share the extents of another open of the share.
    pub(super) fn clone_range(
        &self,
        file: &OpenFile,
        plan: &ClonePlan,
        run: Run<'_>,
    ) -> Step<Outcome> {
        if run.effort == Effort::Cached {
            return Err(Stop::WouldBlock);
        }
        let ClonePlan {
            source,
            source_offset,
            target_offset,
            length,
        } = *plan;
        let source = self.file(source)?;
        // A named stream has no extents: it is an extended attribute.
        if file.stream.is_some() || source.stream.is_some() {
            return Err(Status::NOT_SUPPORTED.into());
        }
        file.check_writes()?;
        source.check_reads()?;
        let gate = file.write_gate.as_ref();
        let _guard = gate.map(|gate| gate.cached(run.effort)).transpose()?;
        let cloned = ring::clone_range(
            file.fd.as_fd(),
            source.fd.as_fd(),
            source_offset,
            target_offset,
            length,
        );
        match cloned {
            Ok(()) => Ok(Outcome::Done),
            Err(error) => {
                let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                Err(refusal(errno).into())
            }
        }
    }

    /// Whether files of the file system of an open can share extents. The first call tries it out
    /// with a file without a name.
    pub(super) fn has_shared_extents(&self, file: &OpenFile) -> bool {
        let location = file.link.location();
        let directory = match file.kind {
            FileKind::Directory => &file.fd,
            _ if Arc::ptr_eq(&location.parent.volume, &file.volume) => &location.parent.fd,
            _ => return false,
        };
        let shares = &file.volume.shares_extents;
        *shares.get_or_init(|| probe(directory, &file.token))
    }
}

/// The status for a range that cannot be cloned. Samba, too, answers INVALID_DEVICE_REQUEST where
/// extents cannot be shared.
fn refusal(errno: Errno) -> Status {
    match errno {
        Errno::OPNOTSUPP | Errno::NOTTY | Errno::NOSYS => Status::INVALID_DEVICE_REQUEST,
        Errno::XDEV => Status::INVALID_HANDLE,
        errno => status(errno, Context::Data),
    }
}

/// Clones the empty content of a file onto itself: that succeeds where extents can be shared.
fn probe(directory: &OwnedFd, token: &Arc<Token>) -> bool {
    let try_it = || {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = openat(directory, ".", flags, Mode::from_raw_mode(0o600))?;
        ring::clone_range(file.as_fd(), file.as_fd(), 0, 0, 0)
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
    };
    as_own(token, try_it).is_ok()
}
