//! The shares in memory, and their faults.

use std::collections::BTreeMap;

use proto::effect::{Outcome, Payload, PayloadToken, ReadPlan};
use proto::file::{FileOp, LocalOpen, Operation, ShareId};
use vfs::memory::{Memory, Options};
use vfs::{Attempt, Effort, FileSystem, copy};
use wire::{FileTime, Status};

use crate::check::{Check, ensure};
use crate::choices::Choices;
use crate::scenario::{Faults, Scenario};

/// Work for the disk, with all data that it needs: the disk may do it much later.
#[derive(Debug)]
pub(crate) enum Work {
    File(FileOp),
    Read(ReadPlan),
    Write {
        file: LocalOpen,
        offset: Option<u64>,
        bytes: Vec<u8>,
        through: bool,
    },
}

/// All shares, and the bytes that were read for responses.
#[derive(Debug)]
pub(crate) struct Disk {
    shares: Vec<Memory>,
    payloads: BTreeMap<u64, Vec<u8>>,
    next_payload: u64,
    choices: Choices,
}

impl Disk {
    pub(crate) fn new(shares: u32, scenario: &Scenario, choices: Choices) -> Self {
        let mut options = Options::default();
        if scenario.private_files {
            (options.file_mode, options.directory_mode) = (0o600, 0o700);
        }
        Self {
            shares: (0..shares)
                .map(|share| Memory::new(ShareId(share), options))
                .collect(),
            payloads: BTreeMap::new(),
            next_payload: 0,
            choices,
        }
    }

    /// Attempts the work. Returns `None` if it would have to wait.
    pub(crate) fn attempt(
        &mut self,
        work: &Work,
        effort: Effort,
        faults: &Faults,
        now: FileTime,
    ) -> Option<Outcome> {
        let share = self.shares.get(share_of(work).0 as usize);
        let memory = share.expect("the core names configured shares");
        arm(memory, faults, &mut self.choices);
        memory.set_time(now);
        match work {
            Work::File(FileOp::OnOpen(target, Operation::CopyRange(plan)))
                if plan.source.share != target.share =>
            {
                let source = &self.shares[plan.source.share.0 as usize];
                Some(copy::between(source, memory, *target, plan).into())
            }
            Work::File(operation) => {
                let outcome = memory.execute(operation, effort).done()?;
                Some(outcome.into())
            }
            Work::Read(plan) => {
                let mut bytes = vec![0; plan.length as usize];
                let attempt = memory.read(plan.file, plan.offset, &mut bytes, effort);
                let result = attempt.done()?;
                Some(self.loaded(bytes, result))
            }
            Work::Write {
                file,
                offset,
                bytes,
                through,
            } => written(memory.write(*file, *offset, bytes, *through, effort)),
        }
    }

    fn loaded(&mut self, mut bytes: Vec<u8>, result: Result<usize, Status>) -> Outcome {
        let count = match result {
            Ok(count) => count,
            Err(status) => return Outcome::Failed(status),
        };
        bytes.truncate(count);
        self.next_payload += 1;
        self.payloads.insert(self.next_payload, bytes);
        Outcome::Read(Payload {
            token: PayloadToken(self.next_payload),
            len: u32::try_from(count).expect("a read has a limit"),
        })
    }

    /// Removes and returns the bytes of a payload: each is sent or released once.
    pub(crate) fn take(&mut self, token: PayloadToken) -> Check<Vec<u8>> {
        let bytes = self.payloads.remove(&token.0);
        bytes.ok_or_else(|| format!("{token:?} was used twice"))
    }

    /// The server process ends: its opens and payloads end with it.
    pub(crate) fn crash(&mut self) {
        self.payloads.clear();
        self.shares.iter().for_each(Memory::drop_opens);
    }

    /// Checks that nothing is open and that no payload is left.
    pub(crate) fn check_idle(&self) -> Check {
        for memory in &self.shares {
            let (opens, share) = (memory.opens(), memory.share());
            ensure(opens == 0, || {
                format!("{opens} opens are left on {share:?}")
            })?;
        }
        ensure(self.payloads.is_empty(), || {
            format!("{} payloads are left", self.payloads.len())
        })
    }
}

/// Decides which faults the next operation meets.
fn arm(memory: &Memory, faults: &Faults, choices: &mut Choices) {
    let next = memory.operations();
    let fails = choices.per_mille(faults.disk_error);
    let is_short = choices.per_mille(faults.short_read);
    let would_block = choices.per_mille(faults.slow_disk);
    memory.set_faults(|armed| {
        armed.fail.clear();
        if fails {
            armed.fail.insert(next, Status::IO_DEVICE_ERROR);
        }
        armed.short_read = is_short.then_some(crate::check::contents::CELL);
        armed.space = faults.space;
        armed.would_block = would_block;
    });
}

fn written(attempt: Attempt<Result<usize, Status>>) -> Option<Outcome> {
    let outcome = match attempt.done()? {
        Ok(count) => Outcome::Written(u32::try_from(count).expect("a write has a limit")),
        Err(status) => Outcome::Failed(status),
    };
    Some(outcome)
}

fn share_of(work: &Work) -> ShareId {
    match work {
        Work::File(operation) => operation.share(),
        Work::Read(plan) => plan.file.share,
        Work::Write { file, .. } => file.share,
    }
}
