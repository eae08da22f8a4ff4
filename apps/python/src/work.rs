//! The future of an operation, and the conversion of its output to an object.

use std::pin::Pin;

use pyo3::prelude::*;

/// Converts the output of a future to an object.
pub(crate) type Convert = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;
/// The future of an operation.
pub(crate) type Work = Pin<Box<dyn Future<Output = Convert> + Send>>;
