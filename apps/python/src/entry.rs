//! Metadata of a file or directory as an object.

use std::time::{SystemTime, UNIX_EPOCH};

use pyo3::prelude::*;
use smbeam_client::{FileAttributes, Metadata};

/// Nanoseconds since 1970; negative before.
fn nanoseconds(time: SystemTime) -> i64 {
    let of = |duration: std::time::Duration| i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => of(since),
        Err(before) => -of(before.duration()),
    }
}

fn seconds(time: SystemTime) -> f64 {
    nanoseconds(time) as f64 / 1e9
}

/// A file or directory: its name and metadata.
#[pyclass(frozen, module = "smbeam")]
pub(crate) struct Entry {
    /// Name within its directory.
    #[pyo3(get)]
    name: String,
    /// Path relative to the root of the share.
    #[pyo3(get)]
    path: String,
    metadata: Metadata,
}

impl Entry {
    pub(crate) fn new(path: String, metadata: Metadata) -> Self {
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        Self {
            name,
            path,
            metadata,
        }
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Whether this is a directory and not a link to one.
    pub(crate) fn is_real_directory(&self) -> bool {
        self.metadata.is_dir() && !self.metadata.is_link()
    }
}

#[pymethods]
impl Entry {
    #[getter]
    fn size(&self) -> u64 {
        self.metadata.size
    }

    #[getter]
    fn allocation(&self) -> u64 {
        self.metadata.allocation
    }

    #[getter]
    fn created(&self) -> f64 {
        seconds(self.metadata.created)
    }

    #[getter]
    fn accessed(&self) -> f64 {
        seconds(self.metadata.accessed)
    }

    #[getter]
    fn modified(&self) -> f64 {
        seconds(self.metadata.written)
    }

    #[getter]
    fn changed(&self) -> f64 {
        seconds(self.metadata.changed)
    }

    #[getter]
    fn modified_ns(&self) -> i64 {
        nanoseconds(self.metadata.written)
    }

    #[getter]
    fn created_ns(&self) -> i64 {
        nanoseconds(self.metadata.created)
    }

    #[getter]
    fn attributes(&self) -> u32 {
        self.metadata.attributes.0
    }

    #[getter]
    fn is_dir(&self) -> bool {
        self.metadata.is_dir()
    }

    #[getter]
    fn is_file(&self) -> bool {
        !self.metadata.is_dir() && !self.metadata.is_link()
    }

    #[getter]
    fn is_link(&self) -> bool {
        self.metadata.is_link()
    }

    #[getter]
    fn is_hidden(&self) -> bool {
        self.metadata.attributes.contains(FileAttributes::HIDDEN)
    }

    #[getter]
    fn file_id(&self) -> Option<u64> {
        self.metadata.file_id
    }

    #[getter]
    fn links(&self) -> Option<u32> {
        self.metadata.links
    }

    #[getter]
    fn mode(&self) -> Option<u32> {
        self.metadata.unix.map(|unix| unix.permissions())
    }

    #[getter]
    fn uid(&self) -> Option<u32> {
        self.metadata.unix.and_then(|unix| unix.uid())
    }

    #[getter]
    fn gid(&self) -> Option<u32> {
        self.metadata.unix.and_then(|unix| unix.gid())
    }

    fn __repr__(&self) -> String {
        let kind = match self.metadata.is_dir() {
            true => "directory",
            false => "file",
        };
        format!(
            "<Entry {:?}: {kind}, {} bytes>",
            self.path, self.metadata.size
        )
    }
}
