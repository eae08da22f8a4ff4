//! Hard links: a file of the source with several names becomes one file of the target. The first
//! name gets the data, and the others are links to it.

use smbeam_client::Wait as _;

use super::queued::QueuedFile;
use super::{Item, Transfer};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::file_path::{FileInfo, FilePath, Kind};
use crate::progress::Action;

impl Transfer<'_> {
    /// Counts the names of a file on a server without the SMB3 POSIX extensions, which does not
    /// list them.
    pub(super) fn counted(&self, item: Item) -> Item {
        let FilePath::Remote(remote) = &item.source else {
            return item;
        };
        let is_meant = self.policy.archive && item.info.kind == Kind::File && !remote.has_posix();
        let Some(number) = item.info.file_id.filter(|_| is_meant) else {
            return item;
        };
        let metadata = remote.share.symlink_metadata(&remote.path).wait();
        let links = metadata.ok().and_then(|metadata| metadata.links);
        let is_shared = links.is_some_and(|links| links > 1);
        Item {
            info: FileInfo {
                shared: is_shared.then_some((0, number)),
                ..item.info
            },
            ..item
        }
    }

    /// Makes the target of `file` another name of `first`. Copies the data if the target cannot
    /// have hard links.
    pub(super) fn hard_link(&self, first: &FilePath, file: &mut QueuedFile) -> Outcome {
        let target = file.target().clone();
        let (Some(info), old) = (first.lookup(false)?, target.lookup(false)?) else {
            // The copy of the first name failed, or would be made.
            return self.transfer_with_reconnects(file);
        };
        let is_linked = |old: &FileInfo| old.file_id.is_some() && old.file_id == info.file_id;
        if old.as_ref().is_some_and(is_linked) {
            self.progress.unchanged();
            return Ok(());
        }
        let action = Action::of_file(old.is_some());
        if self.policy.dry_run {
            self.progress.would(action, &target, 0);
            return Ok(());
        }
        if let Some(old) = &old {
            self.set_aside(&target, old.kind)?;
        }
        match first.hard_link(&target) {
            Ok(()) => {
                self.progress.file_done(action, &target, 0);
                Ok(())
            }
            Err(failure) if failure.is_fatal() && failure.exit != Exit::Full => Err(failure),
            Err(failure) => {
                self.lose_link(&target, &failure);
                self.transfer_with_reconnects(file)
            }
        }
    }

    fn lose_link(&self, target: &FilePath, failure: &Failure) {
        let what = "hard link";
        self.losses.add(target, what, &failure.reason);
    }
}
