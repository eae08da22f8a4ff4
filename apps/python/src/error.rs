//! Errors of the client as exceptions.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use smbeam_client::{Error, ErrorKind, Status};

/// The function `smbeam.errors.make`, which makes the exception.
static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Makes the exception for an error.
pub(crate) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let status = error.status();
    let parts = (
        kind_name(error.kind()),
        error.errno(),
        &*error.to_string(),
        path(error),
        status.map(|status| status.0),
        status.and_then(Status::name),
    );
    make(py, parts).map_or_else(|error| error, PyErr::from_value)
}

/// The arguments of `smbeam.errors.make`: the kind, the errno value, the message, the path, and the
/// NT status with its name.
type Parts<'a> = (
    &'a str,
    i32,
    &'a str,
    Option<&'a str>,
    Option<u32>,
    Option<&'a str>,
);

/// Makes an exception.
pub(crate) fn make<'py>(py: Python<'py>, parts: Parts<'_>) -> PyResult<Bound<'py, PyAny>> {
    let function = MAKE.get_or_try_init(py, || {
        let module = py.import("smbeam.errors")?;
        module.getattr("make").map(Bound::unbind)
    })?;
    function.bind(py).call1(parts)
}

/// The path that the error is about.
fn path(error: &Error) -> Option<&str> {
    match error {
        Error::Status { path, .. }
        | Error::TimedOut { path, .. }
        | Error::Lost { path, .. }
        | Error::Protocol { path, .. }
        | Error::Unsupported { path, .. }
        | Error::Canceled { path, .. }
        | Error::Forked { path, .. }
        | Error::Local { path, .. }
        | Error::InvalidName(path, _) => Some(path),
        _ => None,
    }
}

/// The name by which `smbeam.errors` finds the class of the exception.
fn kind_name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::InvalidInput => "invalid_input",
        ErrorKind::NotFound => "not_found",
        ErrorKind::AlreadyExists => "already_exists",
        ErrorKind::PermissionDenied => "permission_denied",
        ErrorKind::Busy => "busy",
        ErrorKind::DirectoryNotEmpty => "directory_not_empty",
        ErrorKind::WrongFileType => "wrong_file_type",
        ErrorKind::StorageFull => "storage_full",
        ErrorKind::Unreachable => "unreachable",
        ErrorKind::LoginFailed => "login_failed",
        ErrorKind::Untrusted => "untrusted",
        ErrorKind::TimedOut => "timed_out",
        ErrorKind::ConnectionLost => "connection_lost",
        ErrorKind::Canceled => "canceled",
        ErrorKind::Unsupported => "unsupported",
        ErrorKind::Protocol => "protocol",
        ErrorKind::Local => "local",
        _ => "other",
    }
}
