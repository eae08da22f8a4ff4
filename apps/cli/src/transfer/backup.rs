//! `--backup-dir`: files that a transfer replaces or removes move to another directory of the same
//! side, by a rename.

use std::collections::HashSet;
use std::sync::Mutex;

use super::Transfer;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::file_path::{FilePath, Kind};
use crate::mutex::lock;

/// The directory for replaced and removed files.
pub(crate) struct Backup {
    /// The directory.
    root: FilePath,
    /// The target of the transfer. A file keeps its path below it.
    target: FilePath,
    /// The directories that exist, by their keys.
    made: Mutex<HashSet<String>>,
}

impl Backup {
    /// A backup in `root` of files below `target`. Fails if both are not on the same share or this
    /// machine.
    pub(crate) fn new(root: FilePath, target: FilePath) -> Outcome<Self> {
        let is_one_side = match (&root, &target) {
            (FilePath::Local(_), FilePath::Local(_)) => true,
            (FilePath::Remote(root), FilePath::Remote(target)) => root.is_on_same_share(target),
            _ => false,
        };
        if !is_one_side {
            let reason = "the directory for --backup-dir must be on the share of the target, or \
                          like the target on this machine";
            return Err(Failure::usage(root, reason));
        }
        if root.key() == target.key() {
            let reason = "--backup-dir is the target itself";
            return Err(Failure::usage(root, reason));
        }
        Ok(Self {
            root,
            target,
            made: Mutex::default(),
        })
    }

    /// Whether `path` is the directory of the backup.
    pub(super) fn is_at(&self, path: &FilePath) -> bool {
        self.root.key() == path.key()
    }

    /// The path in the backup for a file of the target.
    fn place_of(&self, path: &FilePath) -> Outcome<FilePath> {
        let place = path.relocated(&self.target, &self.root);
        place.ok_or_else(|| Failure::usage(path, "the path has no place in --backup-dir"))
    }

    fn make_parent(&self, place: &FilePath) -> Outcome {
        let Some(parent) = place.parent() else {
            return Ok(());
        };
        let key = parent.key();
        if !lock(&self.made).contains(&key) {
            parent.create_directories()?;
            lock(&self.made).insert(key);
        }
        Ok(())
    }

    /// Moves a file to the backup. Returns its new path.
    fn keep(&self, path: &FilePath) -> Outcome<FilePath> {
        let place = self.place_of(path)?;
        self.make_parent(&place)?;
        let failed = |failure: Failure| Failure {
            reason: format!("cannot move to {place}: {}", failure.reason),
            subject: path.to_string(),
            ..failure
        };
        path.rename_over(&place).map_err(failed)?;
        Ok(place)
    }
}

impl Transfer<'_> {
    /// Whether a path is the directory for replaced and removed files.
    pub(super) fn is_backup(&self, path: &FilePath) -> bool {
        self.backup
            .as_ref()
            .is_some_and(|backup| backup.is_at(path))
    }

    /// Gives a complete file its final name. A file with this name moves to the backup if there is
    /// one.
    pub(super) fn put_in_place(&self, part: &FilePath, whole: &FilePath) -> Outcome {
        let Some(backup) = &self.backup else {
            return part.rename_over(whole);
        };
        let kept = match whole.lookup(false)? {
            Some(_) => Some(backup.keep(whole)?),
            None => None,
        };
        match (part.rename_over(whole), kept) {
            (Err(failure), Some(kept)) => {
                let _ = kept.rename_over(whole);
                Err(failure)
            }
            (Ok(()), Some(kept)) => {
                self.progress.backed_up(whole, &kept);
                Ok(())
            }
            (renamed, None) => renamed,
        }
    }

    /// Removes a file, link or empty directory of the target. Everything but a directory moves to
    /// the backup if there is one.
    pub(super) fn set_aside(&self, path: &FilePath, kind: Kind) -> Outcome {
        match &self.backup {
            Some(backup) if kind != Kind::Directory => {
                let kept = backup.keep(path)?;
                self.progress.backed_up(path, &kept);
                Ok(())
            }
            _ => path.force_remove(kind),
        }
    }

    /// Fails if the old file would be overwritten, because `--backup-dir` needs a rename.
    pub(super) fn may_overwrite(&self, whole: &FilePath, why: &Failure) -> Outcome {
        match self.backup {
            Some(_) => Err(Failure::new(
                why.exit,
                whole,
                format!("cannot be replaced by a rename: {}", why.reason),
            )),
            None => Ok(()),
        }
    }

    /// Counts a removal. Fails if `--max-delete` does not allow it.
    pub(super) fn may_remove(&self, path: &FilePath) -> Outcome {
        use std::sync::atomic::Ordering::Relaxed;
        let Some(most) = self.policy.max_delete else {
            return Ok(());
        };
        let taken = self.removals.fetch_update(Relaxed, Relaxed, |count| {
            (count < most).then_some(count + 1)
        });
        match taken {
            Ok(_) => Ok(()),
            Err(_) => Err(Failure::new(
                Exit::TooManyRemovals,
                path,
                format!("not removed: --max-delete allows {most} removals"),
            )),
        }
    }
}
