//! How many files are on their way at once, where nobody says it.

use std::num::NonZero;
use std::thread;

use super::Item;
use crate::file_path::FilePath;

/// To and from other machines: while some files wait for the network, others are read or written.
const JOBS: usize = 16;
/// On one machine nothing waits for a network, and who serves the files has the same processors:
/// more threads than this for each of them keep each other and the server from working.
const JOBS_PER_PROCESSOR: usize = 2;
/// Enough that the server never waits for the next request.
const JOBS_MIN: usize = 4;

/// As many as suit what is transferred.
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

/// Whether a share is one of this machine's.
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
