//! The state of a request that waits, for every command. `resume` hands the outcome to the file of
//! the command.
//!
//! Only `connection/` knows this type: a command's file knows its own step alone.

use core::convert::Infallible;
use core::fmt;

use wire::Status;

use crate::effect::Outcome;
use crate::server::context::{Context, Progress};
use crate::server::{
    change_notify, close, create, flush, ioctl, lock, pipe, query_directory, query_info, read,
    set_info, write,
};

/// The state of a request that waits for an operation or for another client.
pub(crate) enum Step {
    Create(create::Step),
    Close(close::Step),
    Flush(flush::Step),
    Read(read::Step),
    Write(write::Step),
    Ioctl(ioctl::Step),
    QueryDirectory(query_directory::Step),
    ChangeNotify(change_notify::Step),
    Lock(lock::Step),
    QueryInfo(query_info::Step),
    SetInfo(set_info::Step),
    Pipe(pipe::Step),
}

impl Step {
    /// Upper bound of the bytes of the response, if it can be long and its length is known. A
    /// request that waits for another client needs no memory yet.
    pub(crate) fn response_len(&self) -> usize {
        match self {
            Self::QueryDirectory(step) => step.response_len(),
            _ => 0,
        }
    }

    /// Continues the request with the outcome of the operation that it waited for.
    pub(crate) fn resume(
        self,
        context: &mut Context<'_>,
        outcome: Outcome,
    ) -> Result<Progress<Self>, Status> {
        match self {
            Self::Create(step) => step.resume(context, outcome).map(Progress::widen),
            Self::Close(step) => step.resume(context, outcome).map(Progress::widen),
            Self::Flush(step) => step.resume(context, outcome).map(Progress::widen),
            Self::Read(step) => step.resume(context, outcome).map(Progress::widen),
            Self::Write(step) => step.resume(context, outcome).map(Progress::widen),
            Self::Ioctl(step) => step.resume(context, outcome).map(Progress::widen),
            Self::QueryDirectory(step) => step.resume(context, outcome).map(Progress::widen),
            Self::ChangeNotify(step) => step.resume(context, outcome).map(Progress::widen),
            Self::Lock(step) => step.resume(context, outcome).map(Progress::widen),
            Self::QueryInfo(step) => step.resume(context, outcome).map(Progress::widen),
            Self::SetInfo(step) => step.resume(context, outcome).map(Progress::widen),
            Self::Pipe(step) => step.resume(context, outcome).map(Progress::widen),
        }
    }
}

macro_rules! from_step {
    ($($variant:ident: $step:ty,)*) => {
        $(impl From<$step> for Step {
            fn from(step: $step) -> Self {
                Self::$variant(step)
            }
        })*
    };
}

from_step! {
    Create: create::Step,
    Close: close::Step,
    Flush: flush::Step,
    Read: read::Step,
    Write: write::Step,
    Ioctl: ioctl::Step,
    QueryDirectory: query_directory::Step,
    ChangeNotify: change_notify::Step,
    Lock: lock::Step,
    QueryInfo: query_info::Step,
    SetInfo: set_info::Step,
    Pipe: pipe::Step,
}

/// The step of a command that never waits, such as OPLOCK_BREAK.
impl From<Infallible> for Step {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Step")
    }
}
