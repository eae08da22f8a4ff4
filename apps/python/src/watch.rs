//! A watched directory.

use std::sync::Arc;

use futures_util::lock::Mutex;
use pyo3::prelude::*;
use smbeam_client::{Change, FileAction, Watch};

use crate::pending::Pending;

/// A watch of a directory.
#[pyclass(frozen, module = "smbeam._smbeam")]
pub(crate) struct RawWatch {
    watch: Arc<Mutex<Watch>>,
}

impl RawWatch {
    pub(crate) fn new(watch: Watch) -> Self {
        Self {
            watch: Arc::new(Mutex::new(watch)),
        }
    }
}

#[pymethods]
impl RawWatch {
    /// Waits for the next changes: a list of pairs of an action and a path relative to the watched
    /// directory.
    fn next(&self) -> Pending {
        let watch = Arc::clone(&self.watch);
        Pending::new(
            async move { watch.lock().await.next().await },
            |py, changes| {
                let pairs: Vec<_> = changes.into_iter().map(pair).collect();
                Ok(pairs.into_pyobject(py)?.into_any().unbind())
            },
        )
    }
}

fn pair(change: Change) -> (&'static str, String) {
    match change {
        Change::Name { action, path } => (name(action), path),
        Change::Overflow => ("overflow", String::new()),
    }
}

fn name(action: FileAction) -> &'static str {
    match action {
        FileAction::ADDED => "created",
        FileAction::REMOVED => "removed",
        FileAction::MODIFIED => "modified",
        FileAction::RENAMED_OLD_NAME => "renamed_from",
        FileAction::RENAMED_NEW_NAME => "renamed_to",
        _ => "other",
    }
}
