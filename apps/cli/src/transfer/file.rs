//! One file, by the way that fits.

use super::queued::Read;
use super::{Compare, Item, Transfer, is_same_state, part};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::file_path::{FileInfo, FilePath, Kind};

impl Transfer<'_> {
    /// Makes the target what the source is. `old` is what stands there now; `read` is what was read
    /// of the source, if that was done.
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
        } = item;
        self.check(source)?;
        if old.is_some_and(FileInfo::is_directory) {
            return Err(is_directory(target));
        }
        match (source, target) {
            (FilePath::Remote(source), FilePath::Local(target)) => {
                self.download(source, info, target, old, read)
            }
            (FilePath::Local(source), FilePath::Remote(target)) => {
                self.upload(source, info, target)
            }
            (FilePath::Remote(source), FilePath::Remote(target)) => {
                self.copy_between(source, info, target, old)
            }
            (FilePath::Local(_), FilePath::Local(_)) => Err(Failure::usage(
                target,
                "neither side is on a server; that is what cp is for",
            )),
        }?;
        if self.policy.verify {
            self.verify(source, info, target)?;
        }
        self.progress.file_done(target);
        Ok(())
    }

    /// Whether a file that is there already is what it should be.
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

    /// Reads both sides again.
    fn verify(&self, source: &FilePath, info: &FileInfo, target: &FilePath) -> Outcome {
        let size = target.info(true)?.size;
        if size != info.size || !self.have_same_contents(source, target, size)? {
            return Err(Failure::new(
                Exit::Differs,
                target,
                format!("differs from {source}"),
            ));
        }
        Ok(())
    }

    /// Where a file gathers until it is whole.
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
        target.sibling(&part::name(&name, source, info))
    }

    /// Passes on what came of moving bytes into a part. Of a source that was written to meanwhile
    /// nothing will ever go on with it: the part of its new state has another name.
    pub(super) fn moved<T>(moved: Outcome<T>, part: &FilePath, whole: &FilePath) -> Outcome<T> {
        let has_changed = matches!(&moved, Err(failure) if failure.exit == Exit::Differs);
        if has_changed && part.key() != whole.key() {
            let _ = part.remove(Kind::File);
        }
        moved
    }

    /// Fails where a source is not what it was.
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

    /// A failure of a source that was written to meanwhile.
    pub(super) fn changed_meanwhile(source: &FilePath) -> Failure {
        Failure::new(Exit::Differs, source, "it was changed while it was copied")
    }
}

/// A file cannot take the path of a directory.
pub(super) fn is_directory(target: &FilePath) -> Failure {
    Failure::new(Exit::Exists, target, "there is a directory of this name")
}
