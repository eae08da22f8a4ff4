//! The loader of batches, with the behavior of PyTorch's `DataLoader`.
//!
//! Batch `i` belongs to worker `i` modulo the number of workers. At the start each worker has
//! `prefetch_factor` batches to read. When the accelerator takes a batch, the loader assigns the
//! next one. The accelerator gets the batches in order, even if later ones are complete.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Scope;
use std::time::Instant;

use anyhow::{Context as _, Result};

use super::dataset::Dataset;
use super::format;
use super::live::Live;
use super::store::Reader;
use crate::bench::record::Record;

/// A group of consecutive samples, by the number of the first one and their count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) first: u64,
    pub(crate) samples: u64,
}

/// A worker with its memory. It serves one epoch after the other.
pub(crate) struct Worker {
    pub(crate) reader: Box<dyn Reader>,
    /// Time of each batch, and the bytes that were read for it.
    pub(crate) record: Record,
}

/// The dataset, the batches and the settings that the workers of a loader share.
#[derive(Clone, Copy)]
pub(crate) struct Work<'a> {
    pub(crate) dataset: &'a Dataset,
    /// The batches of the accelerator in this epoch, each a list of groups of samples.
    pub(crate) batches: &'a [Vec<Group>],
    /// Whether workers verify the checksums of the samples.
    pub(crate) decodes: bool,
    pub(crate) live: &'a Live,
}

/// The samples of a batch, as the accelerator gets them.
#[derive(Debug)]
pub(crate) struct Loaded {
    _samples: Vec<u8>,
}

/// Loads the batches of one epoch.
pub(crate) struct Loader {
    jobs: Vec<Sender<usize>>,
    results: Vec<Receiver<Result<Loaded>>>,
    batches: usize,
    assigned: usize,
    taken: usize,
}

impl Loader {
    /// Starts the workers, and assigns the first batches.
    pub(crate) fn start<'scope, 'a>(
        scope: &'scope Scope<'scope, '_>,
        workers: &'a mut [Worker],
        prefetch_factor: u32,
        work: Work<'a>,
    ) -> Self
    where
        'a: 'scope,
    {
        let mut loader = Self {
            jobs: Vec::new(),
            results: Vec::new(),
            batches: work.batches.len(),
            assigned: 0,
            taken: 0,
        };
        for worker in workers {
            let (job, jobs) = channel();
            let (result, results) = channel();
            loader.jobs.push(job);
            loader.results.push(results);
            scope.spawn(move || worker.run(&jobs, &result, work));
        }
        for _ in 0..loader.jobs.len() * prefetch_factor as usize {
            loader.assign();
        }
        loader
    }

    fn assign(&mut self) {
        if self.assigned < self.batches {
            let worker = self.assigned % self.jobs.len();
            // A worker that has ended reports its error with its last batch.
            let _ = self.jobs[worker].send(self.assigned);
            self.assigned += 1;
        }
    }

    /// Waits for the next batch.
    ///
    /// # Errors
    /// The worker cannot read a file of the batch.
    pub(crate) fn next(&mut self) -> Result<Loaded> {
        let worker = self.taken % self.results.len();
        let loaded = self.results[worker].recv();
        let loaded = loaded.context("a worker of the loader has ended")??;
        self.taken += 1;
        self.assign();
        Ok(loaded)
    }
}

impl Worker {
    fn run(&mut self, jobs: &Receiver<usize>, results: &Sender<Result<Loaded>>, work: Work<'_>) {
        for job in jobs {
            let loaded = self.load(job, work);
            let is_failed = loaded.is_err();
            if results.send(loaded).is_err() || is_failed {
                return;
            }
        }
    }

