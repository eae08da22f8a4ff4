//! Operations on files other than READ and WRITE.

use std::rc::Rc;
use std::sync::Arc;

use proto::effect::Outcome;
use proto::file::{self, CopyPlan, FileOp, LocalOpen, Operation};
use vfs::{Attempt, Effort, FileSystem};
use wire::Status;

use super::context::{Context, Started};
use crate::counters::StoreOperation;

/// An operation that runs on a thread.
enum Job {
    /// An operation of one share.
    Execute(Arc<dyn FileSystem>, FileOp),
    /// A copy into an open of another share.
    Copy {
        from: Arc<dyn FileSystem>,
        to: Arc<dyn FileSystem>,
        target: LocalOpen,
        plan: CopyPlan,
    },
}

impl Job {
    fn run(self) -> Result<file::Outcome, Status> {
        match self {
            Self::Execute(file_system, operation) => {
                match file_system.execute(&operation, Effort::Blocking) {
                    Attempt::Done(outcome) => outcome,
                    Attempt::WouldBlock => unreachable!("a blocking operation blocks"),
                }
            }
            Self::Copy {
                from,
                to,
                target,
                plan,
            } => vfs::copy::between(&*from, &*to, target, &plan),
        }
    }
}

/// Starts an operation on a file. A copy between shares always runs on a thread.
pub(crate) fn execute(
    context: &Rc<Context>,
    operation: FileOp,
) -> Started<impl Future<Output = Outcome> + use<>> {
    let worker = &context.worker;
    let job = match operation {
        FileOp::OnOpen(target, Operation::CopyRange(plan)) if plan.source.share != target.share => {
            Job::Copy {
                from: worker.file_system(plan.source.share),
                to: worker.file_system(target.share),
                target,
                plan,
            }
        }
        operation => {
            let file_system = worker.file_system(operation.share());
            match file_system.execute(&operation, Effort::Cached) {
                Attempt::Done(outcome) => return Started::Done(outcome.into()),
                Attempt::WouldBlock => Job::Execute(file_system, operation),
            }
        }
    };
    let context = Rc::clone(context);
    Started::Pending(async move {
        let handle = context.handle();
        let running = handle.blocking_for(context.source.get(), move || job.run());
        let done = context.timed(StoreOperation::Metadata, running);
        done.await.into()
    })
}
