//! From server to server: by the server itself where it is one and the same, else through us.

use std::ops::Range;

use smbeam_client::{Error, File, OpenOptions, Region, Wait as _, transfer};

use super::upload::unprotected;
use super::{Transfer, holes, part, same_file};
use crate::connect::is_one_session;
use crate::exit::{Exit, Failure, Outcome};
use crate::place::{self, Facts, Place, Remote, changes};

impl Transfer<'_> {
    pub(super) fn copy_between(
        &self,
        source: &Remote,
        facts: &Facts,
        target: &Remote,
        old: Option<&Facts>,
    ) -> Outcome {
        same_file::refuse(source, target, old)?;
        let is_small = self.is_small(facts.size) && !self.policy.atomic;
        let _permit = (!is_small).then(|| self.large.take());
        let from = Place::Remote(source.clone());
        let whole = Place::Remote(target.clone());
        let input = source
            .share
            .open(&source.path, &OpenOptions::new().read(true))
            .wait()
            .map_err(source.failed())?;
        let part = match is_small {
            true => whole.clone(),
            false => self.part_of(&from, facts, &whole),
        };
        let Place::Remote(remote) = &part else {
            return Ok(());
        };
        let (output, begin) = self.open_part(remote, target, facts)?;
        self.progress.spared(begin);
        let copied = self
            .copy_rest((&input, source), (&output, target), facts, begin)
            .and_then(|has_holes| {
                let after = input.metadata().wait().map_err(source.failed());
                Self::check_state(&from, facts, after.map(|after| place::facts_of(&after)))?;
                Ok(has_holes)
            });
        let has_holes = Self::moved(copied, &part, &whole)?;
        if self.policy.preserve {
            let changes = unprotected(changes(facts, true));
            let changed = output.set_metadata(&changes).wait();
            changed.map_err(target.failed())?;
        }
        output.close().wait().map_err(target.failed())?;
        if !is_small && !self.policy.in_place {
            part.rename_over(&whole)?;
        }
        if has_holes {
            holes::mark(target);
        }
        self.protect(target, changes(facts, true))
    }

    /// Copies what is behind `begin`. Says whether there are holes that stayed some.
    fn copy_rest(
        &self,
        (input, source): (&File, &Remote),
        (output, target): (&File, &Remote),
        facts: &Facts,
        begin: u64,
    ) -> Outcome<bool> {
        // The server would fill the holes.
        if !facts.may_have_holes() && is_one_session(&source.root, &target.root) {
            self.copy_by_server((input, source), (output, target), begin..facts.size)?;
            return Ok(false);
        }
        let ranges = holes::remote_ranges(input, facts);
        let has_holes = ranges != part::all(facts.size);
        if has_holes {
            // A server that cannot keep holes fills them with zeros, which is right as well.
            let _ = output.set_sparse(true).wait();
        }
        let left = part::left(&ranges, begin);
        self.relay((input, source), (output, target), left)?;
        if has_holes {
            output.set_len(facts.size).wait().map_err(target.failed())?;
        }
        Ok(has_holes)
    }

    /// Lets the server copy; the library reads and writes where it cannot, and then pieces may come
    /// in any order: only so much at once, that what broke off can be continued.
    fn copy_by_server(
        &self,
        (input, source): (&File, &Remote),
        (output, target): (&File, &Remote),
        range: Range<u64>,
    ) -> Outcome {
        let mut progress = |bytes| self.progress.moved(bytes);
        for start in range.clone().step_by(part::SPAN as usize) {
            let length = part::SPAN.min(range.end - start);
            let copying =
                transfer::copy_range(input, output, (start, start, length), &mut progress);
            self.take_moved(self.until_over(copying), length, (source, target))?;
        }
        Ok(())
    }

    /// Moves ranges.
    fn relay(
        &self,
        (input, source): (&File, &Remote),
        (output, target): (&File, &Remote),
        ranges: Vec<Range<u64>>,
    ) -> Outcome {
        let length = part::count(&ranges);
        let options = self.options();
        let mut progress = |bytes| self.progress.moved(bytes);
        let moving = transfer::relay(input, output, (ranges, 0), &options, &mut progress);
        self.take_moved(self.until_over(moving), length, (source, target))
    }

    /// What came of moving `length` bytes.
    fn take_moved(
        &self,
        moved: Option<Result<u64, Error>>,
        length: u64,
        (source, target): (&Remote, &Remote),
    ) -> Outcome {
        let from = Place::Remote(source.clone());
        match moved {
            Some(Ok(bytes)) if bytes == length => Ok(()),
            Some(Ok(_)) => Err(Self::changed_meanwhile(&from)),
            Some(Err(error)) => Err(target.failure(&error)),
            None => Err(Failure::interrupted(&from)),
        }
    }
}

/// Reads all of a piece.
pub(super) fn read_piece(file: &File, remote: &Remote, piece: Range<u64>) -> Outcome<Region> {
    let length = (piece.end - piece.start) as usize;
    let read = |done: usize| {
        let bytes = file.read(length - done, piece.start + done as u64).wait();
        bytes.map_err(remote.failed())
    };
    let first = read(0)?;
    if first.len() == length {
        return Ok(first);
    }
    let mut whole = first.to_vec();
    while whole.len() < length {
        let more = read(whole.len())?;
        if more.is_empty() {
            let reason = "it became shorter while it was read";
            return Err(Failure::new(Exit::Differs, remote, reason));
        }
        whole.extend_from_slice(&more);
    }
    Ok(whole.into())
}