    fn load(&mut self, job: usize, work: Work<'_>) -> Result<Loaded> {
        let data = work.dataset.data;
        let started = Instant::now();
        let groups = work.batches[job].iter();
        let extents = groups.flat_map(|group| work.dataset.extents(group.first, group.samples));
        let extents: Vec<_> = extents.collect();
        let mut check = |bytes: &[u8]| match work.decodes {
            true => format::check(data.format, bytes),
            false => Ok(()),
        };
        let bytes = self.reader.read(&extents, &mut check)?;
        let samples: u64 = work.batches[job].iter().map(|group| group.samples).sum();
        let resized = data.resized_bytes.unwrap_or(data.record_bytes as u64);
        // As in DLIO, the accelerator gets resized samples and not the bytes of the file.
        let samples = vec![1; (samples * resized) as usize];
        self.record.add(bytes, started.elapsed());
        work.live.add(0, bytes);
        Ok(Loaded { _samples: samples })
    }
}

/// Batches that each worker reads ahead. PyTorch's default is 2.
pub(crate) fn prefetch_factor(prefetch: u32, workers: u32) -> u32 {
    match prefetch {
        0 => 2,
        prefetch => prefetch.div_ceil(workers),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::thread;

    use anyhow::bail;

    use super::super::dataset::example;
    use super::super::store::{Check, Extent};
    use super::super::workload::Workload;
    use super::*;
    use crate::mutex::lock;

    /// Notes the files that a worker reads; the file `9` is broken.
    struct Notes(usize, Arc<Mutex<Vec<(usize, String)>>>);

    impl Reader for Notes {
        fn read(&mut self, extents: &[Extent<'_>], _: Check<'_>) -> Result<u64> {
            for extent in extents {
                lock(&self.1).push((self.0, extent.path.to_owned()));
                if extent.path == "9" {
                    bail!("broken");
                }
            }
            Ok(1)
        }

        fn stream(&mut self, _: &str) -> Result<u64> {
            unreachable!("a loader does not stream")
        }
    }

    fn load(files: u64, workers: usize, factor: u32) -> (Vec<(usize, String)>, Vec<bool>, usize) {
        let data = Workload::Retinanet.data().scaled(0.001);
        let dataset = example(data, &vec![10; files as usize]);
        let batches = (0..files).map(|first| vec![Group { first, samples: 1 }]);
        let batches: Vec<_> = batches.collect();
        let notes = Arc::new(Mutex::new(Vec::new()));
        let mut all: Vec<Worker> = (0..workers)
            .map(|number| Worker {
                reader: Box::new(Notes(number, Arc::clone(&notes))),
                record: Record::new().expect("bounds"),
            })
            .collect();
        let work = Work {
            dataset: &dataset,
            batches: &batches,
            decodes: true,
            live: &Live::new(0, "steps"),
        };
        let (results, assigned) = thread::scope(|scope| {
            let mut loader = Loader::start(scope, &mut all, factor, work);
            let assigned = loader.assigned;
            let results = (0..files).map(|_| loader.next().is_ok()).collect();
            (results, assigned)
        });
        let notes = lock(&notes).clone();
        (notes, results, assigned)
    }

    #[test]
    fn batches_go_to_workers_in_turn() {
        let (mut notes, results, assigned) = load(8, 3, 2);
        assert_eq!((assigned, results), (6, vec![true; 8]));
        notes.sort_by_key(|(_, file)| file.clone());
        let workers: Vec<usize> = notes.iter().map(|(worker, _)| *worker).collect();
        assert_eq!(workers, [0, 1, 2, 0, 1, 2, 0, 1]);
    }

    #[test]
    fn a_broken_file_fails_its_batch_and_the_next_ones_of_its_worker() {
        let (_, results, _) = load(12, 2, 1);
        assert_eq!(results[..9], [true; 9]);
        assert!(!results[9]);
    }

    #[test]
    fn workers_share_the_batches_ahead() {
        assert_eq!(prefetch_factor(2, 4), 1);
        assert_eq!(prefetch_factor(2, 1), 2);
        assert_eq!(prefetch_factor(8, 3), 3);
        assert_eq!(prefetch_factor(0, 3), 2);
    }
}
