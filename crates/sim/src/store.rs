//! The store of the server in the simulator, and a run that crashes it.
//!
//! A completed operation is durable. A crash loses operations that are in progress: each took
//! effect as a whole, or not at all, as the seed says.

use std::collections::BTreeMap;
use std::time::Duration;

use proto::id::OpId;
use proto::store::{Outcome, Record, SCAN_MAX, StoreOp};

use crate::Failure;
use crate::check::store::Model;
use crate::check::{Check, ensure};
use crate::choices::Choices;
use crate::network::delay;
use crate::schedule::Schedule;

/// Operations of a run.
const OPERATIONS: u32 = 200;
/// Maximum number of operations in progress.
const DEPTH: usize = 8;
/// Number of keys of a run.
const KEYS: u64 = 12;
/// Maximum time until an operation is durable.
const SYNC: Duration = Duration::from_millis(20);
/// Events of a run, at most.
const STEPS_MAX: u64 = 100_000;
/// First bytes of all keys of a run.
const PREFIX: &[u8] = b"open/";

/// The simulated store.
#[derive(Debug, Default)]
pub(crate) struct Store {
    /// Records that survive a crash.
    durable: BTreeMap<Vec<u8>, Vec<u8>>,
    in_progress: BTreeMap<OpId, StoreOp>,
}

impl Store {
    /// Starts an operation. It has no effect before it is completed or the store crashes.
    pub(crate) fn start(&mut self, op: OpId, operation: StoreOp) -> Check {
        let previous = self.in_progress.insert(op, operation);
        ensure(previous.is_none(), || format!("{op:?} was requested twice"))
    }

    /// Makes an operation durable. `None` if a crash has lost it.
    pub(crate) fn complete(&mut self, op: OpId) -> Option<Outcome> {
        let operation = self.in_progress.remove(&op)?;
        Some(self.apply(operation))
    }

    /// The machine crashes.
    pub(crate) fn crash(&mut self, choices: &mut Choices) {
        for operation in std::mem::take(&mut self.in_progress).into_values() {
            if choices.per_mille(500) {
                self.apply(operation);
            }
        }
    }

    fn apply(&mut self, operation: StoreOp) -> Outcome {
        match operation {
            StoreOp::Put(Record { key, value }) => {
                self.durable.insert(key, value);
            }
            StoreOp::Delete(key) => {
                self.durable.remove(&key);
            }
            StoreOp::Scan { prefix, after } => {
                let is_next = |key: &[u8]| after.as_deref().is_none_or(|after| key > after);
                let found = self.durable.iter();
                let found = found.filter(|(key, _)| key.starts_with(&prefix) && is_next(key));
                let records = found.take(SCAN_MAX);
                let records = records.map(|(key, value)| Record::new(key.clone(), value.clone()));
                return Outcome::Records(records.collect());
            }
        }
        Outcome::Done
    }
}

/// Counts of the events in one simulation of the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreReport {
    /// Number of simulated events: requests, completions and crashes.
    pub steps: u64,
    /// Number of crashes of the server in the simulation.
    pub crashes: u64,
    /// Number of operations of the store that completed.
    pub completed: u64,
    /// Number of operations of the store that a crash interrupted.
    pub interrupted: u64,
    /// Number of interrupted operations that took effect nevertheless.
    pub survived: u64,
}

#[derive(Debug)]
enum Event {
    Request,
    Complete(OpId),
    Crash,
}

struct World {
    schedule: Schedule<Event>,
    choices: Choices,
    store: Store,
    model: Model,
    left: u32,
    next_op: u64,
    in_progress: BTreeMap<OpId, StoreOp>,
    report: StoreReport,
}

/// Runs random operations on the store, and crashes it now and then. At the end no crash happens
/// any more, every operation completes, and the store contains what the model contains.
///
/// # Errors
/// Fails if the store loses a durable record, or keeps a part of an operation.
pub fn run(seed: u64) -> Result<StoreReport, Failure> {
    let mut world = World {
        schedule: Schedule::new(),
        choices: Choices::from_seed(seed),
        store: Store::default(),
        model: Model::default(),
        left: OPERATIONS,
        next_op: 0,
        in_progress: BTreeMap::new(),
        report: StoreReport::default(),
    };
    match world.run() {
        Ok(()) => Ok(world.report),
        Err(what) => Err(Failure {
            seed,
            step: world.report.steps,
            what,
        }),
    }
}

