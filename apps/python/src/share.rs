//! A share: operations by path. Every method returns a [`Pending`] operation.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use smbeam_client::{
    Changes, Error, OpenOptions, SecurityDescriptor, SecurityInformation, Share, Watch,
    WriteOptions,
};

use crate::entry::Entry;
use crate::file::RawFile;
use crate::listing;
use crate::memory;
use crate::pending::Pending;
use crate::read_many::{self, Content};
use crate::sessions;
use crate::target::Target;
use crate::transfer::{self, Progress};
use crate::watch::RawWatch;

/// The queried parts of a security descriptor: owner, group and access control list.
const DESCRIPTOR: SecurityInformation = SecurityInformation(
    SecurityInformation::OWNER.0 | SecurityInformation::GROUP.0 | SecurityInformation::DACL.0,
);

/// A share of a server, by description. The process connects at the first operation.
#[pyclass(frozen, module = "smbeam._smbeam")]
pub(crate) struct RawShare {
    pub(crate) target: Arc<Target>,
}

impl RawShare {
    /// An operation on the connected share.
    fn with<T, F>(
        &self,
        work: impl FnOnce(Share) -> F + Send + 'static,
        convert: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Pending
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let target = Arc::clone(&self.target);
        let future = async move { work(sessions::share(&target).await?).await };
        Pending::new(future, convert)
    }

    /// An operation without a result.
    fn run<F>(&self, work: impl FnOnce(Share) -> F + Send + 'static) -> Pending
    where
        F: Future<Output = Result<(), Error>> + Send + 'static,
    {
        self.with(work, |py, ()| Ok(py.None()))
    }
}

#[pymethods]
impl RawShare {
    /// Connects, and reports what was negotiated.
    fn connect(&self) -> Pending {
        self.with(
            |share| async move { Ok(share) },
            |py, share| {
                let info = share.session().info();
                let values = PyDict::new(py);
                values.set_item("dialect", format!("{:?}", info.dialect))?;
                values.set_item("signed", info.is_signed)?;
                values.set_item("encrypted", info.is_encrypted)?;
                values.set_item("guest", info.is_guest)?;
                values.set_item("posix", info.posix)?;
                values.set_item("max_read", info.max_read)?;
                values.set_item("max_write", info.max_write)?;
                values.set_item("channels", info.channels.len())?;
                let cipher = info.cipher.map(|cipher| format!("{cipher:?}"));
                values.set_item("cipher", cipher)?;
                Ok(values.into_any().unbind())
            },
        )
    }

    /// Whether this process, or the one that it is a child of, has connected.
    #[getter]
    fn was_connected(&self) -> bool {
        self.target.was_connected.load(Ordering::Relaxed)
    }

    /// Says that the parent process has connected: a server that is not reachable is restarting.
    fn set_connected(&self) {
        self.target.was_connected.store(true, Ordering::Relaxed);
    }

    fn stat(&self, path: String, follow: bool) -> Pending {
        let of = path.clone();
        self.with(
            async move |share| match follow {
                true => share.metadata(&path).await,
                false => share.symlink_metadata(&path).await,
            },
            |py, metadata| Ok(Py::new(py, Entry::new(of, metadata))?.into_any()),
        )
    }

    /// The entries of a directory.
    fn list(&self, path: String, pattern: String) -> Pending {
        self.with(
            async move |share| listing::entries(&share, &path, &pattern).await,
            listing::objects,
        )
    }

    /// The entries of a directory and of all directories below it, down to `depth` levels: a list
    /// of pairs of a path and its entries.
    fn list_tree(&self, path: String, depth: Option<u32>) -> Pending {
        self.with(
            async move |share| listing::tree(&share, path, depth).await,
            |py, tree| {
                let list = PyList::empty(py);
                for (path, entries) in tree {
                    list.append((path, listing::objects(py, entries)?))?;
                }
                Ok(list.into_any().unbind())
            },
        )
    }

    /// Reads a whole file of about `expected` bytes.
    fn read(&self, path: String, expected: u32) -> Pending {
        self.with(
            async move |share| match share.read_small(&path, expected).await? {
                Some(bytes) => Ok(Content::Region(bytes)),
                None => read_many::read_large(&share, &path).await,
            },
            |py, content| content.into_object(py),
        )
    }

