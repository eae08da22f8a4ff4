//! The order in which the accelerators read the samples.
//!
//! Each accelerator has an adjacent part of the samples. Incomplete batches are dropped. In each
//! epoch the part is shuffled with another seed.

use super::loader::Group;
use super::utilization::steps_per_epoch;

/// The samples of a training.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    pub(crate) files: u64,
    pub(crate) samples_per_file: u64,
    pub(crate) batch: u64,
    pub(crate) accelerators: u64,
    /// Largest number of steps per epoch.
    pub(crate) steps_max: u64,
    pub(crate) seed: u64,
}

impl Order {
    /// Steps per epoch of each accelerator.
    pub(crate) fn steps(self) -> u64 {
        let files = self.files;
        let steps = steps_per_epoch(files, self.samples_per_file, self.batch, self.accelerators);
        steps.min(self.steps_max)
    }

    /// The batches of an accelerator in an epoch, each as groups of adjacent samples.
    ///
    /// With one sample per file the samples are shuffled. Files with several samples are read in
    /// ranges, so the batches are shuffled, and their samples stay together.
    pub(crate) fn batches(self, accelerator: u64, epoch: u64) -> Vec<Vec<Group>> {
        let steps = self.steps();
        let part = steps * self.batch;
        let start = accelerator * part;
        let mut random = Random::new(self.seed, accelerator, epoch);
        if self.samples_per_file > 1 {
            let batches = (0..steps).map(|step| Group {
                first: start + step * self.batch,
                samples: self.batch,
            });
            let mut batches: Vec<Group> = batches.collect();
            random.shuffle(&mut batches);
            return batches.into_iter().map(|batch| vec![batch]).collect();
        }
        let mut samples: Vec<u64> = (start..start + part).collect();
        random.shuffle(&mut samples);
        let group = |first: &u64| Group {
            first: *first,
            samples: 1,
        };
        let batches = samples.chunks(self.batch as usize);
        batches
            .map(|batch| batch.iter().map(group).collect())
            .collect()
    }
}

/// SplitMix64 (Steele, Lea and Flood, 2014).
struct Random(u64);

impl Random {
    fn new(seed: u64, accelerator: u64, epoch: u64) -> Self {
        let mut random = Self(seed ^ (accelerator << 32) ^ (epoch << 48));
        random.next();
        random
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        word ^ (word >> 31)
    }

    /// The method of Fisher and Yates.
    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, (self.next() % (last as u64 + 1)) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn order(samples_per_file: u64) -> Order {
        Order {
            files: 100,
            samples_per_file,
            batch: 7,
            accelerators: 3,
            steps_max: u64::MAX,
            seed: 123,
        }
    }

    fn flat(batches: &[Vec<Group>]) -> Vec<u64> {
        let groups = batches.iter().flatten();
        groups
            .flat_map(|it| it.first..it.first + it.samples)
            .collect()
    }

    #[test]
    fn each_sample_is_read_once_by_one_accelerator() {
        for samples_per_file in [1, 5] {
            let order = order(samples_per_file);
            let steps = 100 * samples_per_file / 21;
            assert_eq!(order.steps(), steps);
            let all = (0..3).flat_map(|rank| flat(&order.batches(rank, 0)));
            let all: Vec<u64> = all.collect();
            let unique: BTreeSet<u64> = all.iter().copied().collect();
            assert_eq!(
                (all.len() as u64, unique.len() as u64),
                (steps * 21, steps * 21)
            );
            assert_eq!(unique.last(), Some(&(steps * 21 - 1)));
        }
    }

    #[test]
    fn epochs_have_different_orders_of_the_same_samples() {
        let order = order(1);
        let [first, again, second] = [0, 0, 1].map(|epoch| flat(&order.batches(1, epoch)));
        assert_eq!(first, again);
        assert_ne!(first, second);
        let sorted = |samples: &[u64]| samples.iter().copied().collect::<BTreeSet<_>>();
        assert_eq!(sorted(&first), sorted(&second));
    }

    #[test]
    fn records_of_a_batch_are_adjacent() {
        let batches = order(5).batches(2, 0);
        assert!(
            batches
                .iter()
                .all(|groups| groups.len() == 1 && groups[0].samples == 7)
        );
        let few = Order {
            steps_max: 2,
            ..order(5)
        };
        assert_eq!(few.batches(0, 0).len(), 2);
    }
}
