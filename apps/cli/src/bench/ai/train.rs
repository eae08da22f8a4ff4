//! The training loop of emulated accelerators.
//!
//! In each step an accelerator waits for a batch, computes (a measured sleep), and waits for the
//! other accelerators (a barrier, which stands for the exchange of gradients).

use std::sync::Barrier;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Error, Result, anyhow};

use super::dataset::Dataset;
use super::live::Live;
use super::loader::{Group, Loader, Work, Worker};
use super::order::Order;
use super::store::{Access, Store};
use super::usage::{CpuUse, Usage};
use super::utilization::{EpochResult, EpochTimes, Step};
use crate::bench::record::Record;
use crate::mutex::lock;

/// The parameters of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) order: Order,
    pub(crate) workers: u32,
    pub(crate) prefetch_factor: u32,
    pub(crate) computation: Duration,
    pub(crate) epochs: u32,
    /// Whether workers verify the checksums of the samples.
    pub(crate) decodes: bool,
    /// Whether workers bypass the page cache of a local store.
    pub(crate) direct: bool,
}

/// The measurements of a run.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) epochs: Vec<EpochResult>,
    /// Time for which a worker reads a batch.
    pub(crate) read: Record,
    /// Time for which an accelerator waits for a batch.
    pub(crate) load: Record,
    pub(crate) cpu: CpuUse,
}

/// Trains for all epochs.
///
/// # Errors
/// A file cannot be read.
pub(crate) fn train(store: &Store, dataset: &Dataset, setting: &Setting) -> Result<Measured> {
    let accelerators = setting.order.accelerators;
    let live = Live::new(setting.order.steps() * u64::from(setting.epochs), "steps");
    let teams = (0..accelerators).map(|accelerator| team(store, setting, accelerator));
    let mut teams = teams.collect::<Result<Vec<_>>>()?;
    let usage = Usage::start(store.server());
    let mut load = Record::new()?;
    let mut epochs = Vec::with_capacity(setting.epochs as usize);
    thread::scope(|scope| -> Result<()> {
        let _shown = live.show(scope);
        for epoch in 0..setting.epochs {
            let (number, all) = (epoch + 1, setting.epochs);
            live.title(format!(
                "{accelerators} accelerators  epoch {number}/{all}  "
            ));
            let times = run_epoch(dataset, setting, u64::from(epoch), &mut teams, &live)?;
            for step in times.iter().flat_map(|times| &times.steps) {
                load.add(0, Duration::from_secs_f64(step.load));
            }
            epochs.push(EpochResult::of(&times, setting.order.batch));
        }
        Ok(())
    })?;
    let cpu = usage.finish();
    let mut read = Record::new()?;
    for worker in teams.iter().flatten() {
        read.merge(&worker.record)?;
    }
    Ok(Measured {
        epochs,
        read,
        load,
        cpu,
    })
}

/// The workers of an accelerator. Each has a session of its own, as the processes of a `DataLoader`
/// have.
fn team(store: &Store, setting: &Setting, accelerator: u64) -> Result<Vec<Worker>> {
    let first = accelerator as usize * setting.workers as usize;
    let worker = |number| {
        let access = Access {
            session: first + number as usize,
            direct: setting.direct,
        };
        Ok(Worker {
            reader: store.reader(access)?,
            record: Record::new()?,
        })
    };
    (0..setting.workers).map(worker).collect()
}

fn run_epoch(
    dataset: &Dataset,
    setting: &Setting,
    epoch: u64,
    teams: &mut [Vec<Worker>],
    live: &Live,
) -> Result<Vec<EpochTimes>> {
    let batches = (0..setting.order.accelerators).map(|rank| setting.order.batches(rank, epoch));
    let batches: Vec<Vec<Vec<Group>>> = batches.collect();
    let rendezvous = Rendezvous::new(teams.len());
    let times = thread::scope(|scope| {
        let threads = teams.iter_mut().zip(&batches).enumerate();
        let threads = threads.map(|(rank, (team, batches))| {
            let work = Work {
                dataset,
                batches,
                decodes: setting.decodes,
                live,
            };
            let accelerator = Accelerator {
                setting,
                is_first: rank == 0,
                rendezvous: &rendezvous,
            };
            scope.spawn(move || accelerator.run_epoch(team, work))
        });
        let threads: Vec<_> = threads.collect();
        let joined = threads.into_iter().map(thread::ScopedJoinHandle::join);
        let joined = joined.map(|times| times.map_err(|_| anyhow!("an accelerator panicked")));
        joined.collect::<Result<Vec<_>>>()
    })?;
    rendezvous.failure().map_or(Ok(times), Err)
}

/// One emulated accelerator.
struct Accelerator<'a> {
    setting: &'a Setting,
    is_first: bool,
    rendezvous: &'a Rendezvous,
}

