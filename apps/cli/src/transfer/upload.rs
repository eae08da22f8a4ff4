//! Uploads: from this machine to a server.

use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use smbeam_client::{Wait as _, transfer};

use super::remote_part::without_readonly;
use super::small_upload::SmallUpload;
use super::{Transfer, holes, part, transfer_failure};
use crate::failure::{Failure, Outcome};
use crate::file_path::{FileInfo, FilePath, RemotePath, changes, local_info};
use crate::location::shown;

impl Transfer<'_> {
    /// Uploads a file. `old` is the existing target, if it is known.
    pub(super) fn upload(
        &self,
        source: &Path,
        info: &FileInfo,
        target: &RemotePath,
        old: Option<&FileInfo>,
    ) -> Outcome {
        let small = match self.is_small(info.size) {
            true => self.read_small(source)?,
            false => None,
        };
        let Some(bytes) = small else {
            return self.upload_large(source, target);
        };
        let length = bytes.len() as u64;
        let small = SmallUpload {
            transfer: self,
            source,
            info,
            target,
        };
        small.run(bytes, old)?;
        self.add_bytes(length);
        Ok(())
    }

    /// Reads a file that is uploaded with one request; `None` if it has grown.
    pub(super) fn read_small(&self, source: &Path) -> Outcome<Option<Vec<u8>>> {
        let file = File::open(source).map_err(failed(source))?;
        let most = self.policy.request_bytes() + 1;
        let length = file.metadata().map_err(failed(source))?.len().min(most);
        let mut bytes = Vec::with_capacity(length as usize + 1);
        file.take(most)
            .read_to_end(&mut bytes)
            .map_err(failed(source))?;
        Ok(self.is_small(bytes.len() as u64).then_some(bytes))
    }

    /// Uploads a file with several requests in flight.
    fn upload_large(&self, source: &Path, target: &RemotePath) -> Outcome {
        let _permit = self.large.take();
        let from = FilePath::Local(source.into());
        let whole = FilePath::Remote(target.clone());
        self.check(&from)?;
        let local = Arc::new(File::open(source).map_err(failed(source))?);
        let info = local_info(&local.metadata().map_err(failed(source))?);
        let part = self.part_of(&from, &info, &whole);
        let FilePath::Remote(remote) = &part else {
            return Ok(());
        };
        let (file, begin) = self.open_part(remote, target, &info)?;
        self.progress.skip_bytes(begin);
        let filled = self.fill_and_close(&local, source, &info, (&file, target), begin);
        drop(file);
        let has_holes = self.moved(filled, &part, &whole)?;
        if !self.policy.in_place {
            self.put_in_place(&part, &whole)?;
        }
        if has_holes {
            holes::mark_sparse(target);
        }
        self.set_readonly(target, changes(&info, false))
    }

    /// Uploads the data from `begin` on, sets the times and closes the file. Returns whether it has
    /// holes.
    fn fill_and_close(
        &self,
        local: &Arc<File>,
        source: &Path,
        info: &FileInfo,
        (file, target): (&smbeam_client::File, &RemotePath),
        begin: u64,
    ) -> Outcome<bool> {
        let ranges = holes::local_ranges(local, info).map_err(failed(source))?;
        let has_holes = ranges.is_some();
        if has_holes {
            // A server without sparse files fills holes with zeros, which is correct as well.
            let _ = file.set_sparse(true).wait();
        }
        let ranges = ranges.unwrap_or_else(|| part::all(info.size));
        let left = part::remaining(&ranges, begin);
        self.send(local, source, left, file, target)?;
        let after = local.metadata().map_err(failed(source));
        let from = FilePath::Local(source.into());
        Self::check_state(&from, info, after.map(|after| local_info(&after)))?;
        if ranges.last().is_none_or(|last| last.end < info.size) {
            file.set_len(info.size).wait().map_err(target.failed())?;
        }
        if self.policy.preserve {
            let changes = without_readonly(changes(info, false));
            let changed = file.set_metadata(&changes).wait();
            changed.map_err(target.failed())?;
        }
        file.close().wait().map_err(target.failed())?;
        Ok(has_holes)
    }

    /// Uploads ranges.
    fn send(
        &self,
        local: &Arc<File>,
        source: &Path,
        ranges: Vec<Range<u64>>,
        file: &smbeam_client::File,
        target: &RemotePath,
    ) -> Outcome {
        let length = part::byte_count(&ranges);
        let mut input = Input {
            transfer: self,
            file: local,
        };
        let sent = transfer::upload(file, ranges, &mut input, &self.options(), &mut |bytes| {
            self.add_bytes(bytes);
        })
        .wait();
        let from = FilePath::Local(source.into());
        match sent {
            Ok(bytes) if bytes == length => Ok(()),
            Ok(_) => Err(Self::changed_meanwhile(&from)),
            Err(error) => Err(transfer_failure(&error, &from, target)),
        }
    }
}

/// A local file as a source for the client library. Reading fails after an interrupt.
struct Input<'a> {
    transfer: &'a Transfer<'a>,
    file: &'a Arc<File>,
}

impl transfer::Source for Input<'_> {
    fn file(&mut self) -> io::Result<Option<Arc<File>>> {
        self.transfer.check_io()?;
        Ok(Some(Arc::clone(self.file)))
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.transfer.check_io()?;
        transfer::LocalFile(Arc::clone(self.file)).read_at(offset, buffer)
    }
}

fn failed(path: &Path) -> impl Fn(io::Error) -> Failure + '_ {
    move |error| Failure::local(&shown(path), &error)
}
