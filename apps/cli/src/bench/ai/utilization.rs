//! The utilization of accelerators (AU) and the throughput, by the formulas of MLPerf Storage.
//!
//! The first step of an epoch is excluded: it contains the start of the workers. The time of an
//! epoch is the wall time from its start to its end without the first step, so it contains the
//! barriers between the accelerators.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::workload::Round;

/// Steps at the start of an epoch that do not count.
const EXCLUDED: usize = 1;
/// The number of steps must be this many times the number of batches that the workers can read
/// ahead. With fewer steps the batches that were read during the excluded first step hide the speed
/// of the storage.
const STEPS_PER_BATCH_AHEAD: u64 = 10;
/// Bytes per MB in results of DLIO: 2^20.
const MIB: f64 = 1_048_576.0;

/// One step of an accelerator, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Step {
    /// Wait for the batch.
    pub(crate) load: f64,
    /// The measured computation.
    pub(crate) compute: f64,
}

impl Step {
    fn processed(self) -> f64 {
        self.load + self.compute
    }
}

/// One epoch of one accelerator.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EpochTimes {
    /// Seconds from the start of the loader to the end of the last step.
    pub(crate) wall: f64,
    pub(crate) steps: Vec<Step>,
}

impl EpochTimes {
    /// Seconds that count.
    fn counted_time(&self) -> f64 {
        let excluded = self.steps.iter().take(EXCLUDED);
        self.wall - excluded.map(|step| step.processed()).sum::<f64>()
    }

    /// Seconds of computation in steps that count.
    fn counted_computation(&self) -> f64 {
        let counted = self.steps.iter().skip(EXCLUDED);
        counted.map(|step| step.compute).sum()
    }

    /// Utilization from 0 to 1. An epoch without a step that counts has the utilization 0.
    pub(crate) fn utilization(&self) -> f64 {
        match self.counted_time() {
            time if time > 0.0 => self.counted_computation() / time,
            _ => 0.0,
        }
    }

    /// Samples per second. DLIO of round v2 subtracts two steps, although only one is excluded from
    /// the time; round v3 counts the steps in the time.
    pub(crate) fn samples_per_second(&self, batch: u64, round: Round) -> f64 {
        let excluded = match round {
            Round::V2 => 2,
            Round::V3 => EXCLUDED,
        };
        let steps = self.steps.len().saturating_sub(excluded);
        match self.counted_time() {
            time if time > 0.0 => steps as f64 / time * batch as f64,
            _ => 0.0,
        }
    }
}

/// Utilization and throughput of one epoch of all accelerators.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct EpochResult {
    /// Mean utilization of the accelerators in percent.
    pub(crate) au_percent: f64,
    /// Samples per second of all accelerators by the formula of round v2.
    pub(crate) samples_per_second_v2: f64,
    /// Samples per second of all accelerators by the formula of round v3.
    pub(crate) samples_per_second_v3: f64,
    /// Mean measured computation of a step in seconds.
    pub(crate) computation_s: f64,
    /// Mean wait for a batch in seconds.
    pub(crate) load_s: f64,
    /// Steps of each accelerator.
    pub(crate) steps: u64,
    /// Seconds from the start to the end of the epoch, for the slowest accelerator.
    pub(crate) seconds: f64,
}

impl EpochResult {
    /// The result of an epoch, given by the times of each accelerator.
    pub(crate) fn of(accelerators: &[EpochTimes], batch: u64) -> Self {
        let sum = |value: &dyn Fn(&EpochTimes) -> f64| accelerators.iter().map(value).sum::<f64>();
        let count = accelerators.len().max(1) as f64;
        let steps: Vec<Step> = accelerators
            .iter()
            .flat_map(|epoch| epoch.steps.iter().skip(EXCLUDED).copied())
            .collect();
        let mean = |value: fn(&Step) -> f64| {
            steps.iter().map(value).sum::<f64>() / steps.len().max(1) as f64
        };
        Self {
            au_percent: 100.0 * sum(&EpochTimes::utilization) / count,
            samples_per_second_v2: sum(&|epoch| epoch.samples_per_second(batch, Round::V2)),
            samples_per_second_v3: sum(&|epoch| epoch.samples_per_second(batch, Round::V3)),
            computation_s: mean(|step| step.compute),
            load_s: mean(|step| step.load),
            steps: accelerators
                .iter()
                .map(|epoch| epoch.steps.len())
                .max()
                .unwrap_or(0) as u64,
            seconds: accelerators
                .iter()
                .map(|epoch| epoch.wall)
                .fold(0.0, f64::max),
        }
    }

