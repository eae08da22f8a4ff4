//! Whether two names on servers are one file: links, two shares of one directory and two names of one
//! host hide it, and who writes to the target would empty the source.

use crate::failure::{Failure, Outcome};
use crate::file_path::{FileInfo, FilePath, RemotePath};

/// Fails where both are one file. `old` is what stands at the target.
pub(super) fn refuse(source: &RemotePath, target: &RemotePath, old: Option<&FileInfo>) -> Outcome {
    let is_one = match old {
        _ if source.is_same_file(target) => true,
        Some(_) => is_one_file(source, target)?,
        None => false,
    };
    match is_one {
        true => Err(Failure::usage(target, "source and target are one file")),
        false => Ok(()),
    }
}

/// Asks the servers. One that numbers no files cannot tell.
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

/// A number is that of a volume, and another share may be on another one: on a snapshot of the
/// first, with the same numbers for files that may have changed since.
fn is_one_state(one: &FileInfo, other: &FileInfo) -> bool {
    let state = |info: &FileInfo| (info.size, info.created, info.written);
    state(one) == state(other)
}
