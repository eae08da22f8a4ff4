//! Whether two names on servers are one file: links, two shares of one folder and two names of one
//! host hide it, and who writes to the target would empty the source.

use crate::exit::{Failure, Outcome};
use crate::place::{Facts, Place, Remote};

/// Fails where both are one file. `old` is what stands at the target.
pub(super) fn refuse(source: &Remote, target: &Remote, old: Option<&Facts>) -> Outcome {
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
fn is_one_file(source: &Remote, target: &Remote) -> Outcome<bool> {
    let guid = |remote: &Remote| remote.share.session().info().server_guid;
    if guid(source) != guid(target) {
        return Ok(false);
    }
    let facts = |remote: &Remote| Place::Remote(remote.clone()).look(true);
    Ok(match (facts(source)?, facts(target)?) {
        (Some(one), Some(other)) => {
            is_one_number(&one, &other) && (source.is_beside(target) || is_one_state(&one, &other))
        }
        _ => false,
    })
}

fn is_one_number(one: &Facts, other: &Facts) -> bool {
    one.file_id.is_some() && one.file_id == other.file_id
}

/// A number is that of a volume, and another share may be on another one: on a snapshot of the
/// first, with the same numbers for files that may have changed since.
fn is_one_state(one: &Facts, other: &Facts) -> bool {
    let state = |facts: &Facts| (facts.size, facts.created, facts.written);
    state(one) == state(other)
}
