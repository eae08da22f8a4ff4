//! One file, by the way that fits.

use super::queued::Read;
use super::{Compare, Item, Transfer, is_same_state, part};
use crate::exit::{Exit, Failure, Outcome};
use crate::place::{Facts, Kind, Place};

impl Transfer<'_> {
    /// Makes the target what the source is. `old` is what stands there now; `read` is what was read
    /// of the source, if that was done.
    pub(super) fn copy_file(
        &self,
        item: &Item,
        old: Option<&Facts>,
        read: Option<Read>,
    ) -> Outcome {
        let Item {
            source,
            facts,
            target,
        } = item;
        self.check(source)?;
        if old.is_some_and(Facts::is_folder) {
            return Err(is_folder(target));
        }
        match (source, target) {
            (Place::Remote(source), Place::Local(target)) => {
                self.download(source, facts, target, old, read)
            }
            (Place::Local(source), Place::Remote(target)) => self.upload(source, facts, target),
            (Place::Remote(source), Place::Remote(target)) => {
                self.copy_between(source, facts, target, old)
            }
            (Place::Local(_), Place::Local(_)) => Err(Failure::usage(
                target,
                "neither side is on a server; that is what cp is for",
            )),
        }?;
        if self.policy.verify {
            self.verify(source, facts, target)?;
        }
        self.progress.file_done(target);
        Ok(())
    }

    /// Whether a file that is there already is what it should be.
    pub(super) fn is_up_to_date(
        &self,
        source: &Place,
        facts: &Facts,
        target: &Place,
        old: &Facts,
    ) -> Outcome<bool> {
        if old.kind != Kind::File || facts.size != old.size {
            return Ok(false);
        }
        match self.policy.compare {
            Compare::Never => Ok(false),
            Compare::SizeAndTime(tolerance) => {
                let distance = facts
                    .written
                    .duration_since(old.written)
                    .unwrap_or_else(|error| error.duration());
                Ok(distance <= tolerance)
            }
            Compare::Contents => self.have_same_contents(source, target, facts.size),
        }
    }

    /// Reads both sides again.
    fn verify(&self, source: &Place, facts: &Facts, target: &Place) -> Outcome {
        let size = target.facts(true)?.size;
        if size != facts.size || !self.have_same_contents(source, target, size)? {
            return Err(Failure::new(
                Exit::Differs,
                target,
                format!("differs from {source}"),
            ));
        }
        Ok(())
    }

    /// Where a file gathers until it is whole.
    pub(super) fn part_of(&self, source: &Place, facts: &Facts, target: &Place) -> Place {
        if self.policy.in_place {
            return target.clone();
        }
        let name = target.name().unwrap_or_default();
        target.sibling(&part::name(&name, source, facts))
    }

    /// Passes on what came of moving bytes into a part. Of a source that was written to meanwhile
    /// nothing will ever go on with it: the part of its new state has another name.
    pub(super) fn moved<T>(moved: Outcome<T>, part: &Place, whole: &Place) -> Outcome<T> {
        let has_changed = matches!(&moved, Err(failure) if failure.exit == Exit::Differs);
        if has_changed && part.key() != whole.key() {
            let _ = part.remove(Kind::File);
        }
        moved
    }

    /// Fails where a source is not what it was.
    pub(super) fn check_state(source: &Place, before: &Facts, after: Outcome<Facts>) -> Outcome {
        match is_same_state(before, &after?) {
            true => Ok(()),
            false => Err(Self::changed_meanwhile(source)),
        }
    }

    /// A failure of a source that was written to meanwhile.
    pub(super) fn changed_meanwhile(source: &Place) -> Failure {
        Failure::new(Exit::Differs, source, "it was changed while it was copied")
    }
}

/// A file cannot take the place of a folder.
pub(super) fn is_folder(target: &Place) -> Failure {
    Failure::new(Exit::Exists, target, "there is a folder of this name")
}
