//! The transfer of one file.

use super::queued::Read;
use super::{Compare, Item, Transfer, is_same_state, part};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::file_path::{FileInfo, FilePath, Kind};
use crate::progress::Action;

impl Transfer<'_> {
    /// Copies the source to the target. `old` is the existing target. `read` is the data of the
    /// source if they were already read.
    pub(super) fn copy_file(
        &self,
        item: &Item,
        old: Option<&FileInfo>,
        read: Option<Read>,
    ) -> Outcome {
        let Item {
            source,
            info,
            target,
            relative: _,
        } = item;
        self.check(source)?;
        if old.is_some_and(FileInfo::is_directory) {
            return Err(is_directory(target));
        }
        if self.policy.archive {
            return self.copy_archived(item, old, read);
        }
        match (source, target) {
            (FilePath::Remote(source), FilePath::Local(target)) => {
                self.download(source, info, target, old, read)
            }
            (FilePath::Local(source), FilePath::Remote(target)) => {
                self.upload(source, info, target, old)
            }
            (FilePath::Remote(source), FilePath::Remote(target)) => {
                self.copy_between(source, info, target, old)
            }
            (FilePath::Local(_), FilePath::Local(_)) => Err(Failure::usage(
                target,
                "neither source nor target is on a server; use cp of the system",
            )),
        }?;
        if self.policy.verify {
            self.verify(source, info, target)?;
        }
        let action = Action::of_file(old.is_some());
        self.progress.file_done(action, target, info.size);
        Ok(())
    }

    /// Whether the existing target `old` is equal to the source, so that no transfer is needed.
    pub(super) fn is_up_to_date(
        &self,
        source: &FilePath,
        info: &FileInfo,
        target: &FilePath,
        old: &FileInfo,
    ) -> Outcome<bool> {
        if old.kind != Kind::File || info.size != old.size {
            return Ok(false);
        }
        match self.policy.compare {
            Compare::Never => Ok(false),
            Compare::SizeAndTime(tolerance) => {
                let distance = info
                    .written
                    .duration_since(old.written)
                    .unwrap_or_else(|error| error.duration());
                Ok(distance <= tolerance)
            }
            Compare::Contents => self.have_same_contents(source, target, info.size),
        }
    }

    /// Reads source and target again and compares them.
    fn verify(&self, source: &FilePath, info: &FileInfo, target: &FilePath) -> Outcome {
        let size = target.info(true)?.size;
        if size != info.size || !self.have_same_contents(source, target, size)? {
            return Err(Failure::new(
                Exit::Differs,
                target,
                format!("the copy differs from {source}"),
            ));
        }
        Ok(())
    }

    /// The path of the incomplete file for a target.
    pub(super) fn part_of(
        &self,
        source: &FilePath,
        info: &FileInfo,
        target: &FilePath,
    ) -> FilePath {
        if self.policy.in_place {
            return target.clone();
        }
        let name = target.name().unwrap_or_default();
        let part = part::name(self.part_key(), &name, source, info);
        // A name that is allowed stays so with the ending.
        target.sibling(&part).unwrap_or_else(|_| target.clone())
    }

    /// Handles the result of a transfer into an incomplete file. If the source has changed, the
    /// file is removed: a transfer of the new state uses another name and could not resume it. If
    /// the disk is full, the file is removed as well, unless the user wants to continue later.
    pub(super) fn moved<T>(
        &self,
        moved: Outcome<T>,
        part: &FilePath,
        whole: &FilePath,
    ) -> Outcome<T> {
        let mut failure = match moved {
            Err(failure) if part.key() != whole.key() => failure,
            moved => return moved,
        };
        match failure.exit {
            Exit::Full if self.policy.resume => {
                failure.reason += &format!("; the incomplete file remains: {part}");
            }
            Exit::Differs | Exit::Full => {
                let _ = part.remove(Kind::File);
            }
            _ => {}
        }
        Err(failure)
    }

    /// Fails if size or time of the source have changed.
    pub(super) fn check_state(
        source: &FilePath,
        before: &FileInfo,
        after: Outcome<FileInfo>,
    ) -> Outcome {
        match is_same_state(before, &after?) {
            true => Ok(()),
            false => Err(Self::changed_meanwhile(source)),
        }
    }

    /// The failure for a source that changed during the copy.
    pub(super) fn changed_meanwhile(source: &FilePath) -> Failure {
        Failure::new(
            Exit::Differs,
            source,
            "the source was changed during the copy",
        )
    }
}

/// The failure for a directory with the name of the file.
pub(super) fn is_directory(target: &FilePath) -> Failure {
    Failure::new(
        Exit::Exists,
        target,
        "a directory with this name exists already",
    )
}
