//! The counters of a run: operations, bytes and latencies.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use hdrhistogram::Histogram;

/// Shortest latency that the histogram resolves, in nanoseconds.
const SHORTEST_NS: u64 = 100;
/// Longest latency that the histogram resolves, in nanoseconds. Longer ones count as this one.
const LONGEST_NS: u64 = 600_000_000_000;
/// Significant decimal digits of a latency.
const DIGITS: u8 = 3;

/// The operations of one thread. The records of all threads are merged at the end.
#[derive(Debug)]
pub(crate) struct Record {
    /// Operations that succeeded.
    pub(crate) ops: u64,
    /// Bytes that these operations transferred.
    pub(crate) bytes: u64,
    /// Latencies of these operations in nanoseconds.
    pub(crate) latency: Histogram<u64>,
}

impl Record {
    /// An empty record.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            ops: 0,
            bytes: 0,
            latency: Histogram::new_with_bounds(SHORTEST_NS, LONGEST_NS, DIGITS)
                .context("the bounds of a histogram")?,
        })
    }

    /// Adds one operation that transferred `bytes` bytes in `elapsed`.
    pub(crate) fn add(&mut self, bytes: u64, elapsed: Duration) {
        self.ops += 1;
        self.bytes += bytes;
        let nanos = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        self.latency.saturating_record(nanos.max(SHORTEST_NS));
    }

    /// Adds the operations of another thread.
    pub(crate) fn merge(&mut self, other: &Self) -> Result<()> {
        self.ops += other.ops;
        self.bytes += other.bytes;
        let merged = self.latency.add(&other.latency);
        merged.context("histograms of the same bounds add up")
    }

    /// The latency that `percent` per cent of the operations do not exceed, in microseconds.
    pub(crate) fn percentile_us(&self, percent: f64) -> f64 {
        self.latency.value_at_percentile(percent) as f64 / 1e3
    }

    /// The longest latency, in microseconds.
    pub(crate) fn max_us(&self) -> f64 {
        self.latency.max() as f64 / 1e3
    }
}

/// The operations of all threads so far, for the progress line.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    ops: AtomicU64,
    bytes: AtomicU64,
}

impl Progress {
    /// Adds one operation that transferred `bytes` bytes.
    pub(crate) fn add(&self, bytes: u64) {
        self.ops.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Operations and bytes so far.
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
