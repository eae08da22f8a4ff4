//! Transfers of whole files between a share and this machine.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use pyo3::prelude::*;
use smbeam_client::transfer::{LocalFile, TransferOptions, download, upload};
use smbeam_client::{Error, OpenOptions, Share};

/// The function that is called with the count of bytes of each piece.
pub(crate) struct Progress {
    function: Py<PyAny>,
    /// The exception of the function. It is raised after the transfer.
    failure: Option<PyErr>,
}

impl Progress {
    pub(crate) fn new(function: Py<PyAny>) -> Self {
        Self {
            function,
            failure: None,
        }
    }

    fn report(&mut self, count: u64) {
        if self.failure.is_none() {
            let called = Python::attach(|py| self.function.call1(py, (count,)).map(drop));
            self.failure = called.err();
        }
    }
}

/// Downloads a file, in place of a local one. Returns the count of bytes.
pub(crate) async fn get(
    share: &Share,
    path: &str,
    local: &str,
    mut progress: Progress,
) -> Result<(u64, Option<PyErr>), Error> {
    let options = OpenOptions::new().read(true).directory(false);
    let file = share.open(path, &options).await?;
    let target = fs::File::create(Path::new(local));
    let target = target.map_err(|error| Error::local("create", local, error))?;
    let size = file.len().await?;
    let mut sink = LocalFile::from(target);
    let plan = TransferOptions::new();
    let count = download(&file, 0..size, &mut sink, &plan, &mut |count| {
        progress.report(count);
    })
    .await?;
    file.close().await?;
    Ok((count, progress.failure))
}

/// Uploads a local file, in place of one of the share. Returns the count of bytes.
pub(crate) async fn put(
    share: &Share,
    local: &str,
    path: &str,
    create_new: bool,
    mut progress: Progress,
) -> Result<(u64, Option<PyErr>), Error> {
    let failed = |error| Error::local("read", local, error);
    let source = fs::File::open(Path::new(local)).map_err(failed)?;
    let size = source.metadata().map_err(failed)?.len();
    let options = OpenOptions::new()
        .write(true)
        .create(!create_new)
        .truncate(!create_new)
        .create_new(create_new)
        .directory(false);
    let file = share.open(path, &options).await?;
    let mut source = LocalFile(Arc::new(source));
    let plan = TransferOptions::new();
    let count = upload(&file, 0..size, &mut source, &plan, &mut |count| {
        progress.report(count);
    })
    .await?;
    file.close().await?;
    Ok((count, progress.failure))
}

/// The count, or the exception of the progress function.
pub(crate) fn count(py: Python<'_>, (count, failure): (u64, Option<PyErr>)) -> PyResult<Py<PyAny>> {
    match failure {
        Some(failure) => Err(failure),
        None => Ok(count.into_pyobject(py)?.into_any().unbind()),
    }
}
