//! Detection of two names for one file on servers. Links, two shares of one directory or two names
//! of one host can hide it. Without the check, writing the target would empty the source.

use crate::failure::{Failure, Outcome};
use crate::file_path::{FileInfo, FilePath, RemotePath};

/// Fails if source and target are the same file. `old` is the existing target.
pub(super) fn refuse(source: &RemotePath, target: &RemotePath, old: Option<&FileInfo>) -> Outcome {
    let is_one = match old {
        _ if source.is_same_file(target) => true,
        Some(_) => is_one_file(source, target)?,
        None => false,
    };
    match is_one {
        true => Err(Failure::usage(
            target,
            "source and target are the same file",
        )),
        false => Ok(()),
    }
}

/// Compares the file ids. Without file ids the files count as different.
fn is_one_file(source: &RemotePath, target: &RemotePath) -> Outcome<bool> {
    let guid = |remote: &RemotePath| remote.share.session().info().server_guid;
    if guid(source) != guid(target) {
        return Ok(false);
    }
    let info = |remote: &RemotePath| FilePath::Remote(remote.clone()).lookup(true);
    Ok(match (info(source)?, info(target)?) {
        (Some(one), Some(other)) => {
            is_one_number(&one, &other)
                && (source.is_on_same_share(target) || is_one_state(&one, &other))
        }
        _ => false,
    })
}

fn is_one_number(one: &FileInfo, other: &FileInfo) -> bool {
    one.file_id.is_some() && one.file_id == other.file_id
}

/// A file id is unique within its volume only. Another share can be on another volume, such as a
/// snapshot with the same ids. So size and times must be equal as well.
fn is_one_state(one: &FileInfo, other: &FileInfo) -> bool {
    let state = |info: &FileInfo| (info.size, info.created, info.written);
    state(one) == state(other)
}
