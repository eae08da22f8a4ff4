//! An open file. It has a position, and its sequential reads and writes are ahead of the caller.
//!
//! A child process opens the file again at its first operation, and continues at the position that
//! the file had at the fork.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::io::{AsyncReadExt as _, AsyncSeekExt as _, AsyncWriteExt as _, SeekFrom};
use futures_util::lock::{Mutex, MutexGuard};
use pyo3::prelude::*;
use smbeam_client::{Error, File, FileReader, FileWriter, Region, Source};

use crate::memory;
use crate::mode::Mode;
use crate::pending::Pending;
use crate::per_process::PerProcess;
use crate::sessions;
use crate::target::Target;

/// From this length in bytes on, a read or write goes from or to the memory of the caller. Shorter
/// ones in sequence pass through the memory of the reader or writer, which works ahead.
const DIRECT: usize = 4 << 20;
/// From this length in bytes on, the first read of a file starts the reader.
const EAGER: usize = 256 << 10;

/// A file of a share.
#[pyclass(frozen, module = "smbeam._smbeam")]
pub(crate) struct RawFile {
    inner: Arc<Inner>,
}

struct Inner {
    target: Arc<Target>,
    path: String,
    mode: Mode,
    through: bool,
    /// Offset of the next byte to read or write.
    position: AtomicU64,
    state: PerProcess<Mutex<State>>,
}

#[derive(Default)]
struct State {
    file: Option<File>,
    reader: Option<FileReader>,
    writer: Option<FileWriter>,
    /// End of the last read.
    last_end: u64,
    is_closed: bool,
}

/// An error of the traits of the standard library: mostly one of the client inside.
fn unwrapped(path: &str, error: std::io::Error) -> Error {
    let inner = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<Error>());
    match inner {
        Some(inner) => inner.clone(),
        None => Error::local("access", path, error),
    }
}

