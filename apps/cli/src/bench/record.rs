//! What a run counts: operations, bytes, errors and how long each operation took.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use hdrhistogram::Histogram;

/// Nanoseconds of the shortest operation that is told from a shorter one.
const SHORTEST_NS: u64 = 100;
/// Nanoseconds of the longest; what takes longer counts as this.
const LONGEST_NS: u64 = 600_000_000_000;
/// Decimal digits of a latency that are kept.
const DIGITS: u8 = 3;

/// Operations of one thread; merged at the end.
#[derive(Debug)]
pub(crate) struct Record {
    /// Operations that succeeded.
    pub(crate) ops: u64,
    /// Bytes that they moved.
    pub(crate) bytes: u64,
    /// Nanoseconds that each took.
    pub(crate) latency: Histogram<u64>,
}

impl Record {
    /// Nothing yet.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            ops: 0,
            bytes: 0,
            latency: Histogram::new_with_bounds(SHORTEST_NS, LONGEST_NS, DIGITS)
                .context("the bounds of a histogram")?,
        })
    }

    /// One operation that moved `bytes` and took `elapsed`.
    pub(crate) fn add(&mut self, bytes: u64, elapsed: Duration) {
        self.ops += 1;
        self.bytes += bytes;
        let nanos = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        self.latency.saturating_record(nanos.max(SHORTEST_NS));
    }

    /// Takes in what another thread counted.
    pub(crate) fn merge(&mut self, other: &Self) -> Result<()> {
        self.ops += other.ops;
        self.bytes += other.bytes;
        let merged = self.latency.add(&other.latency);
        merged.context("histograms of the same bounds add up")
    }

    /// The latency that `percent` of the operations stay below, in microseconds.
    pub(crate) fn percentile_us(&self, percent: f64) -> f64 {
        self.latency.value_at_percentile(percent) as f64 / 1e3
    }

    /// The longest, in microseconds.
    pub(crate) fn max_us(&self) -> f64 {
        self.latency.max() as f64 / 1e3
    }
}

/// What all threads have done so far, for the line that shows while a run goes on.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    ops: AtomicU64,
    bytes: AtomicU64,
}

impl Progress {
    /// One more operation.
    pub(crate) fn add(&self, bytes: u64) {
        self.ops.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Operations and bytes.
    pub(crate) fn so_far(&self) -> (u64, u64) {
        (
            self.ops.load(Ordering::Relaxed),
            self.bytes.load(Ordering::Relaxed),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_counted_adds_up() {
        let mut first = Record::new().expect("given");
        let mut second = Record::new().expect("given");
        for micros in 1..=100 {
            first.add(10, Duration::from_micros(micros));
            second.add(1, Duration::from_micros(1000 * micros));
        }
        first.merge(&second).expect("given");
        assert_eq!((first.ops, first.bytes), (200, 1100));
        let median = first.percentile_us(50.0);
        assert!((median - 100.0).abs() < 1.0, "{median}");
        let longest = first.max_us();
        assert!((longest - 100_000.0).abs() < 100.0, "{longest}");
    }

    #[test]
    fn an_operation_that_takes_for_ever_is_the_longest() {
        let mut record = Record::new().expect("given");
        record.add(0, Duration::from_secs(100_000));
        record.add(0, Duration::ZERO);
        assert_eq!(record.ops, 2);
        assert!(record.max_us() >= LONGEST_NS as f64 / 1e3);
    }
}
