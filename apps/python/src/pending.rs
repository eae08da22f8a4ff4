//! An operation that has not finished: a future of the client, and the conversion of its output.
//!
//! A thread waits for it, an event loop polls it (`event_loop.rs`), or the background thread
//! (`background.rs`) runs it ahead of its caller.

use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use smbeam_client::{Error, Wait as _};

use crate::background;
use crate::error::exception;
use crate::memory::release_ended;
use crate::work::{Convert, Work};

/// Time between two looks at signals while a thread waits.
const SIGNALS: Duration = Duration::from_millis(100);

/// An operation. It starts when a thread waits for it, when an event loop takes it, or by
/// [`start`](Self::start).
#[pyclass(frozen, module = "smbeam._smbeam")]
pub(crate) struct Pending {
    work: Mutex<Option<Work>>,
}

impl Pending {
    /// Makes an operation of a future and of the conversion of its output.
    pub(crate) fn new<T, F, C>(future: F, convert: C) -> Self
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
        C: FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    {
        let work = async move {
            let result = future.await;
            let convert: Convert = Box::new(move |py| match result {
                Ok(value) => convert(py, value),
                Err(error) => Err(exception(py, &error)),
            });
            convert
        };
        Self {
            work: Mutex::new(Some(Box::pin(work))),
        }
    }

    /// Makes an operation without a result.
    pub(crate) fn of_nothing<F>(future: F) -> Self
    where
        F: Future<Output = Result<(), Error>> + Send + 'static,
    {
        Self::new(future, |py, ()| Ok(py.None()))
    }

    /// Takes the future.
    pub(crate) fn take(&self) -> PyResult<Work> {
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = work.take();
        taken.ok_or_else(|| PyRuntimeError::new_err("the operation was already awaited"))
    }
}

#[pymethods]
impl Pending {
    /// Waits for the end of the operation and returns its result. Signals are handled meanwhile.
    fn wait(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let work = self.take()?;
        let convert = wait(py, work)?;
        finish(py, convert)
    }

    /// Runs the operation on the background thread, and returns this object.
    fn start(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        let started = background::start(slf.get().take()?)?;
        let mut work = slf
            .get()
            .work
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *work = Some(started);
        drop(work);
        Ok(slf)
    }
}

/// Converts the output of a future, and ends the exports of memory of finished operations.
pub(crate) fn finish(py: Python<'_>, convert: Convert) -> PyResult<Py<PyAny>> {
    let result = convert(py);
    release_ended(py);
    result
}

/// Runs a future to its end on this thread. Other threads of the interpreter run meanwhile.
///
/// # Errors
/// The exception of a signal handler, such as `KeyboardInterrupt`.
pub(crate) fn wait<F>(py: Python<'_>, mut future: F) -> PyResult<F::Output>
where
    F: Future + Unpin + Send,
    F::Output: Send,
{
    loop {
        if let Some(output) = py.detach(|| future.wait_for(SIGNALS)) {
            return Ok(output);
        }
        py.check_signals()?;
    }
}