    /// Reads many whole files, each given by a path and its length, if the caller knows it. The
    /// result is a list with the bytes or an exception for each.
    fn read_many(&self, files: Vec<(String, Option<u32>)>) -> Pending {
        self.with(
            async move |share| Ok(read_many::read(&share, &files).await),
            |py, contents| Ok(PyList::new(py, contents)?.into_any().unbind()),
        )
    }

    /// Reads ranges of files into buffers, each given by path, offset and buffer. The result is a
    /// list with the count of bytes or an exception for each.
    fn read_ranges(&self, ranges: Vec<(String, u64, Bound<'_, PyAny>)>) -> PyResult<Pending> {
        let ranges: PyResult<Vec<_>> = ranges
            .into_iter()
            .map(|(path, offset, buffer)| Ok((path, offset, memory::writable(&buffer)?)))
            .collect();
        let ranges = ranges?;
        Ok(self.with(
            async move |share| Ok(read_many::read_ranges(&share, ranges).await),
            read_many::counts,
        ))
    }

    /// Writes a whole file.
    fn write(
        &self,
        path: String,
        data: &Bound<'_, PyAny>,
        create_new: bool,
        through: bool,
    ) -> PyResult<Pending> {
        let source = memory::readable(data)?;
        let options = WriteOptions::default()
            .create_new(create_new)
            .write_through(through);
        Ok(self.run(async move |share: Share| share.write(&path, source, &options).await))
    }

    fn mkdir(&self, path: String, parents: bool) -> Pending {
        self.run(async move |share: Share| match parents {
            true => share.create_dir_all(&path).await,
            false => share.create_dir(&path).await,
        })
    }

    fn rmdir(&self, path: String) -> Pending {
        self.run(async move |share: Share| share.remove_dir(&path).await)
    }

    fn remove(&self, path: String) -> Pending {
        self.run(async move |share: Share| share.remove_file(&path).await)
    }

    /// Removes many files at the same time; the first error counts.
    fn remove_many(&self, paths: Vec<String>) -> Pending {
        self.run(async move |share: Share| {
            let mut paths = paths.into_iter();
            let mut running = FuturesUnordered::new();
            let mut result = Ok(());
            loop {
                while running.len() < listing::TOGETHER
                    && let Some(path) = paths.next()
                {
                    let share = share.clone();
                    running.push(async move { share.remove_file(&path).await });
                }
                match running.next().await {
                    Some(removed) => result = result.and(removed),
                    None => return result,
                }
            }
        })
    }

    fn rename(&self, from: String, to: String, replace: bool) -> Pending {
        self.run(async move |share: Share| share.rename(&from, &to, replace).await)
    }

    /// Copies a file on the server, to this share or another one.
    fn copy(&self, from: String, to_share: &Self, to: String) -> Pending {
        let other = Arc::clone(&to_share.target);
        self.with(
            async move |share| {
                let other = sessions::share(&other).await?;
                share.copy(&from, &other, &to, &mut |_| {}).await
            },
            |py, count| Ok(count.into_pyobject(py)?.into_any().unbind()),
        )
    }

    /// Changes the times of a file; `None` keeps a time. The unit is seconds since 1970.
    fn set_times(&self, path: String, accessed: Option<f64>, modified: Option<f64>) -> Pending {
        let time = |seconds: f64| match std::time::Duration::try_from_secs_f64(seconds.abs()) {
            Ok(length) if seconds < 0.0 => std::time::UNIX_EPOCH.checked_sub(length),
            Ok(length) => std::time::UNIX_EPOCH.checked_add(length),
            Err(_) => None,
        };
        let mut changes = Changes::default();
        changes.accessed = accessed.and_then(time);
        changes.written = modified.and_then(time);
        self.run(async move |share: Share| share.set_metadata(&path, &changes).await)
    }

    /// The names and lengths of the streams of a file.
    fn streams(&self, path: String) -> Pending {
        self.with(
            async move |share| share.streams(&path).await,
            |py, streams| {
                let values = PyDict::new(py);
                for stream in streams {
                    values.set_item(stream.name, stream.size)?;
                }
                Ok(values.into_any().unbind())
            },
        )
    }

    /// Reads a whole stream.
    fn read_stream(&self, path: String, stream: String) -> Pending {
        self.with(
            async move |share| {
                let options = OpenOptions::new().read(true);
                let file = share.open_stream(&path, &stream, &options).await?;
                let len = usize::try_from(file.len().await?).unwrap_or(usize::MAX);
                let region = file.read(len, 0).await?;
                file.close().await?;
                Ok(region)
            },
            |py, region| memory::bytes(py, &region),
        )
    }

    /// Replaces the content of a stream, or creates it.
    fn write_stream(
        &self,
        path: String,
        stream: String,
        data: &Bound<'_, PyAny>,
    ) -> PyResult<Pending> {
        let source = memory::readable(data)?;
        Ok(self.run(async move |share: Share| {
            let options = OpenOptions::new().write(true).create(true).truncate(true);
            let file = share.open_stream(&path, &stream, &options).await?;
            file.write_at(source, 0).await.0?;
            file.close().await
        }))
    }

    fn remove_stream(&self, path: String, stream: String) -> Pending {
        self.run(async move |share: Share| share.remove_stream(&path, &stream).await)
    }

    /// The extended attributes of a file.
    fn attributes(&self, path: String) -> Pending {
        self.with(
            async move |share| share.extended_attributes(&path).await,
            |py, attributes| {
                let values = PyDict::new(py);
                for attribute in attributes {
                    let name = String::from_utf8_lossy(&attribute.name).into_owned();
                    values.set_item(name, PyBytes::new(py, &attribute.value))?;
                }
                Ok(values.into_any().unbind())
            },
        )
    }

    /// Sets an extended attribute; an empty value removes it.
    fn set_attribute(&self, path: String, name: String, value: Vec<u8>) -> Pending {
        let attribute = smbeam_client::ExtendedAttribute::new(name, value);
        self.run(async move |share: Share| {
            let attributes = [attribute];
            share.set_extended_attributes(&path, &attributes).await
        })
    }

    /// The security descriptor of a file, as SDDL.
    fn security(&self, path: String) -> Pending {
        self.with(
            async move |share| share.security(&path, DESCRIPTOR).await,
            |py, descriptor| Ok(descriptor.to_sddl().into_pyobject(py)?.into_any().unbind()),
        )
    }

    /// Replaces the access control list of a file, given as SDDL.
    fn set_security(&self, path: String, sddl: &str) -> PyResult<Pending> {
        let descriptor: SecurityDescriptor = sddl.parse().map_err(|error| {
            pyo3::exceptions::PyValueError::new_err(format!("{sddl:?} is not SDDL: {error}"))
        })?;
        Ok(self.run(async move |share: Share| {
            let parts = SecurityInformation::DACL;
            share.set_security(&path, parts, &descriptor).await
        }))
    }

    /// Size and free space of the volume in bytes.
    fn volume(&self, path: String) -> Pending {
        self.with(
            async move |share| share.volume_of(&path).await,
            |py, volume| {
                let sizes = (volume.total, volume.available, volume.free);
                Ok(sizes.into_pyobject(py)?.into_any().unbind())
            },
        )
    }

    fn symlink(&self, target: String, path: String, is_directory: bool) -> Pending {
        self.run(async move |share: Share| share.symlink(&target, &path, is_directory).await)
    }

    fn read_link(&self, path: String) -> Pending {
        self.with(
            async move |share| share.read_link(&path).await,
            |py, target| Ok(target.into_pyobject(py)?.into_any().unbind()),
        )
    }

    /// Downloads a file; `progress` is called with the count of bytes of each piece.
    fn download(&self, path: String, local: String, progress: Py<PyAny>) -> Pending {
        let progress = Progress::new(progress);
        self.with(
            async move |share| transfer::get(&share, &path, &local, progress).await,
            transfer::count,
        )
    }

    /// Uploads a file; `progress` is called with the count of bytes of each piece.
    fn upload(
        &self,
        local: String,
        path: String,
        create_new: bool,
        progress: Py<PyAny>,
    ) -> Pending {
        let progress = Progress::new(progress);
        self.with(
            async move |share| transfer::put(&share, &local, &path, create_new, progress).await,
            transfer::count,
        )
    }

    /// Opens a file. `mode` is that of the built-in function, without `b` and `t`.
    fn open(&self, path: String, mode: &str, through: bool) -> PyResult<Pending> {
        let file = RawFile::new(&self.target, path, mode, through)?;
        Ok(Pending::new(
            async move {
                file.open().await?;
                Ok(file)
            },
            |py, file| Ok(Py::new(py, file)?.into_any()),
        ))
    }

    /// Watches a directory for changes.
    fn watch(&self, path: String, recursive: bool) -> Pending {
        self.with(
            async move |share| share.watch(&path, recursive, Watch::USUAL).await,
            |py, watch| Ok(Py::new(py, RawWatch::new(watch))?.into_any()),
        )
    }
}
