//! The size of a data set by the rules of MLPerf Storage.

use serde::Serialize;

use super::workload::{Data, Training};

/// The data are this many times the memory of all clients.
pub(crate) const TIMES_MEMORY: u64 = 5;
/// Fewest steps of an epoch.
const STEPS: u64 = 500;
/// Files of one directory; more are spread over subdirectories.
const FILES_PER_DIRECTORY: u64 = 10_000;

/// The number of files, and the rule that decides it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct DataSize {
    pub(crate) files: u64,
    /// Subdirectories of `train`; 0 if all files are in `train`.
    pub(crate) subdirectories: u64,
    /// Bytes of all files by the mean length of a sample.
    pub(crate) bytes: u64,
    /// Files that the memory of the clients requires.
    pub(crate) files_by_memory: u64,
    /// Files that 500 steps per epoch require.
    pub(crate) files_by_steps: u64,
}

impl DataSize {
    /// The size for `accelerators` accelerators on clients with `memory` bytes of memory together.
    pub(crate) fn of(data: Data, training: Training, accelerators: u64, memory: u64) -> Self {
        let file_bytes = data.file_bytes();
        let by_memory = (TIMES_MEMORY as f64 * memory as f64 / file_bytes) as u64;
        let by_steps = STEPS * accelerators * training.batch / data.samples_per_file;
        let files = by_memory.max(by_steps);
        Self {
            files,
            subdirectories: subdirectories(files),
            bytes: (files as f64 * file_bytes) as u64,
            files_by_memory: by_memory,
            files_by_steps: by_steps,
        }
    }
}

/// Subdirectories for a number of files; 0 if one directory holds all.
pub(crate) fn subdirectories(files: u64) -> u64 {
    match files > FILES_PER_DIRECTORY {
        true => files.div_ceil(FILES_PER_DIRECTORY),
        false => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::workload::Workload;
    use super::*;

    fn files(workload: Workload, accelerators: u64, memory_gib: u64) -> DataSize {
        let (_, training) = workload.training_on(None).expect("a round has it");
        DataSize::of(workload.data(), training, accelerators, memory_gib << 30)
    }

    #[test]
    fn the_larger_rule_decides() {
        let memory = files(Workload::Unet3d, 1, 512);
        assert_eq!((memory.files, memory.files_by_steps), (18_750, 3500));
        assert_eq!(memory.subdirectories, 2);
        let steps = files(Workload::Unet3d, 15, 512);
        assert_eq!((steps.files, steps.subdirectories), (52_500, 6));
        assert_eq!(steps.bytes, 52_500 * 146_600_628);
        assert_eq!(files(Workload::Unet3d, 8, 512).files, 28_000);
        assert_eq!(files(Workload::Unet3d, 1, 24).files, 3500);
    }

    #[test]
    fn files_with_many_samples_are_fewer() {
        let size = files(Workload::Resnet50, 1, 0);
        assert_eq!(size.files, 500 * 400 / 1251);
        assert_eq!(size.subdirectories, 0);
    }
}
