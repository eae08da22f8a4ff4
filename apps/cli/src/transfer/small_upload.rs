//! Uploads of files with one request.
//!
//! A file with a new name takes one message, which creates it, writes its data and closes it. If
//! the write fails, the file is removed again. An existing file must survive a full disk, so the
//! new data are written to another file, which replaces the old one by a rename. That takes two
//! messages, and one more for the first name that is in use.

use std::path::Path;
use std::sync::atomic::Ordering;

use smbeam_client::{Error, Wait as _, WriteOptions};
use wire::Status;

use super::Transfer;
use super::file::is_directory;
use super::remote_part::{create_anew, is_collision, without_readonly};
use crate::exit::Exit;
use crate::failure::Outcome;
use crate::file_path::{FileInfo, FilePath, Kind, RemotePath, changes};

/// The upload of a file with one request.
pub(super) struct SmallUpload<'a> {
    pub(super) transfer: &'a Transfer<'a>,
    pub(super) source: &'a Path,
    pub(super) info: &'a FileInfo,
    pub(super) target: &'a RemotePath,
}

impl SmallUpload<'_> {
    /// Uploads `bytes`. `old` is the existing target, if it is known.
    pub(super) fn run(&self, bytes: Vec<u8>, old: Option<&FileInfo>) -> Outcome {
        let policy = &self.transfer.policy;
        if policy.in_place {
            return self.overwrite(bytes);
        }
        let replaces_files = &self.transfer.replaces_files;
        if policy.atomic || old.is_some() || replaces_files.load(Ordering::Relaxed) {
            return self.replace(bytes);
        }
        let options = self.options(changes(self.info, false)).create_new(true);
        match self.write_to(self.target, bytes, &options) {
            Err(error) if is_collision(&error) => {
                replaces_files.store(true, Ordering::Relaxed);
                self.replace(self.bytes()?)
            }
            written => written.map_err(self.target.failed()),
        }
    }

    /// Writes another file and renames it. If the user may not create files in the directory, or
    /// another client keeps the old file open, the old file is overwritten.
    fn replace(&self, bytes: Vec<u8>) -> Outcome {
        let whole = FilePath::Remote(self.target.clone());
        let from = FilePath::Local(self.source.into());
        let part = self.transfer.part_of(&from, self.info, &whole);
        let FilePath::Remote(remote) = &part else {
            return Ok(());
        };
        let changes = changes(self.info, false);
        let options = self.options(without_readonly(changes)).create_new(true);
        let written = match self.write_to(remote, bytes, &options) {
            Err(error) if is_collision(&error) => {
                let bytes = self.bytes()?;
                create_anew(remote, || self.write_to(remote, bytes.clone(), &options))
            }
            written => written,
        };
        if let Err(error) = written {
            let failure = self.target.failure(&error);
            return match failure.exit {
                Exit::Denied => {
                    self.transfer.may_overwrite(&whole, &failure)?;
                    self.overwrite(self.bytes()?)
                }
                _ => Err(failure),
            };
        }
        if let Err(failure) = self.transfer.put_in_place(&part, &whole) {
            let _ = part.remove(Kind::File);
            return match failure.exit {
                Exit::Denied | Exit::InUse => {
                    self.transfer.may_overwrite(&whole, &failure)?;
                    self.overwrite(self.bytes()?)
                }
                _ => Err(failure),
            };
        }
        self.transfer.set_readonly(self.target, changes)
    }

    /// Writes to the final name.
    fn overwrite(&self, bytes: Vec<u8>) -> Outcome {
        let options = self.options(changes(self.info, false));
        let mut written = self.write_to(self.target, bytes, &options);
        let is_denied = |error: &Error| error.status() == Some(Status::ACCESS_DENIED);
        if written.as_ref().is_err_and(is_denied) && self.target.clear_readonly() {
            written = self.write_to(self.target, self.bytes()?, &options);
        }
        written.map_err(|error| match error.status() {
            Some(Status::FILE_IS_A_DIRECTORY) => {
                is_directory(&FilePath::Remote(self.target.clone()))
            }
            _ => self.target.failure(&error),
        })
    }

    fn options(&self, changes: smbeam_client::Changes) -> WriteOptions {
        WriteOptions::default().changes(self.transfer.policy.preserve.then_some(changes))
    }

    fn write_to(
        &self,
        target: &RemotePath,
        bytes: Vec<u8>,
        options: &WriteOptions,
    ) -> Result<(), Error> {
        target.share.write(&target.path, bytes, options).wait()
    }

    /// Reads the source again, for a second attempt.
    fn bytes(&self) -> Outcome<Vec<u8>> {
        let from = || FilePath::Local(self.source.into());
        let read = self.transfer.read_small(self.source)?;
        read.ok_or_else(|| Transfer::changed_meanwhile(&from()))
    }
}
