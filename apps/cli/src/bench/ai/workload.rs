//! The training workloads of MLPerf Storage, with the values of their configuration files.
//!
//! Rounds v1 and v2: unet3d and resnet50 with the accelerators a100 and h100. Round v3: unet3d with
//! b200, retinanet with b200 and mi355. Source: `configs/dlio/workload` of mlcommons/storage.

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A model that is trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Workload {
    /// Medical images: one NPZ file of about 147 MB per sample.
    Unet3d,
    /// Photos: TFRecord files of 143 MB with 1251 samples each, read in ranges by batch.
    Resnet50,
    /// Photos: one JPEG file of 323 kB per sample.
    Retinanet,
}

impl Workload {
    /// The name on the command line and of the directory with the data.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Unet3d => "unet3d",
            Self::Resnet50 => "resnet50",
            Self::Retinanet => "retinanet",
        }
    }

    /// The form of the data.
    pub(crate) fn data(self) -> Data {
        match self {
            Self::Unet3d => Data {
                format: Format::Npz,
                samples_per_file: 1,
                record_bytes: 146_600_628.0,
                record_stdev: 68_341_808.0,
                resized_bytes: Some(2_097_152),
            },
            Self::Resnet50 => Data {
                format: Format::Tfrecord,
                samples_per_file: 1251,
                record_bytes: 114_660.07,
                record_stdev: 0.0,
                resized_bytes: Some(150_528),
            },
            Self::Retinanet => Data {
                format: Format::Jpeg,
                samples_per_file: 1,
                record_bytes: 322_957.0,
                record_stdev: 0.0,
                resized_bytes: None,
            },
        }
    }

    /// The training on an accelerator, or `None` if no round has this pair.
    pub(crate) fn training(self, accelerator: Accelerator) -> Option<Training> {
        let (batch, computation_s, workers, epochs, au_target, round) = match (self, accelerator) {
            (Self::Unet3d, Accelerator::A100) => (7, 0.636, 4, 5, 0.90, Round::V2),
            (Self::Unet3d, Accelerator::H100) => (7, 0.323, 4, 5, 0.90, Round::V2),
            (Self::Unet3d, Accelerator::B200) => (7, 0.162, 4, 5, 0.90, Round::V3),
            (Self::Resnet50, Accelerator::A100) => (400, 0.435, 8, 5, 0.90, Round::V2),
            (Self::Resnet50, Accelerator::H100) => (400, 0.224, 8, 5, 0.90, Round::V2),
            (Self::Retinanet, Accelerator::B200) => (24, 0.047_55, 8, 8, 0.85, Round::V3),
            (Self::Retinanet, Accelerator::Mi355) => (32, 0.0634, 8, 8, 0.85, Round::V3),
            _ => return None,
        };
        Some(Training {
            batch,
            computation_s,
            workers,
            epochs,
            au_target,
            round,
        })
    }

    /// The training on an accelerator, or on the first one that a round has.
    ///
    /// # Errors
    /// No round has this pair. The text names those that exist.
    pub(crate) fn training_on(
        self,
        accelerator: Option<Accelerator>,
    ) -> Result<(Accelerator, Training), String> {
        let known = self.accelerators();
        let accelerator = accelerator.unwrap_or(known[0]);
        let training = self.training(accelerator).ok_or_else(|| {
            let names: Vec<&str> = known.iter().map(|accelerator| accelerator.name()).collect();
            format!(
                "no round trains {} on {}: use {}",
                self.name(),
                accelerator.name(),
                names.join(", ")
            )
        })?;
        Ok((accelerator, training))
    }

    /// The accelerators with which a round trains this model.
    fn accelerators(self) -> Vec<Accelerator> {
        let all = Accelerator::value_variants().iter().copied();
        all.filter(|accelerator| self.training(*accelerator).is_some())
            .collect()
    }
}

/// An emulated accelerator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Accelerator {
    A100,
    H100,
    B200,
    Mi355,
}

