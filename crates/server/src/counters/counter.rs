//! Counters with one writer.
//!
//! A worker owns its counters and is the only thread that changes them: a load and a store, without
//! a locked instruction. Other threads only read. So no cache line moves between the cores of
//! workers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A number that one thread raises and any thread reads.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds to the number. Only the thread that owns the counter calls this: additions of two
    /// threads at the same time get lost.
    pub(crate) fn add(&self, more: u64) {
        let value = self.0.load(Ordering::Relaxed);
        self.0.store(value.wrapping_add(more), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The first bucket has times up to 2^14 ns, which is 16 us: less than any operation that waits.
const FIRST_BITS: u32 = 14;
/// Number of buckets with an upper bound. The last one has times up to 2^33 ns, which is 8.6 s.
const BOUNDS: usize = 20;
/// Number of buckets: those with a bound, and the one for all longer times.
pub(crate) const BUCKETS: usize = BOUNDS + 1;

/// A histogram of times with one writer. The bounds of the buckets are powers of two.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    buckets: [Counter; BUCKETS],
    nanoseconds: Counter,
}

impl Histogram {
    /// Counts a time. Only the thread that owns the histogram calls this.
    pub(crate) fn observe(&self, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.buckets[bucket(nanoseconds)].add(1);
        self.nanoseconds.add(nanoseconds);
    }
}

/// The bucket of a time: the first one with a bound that is not less.
fn bucket(nanoseconds: u64) -> usize {
    let bits = u64::BITS - nanoseconds.saturating_sub(1).leading_zeros();
    let index = bits.saturating_sub(FIRST_BITS) as usize;
    index.min(BOUNDS)
}

/// The sum of histograms of several workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HistogramTotal {
    buckets: [u64; BUCKETS],
    nanoseconds: u64,
}

impl HistogramTotal {
    pub(crate) fn add(&mut self, histogram: &Histogram) {
        for (total, bucket) in self.buckets.iter_mut().zip(&histogram.buckets) {
            *total += bucket.get();
        }
        self.nanoseconds = (self.nanoseconds).wrapping_add(histogram.nanoseconds.get());
    }

    /// Number of counted times.
    pub(crate) fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    pub(crate) fn seconds(&self) -> f64 {
        Duration::from_nanos(self.nanoseconds).as_secs_f64()
    }

    /// The buckets, each with its upper bound in seconds and its number of times. The last bound is
    /// infinite.
    pub(crate) fn buckets(&self) -> [(f64, u64); BUCKETS] {
        let mut buckets = [(f64::INFINITY, 0); BUCKETS];
        for (index, count) in self.buckets.iter().enumerate() {
            if index < BOUNDS {
                let bound = Duration::from_nanos(1 << (FIRST_BITS as usize + index));
                buckets[index].0 = bound.as_secs_f64();
            }
            buckets[index].1 = *count;
        }
        buckets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_in_the_first_bucket_that_is_not_less() {
        let cases = [
            (0, 0),
            (1, 0),
            (1 << 14, 0),
            ((1 << 14) + 1, 1),
            (1 << 15, 1),
            ((1 << 15) + 1, 2),
            (1 << 33, 19),
            ((1 << 33) + 1, 20),
            (u64::MAX, 20),
        ];
        for (nanoseconds, expected) in cases {
            assert_eq!(bucket(nanoseconds), expected, "{nanoseconds}");
        }
    }

    #[test]
    fn the_sum_of_histograms_has_all_times() {
        let (first, second) = (Histogram::default(), Histogram::default());
        first.observe(Duration::from_micros(10));
        first.observe(Duration::from_secs(20));
        second.observe(Duration::from_micros(10));
        let mut total = HistogramTotal::default();
        total.add(&first);
        total.add(&second);
        assert_eq!(total.count(), 3);
        assert_eq!(total.seconds(), 20.000_020);
        let buckets = total.buckets();
        assert_eq!(buckets[0], (0.000_016_384, 2));
        assert_eq!(buckets[19], (8.589_934_592, 0));
        assert_eq!(buckets[20], (f64::INFINITY, 1));
    }
}