    /// Samples per second by the formula of `round`.
    pub(crate) fn samples_per_second(&self, round: Round) -> f64 {
        match round {
            Round::V2 => self.samples_per_second_v2,
            Round::V3 => self.samples_per_second_v3,
        }
    }
}

/// Steps per epoch of each accelerator: incomplete batches are dropped, and every accelerator has
/// as many steps as the others.
pub(crate) fn steps_per_epoch(files: u64, samples_per_file: u64, batch: u64, ranks: u64) -> u64 {
    files.saturating_mul(samples_per_file) / (batch * ranks).max(1)
}

/// Fewest steps per epoch with which a utilization means something. `prefetch_factor` is the number
/// of batches that each of `workers` workers reads ahead.
pub(crate) fn fewest_steps(workers: u32, prefetch_factor: u32) -> u64 {
    STEPS_PER_BATCH_AHEAD * (u64::from(workers) * u64::from(prefetch_factor) + 1)
}

/// The throughput in 2^20 bytes per second, which DLIO prints as MB/second: samples of the
/// configured length, not the bytes that were read.
pub(crate) fn mib_per_second(samples_per_second: f64, record_bytes: f64) -> f64 {
    samples_per_second * record_bytes / MIB
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epoch(wall: f64, steps: &[(f64, f64)]) -> EpochTimes {
        let steps = steps.iter().map(|&(load, compute)| Step { load, compute });
        EpochTimes {
            wall,
            steps: steps.collect(),
        }
    }

    #[test]
    fn published_throughput_follows_from_samples() {
        // 15 accelerators h100 with unet3d: 107.0730 samples/s, 14969.79 MB/s.
        let shown = mib_per_second(107.0730, 146_600_628.0);
        assert!((shown - 14_969.79).abs() < 0.05, "{shown}");
    }

    #[test]
    fn the_first_step_does_not_count() {
        let epoch = epoch(10.0, &[(4.0, 1.0), (0.0, 1.0), (1.0, 1.0), (1.0, 1.0)]);
        assert!((epoch.utilization() - 3.0 / 5.0).abs() < 1e-12);
    }

    #[test]
    fn rounds_count_steps_differently() {
        let epoch = epoch(4.0, &[(1.0, 1.0), (0.0, 1.0), (0.0, 1.0)]);
        // Two seconds count. Round v2 divides one of the two steps in them.
        assert!((epoch.samples_per_second(7, Round::V2) - 3.5).abs() < 1e-12);
        assert!((epoch.samples_per_second(7, Round::V3) - 7.0).abs() < 1e-12);
    }

    #[test]
    fn a_single_step_has_no_utilization() {
        let epoch = epoch(2.0, &[(1.0, 1.0)]);
        assert_eq!(epoch.utilization(), 0.0);
        assert_eq!(epoch.samples_per_second(7, Round::V2), 0.0);
        assert_eq!(epoch.samples_per_second(7, Round::V3), 0.0);
    }

    #[test]
    fn throughput_adds_up_and_utilization_is_a_mean() {
        let fast = epoch(3.0, &[(0.0, 1.0), (0.0, 1.0), (0.0, 1.0)]);
        let slow = epoch(5.0, &[(0.0, 1.0), (1.0, 1.0), (1.0, 1.0)]);
        let result = EpochResult::of(&[fast, slow], 2);
        assert!((result.au_percent - 75.0).abs() < 1e-9, "{result:?}");
        assert!(
            (result.samples_per_second_v3 - 3.0).abs() < 1e-9,
            "{result:?}"
        );
        assert!(
            (result.load_s - 0.5).abs() < 1e-9 && result.steps == 3,
            "{result:?}"
        );
    }

    #[test]
    fn steps_are_whole_for_every_accelerator() {
        assert_eq!(steps_per_epoch(65_000, 1, 7, 15), 619);
        assert_eq!(steps_per_epoch(1024, 1251, 400, 3), 1067);
        assert_eq!(steps_per_epoch(6, 1, 7, 1), 0);
        assert_eq!(fewest_steps(4, 1), 50);
        assert_eq!(fewest_steps(1, 2), 30);
    }
}