impl Accelerator<'_> {
    fn run_epoch(&self, team: &mut [Worker], work: Work<'_>) -> EpochTimes {
        self.rendezvous.wait();
        let started = Instant::now();
        let mut steps = Vec::with_capacity(work.batches.len());
        let wall = thread::scope(|scope| {
            let mut loader = Loader::start(scope, team, self.setting.prefetch_factor, work);
            for number in 0..work.batches.len() as u64 {
                match self.step(&mut loader) {
                    Ok(step) => steps.push(step),
                    Err(error) => self.rendezvous.fail(number, error),
                }
                self.rendezvous.wait();
                if self.rendezvous.has_failed(number) {
                    break;
                }
                work.live.add(u64::from(self.is_first), 0);
            }
            started.elapsed().as_secs_f64()
        });
        EpochTimes { wall, steps }
    }

    fn step(&self, loader: &mut Loader) -> Result<Step> {
        let loading = Instant::now();
        let batch = loader.next()?;
        let computing = Instant::now();
        thread::sleep(self.setting.computation);
        let compute = computing.elapsed();
        drop(batch);
        Ok(Step {
            load: (computing - loading).as_secs_f64(),
            compute: compute.as_secs_f64(),
        })
    }
}

/// The barrier of the accelerators. A failure in a step ends all accelerators after that step.
struct Rendezvous {
    barrier: Barrier,
    failed_step: AtomicU64,
    failure: Mutex<Option<Error>>,
}

impl Rendezvous {
    fn new(accelerators: usize) -> Self {
        Self {
            barrier: Barrier::new(accelerators),
            failed_step: AtomicU64::new(u64::MAX),
            failure: Mutex::default(),
        }
    }

    fn wait(&self) {
        self.barrier.wait();
    }

    fn fail(&self, step: u64, error: Error) {
        self.failed_step.fetch_min(step, Ordering::SeqCst);
        lock(&self.failure).get_or_insert(error);
    }

    /// Whether an accelerator has failed in a step up to `step`. After the barrier of a step all
    /// accelerators get the same answer, although faster ones may have failed in the next step.
    fn has_failed(&self, step: u64) -> bool {
        self.failed_step.load(Ordering::SeqCst) <= step
    }

    fn failure(&self) -> Option<Error> {
        lock(&self.failure).take()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::datagen::generate;
    use super::super::dataset::Layout;
    use super::super::workload::Workload;
    use super::*;

    /// A data set of 30 small images, and a setting for three accelerators.
    fn given() -> (tempfile::TempDir, Store, Setting) {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::local(directory.path());
        let layout = Layout {
            workload: Workload::Retinanet,
            files: 30,
        };
        let generated = generate(&store, layout, 0.001, 2).expect("generated");
        assert_eq!(generated.files, 30);
        let order = Order {
            files: 30,
            samples_per_file: 1,
            batch: 2,
            accelerators: 3,
            steps_max: u64::MAX,
            seed: 1,
        };
        let setting = Setting {
            order,
            workers: 2,
            prefetch_factor: 1,
            computation: Duration::from_micros(100),
            epochs: 2,
            decodes: true,
            direct: false,
        };
        (directory, store, setting)
    }

    #[test]
    fn every_file_is_read_once_per_epoch() {
        let (_directory, store, setting) = given();
        let dataset = Dataset::find(&store, Workload::Retinanet, None).expect("found");
        let measured = train(&store, &dataset, &setting).expect("trained");
        assert_eq!(measured.read.bytes, 2 * dataset.bytes());
        assert_eq!(measured.read.ops, 2 * 15);
        assert_eq!(measured.load.ops, 2 * 15);
        assert_eq!(measured.epochs.len(), 2);
        for epoch in &measured.epochs {
            assert_eq!(epoch.steps, 5);
            assert!(
                epoch.au_percent > 0.0 && epoch.au_percent <= 100.0,
                "{epoch:?}"
            );
            assert!(epoch.computation_s >= 100e-6, "{epoch:?}");
        }
    }

    #[test]
    fn a_broken_file_ends_all_accelerators() {
        let (directory, store, setting) = given();
        let dataset = Dataset::find(&store, Workload::Retinanet, None).expect("found");
        let file = directory.path().join("retinanet/train/img_17_of_30.jpeg");
        fs::write(file, b"no image").expect("written");
        let error = train(&store, &dataset, &setting).expect_err("a broken file");
        assert!(
            format!("{error:#}").contains("img_17_of_30.jpeg"),
            "{error:#}"
        );
    }

    #[test]
    fn files_of_another_scale_are_refused() {
        let (_directory, store, _) = given();
        let found = |scale| Dataset::find(&store, Workload::Retinanet, scale);
        assert!(found(Some(0.001)).is_ok());
        let error = found(Some(1.0)).expect_err("another scale").to_string();
        assert!(error.contains("the scale 0.001, not 1"), "{error}");
        assert!(Dataset::find(&store, Workload::Unet3d, None).is_err());
    }
}
