//! Incomplete files on a server.

use smbeam_client::{Changes, Error, FileAttributes, OpenOptions, Wait as _};
use wire::Status;

use super::{Transfer, part};
use crate::failure::Outcome;
use crate::file_path::{FileInfo, RemotePath};

impl Transfer<'_> {
    /// Opens the incomplete file of `target`. Returns the file, and the offset at which to
    /// continue.
    pub(super) fn open_part(
        &self,
        part: &RemotePath,
        target: &RemotePath,
        info: &FileInfo,
    ) -> Outcome<(smbeam_client::File, u64)> {
        if self.policy.in_place {
            let options = OpenOptions::new().write(true).create(true).truncate(true);
            let open = || part.share.open(&part.path, &options).wait();
            let file = part.retry_without_readonly(open).map_err(target.failed())?;
            return Ok((file, 0));
        }
        if let Some(file) = self.open_earlier_part(part).map_err(target.failed())? {
            let length = file.metadata().wait().map_err(target.failed())?.size;
            let begin = part::resume_point(length, info.size);
            if begin != length {
                // After a crash, the last part of the file can have gaps.
                file.set_len(begin).wait().map_err(target.failed())?;
            }
            return Ok((file, begin));
        }
        let options = OpenOptions::new().write(true).create_new(true);
        let file = create_anew(part, || part.share.open(&part.path, &options).wait());
        Ok((file.map_err(target.failed())?, 0))
    }

    /// Opens the incomplete file of an earlier transfer, unless it is a link.
    fn open_earlier_part(&self, part: &RemotePath) -> Result<Option<smbeam_client::File>, Error> {
        if !self.policy.resume {
            return Ok(None);
        }
        let options = OpenOptions::new()
            .write(true)
            .directory(false)
            .follow(false);
        match part.share.open(&part.path, &options).wait() {
            Ok(file) => Ok((!file.opened_metadata().is_link()).then_some(file)),
            Err(error) if error.status() == Some(Status::OBJECT_NAME_NOT_FOUND) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sets READONLY after the rename, if the copy has it.
    pub(super) fn set_readonly(&self, target: &RemotePath, changes: Changes) -> Outcome {
        if !self.policy.preserve || changes == without_readonly(changes) {
            return Ok(());
        }
        let changed = target.share.set_metadata(&target.path, &changes);
        changed.wait().map_err(target.failed())
    }
}

/// Calls `create`, which creates the file `part`. If the name exists, the file is removed first: it
/// is the incomplete file of an earlier transfer.
pub(super) fn create_anew<T>(
    part: &RemotePath,
    create: impl Fn() -> Result<T, Error>,
) -> Result<T, Error> {
    match create() {
        Err(error) if is_collision(&error) => {
            let removed = part.retry_without_readonly(|| part.share.remove_file(&part.path).wait());
            removed.and_then(|()| create())
        }
        created => created,
    }
}

pub(super) fn is_collision(error: &Error) -> bool {
    error.status() == Some(Status::OBJECT_NAME_COLLISION)
}

/// The changes without READONLY. Windows neither opens such a file for writing nor replaces it.
pub(super) fn without_readonly(changes: Changes) -> Changes {
    let without = |attributes: FileAttributes| attributes.0 & !FileAttributes::READONLY.0;
    changes.attributes(changes.attributes.map(without).map(FileAttributes))
}
