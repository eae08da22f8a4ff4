//! Drives the core's `Server`: its timer and the operations that belong to no connection.
//!
//! Worker 0 owns the driver. Other workers notify it when a connection has made the next timeout of
//! the server earlier.

use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;

use net::{TimeoutHandler, Timer};
use proto::effect::{Effect, Effects, Outcome};
use proto::file::FileOp;
use proto::id::OpId;
use proto::store::StoreOp;
use proto::time::Instant;
use ring::{Handle, Signal};
use vfs::{Attempt, Effort};

use crate::audit::Record;
use crate::worker_context::WorkerContext;

/// The driver of the core's `Server`.
pub(crate) struct ServerDriver {
    worker: Rc<WorkerContext>,
    timer: Timer,
    effects: RefCell<Effects>,
}

impl TimeoutHandler for ServerDriver {
    fn timer(&self) -> &Timer {
        &self.timer
    }

    fn runtime(&self) -> &Handle {
        &self.worker.handle
    }

    fn ended(&self) -> &Signal {
        &self.worker.stopping
    }

    fn now(&self) -> Instant {
        self.worker.now().instant
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.worker.shared.core.next_timeout()
    }

    fn timeout(self: &Rc<Self>) {
        let now = self.worker.now();
        let core = &self.worker.shared.core;
        core.timeout(now, &mut self.effects.borrow_mut());
        self.perform();
    }
}

impl ServerDriver {
    pub(crate) fn new(worker: Rc<WorkerContext>) -> Rc<Self> {
        Rc::new(Self {
            worker,
            timer: Timer::default(),
            effects: RefCell::default(),
        })
    }

    /// Arms the timer for the next timeout of the server.
    pub(crate) fn arm(self: &Rc<Self>) {
        Timer::arm(self);
    }

    /// Performs the effects of the last call into the core, and arms the timer again.
    fn perform(self: &Rc<Self>) {
        loop {
            let Some(effect) = self.effects.borrow_mut().pop() else {
                break;
            };
            match effect {
                Effect::File(op, operation) => self.file(op, operation),
                Effect::Store(op, operation) => self.store(op, operation),
                Effect::Notify(connection, notice) => self.worker.shared.notify(connection, notice),
                Effect::Audit(event) => {
                    let audit = &self.worker.shared.audit;
                    audit.write(|| Record::of_event(&event, None));
                }
                // The timer is armed below.
                Effect::ArmServerTimer => {}
                other => unreachable!("the server does not request {other:?}"),
            }
        }
        self.arm();
    }

    fn file(self: &Rc<Self>, op: OpId, operation: FileOp) {
        let file_system = self.worker.file_system(operation.share());
        let handle = self.worker.handle.clone();
        self.run(op, async move {
            if let Attempt::Done(outcome) = file_system.execute(&operation, Effort::Cached) {
                return outcome.into();
            }
            let execute = move || {
                let attempt = file_system.execute(&operation, Effort::Blocking);
                attempt.done().expect("a blocking operation blocks")
            };
            handle.blocking(execute).await.into()
        });
    }

    fn store(self: &Rc<Self>, op: OpId, operation: StoreOp) {
        let shared = Arc::clone(&self.worker.shared);
        let handle = self.worker.handle.clone();
        self.run(op, async move {
            let execute = move || shared.store.execute(operation);
            handle.blocking(execute).await.into()
        });
    }

    /// Runs an operation in a task and completes it.
    fn run(self: &Rc<Self>, op: OpId, operation: impl Future<Output = Outcome> + 'static) {
        let driver = Rc::clone(self);
        self.worker.handle.spawn(async move {
            let outcome = operation.await;
            let now = driver.worker.now();
            let core = &driver.worker.shared.core;
            core.complete(now, op, outcome, &mut driver.effects.borrow_mut());
            driver.perform();
        });
    }
}
