//! The lookup of the root of a share, for opens and for clients that enter the share.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use proto::token::Token;
use rustix::io::Errno;
use wire::Status;

use super::Posix;
use super::directory::Directory;
use super::stat::stat;
use crate::errno::{Context, status};
use crate::{Effort, Step, Stop, identity};

impl Posix {
    /// The present root of the share, for an operation with this token. NETWORK_NAME_DELETED if it
    /// does not exist: clients then connect again, and get BAD_NETWORK_NAME until it does.
    pub(super) fn root(&self, token: &Arc<Token>, effort: Effort) -> Step<Arc<Directory>> {
        let found = self
            .root
            .open(token, effort)
            .and_then(|fd| Ok((stat(&fd)?, fd)));
        let (stat, fd) = match found {
            Ok(found) => found,
            Err(Errno::AGAIN) if effort == Effort::Cached => return Err(Stop::WouldBlock),
            Err(errno @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::ACCESS)) => {
                return Err(status(errno, Context::Open).into());
            }
            Err(errno) => {
                self.root.log_missing(errno);
                return Err(Status::NETWORK_NAME_DELETED.into());
            }
        };
        let volume = |fd: &OwnedFd, is_other: bool| {
            let known = (!is_other).then(|| self.volumes.get(&stat)).flatten();
            known.unwrap_or_else(|| self.volumes.enter_root(fd, &stat, token))
        };
        Ok(self.root.enter(fd, stat, volume))
    }

    /// Checks that the root exists, for a client that enters the share.
    pub(super) fn find_root(&self, token: &Arc<Token>, effort: Effort) -> Step<()> {
        let token = self.credentials(token);
        identity::assume(token)?;
        match self.root(token, effort) {
            Ok(_) => Ok(()),
            Err(Stop::Failed(Status::NETWORK_NAME_DELETED)) => Err(Status::BAD_NETWORK_NAME.into()),
            Err(stop) => Err(stop),
        }
    }
}
