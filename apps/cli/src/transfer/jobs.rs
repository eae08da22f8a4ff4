//! The default number of files that are transferred at the same time.

use std::num::NonZero;
use std::thread;

use super::Item;
use crate::file_path::FilePath;

/// For other machines: some files wait for the network while others are read or written.
const JOBS: usize = 16;
/// For a server on this machine, which uses the same processors. More threads would slow down the
/// server and each other.
const JOBS_PER_PROCESSOR: usize = 2;
/// The minimum, so that the server always has a next request.
const JOBS_MIN: usize = 4;

/// The default number for these sources and targets.
pub(super) fn suitable(items: &[Item]) -> usize {
    let is_local = items
        .iter()
        .any(|item| is_on_this_machine(&item.source) || is_on_this_machine(&item.target));
    match is_local {
        true => on_processors(thread::available_parallelism().map_or(1, NonZero::get)),
        false => JOBS,
    }
}

fn on_processors(count: usize) -> usize {
    (count * JOBS_PER_PROCESSOR).clamp(JOBS_MIN, JOBS)
}

/// Whether the path is on a server on this machine.
fn is_on_this_machine(path: &FilePath) -> bool {
    let FilePath::Remote(remote) = path else {
        return false;
    };
    let channels = remote.share.session().info().channels;
    channels.iter().any(|channel| channel.is_local)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_some_for_each_processor() {
        assert_eq!(on_processors(1), 4);
        assert_eq!(on_processors(2), 4);
        assert_eq!(on_processors(6), 12);
        assert_eq!(on_processors(128), 16);
    }
}