impl World {
    fn run(&mut self) -> Check {
        self.schedule.after(Duration::ZERO, Event::Request);
        while self.left > 0 || !self.in_progress.is_empty() {
            match self.schedule.step(&mut self.report.steps, STEPS_MAX)? {
                Event::Request => self.request()?,
                Event::Complete(op) => self.complete(op)?,
                Event::Crash => self.crash()?,
            }
        }
        self.audit()
    }

    fn request(&mut self) -> Check {
        if self.left == 0 {
            return Ok(());
        }
        self.left -= 1;
        let pause = delay(SYNC / 4, &mut self.choices);
        self.schedule.after(pause, Event::Request);
        if self.choices.per_mille(30) {
            self.schedule.after(pause, Event::Crash);
        }
        let Some(operation) = self.operation() else {
            return Ok(());
        };
        self.next_op += 1;
        let op = OpId(self.next_op);
        self.in_progress.insert(op, operation.clone());
        self.store.start(op, operation)?;
        let pause = delay(SYNC, &mut self.choices);
        self.schedule.after(pause, Event::Complete(op));
        Ok(())
    }

    /// Chooses an operation on a key without another operation in progress.
    fn operation(&mut self) -> Option<StoreOp> {
        let mut key = PREFIX.to_vec();
        key.extend(self.choices.below(KEYS).to_be_bytes());
        let is_busy = self
            .in_progress
            .values()
            .any(|other| key_of(other) == Some(&key));
        if is_busy || self.in_progress.len() >= DEPTH {
            return None;
        }
        Some(match self.choices.below(4) {
            0 => StoreOp::Delete(key),
            _ => {
                let value = self.choices.below(1 << 40).to_be_bytes().to_vec();
                StoreOp::Put(Record::new(key, value))
            }
        })
    }

    fn complete(&mut self, op: OpId) -> Check {
        let Some(outcome) = self.store.complete(op) else {
            return Ok(());
        };
        let operation = self.in_progress.remove(&op);
        let operation = operation.ok_or_else(|| format!("{op:?} completed twice"))?;
        outcome.expect_done();
        self.report.completed += 1;
        self.model.completed(&operation);
        Ok(())
    }

    fn crash(&mut self) -> Check {
        self.report.crashes += 1;
        self.store.crash(&mut self.choices);
        let interrupted = std::mem::take(&mut self.in_progress);
        self.report.interrupted += interrupted.len() as u64;
        let found = self.scan()?;
        let survived = self.model.recovered(interrupted.values(), &found)?;
        self.report.survived += survived;
        Ok(())
    }

    fn audit(&mut self) -> Check {
        let found = self.scan()?;
        self.model.recovered([].into_iter(), &found).map(drop)
    }

    /// Returns all records, as the server reads them after a restart.
    fn scan(&mut self) -> Check<BTreeMap<Vec<u8>, Vec<u8>>> {
        let mut found = BTreeMap::new();
        loop {
            self.next_op += 1;
            let op = OpId(self.next_op);
            let (prefix, after) = (PREFIX.to_vec(), found.keys().last().cloned());
            self.store.start(op, StoreOp::Scan { prefix, after })?;
            let outcome = self.store.complete(op).ok_or("a scan was lost")?;
            let records = outcome.expect_records();
            let is_end = records.len() < SCAN_MAX;
            found.extend(records.into_iter().map(|record| (record.key, record.value)));
            if is_end {
                return Ok(found);
            }
        }
    }
}

/// The key that an operation changes.
fn key_of(operation: &StoreOp) -> Option<&Vec<u8>> {
    match operation {
        StoreOp::Put(record) => Some(&record.key),
        StoreOp::Delete(key) => Some(key),
        StoreOp::Scan { .. } => None,
    }
}
