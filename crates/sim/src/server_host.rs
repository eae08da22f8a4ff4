//! The driver of the core's `Server`: its timer and the operations that belong to no connection.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::effect::{Effect, Effects, Outcome};
use proto::id::OpId;
use proto::server::Server;
use proto::time::{Instant, Now};
use vfs::Effort;

use crate::check::{Check, ensure};
use crate::disk::{Disk, Work};
use crate::host::Wish;
use crate::scenario::Faults;

/// What surrounds a call.
pub(crate) struct Surroundings<'a> {
    pub(crate) now: Now,
    pub(crate) disk: &'a mut Disk,
    pub(crate) faults: &'a Faults,
    pub(crate) wishes: &'a mut Vec<Wish>,
}

/// The driver of the core's `Server`.
pub(crate) struct ServerHost {
    server: Arc<Server>,
    effects: Effects,
    /// Operations in progress that the disk could not do at once.
    slow: BTreeMap<OpId, Work>,
}

impl ServerHost {
    pub(crate) fn new(server: Arc<Server>) -> Self {
        Self {
            server,
            effects: Effects::new(),
            slow: BTreeMap::new(),
        }
    }

    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.server.next_timeout()
    }

    /// Whether no operation is in progress and no open is disconnected.
    pub(crate) fn is_idle(&self) -> bool {
        let is_idle = self.server.is_idle();
        assert!(
            !is_idle || self.slow.is_empty(),
            "the server waits for its operations"
        );
        is_idle
    }

    pub(crate) fn timeout(&mut self, around: &mut Surroundings<'_>) -> Check {
        self.server.timeout(around.now, &mut self.effects);
        self.perform(around)
    }

    /// Runs a slow operation and completes it.
    pub(crate) fn ripe(&mut self, op: OpId, around: &mut Surroundings<'_>) -> Check {
        let work = self.slow.remove(&op).expect("it is in progress");
        let (faults, wall) = (around.faults, around.now.wall);
        let outcome = around.disk.attempt(&work, Effort::Blocking, faults, wall);
        let outcome = outcome.expect("a blocking operation blocks");
        self.complete(op, outcome, around);
        self.perform(around)
    }

    fn complete(&mut self, op: OpId, outcome: Outcome, around: &Surroundings<'_>) {
        let effects = &mut self.effects;
        self.server.complete(around.now, op, outcome, effects);
    }

    fn perform(&mut self, around: &mut Surroundings<'_>) -> Check {
        while let Some(effect) = self.effects.pop() {
            match effect {
                Effect::File(op, operation) => self.work(op, Work::File(operation), around)?,
                Effect::Notify(to, notice) => around.wishes.push(Wish::Notify(to, notice)),
                // The world reads the next timeout after each event.
                Effect::ArmServerTimer => {}
                other => return Err(format!("the server requested {other:?}")),
            }
        }
        Ok(())
    }

    fn work(&mut self, op: OpId, work: Work, around: &mut Surroundings<'_>) -> Check {
        let (faults, wall) = (around.faults, around.now.wall);
        match around.disk.attempt(&work, Effort::Cached, faults, wall) {
            Some(outcome) => self.complete(op, outcome, around),
            None => {
                let previous = self.slow.insert(op, work);
                ensure(previous.is_none(), || format!("{op:?} was requested twice"))?;
                around.wishes.push(Wish::Later(op));
            }
        }
        Ok(())
    }
}
