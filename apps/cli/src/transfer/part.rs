//! Incomplete files: their names, and the offset at which a transfer resumes.
//!
//! A file is written beside its final name under a temporary name, and renamed when it is complete.
//! The temporary name contains a tag of path, size and time of last write of the source. A changed
//! source has another tag, so a transfer never mixes two states of a file, and needs no record
//! beside the file. The tag depends on a secret of the user (see [`part_key`](super::part_key)), so
//! other users cannot create the file in advance.
//!
//! Pieces arrive in any order, but all pieces in flight are within [`SPAN`] bytes. So all data
//! before the last [`SPAN`] bytes of a file are present, even after a crash.

use std::ops::Range;
use std::time::UNIX_EPOCH;

use super::part_key::PartKey;
use crate::file_path::{FileInfo, FilePath};
use crate::names::MAX_LOCAL_BYTES;

/// Maximum distance of pieces in flight, in bytes. A resumed transfer repeats at most this many
/// bytes.
pub(super) const SPAN: u64 = 64 << 20;
/// A resumed transfer starts at a multiple of this, so that pieces start at page boundaries.
const START: u64 = 1 << 20;
/// The suffix of the names of incomplete files.
const ENDING: &str = ".part";

/// The name for the incomplete copy of `source` with the final name `name`.
pub(super) fn name(key: &PartKey, name: &str, source: &FilePath, info: &FileInfo) -> String {
    let (sign, written) = match info.written.duration_since(UNIX_EPOCH) {
        Ok(after) => (0, after),
        Err(error) => (1, error.duration()),
    };
    let source = source.to_string();
    let tag = key.tag(&[
        source.as_bytes(),
        name.as_bytes(),
        &info.size.to_le_bytes(),
        &[sign],
        &written.as_nanos().to_le_bytes(),
    ]);
    let ending = format!(".{tag:016x}{ENDING}");
    // These code points stand for a dot or blank at the end of a name, and only there.
    let name = name.trim_end_matches(['\u{f028}', '\u{f029}']);
    let mut length = name.len().min(MAX_LOCAL_BYTES - ending.len());
    while !name.is_char_boundary(length) {
        length -= 1;
    }
    format!("{}{ending}", &name[..length])
}

/// The offset at which to resume a file of `size` bytes, of which `length` bytes exist.
pub(super) fn resume_point(length: u64, size: u64) -> u64 {
    if length > size {
        return 0;
    }
    length.saturating_sub(SPAN) / START * START
}

/// A whole file as a list of ranges.
pub(super) fn all(size: u64) -> Vec<Range<u64>> {
    std::iter::once(0..size).collect()
}

/// The parts of `ranges` from `start` on. The ranges are in ascending order.
pub(super) fn remaining(ranges: &[Range<u64>], start: u64) -> Vec<Range<u64>> {
    ranges
        .iter()
        .map(|range| range.start.max(start)..range.end)
        .filter(|range| !range.is_empty())
        .collect()
}

/// The sum of the lengths of the ranges.
pub(super) fn byte_count(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|range| range.end - range.start).sum()
}

/// Sorts and merges ranges from a peer, and limits them to the file.
pub(super) fn sorted_ranges(mut ranges: Vec<Range<u64>>, size: u64) -> Vec<Range<u64>> {
    ranges.retain(|range| range.start < range.end.min(size));
    ranges.sort_by_key(|range| range.start);
    let mut tidy: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        let range = range.start..range.end.min(size);
        match tidy.last_mut().filter(|last| range.start <= last.end) {
            Some(last) => last.end = last.end.max(range.end),
            None => tidy.push(range),
        }
    }
    tidy
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use smbeam_client::FileAttributes;

    use super::*;
    use crate::file_path::Kind;

    fn info(size: u64, nanoseconds: u64) -> FileInfo {
        let time = UNIX_EPOCH + Duration::from_nanos(nanoseconds);
        FileInfo {
            kind: Kind::File,
            size,
            allocation: size,
            created: None,
            accessed: time,
            written: time,
            changed: time,
            attributes: FileAttributes::NONE,
            file_id: None,
            shared: None,
        }
    }

    #[test]
    fn another_state_of_the_source_has_another_name() {
        let (key, other_key) = (PartKey::random(), PartKey::random());
        let name =
            |name_: &str, source: &FilePath, info: &FileInfo| name(&key, name_, source, info);
        let source = FilePath::Local("/a/x".into());
        let one = name("x", &source, &info(10, 100));
        assert_eq!(one, name("x", &source, &info(10, 100)));
        assert!(one.starts_with("x.") && one.ends_with(".part"), "{one}");
        let others = [
            name("x", &source, &info(11, 100)),
            name("x", &source, &info(10, 200)),
            name("x", &FilePath::Local("/b/x".into()), &info(10, 100)),
            name("y", &source, &info(10, 100)),
            super::name(&other_key, "x", &source, &info(10, 100)),
        ];
        assert!(!others.contains(&one), "{others:?}");
    }

    #[test]
    fn a_long_name_stays_a_name() {
        let key = PartKey::random();
        let source = FilePath::Local("/a".into());
        for text in [
            "x".repeat(255),
            "\u{e4}".repeat(127),
            "\u{1f600}".repeat(63),
        ] {
            let part = name(&key, &text, &source, &info(1, 1));
            assert!(part.len() <= MAX_LOCAL_BYTES && part.ends_with(ENDING));
        }
        let (one, other) = ("x".repeat(254) + "1", "x".repeat(254) + "2");
        let part = |text: &str| name(&key, text, &source, &info(1, 1));
        assert_ne!(part(&one), part(&other));
    }

    #[test]
    fn a_part_of_a_mapped_name_has_a_local_name() {
        let key = PartKey::random();
        let target = FilePath::Local("/a".into());
        for text in [
            "dot\u{f029}",
            "blank \u{f028}",
            "\u{f029}",
            "\u{efe4}\u{f022}",
        ] {
            let part = name(&key, text, &target, &info(1, 1));
            let path = target.join(&part).expect("a local name");
            assert_eq!(path.name(), Some(part));
        }
    }

    #[test]
    fn what_was_in_flight_is_done_again() {
        for (length, from) in [
            (0, 0),
            (1, 0),
            (SPAN, 0),
            (SPAN + 1, 0),
            (SPAN + START, START),
            (SPAN + 2 * START - 1, START),
            (6 * SPAN, 5 * SPAN),
        ] {
            assert_eq!(resume_point(length, 6 * SPAN), from);
        }
        assert_eq!(resume_point(SPAN * 3, SPAN), 0, "it is of something larger");
    }

    #[test]
    fn ranges_of_a_peer_are_put_in_order() {
        let reported = vec![
            30..40,
            0..10,
            5..20,
            90..200,
            Range { start: 50, end: 50 },
            300..400,
        ];
        assert_eq!(sorted_ranges(reported, 100), vec![0..20, 30..40, 90..100]);
        let left = remaining(&[0..20, 30..40, 50..60], 35);
        assert_eq!((byte_count(&left), left), (15, vec![35..40, 50..60]));
    }
}