impl Inner {
    async fn state(&self) -> MutexGuard<'_, State> {
        self.state.get_or_init(Mutex::default).lock().await
    }

    /// The open file of this process. Opens it if this process has not.
    async fn file(&self, state: &mut State) -> Result<File, Error> {
        if let Some(file) = &state.file {
            return Ok(file.clone());
        }
        if state.is_closed {
            let closed = std::io::Error::other("the file is closed");
            return Err(Error::local("access", &self.path, closed));
        }
        let share = sessions::share(&self.target).await?;
        let options = self.mode.options().write_through(self.through);
        let file = share.open(&self.path, &options).await?;
        self.mode.set_opened();
        state.file = Some(file.clone());
        Ok(file)
    }

    fn position(&self) -> u64 {
        self.position.load(Ordering::Relaxed)
    }

    /// Reads from the position until the region is full or the file ends.
    async fn read(&self, mut region: Region) -> Result<(usize, Region), Error> {
        let mut state = self.state().await;
        let file = self.file(&mut state).await?;
        self.settle(&mut state).await?;
        let position = self.position();
        let len = region.len();
        let has_more = position + (len as u64) < file.opened_metadata().size;
        let is_sequence = state.last_end == position && (position > 0 || len >= EAGER);
        let count = if len < DIRECT && has_more && is_sequence {
            self.read_ahead(&mut state, &file, &mut region).await?
        } else {
            state.reader = None;
            let (count, back) = self
                .read_once_more(&mut state, file, position, region)
                .await?;
            region = back;
            count
        };
        state.last_end = position + count as u64;
        self.position.store(state.last_end, Ordering::Relaxed);
        Ok((count, region))
    }

    /// Reads through the reader.
    async fn read_ahead(
        &self,
        state: &mut State,
        file: &File,
        region: &mut Region,
    ) -> Result<usize, Error> {
        let reader = state.reader.get_or_insert_with(|| file.reader());
        // A new reader is at the first byte.
        let seek = reader.seek(SeekFrom::Start(self.position())).await;
        seek.map_err(|error| unwrapped(&self.path, error))?;
        let mut count = 0;
        while count < region.len() {
            match reader.read(&mut region[count..]).await {
                Ok(0) => break,
                Ok(more) => count += more,
                Err(error) => return Err(unwrapped(&self.path, error)),
            }
        }
        Ok(count)
    }

    /// Reads at an offset. A file that was open for reading only is opened again if its session is
    /// lost.
    async fn read_once_more(
        &self,
        state: &mut State,
        file: File,
        offset: u64,
        region: Region,
    ) -> Result<(usize, Region), Error> {
        let (result, region) = file.read_at(region, offset).await;
        match result {
            Err(error) if error.is_lost() && !self.mode.writes() => {
                state.file = None;
                let file = self.file(state).await?;
                let (result, region) = file.read_at(region, offset).await;
                Ok((result?, region))
            }
            result => Ok((result?, region)),
        }
    }

    /// Reads at an offset without a change of the position. Several such reads run at a time.
    async fn read_at(&self, offset: u64, region: Region) -> Result<(usize, Region), Error> {
        let file = {
            let mut state = self.state().await;
            let file = self.file(&mut state).await?;
            self.settle(&mut state).await?;
            file
        };
        let (result, region) = file.read_at(region, offset).await;
        match result {
            Err(error) if error.is_lost() && !self.mode.writes() => {
                let mut state = self.state().await;
                let file = self.file(&mut state).await?;
                self.read_once_more(&mut state, file, offset, region).await
            }
            result => Ok((result?, region)),
        }
    }

    /// Writes all bytes at the position.
    async fn write(&self, source: Source) -> Result<usize, Error> {
        let mut state = self.state().await;
        let file = self.file(&mut state).await?;
        state.reader = None;
        let count = source.len();
        let position = self.position();
        if count >= DIRECT && !self.mode.appends() {
            self.settle(&mut state).await?;
            file.write_at(source, position).await.0?;
        } else {
            let failed = |error| unwrapped(&self.path, error);
            if state.writer.is_none() {
                let mut writer = file.writer()?;
                if !self.mode.appends() {
                    writer
                        .seek(SeekFrom::Start(position))
                        .await
                        .map_err(failed)?;
                }
                state.writer = Some(writer);
            }
            let writer = state.writer.as_mut().expect("just made");
            writer.write_all(&source).await.map_err(failed)?;
        }
        self.position
            .store(position + count as u64, Ordering::Relaxed);
        Ok(count)
    }

    /// Waits for the writes behind the caller.
    async fn settle(&self, state: &mut State) -> Result<(), Error> {
        let Some(mut writer) = state.writer.take() else {
            return Ok(());
        };
        let flushed = writer.flush().await;
        flushed.map_err(|error| unwrapped(&self.path, error))
    }

    async fn flush(&self, to_disk: bool) -> Result<(), Error> {
        let mut state = self.state().await;
        self.settle(&mut state).await?;
        match &state.file {
            Some(file) if to_disk => file.sync().await,
            _ => Ok(()),
        }
    }

    async fn size(&self) -> Result<u64, Error> {
        let mut state = self.state().await;
        let file = self.file(&mut state).await?;
        self.settle(&mut state).await?;
        let opened = file.opened_metadata().size;
        match self.mode.writes() || self.position() >= opened {
            true => file.len().await,
            false => Ok(opened),
        }
    }

    async fn truncate(&self, len: u64) -> Result<(), Error> {
        let mut state = self.state().await;
        let file = self.file(&mut state).await?;
        self.settle(&mut state).await?;
        state.reader = None;
        file.set_len(len).await
    }

    async fn close(&self) -> Result<(), Error> {
        let mut state = self.state().await;
        if state.is_closed {
            return Ok(());
        }
        state.is_closed = true;
        let settled = self.settle(&mut state).await;
        state.reader = None;
        match state.file.take() {
            Some(file) => settled.and(file.close().await),
            None => settled,
        }
    }
}