impl Accelerator {
    /// The name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::A100 => "a100",
            Self::H100 => "h100",
            Self::B200 => "b200",
            Self::Mi355 => "mi355",
        }
    }
}

/// A round of MLPerf Storage, with its formula for the throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Round {
    /// Rounds v1 and v2 of 2024 and 2025.
    V2,
    /// Round v3 of 2026.
    V3,
}

/// A format of files with samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Npz,
    Tfrecord,
    Jpeg,
}

impl Format {
    /// The ending of file names.
    pub(crate) fn ending(self) -> &'static str {
        match self {
            Self::Npz => "npz",
            Self::Tfrecord => "tfrecord",
            Self::Jpeg => "jpeg",
        }
    }
}

/// The form of the data of a workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Data {
    pub(crate) format: Format,
    pub(crate) samples_per_file: u64,
    /// Mean length of a sample in bytes (`record_length_bytes`).
    pub(crate) record_bytes: f64,
    /// Standard deviation of that length as the rules name it. The generated lengths have another
    /// one: see [`super::sizes`].
    pub(crate) record_stdev: f64,
    /// Bytes of a sample that a worker passes to the accelerator; `None` for the whole sample.
    pub(crate) resized_bytes: Option<u64>,
}

impl Data {
    /// The data with samples of `scale` times the length.
    pub(crate) fn scaled(self, scale: f64) -> Self {
        let resized = |bytes: u64| ((bytes as f64 * scale) as u64).max(1);
        Self {
            record_bytes: self.record_bytes * scale,
            record_stdev: self.record_stdev * scale,
            resized_bytes: self.resized_bytes.map(resized),
            ..self
        }
    }

    /// Bytes of a file by the mean length of a sample.
    pub(crate) fn file_bytes(self) -> f64 {
        self.record_bytes * self.samples_per_file as f64
    }
}

/// The training loop of a workload on one accelerator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Training {
    /// Samples per step.
    pub(crate) batch: u64,
    /// Seconds of a step without loading.
    pub(crate) computation_s: f64,
    /// Reading threads of an accelerator (`read_threads`).
    pub(crate) workers: u32,
    pub(crate) epochs: u32,
    /// Utilization that a result of the round must reach, from 0 to 1.
    pub(crate) au_target: f64,
    pub(crate) round: Round,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes per second of one accelerator that never waits, in 10^9.
    fn demand(workload: Workload, accelerator: Accelerator) -> f64 {
        let training = workload.training(accelerator).expect("a round has it");
        training.batch as f64 * workload.data().record_bytes / training.computation_s / 1e9
    }

    #[test]
    fn demands_are_those_of_the_rounds() {
        for (workload, accelerator, expected) in [
            (Workload::Unet3d, Accelerator::A100, 1.614),
            (Workload::Unet3d, Accelerator::H100, 3.177),
            (Workload::Unet3d, Accelerator::B200, 6.335),
            (Workload::Resnet50, Accelerator::H100, 0.205),
            (Workload::Retinanet, Accelerator::B200, 0.163),
            (Workload::Retinanet, Accelerator::Mi355, 0.163),
        ] {
            let demand = demand(workload, accelerator);
            assert!((demand - expected).abs() < 0.0006, "{workload:?} {demand}");
        }
    }

    #[test]
    fn a_scaled_workload_has_smaller_samples() {
        let data = Workload::Unet3d.data().scaled(0.1);
        assert!((data.record_bytes - 14_660_062.8).abs() < 1e-6);
        assert_eq!(data.resized_bytes, Some(209_715));
        assert_eq!(Workload::Retinanet.data().scaled(0.1).resized_bytes, None);
    }

    #[test]
    fn unknown_pairs_are_refused_with_the_known_ones() {
        let refused = Workload::Unet3d.training_on(Some(Accelerator::Mi355));
        let reason = refused.expect_err("refused");
        assert!(
            reason.ends_with("on mi355: use a100, h100, b200"),
            "{reason}"
        );
        let first = Workload::Retinanet.training_on(None).expect("a default");
        assert_eq!(first.0, Accelerator::B200);
    }
}
