//! The workloads: sizes, and the arguments of `smbeam bench ai`.
//!
//! The sizes fit into the memory of a small machine, and a run has enough steps for a utilization:
//! 10 x (workers x batches ahead + 1) for each accelerator.

use serde::{Deserialize, Serialize};

/// Reading threads or processes of each accelerator.
pub(crate) const READING_THREADS: u32 = 2;
/// Steps of each epoch.
pub(crate) const STEPS: u32 = 30;
/// Checkpoints of each direction.
const CHECKPOINTS: u64 = 2;
/// Space for directories and for files of the servers, in bytes.
const SPARE_BYTES: u64 = 256 << 20;

/// A workload of MLPerf Storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Workload {
    /// Large files: samples of a tenth, computation of h100 scaled alike.
    Unet3d,
    /// Small files of 323 kB, computation of b200.
    Retinanet,
    /// Checkpoints of a smaller llama3-8b, two of eight ranks.
    Checkpoint,
}

/// A training, as both `smbeam bench ai` and the loops in Python run it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Training {
    pub(crate) accelerator: &'static str,
    pub(crate) round: &'static str,
    /// Length of the samples relative to that of the workload.
    pub(crate) scale: f64,
    /// Mean length of a sample in bytes.
    pub(crate) record_bytes: f64,
    pub(crate) files: u32,
    /// Samples of a step.
    pub(crate) batch: u32,
    /// Computation of a step in seconds.
    pub(crate) computation_s: f64,
    pub(crate) au_target_percent: f64,
    /// Accelerators for which there are files.
    pub(crate) accelerators: u32,
}

impl Workload {
    pub(crate) const ALL: [Workload; 3] =
        [Workload::Unet3d, Workload::Retinanet, Workload::Checkpoint];

    /// The workload with this name.
    pub(crate) fn named(name: &str) -> Option<Workload> {
        Self::ALL
            .into_iter()
            .find(|workload| workload.name() == name)
    }

    /// The name on the command line, in tables and in names of files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Workload::Unet3d => "unet3d",
            Workload::Retinanet => "retinanet",
            Workload::Checkpoint => "checkpoint",
        }
    }

    /// The training; none for checkpoints.
    pub(crate) fn training(self, is_quick: bool) -> Option<Training> {
        match self {
            Workload::Unet3d => {
                let scale = if is_quick { 0.02 } else { 0.1 };
                Some(Training {
                    accelerator: "h100",
                    round: "v2",
                    scale,
                    record_bytes: 146_600_628.0 * scale,
                    files: STEPS * 7,
                    batch: 7,
                    computation_s: 0.323 * scale,
                    au_target_percent: 90.0,
                    accelerators: 1,
                })
            }
            Workload::Retinanet => {
                let accelerators = if is_quick { 2 } else { 4 };
                Some(Training {
                    accelerator: "b200",
                    round: "v3",
                    scale: 1.0,
                    record_bytes: 322_957.0,
                    files: STEPS * 24 * accelerators,
                    batch: 24,
                    computation_s: 0.04755,
                    au_target_percent: 85.0,
                    accelerators,
                })
            }
            Workload::Checkpoint => None,
        }
    }

    /// Bytes that the file system for the files must have.
    pub(crate) fn space_bytes(self, is_quick: bool) -> u64 {
        let data = match self.training(is_quick) {
            // The lengths of samples differ, and their sum is some percent above the mean.
            Some(training) => 1.2 * training.record_bytes * f64::from(training.files),
            None => 36.0e9 * checkpoint_scale(is_quick) * (CHECKPOINTS + 1) as f64,
        };
        data as u64 + SPARE_BYTES
    }

    /// The arguments that generate the files in `location`; none for checkpoints.
    pub(crate) fn generate(self, is_quick: bool, location: &str) -> Option<Vec<String>> {
        let training = self.training(is_quick)?;
        Some(vec![
            "bench".into(),
            "ai".into(),
            "datagen".into(),
            location.into(),
            format!("--workload={}", self.name()),
            format!("--files={}", training.files),
            format!("--scale={}", training.scale),
        ])
    }

    /// The arguments that measure `location`. A search has one epoch for each number of
    /// accelerators, other trainings have `epochs`.
    pub(crate) fn measure(self, is_quick: bool, epochs: u32, location: &str) -> Vec<String> {
        let arguments = match self.training(is_quick) {
            Some(training) => self.train(&training, epochs),
            None => checkpoint(is_quick),
        };
        let command = if arguments[0].starts_with("--model") {
            "checkpoint"
        } else {
            "train"
        };
        let head = ["bench", "ai", command, location].map(str::to_owned);
        head.into_iter().chain(arguments).collect()
    }

    fn train(self, training: &Training, epochs: u32) -> Vec<String> {
        let accelerators = match training.accelerators {
            1 => "1",
            _ => "max",
        };
        let mut arguments = vec![
            format!("--workload={}", self.name()),
            format!("--accelerator={}", training.accelerator),
            format!("--accelerators={accelerators}"),
            format!("--scale={}", training.scale),
            format!("--workers={READING_THREADS}"),
            format!("--steps={STEPS}"),
            "--no-decode".into(),
        ];
        if accelerators == "1" {
            arguments.push(format!("--epochs={epochs}"));
        }
        arguments
    }
}

fn checkpoint(is_quick: bool) -> Vec<String> {
    vec![
        "--model=llama3-8b".into(),
        "--ranks=2/8".into(),
        format!("--scale={}", checkpoint_scale(is_quick)),
        format!("--writes={CHECKPOINTS}"),
        format!("--reads={CHECKPOINTS}"),
    ]
}

/// Number of parameters relative to llama3-8b. Two of its eight ranks write 28.1e9 bytes.
fn checkpoint_scale(is_quick: bool) -> f64 {
    if is_quick { 0.005 } else { 0.02 }
}

#[cfg(test)]
mod tests {
    use super::{READING_THREADS, STEPS, Workload};

    #[test]
    fn a_run_has_enough_steps_for_a_utilization() {
        const { assert!(STEPS >= 10 * (READING_THREADS + 1)) };
        for workload in [Workload::Unet3d, Workload::Retinanet] {
            for is_quick in [false, true] {
                let training = workload.training(is_quick).expect("a training");
                let steps = training.files / training.batch / training.accelerators;
                assert_eq!(steps, STEPS, "{workload:?}");
            }
        }
    }

    #[test]
    fn files_fit_into_the_memory_of_a_small_machine() {
        for workload in Workload::ALL {
            assert!(workload.space_bytes(false) < 4 << 30, "{workload:?}");
            assert!(workload.space_bytes(true) < workload.space_bytes(false));
        }
    }

    #[test]
    fn each_workload_has_its_command() {
        let command = |workload: Workload| workload.measure(false, 1, "/data")[2].clone();
        assert_eq!(command(Workload::Unet3d), "train");
        assert_eq!(command(Workload::Checkpoint), "checkpoint");
        assert!(Workload::Checkpoint.generate(false, "/data").is_none());
    }
}
