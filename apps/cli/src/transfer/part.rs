//! Files that are not whole yet: their names, and where to go on with one.
//!
//! What arrives of a file gathers under a name of its own, beside the final one, and gets that one
//! when it is whole. The name tells which state of which source it is made of: place, size and time
//! of last write. A source that has changed leads to another name, so that nothing is ever spliced
//! of two states, and no record has to be kept beside the file.
//!
//! The pieces of a file arrive in any order, but one stripe after the other: all before the stripe
//! that a file ends in is there, even if the transfer was killed.

use std::ops::Range;
use std::time::UNIX_EPOCH;

use crate::names::MAX_LOCAL_BYTES;
use crate::place::{Facts, Place};

/// Bytes that are in flight together, at most; what a killed transfer does twice, at most.
pub(super) const STRIPE: u64 = 64 << 20;
/// What stands behind the name of a file that is not whole.
const ENDING: &str = ".part";

/// The name of what is not whole yet of the file `name`, made of `source`.
pub(super) fn name(name: &str, source: &Place, facts: &Facts) -> String {
    let mut hash = Fnv::new();
    hash.add(source.to_string().as_bytes());
    hash.add(&[0]);
    hash.add(name.as_bytes());
    hash.add(&facts.size.to_le_bytes());
    let (sign, written) = match facts.written.duration_since(UNIX_EPOCH) {
        Ok(after) => (0, after),
        Err(error) => (1, error.duration()),
    };
    hash.add(&[sign]);
    hash.add(&written.as_nanos().to_le_bytes());
    let ending = format!(".{:016x}{ENDING}", hash.0);
    let mut length = name.len().min(MAX_LOCAL_BYTES - ending.len());
    while !name.is_char_boundary(length) {
        length -= 1;
    }
    format!("{}{ending}", &name[..length])
}

/// Where to go on with a file of which `length` bytes of `size` are there.
pub(super) fn resume_point(length: u64, size: u64) -> u64 {
    if length > size {
        return 0;
    }
    length.saturating_sub(1) / STRIPE * STRIPE
}

/// The stripes of what is left of a file.
pub(super) fn stripes(from: u64, size: u64) -> impl Iterator<Item = Range<u64>> {
    let mut start = from;
    std::iter::from_fn(move || {
        let end = (start / STRIPE + 1).saturating_mul(STRIPE).min(size);
        (start < end).then(|| std::mem::replace(&mut start, end)..end)
    })
}

/// All of a file, as ranges.
pub(super) fn all(size: u64) -> Vec<Range<u64>> {
    std::iter::once(0..size).collect()
}

/// What of `ranges` lies in `stripe`. They are in ascending order.
pub(super) fn within(ranges: &[Range<u64>], stripe: &Range<u64>) -> Vec<Range<u64>> {
    ranges
        .iter()
        .map(|range| range.start.max(stripe.start)..range.end.min(stripe.end))
        .filter(|range| range.start < range.end)
        .collect()
}

/// Ranges as a peer told them, in order, without overlaps and within the file.
pub(super) fn tidied(mut ranges: Vec<Range<u64>>, size: u64) -> Vec<Range<u64>> {
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

/// FNV-1a of 64 bits: it must be the same in every build, and nobody attacks it.
struct Fnv(u64);

impl Fnv {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use client::FileAttributes;

    use super::*;
    use crate::place::Kind;

    fn facts(size: u64, nanoseconds: u64) -> Facts {
        let time = UNIX_EPOCH + Duration::from_nanos(nanoseconds);
        Facts {
            kind: Kind::File,
            size,
            allocation: size,
            created: None,
            accessed: time,
            written: time,
            changed: time,
            attributes: FileAttributes::NONE,
            file_id: None,
        }
    }

    #[test]
    fn another_state_of_the_source_has_another_name() {
        let source = Place::Local("/a/x".into());
        let one = name("x", &source, &facts(10, 100));
        assert_eq!(one, name("x", &source, &facts(10, 100)));
        assert!(one.starts_with("x.") && one.ends_with(".part"), "{one}");
        let others = [
            name("x", &source, &facts(11, 100)),
            name("x", &source, &facts(10, 200)),
            name("x", &Place::Local("/b/x".into()), &facts(10, 100)),
            name("y", &source, &facts(10, 100)),
        ];
        assert!(!others.contains(&one), "{others:?}");
    }

    #[test]
    fn a_long_name_stays_a_name() {
        let source = Place::Local("/a".into());
        for text in [
            "x".repeat(255),
            "\u{e4}".repeat(127),
            "\u{1f600}".repeat(63),
        ] {
            let part = name(&text, &source, &facts(1, 1));
            assert!(part.len() <= MAX_LOCAL_BYTES && part.ends_with(ENDING));
        }
        let (one, other) = ("x".repeat(254) + "1", "x".repeat(254) + "2");
        let part = |text: &str| name(text, &source, &facts(1, 1));
        assert_ne!(part(&one), part(&other));
    }

    #[test]
    fn a_stripe_that_was_begun_is_done_again() {
        for (length, from) in [
            (0, 0),
            (1, 0),
            (STRIPE, 0),
            (STRIPE + 1, STRIPE),
            (2 * STRIPE, STRIPE),
            (5 * STRIPE + 7, 5 * STRIPE),
        ] {
            assert_eq!(resume_point(length, 6 * STRIPE), from);
        }
        assert_eq!(resume_point(STRIPE * 2, STRIPE), 0);
    }

    #[test]
    fn stripes_cover_what_is_left() {
        let all: Vec<_> = stripes(0, 2 * STRIPE + 5).collect();
        assert_eq!(
            all,
            [0..STRIPE, STRIPE..2 * STRIPE, 2 * STRIPE..2 * STRIPE + 5]
        );
        let rest: Vec<_> = stripes(STRIPE, STRIPE + 1).collect();
        assert_eq!(rest, vec![STRIPE..STRIPE + 1]);
        assert_eq!(stripes(5, 5).count(), 0);
        assert_eq!(stripes(0, 0).count(), 0);
        assert_eq!(stripes(u64::MAX - 3, u64::MAX).count(), 1);
    }

    #[test]
    fn ranges_of_a_peer_are_put_in_order() {
        let told = vec![
            30..40,
            0..10,
            5..20,
            90..200,
            Range { start: 50, end: 50 },
            300..400,
        ];
        assert_eq!(tidied(told, 100), vec![0..20, 30..40, 90..100]);
        assert_eq!(within(&[0..20, 30..40], &(10..35)), vec![10..20, 30..35]);
    }
}
