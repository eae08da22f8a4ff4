//! Uploads: from this machine to a server.

use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use smbeam_client::{Changes, FileAttributes, OpenOptions, Wait as _, WriteOptions, transfer};
use wire::Status;

use super::file::is_directory;
use super::{Transfer, holes, part, transfer_failure};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::file_path::{FileInfo, FilePath, RemotePath, changes, local_info};
use crate::location::shown;

impl Transfer<'_> {
    pub(super) fn upload(&self, source: &Path, info: &FileInfo, target: &RemotePath) -> Outcome {
        if !self.is_small(info.size) {
            return self.upload_large(source, target);
        }
        match self.upload_small(source, info, target) {
            Err(failure) if failure.exit == Exit::Denied && target.clear_readonly() => {
                self.upload_small(source, info, target)
            }
            uploaded => uploaded,
        }
    }

    /// Uploads a file with one request.
    fn upload_small(&self, source: &Path, info: &FileInfo, target: &RemotePath) -> Outcome {
        let mut file = File::open(source).map_err(failed(source))?;
        let mut bytes = Vec::with_capacity(info.size as usize + 1);
        file.by_ref()
            .take(self.policy.request_bytes() + 1)
            .read_to_end(&mut bytes)
            .map_err(failed(source))?;
        if !self.is_small(bytes.len() as u64) {
            return self.upload_large(source, target);
        }
        let length = bytes.len() as u64;
        let whole = FilePath::Remote(target.clone());
        let from = FilePath::Local(source.to_owned());
        let part = match self.policy.atomic {
            true => self.part_of(&from, info, &whole),
            false => whole.clone(),
        };
        let FilePath::Remote(remote) = &part else {
            return Ok(());
        };
        let options =
            WriteOptions::default().changes(self.policy.preserve.then(|| changes(info, false)));
        remote
            .share
            .write(&remote.path, bytes, &options)
            .wait()
            .map_err(|error| match error.status() {
                Some(Status::FILE_IS_A_DIRECTORY) => is_directory(&whole),
                _ => remote.failed()(error),
            })?;
        self.progress.add_bytes(length);
        if self.policy.atomic {
            part.rename_over(&whole)?;
        }
        Ok(())
    }

    /// Uploads a file with several requests in flight.
    fn upload_large(&self, source: &Path, target: &RemotePath) -> Outcome {
        let _permit = self.large.take();
        let from = FilePath::Local(source.to_owned());
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
        let ranges = holes::local_ranges(&local, &info).map_err(failed(source))?;
        let has_holes = ranges.is_some();
        if has_holes {
            // A server without sparse files fills holes with zeros, which is correct as well.
            let _ = file.set_sparse(true).wait();
        }
        let ranges = ranges.unwrap_or_else(|| part::all(info.size));
        let left = part::remaining(&ranges, begin);
        let sent = self
            .send(&local, source, left, &file, target)
            .and_then(|()| {
                let after = local.metadata().map_err(failed(source));
                Self::check_state(&from, &info, after.map(|after| local_info(&after)))
            });
        Self::moved(sent, &part, &whole)?;
        if ranges.last().is_none_or(|last| last.end < info.size) {
            file.set_len(info.size).wait().map_err(target.failed())?;
        }
        if self.policy.preserve {
            let changes = without_readonly(changes(&info, false));
            let changed = file.set_metadata(&changes).wait();
            changed.map_err(target.failed())?;
        }
        file.close().wait().map_err(target.failed())?;
        if !self.policy.in_place {
            part.rename_over(&whole)?;
        }
        if has_holes {
            holes::mark_sparse(target);
        }
        self.set_readonly(target, changes(&info, false))
    }

    /// Sets READONLY after the rename, if the copy has it.
    pub(super) fn set_readonly(&self, target: &RemotePath, changes: Changes) -> Outcome {
        if !self.policy.preserve || changes == without_readonly(changes) {
            return Ok(());
        }
        let changed = target.share.set_metadata(&target.path, &changes);
        changed.wait().map_err(target.failed())
    }

    /// Opens the incomplete file of `target`. Returns the file, and the offset at which to
    /// continue.
    pub(super) fn open_part(
        &self,
        part: &RemotePath,
        target: &RemotePath,
        info: &FileInfo,
    ) -> Outcome<(smbeam_client::File, u64)> {
        let options = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(!self.policy.resume);
        let open = || part.share.open(&part.path, &options).wait();
        let file = part.retry_without_readonly(open).map_err(target.failed())?;
        if !self.policy.resume {
            return Ok((file, 0));
        }
        let length = file.metadata().wait().map_err(target.failed())?.size;
        let begin = part::resume_point(length, info.size);
        if begin != length {
            // After a crash, the last part of the file can have gaps.
            file.set_len(begin).wait().map_err(target.failed())?;
        }
        Ok((file, begin))
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
            self.progress.add_bytes(bytes);
        })
        .wait();
        let from = FilePath::Local(source.to_owned());
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

/// The changes without READONLY. Windows neither opens such a file for writing nor replaces it.
pub(super) fn without_readonly(changes: Changes) -> Changes {
    let without = |attributes: FileAttributes| attributes.0 & !FileAttributes::READONLY.0;
    changes.attributes(changes.attributes.map(without).map(FileAttributes))
}

fn failed(path: &Path) -> impl Fn(io::Error) -> Failure + '_ {
    move |error| Failure::local(&shown(path), &error)
}
