//! The final operations after a function has changed the data of a file, as after a WRITE.

use alloc::vec::Vec;

use wire::Status;

use crate::effect::Outcome;
use crate::file::{FileOp, Operation};
use crate::server::context::{Context, Progress, Reply};
use crate::server::open::Open;
use crate::server::write;

/// The final operations of a function that has changed data.
pub(crate) struct Ending {
    reply: Reply,
    /// The remaining operations, in reverse order.
    left: Vec<FileOp>,
    /// Whether a failure of the current operation fails the request.
    matters: bool,
}

impl Ending {
    /// Reports the change to the watches, puts the data on stable storage where the open writes
    /// through, and gives the time of the last write back to a client that set it.
    pub(super) fn start(context: &mut Context<'_>, open: &Open, reply: Reply) -> Progress<Self> {
        let mut left = Vec::new();
        left.extend(write::report(context, open));
        if open.writes_through(false) {
            left.push(FileOp::OnOpen(open.file, Operation::Flush));
        }
        let ending = Self {
            reply,
            left,
            matters: false,
        };
        ending.go_on(context)
    }

    pub(super) fn resume(
        self,
        context: &mut Context<'_>,
        outcome: Outcome,
    ) -> Result<Progress<Self>, Status> {
        match outcome.expect_file() {
            Err(status) if self.matters => Err(status),
            Ok(_) | Err(_) => Ok(self.go_on(context)),
        }
    }

    fn go_on(mut self, context: &mut Context<'_>) -> Progress<Self> {
        let Some(operation) = self.left.pop() else {
            return Progress::Done(self.reply);
        };
        // The data have changed, even if the time cannot be restored.
        self.matters = matches!(operation, FileOp::OnOpen(_, Operation::Flush));
        context.wait(operation, self)
    }
}
