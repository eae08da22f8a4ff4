//! Listings of directories and trees.

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use pyo3::prelude::*;
use pyo3::types::PyList;
use smbeam_client::{Error, Share};

use crate::entry::Entry;

/// Number of directories that are listed at the same time, and of files that are removed.
pub(crate) const TOGETHER: usize = 16;

/// The entries of a directory that match a pattern with `*` and `?`.
pub(crate) async fn entries(share: &Share, path: &str, pattern: &str) -> Result<Vec<Entry>, Error> {
    let mut listing = share.read_dir(path, pattern).await?;
    let mut entries = Vec::new();
    while let Some(entry) = listing.next().await {
        let entry = entry?;
        let path = match path {
            "" => entry.name,
            path => format!("{path}/{}", entry.name),
        };
        entries.push(Entry::new(path, entry.metadata));
    }
    Ok(entries)
}

/// The entries of a directory and of the directories below it, down to `depth` levels. Links are
/// not followed. Sorted by path.
pub(crate) async fn tree(
    share: &Share,
    path: String,
    depth: Option<u32>,
) -> Result<Vec<(String, Vec<Entry>)>, Error> {
    let list = async |path: String, depth: u32| {
        let found = entries(share, &path, "").await;
        (path, depth, found)
    };
    let mut waiting = vec![(path, 1)];
    let mut running = FuturesUnordered::new();
    let mut tree = Vec::new();
    loop {
        while running.len() < TOGETHER
            && let Some((path, depth)) = waiting.pop()
        {
            running.push(list(path, depth));
        }
        let Some((path, level, found)) = running.next().await else {
            break;
        };
        let found = match found {
            // A directory that was removed since its parent was listed.
            Err(error) if error.is_not_found() && level > 1 => continue,
            found => found?,
        };
        if depth.is_none_or(|depth| level < depth) {
            let below = found.iter().filter(|entry| entry.is_real_directory());
            waiting.extend(below.map(|entry| (entry.path().to_owned(), level + 1)));
        }
        tree.push((path, found));
    }
    tree.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(tree)
}

/// The entries as a list of objects.
pub(crate) fn objects(py: Python<'_>, entries: Vec<Entry>) -> PyResult<Py<PyAny>> {
    let objects: PyResult<Vec<_>> = entries
        .into_iter()
        .map(|entry| Py::new(py, entry))
        .collect();
    Ok(PyList::new(py, objects?)?.into_any().unbind())
}
