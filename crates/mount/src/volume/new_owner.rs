//! The owner of new files, and bits of the mode that a change of the file clears.
//!
//! The server gives a new file to the user of the session. If that is root, the mount gives it to
//! the user of the program, as a local file system does.

use std::sync::atomic::Ordering;

use fuser::{FileType, INodeNo, Request};
use smbeam_client::{Error, File, PosixChanges, Status};

use super::{Answer, Volume};
use crate::attributes::Node;
use crate::errno::errno;
use crate::mode::{SETGID, SETUID, SPECIAL, cleared};

/// The user of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl Caller {
    pub(crate) fn of(request: &Request) -> Self {
        Self {
            uid: request.uid(),
            gid: request.gid(),
        }
    }
}

/// A new file.
#[derive(Clone, Copy)]
pub(super) enum New<'a> {
    /// It is open with the rights of its owner. An open of its path would break the lease of this
    /// one: then a loss of the connection before the acknowledgment ends the open.
    Open(&'a File),
    /// It has this path.
    At(&'a str),
}

impl Volume {
    /// Gives a new file to the caller, with the special bits of `mode`. Returns the file as it is
    /// then.
    pub(super) async fn give(
        &self,
        (parent, new): (u64, New<'_>),
        (caller, mode): (Caller, u32),
        node: Node,
    ) -> Answer<Node> {
        let Some(unix) = node.metadata.unix else {
            return Ok(node);
        };
        let (uid, gid) = self.owner_to_set(parent, caller, &node).await?;
        let has_other_owner = uid.is_some() || gid.is_some();
        let inherited = unix.permissions() & SETGID;
        let wanted = unix.permissions() & !SPECIAL | mode & SPECIAL | inherited;
        let is_file = node.kind != FileType::Directory;
        // A change of the owner clears setuid and setgid of files.
        let has_lost = has_other_owner && is_file && wanted & (SETUID | SETGID) != 0;
        let has_other_mode = wanted != unix.permissions();
        let mode = |is_needed: bool| is_needed.then_some(wanted);
        let changes = PosixChanges::default()
            .owner(uid, gid)
            .mode(mode(has_other_mode || has_lost));
        match self.change_new(new, &changes, node).await {
            Err(error) if has_other_owner && is_refusal(&error) => {
                self.is_ordinary_user.store(true, Ordering::Relaxed);
                let changes = PosixChanges::default().mode(mode(has_other_mode));
                let changed = self.change_new(new, &changes, node).await;
                changed.map_err(|error| errno(&error))
            }
            changed => changed.map_err(|error| errno(&error)),
        }
    }

    /// Changes a new file. Returns the file as it is then.
    async fn change_new(
        &self,
        new: New<'_>,
        changes: &PosixChanges,
        node: Node,
    ) -> Result<Node, Error> {
        if changes.is_empty() {
            return Ok(node);
        }
        let changed = match new {
            New::Open(file) => file.change_posix(changes).await?,
            New::At(path) => self.share.change_posix(path, changes).await?,
        };
        Ok(node.changed(changed))
    }

    /// The owner and the group that a new file must get.
    async fn owner_to_set(
        &self,
        parent: u64,
        caller: Caller,
        node: &Node,
    ) -> Answer<(Option<u32>, Option<u32>)> {
        let Some(unix) = node.metadata.unix else {
            return Ok((None, None));
        };
        if self.is_ordinary_user.load(Ordering::Relaxed) {
            return Ok((None, None));
        }
        let uid = Some(caller.uid).filter(|uid| unix.uid() != Some(*uid));
        let mut gid = Some(caller.gid).filter(|gid| unix.gid() != Some(*gid));
        if gid.is_some() && self.gives_its_group(parent).await? {
            gid = None;
        }
        Ok((uid, gid))
    }

    /// Whether new files in a directory get its group. inode(7)
    async fn gives_its_group(&self, directory: u64) -> Answer<bool> {
        let unix = self.node_of(directory).await?.metadata.unix;
        Ok(unix.is_some_and(|unix| unix.mode & SETGID != 0))
    }

    /// Takes note of the mode of an inode.
    pub(crate) fn note_mode(&self, ino: u64, node: &Node) {
        if let (Some(_), Ok(opens)) = (node.metadata.unix, self.opens(ino)) {
            let may_clear = cleared(&node.metadata).is_some() && node.kind != FileType::Directory;
            opens.clears_bits.store(may_clear, Ordering::Relaxed);
        }
    }

    /// Clears setuid and setgid before a program without the right to keep them writes to a file.
    /// FUSE_HANDLE_KILLPRIV_V2
    pub(crate) async fn clear_special_bits(&self, ino: u64) -> Answer<()> {
        let opens = self.opens(ino)?;
        if !opens.clears_bits.load(Ordering::Relaxed) {
            return Ok(());
        }
        let node = self.node_of(ino).await?;
        if let Some(mode) = cleared(&node.metadata) {
            self.set_mode(ino, mode).await?;
        }
        opens.clears_bits.store(false, Ordering::Relaxed);
        // The kernel can have the old mode for the time of its attributes.
        if let Some(notifier) = self.notifier.get()
            && let Err(error) = notifier.inval_inode(INodeNo(ino), -1, 0)
        {
            tracing::debug!(ino, %error, "the kernel did not drop the attributes");
        }
        Ok(())
    }
}

/// Whether the user of the session lacks a right that root has.
pub(super) fn is_refusal(error: &Error) -> bool {
    let refusals = [
        Status::ACCESS_DENIED,
        Status::INVALID_OWNER,
        Status::PRIVILEGE_NOT_HELD,
    ];
    error.status().is_some_and(|it| refusals.contains(&it))
}
