//! Copies between servers: by the server itself within one server, or else through this machine.

use std::ops::Range;

use smbeam_client::{Error, File, OpenOptions, Region, Wait as _, transfer};
use smbeam_profile::is_one_session;

use super::remote_part::{is_collision, without_readonly};
use super::{Transfer, holes, part, same_file};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::file_path::{self, FileInfo, FilePath, Kind, RemotePath, changes};

impl Transfer<'_> {
    pub(super) fn copy_between(
        &self,
        source: &RemotePath,
        info: &FileInfo,
        target: &RemotePath,
        old: Option<&FileInfo>,
    ) -> Outcome {
        same_file::refuse(source, target, old)?;
        let is_small = self.is_small(info.size) && !self.policy.atomic;
        let _permit = (!is_small).then(|| self.large.take());
        let from = FilePath::Remote(source.clone());
        let whole = FilePath::Remote(target.clone());
        let input = source
            .share
            .open(&source.path, &OpenOptions::new().read(true))
            .wait()
            .map_err(source.failed())?;
        let new = match is_small && old.is_none() && !self.policy.in_place {
            true => create_small(target)?,
            false => None,
        };
        let is_new = new.is_some();
        let part = match is_new {
            true => whole.clone(),
            false => self.part_of(&from, info, &whole),
        };
        let FilePath::Remote(remote) = &part else {
            return Ok(());
        };
        let (output, begin) = match new {
            Some(output) => (output, 0),
            None => self.open_part(remote, target, info)?,
        };
        self.progress.skip_bytes(begin);
        let copied = self.copy_and_close((&input, source), (&output, target), info, begin);
        drop(output);
        if copied.is_err() && is_new {
            let _ = whole.remove(Kind::File);
        }
        let has_holes = self.moved(copied, &part, &whole)?;
        if !is_new && !self.policy.in_place {
            self.put_in_place(&part, &whole)?;
        }
        if has_holes {
            holes::mark_sparse(target);
        }
        self.set_readonly(target, changes(info, true))
    }

    /// Copies the data from `begin` on, sets the times and closes the copy. Returns whether the
    /// copy has holes.
    fn copy_and_close(
        &self,
        (input, source): (&File, &RemotePath),
        (output, target): (&File, &RemotePath),
        info: &FileInfo,
        begin: u64,
    ) -> Outcome<bool> {
        let has_holes = self.copy_rest((input, source), (output, target), info, begin)?;
        let after = input.metadata().wait().map_err(source.failed());
        let from = FilePath::Remote(source.clone());
        Self::check_state(&from, info, after.map(|after| file_path::info_of(&after)))?;
        if self.policy.preserve {
            let changes = without_readonly(changes(info, true));
            let changed = output.set_metadata(&changes).wait();
            changed.map_err(target.failed())?;
        }
        output.close().wait().map_err(target.failed())?;
        Ok(has_holes)
    }

    /// Copies the data from `begin` on. Returns whether the copy has holes.
    fn copy_rest(
        &self,
        (input, source): (&File, &RemotePath),
        (output, target): (&File, &RemotePath),
        info: &FileInfo,
        begin: u64,
    ) -> Outcome<bool> {
        // A copy by the server would fill the holes with data.
        if !info.may_have_holes() && is_one_session(&source.root, &target.root) {
            self.copy_by_server((input, source), (output, target), begin..info.size)?;
            return Ok(false);
        }
        let ranges = holes::remote_ranges(input, info);
        let has_holes = ranges != part::all(info.size);
        if has_holes {
            // A server without sparse files fills holes with zeros, which is correct as well.
            let _ = output.set_sparse(true).wait();
        }
        let left = part::remaining(&ranges, begin);
        self.relay((input, source), (output, target), left)?;
        if has_holes {
            output.set_len(info.size).wait().map_err(target.failed())?;
        }
        Ok(has_holes)
    }

    /// Copies within the server. The library reads and writes itself if the server cannot copy, and
    /// then pieces arrive in any order. So each call copies at most [`part::SPAN`] bytes, and the
    /// transfer can be resumed.
    fn copy_by_server(
        &self,
        (input, source): (&File, &RemotePath),
        (output, target): (&File, &RemotePath),
        range: Range<u64>,
    ) -> Outcome {
        let mut progress = |bytes| self.progress.add_bytes(bytes);
        for start in range.clone().step_by(part::SPAN as usize) {
            let length = part::SPAN.min(range.end - start);
            let copying =
                transfer::copy_range(input, output, (start, start, length), &mut progress);
            self.take_moved(self.unless_interrupted(copying), length, (source, target))?;
        }
        Ok(())
    }

    /// Copies ranges through this machine.
    fn relay(
        &self,
        (input, source): (&File, &RemotePath),
        (output, target): (&File, &RemotePath),
        ranges: Vec<Range<u64>>,
    ) -> Outcome {
        let length = part::byte_count(&ranges);
        let options = self.options();
        let mut progress = |bytes| self.add_bytes(bytes);
        let moving = transfer::relay(input, output, (ranges, 0), &options, &mut progress);
        self.take_moved(self.unless_interrupted(moving), length, (source, target))
    }

    /// Converts the result of copying `length` bytes.
    fn take_moved(
        &self,
        moved: Option<Result<u64, Error>>,
        length: u64,
        (source, target): (&RemotePath, &RemotePath),
    ) -> Outcome {
        let from = FilePath::Remote(source.clone());
        match moved {
            Some(Ok(bytes)) if bytes == length => Ok(()),
            Some(Ok(_)) => Err(Self::changed_meanwhile(&from)),
            Some(Err(error)) => Err(target.failure(&error)),
            None => Err(Failure::interrupted(&from)),
        }
    }
}

/// Creates the target of a small copy; `None` if it exists.
fn create_small(target: &RemotePath) -> Outcome<Option<File>> {
    let options = OpenOptions::new().write(true).create_new(true);
    match target.share.open(&target.path, &options).wait() {
        Ok(file) => Ok(Some(file)),
        Err(error) if is_collision(&error) => Ok(None),
        Err(error) => Err(target.failure(&error)),
    }
}

/// Reads a range completely.
pub(super) fn read_piece(file: &File, remote: &RemotePath, piece: Range<u64>) -> Outcome<Region> {
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
            let reason = "the file became shorter during the copy";
            return Err(Failure::new(Exit::Differs, remote, reason));
        }
        whole.extend_from_slice(&more);
    }
    Ok(whole.into())
}