impl RawFile {
    pub(crate) fn new(
        target: &Arc<Target>,
        path: String,
        mode: &str,
        through: bool,
    ) -> PyResult<Self> {
        let inner = Inner {
            target: Arc::clone(target),
            path,
            mode: Mode::parse(mode)?,
            through,
            position: AtomicU64::new(0),
            state: PerProcess::new(),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Opens the file now.
    pub(crate) async fn open(&self) -> Result<(), Error> {
        let mut state = self.inner.state().await;
        let file = self.inner.file(&mut state).await?;
        if self.inner.mode.appends() {
            let len = file.len().await?;
            self.inner.position.store(len, Ordering::Relaxed);
        }
        Ok(())
    }
}

#[pymethods]
impl RawFile {
    /// Reads into a buffer from the position on; the result is the count of bytes.
    fn readinto(&self, buffer: &Bound<'_, PyAny>) -> PyResult<Pending> {
        let region = memory::writable(buffer)?;
        let inner = Arc::clone(&self.inner);
        Ok(Pending::new(
            async move { inner.read(region).await.map(|(count, _)| count) },
            |py, count| Ok(count.into_pyobject(py)?.into_any().unbind()),
        ))
    }

    /// Reads up to `len` bytes from the position on.
    fn read(&self, py: Python<'_>, len: usize) -> PyResult<Pending> {
        let (object, region) = memory::new_bytes(py, len)?;
        let inner = Arc::clone(&self.inner);
        Ok(Pending::new(
            async move { inner.read(region).await.map(|(count, _)| count) },
            move |py, count| memory::shortened(py, object, count),
        ))
    }

    /// Reads into a buffer from `offset` on; the position stays.
    fn readinto_at(&self, offset: u64, buffer: &Bound<'_, PyAny>) -> PyResult<Pending> {
        let region = memory::writable(buffer)?;
        let inner = Arc::clone(&self.inner);
        Ok(Pending::new(
            async move { inner.read_at(offset, region).await.map(|(count, _)| count) },
            |py, count| Ok(count.into_pyobject(py)?.into_any().unbind()),
        ))
    }

    /// Reads up to `len` bytes from `offset` on; the position stays.
    fn read_at(&self, py: Python<'_>, offset: u64, len: usize) -> PyResult<Pending> {
        let (object, region) = memory::new_bytes(py, len)?;
        let inner = Arc::clone(&self.inner);
        Ok(Pending::new(
            async move { inner.read_at(offset, region).await.map(|(count, _)| count) },
            move |py, count| memory::shortened(py, object, count),
        ))
    }

    /// Writes all bytes of a buffer at the position; the result is their count.
    fn write(&self, data: &Bound<'_, PyAny>) -> PyResult<Pending> {
        let source = memory::readable(data)?;
        let inner = Arc::clone(&self.inner);
        Ok(Pending::new(
            async move { inner.write(source).await },
            |py, count| Ok(count.into_pyobject(py)?.into_any().unbind()),
        ))
    }

    /// Waits until the server has all written bytes; `to_disk` waits for stable storage.
    fn flush(&self, to_disk: bool) -> Pending {
        let inner = Arc::clone(&self.inner);
        Pending::of_nothing(async move { inner.flush(to_disk).await })
    }

    fn truncate(&self, len: u64) -> Pending {
        let inner = Arc::clone(&self.inner);
        Pending::of_nothing(async move { inner.truncate(len).await })
    }

    /// Length of the file in bytes. That of a file which is open for reading only is the one at
    /// the open, until the position reaches it: another program may have written more since.
    fn size(&self) -> Pending {
        let inner = Arc::clone(&self.inner);
        Pending::new(async move { inner.size().await }, |py, size| {
            Ok(size.into_pyobject(py)?.into_any().unbind())
        })
    }

    fn close(&self) -> Pending {
        let inner = Arc::clone(&self.inner);
        Pending::of_nothing(async move { inner.close().await })
    }

    /// Offset of the next byte to read or write.
    #[getter]
    fn get_position(&self) -> u64 {
        self.inner.position()
    }

    /// Sets the position. Writes at the old one are not affected.
    fn seek(&self, position: u64) -> Pending {
        let inner = Arc::clone(&self.inner);
        Pending::of_nothing(async move {
            let mut state = inner.state().await;
            if inner.position() != position {
                inner.settle(&mut state).await?;
                inner.position.store(position, Ordering::Relaxed);
            }
            Ok(())
        })
    }
}
