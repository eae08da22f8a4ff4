//! The thread that runs operations ahead of their callers.

use futures_executor::ThreadPool;
use futures_util::FutureExt as _;
use pyo3::prelude::*;

use crate::per_process::PerProcess;
use crate::work::Work;

static POOL: PerProcess<Option<ThreadPool>> = PerProcess::new();

/// Starts an operation. The returned future completes when the operation has finished; dropping it
/// cancels the operation.
pub(crate) fn start(work: Work) -> PyResult<Work> {
    let pool = POOL.get_or_init(|| {
        let mut builder = ThreadPool::builder();
        builder.pool_size(1).name_prefix("smbeam-ahead-");
        builder.create().ok()
    });
    let Some(pool) = pool else {
        let why = "the system refuses a thread";
        return Err(pyo3::exceptions::PyOSError::new_err(why));
    };
    let (remote, handle) = work.remote_handle();
    pool.spawn_ok(remote);
    Ok(Box::pin(handle))
}
