//! Reads of many files, or of many ranges of files, at the same time.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::FutureExt as _;
use futures_util::StreamExt as _;
use futures_util::future::{BoxFuture, Shared};
use futures_util::stream::{self, FuturesOrdered};
use pyo3::prelude::*;
use pyo3::types::PyList;
use smbeam_client::{Error, File, OpenOptions, Region, Share};

use crate::error::exception;
use crate::memory::{bytes, new_bytes, shortened};

/// Number of files that are requested in one go.
const BATCH: usize = 32;
/// Number of batches that are in flight. Their messages fill the depth of the session while another
/// batch becomes objects.
const BATCHES: usize = 4;
/// Number of files of the first batch, which shows how long the others may be.
const PROBE: usize = 8;
/// Estimates of lengths are multiples of this count of bytes.
const PAGE: u32 = 4 << 10;
/// From this length in bytes on, a file does not fit into a message with others.
const SMALL: u32 = 1 << 20;
/// Number of large files that are read at the same time.
const LARGE: usize = 4;
/// Longest file in bytes for which memory is allocated before data arrive.
const AT_ONCE: usize = 4 << 30;
/// Number of ranges that are read at the same time. The ranges of one file share its requests.
const RANGES: usize = 64;

/// Reads whole files, each given by a path and its length, if the caller knows it. Returns `bytes`
/// and exceptions. While the results of one batch arrive, the next batch is requested. Each batch
/// becomes objects at once, so that the client uses its memory again for the next one.
pub(crate) async fn read(share: &Share, files: &[(String, Option<u32>)]) -> Vec<Py<PyAny>> {
    share.announce(files.len());
    let estimate = Estimate::default();
    let (probe, others) = files.split_at(files.len().min(PROBE));
    let mut results = Vec::with_capacity(files.len());
    objects_of(read_batch(share, probe, &estimate).await, &mut results);
    let mut batches = others.chunks(BATCH);
    let mut running = FuturesOrdered::new();
    loop {
        while running.len() < BATCHES
            && let Some(batch) = batches.next()
        {
            running.push_back(read_batch(share, batch, &estimate));
        }
        match running.next().await {
            Some(batch) => objects_of(batch, &mut results),
            None => return results,
        }
    }
}

fn objects_of(batch: Vec<Result<Content, Error>>, results: &mut Vec<Py<PyAny>>) {
    Python::attach(|py| {
        results.extend(batch.into_iter().map(|result| {
            match result {
                Ok(content) => content
                    .into_object(py)
                    .unwrap_or_else(|error| error.into_value(py).into_any()),
                Err(error) => exception(py, &error).into_value(py).into_any(),
            }
        }));
    });
}

/// Length in bytes of files that came without a length: that of the longest small file of the last
/// batch, or that of a large file if there was no small one. Files of one directory often have
/// similar lengths, and a listing of the directory can take longer than the files.
struct Estimate(AtomicU32);

impl Default for Estimate {
    /// The estimate before the first batch: the files are small.
    fn default() -> Self {
        Self(AtomicU32::new(SMALL - 1))
    }
}

impl Estimate {
    fn of(&self, len: Option<u32>) -> u32 {
        len.unwrap_or_else(|| self.0.load(Ordering::Relaxed))
    }

    /// Learns from the lengths of the files of a batch.
    fn learn(&self, lengths: impl Iterator<Item = usize>) {
        let lengths = lengths.map(|len| u32::try_from(len).unwrap_or(u32::MAX).min(SMALL));
        // Small files come before large ones.
        if let Some(len) = lengths.max_by_key(|len| (*len < SMALL, *len)) {
            // Files that are little longer are whole, too.
            let with_margin = len.max(1).next_multiple_of(PAGE);
            let limit = if len < SMALL { SMALL - 1 } else { SMALL };
            self.0.store(with_margin.min(limit), Ordering::Relaxed);
        }
    }
}

/// The content of a file: in memory of the client, or as an object.
pub(crate) enum Content {
    Region(Region),
    Object(Py<PyAny>, usize),
}

impl Content {
    fn len(&self) -> usize {
        match self {
            Self::Region(region) => region.len(),
            Self::Object(_, len) => *len,
        }
    }

    pub(crate) fn into_object(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self {
            Self::Region(region) => bytes(py, &region),
            Self::Object(object, _) => Ok(object),
        }
    }
}

/// Reads small files several per message, and large ones at the same time.
async fn read_batch(
    share: &Share,
    files: &[(String, Option<u32>)],
    estimate: &Estimate,
) -> Vec<Result<Content, Error>> {
    let files: Vec<_> = files
        .iter()
        .map(|(path, len)| (&**path, estimate.of(*len)))
        .collect();
    let small: Vec<_> = files
        .iter()
        .filter(|(_, len)| *len < SMALL)
        .copied()
        .collect();
    let mut small = share.read_each_small(&small).await.into_iter();
    let results = files.iter().map(|(path, len)| {
        let read = match *len < SMALL {
            true => small.next().expect("one result for each file"),
            false => Ok(None),
        };
        async move {
            match read? {
                Some(bytes) => Ok(Content::Region(bytes)),
                None => read_large(share, path).await,
            }
        }
    });
    let results: Vec<_> = results.collect();
    let contents: Vec<_> = stream::iter(results).buffered(LARGE).collect().await;
    estimate.learn(contents.iter().flatten().map(Content::len));
    contents
}

/// Reads a large file through an open, straight into an object.
pub(crate) async fn read_large(share: &Share, path: &str) -> Result<Content, Error> {
    let options = OpenOptions::new().read(true).directory(false);
    let file = share.open(path, &options).await?;
    let len = usize::try_from(file.opened_metadata().size).unwrap_or(usize::MAX);
    let memory = (len <= AT_ONCE).then(|| Python::attach(|py| new_bytes(py, len)).ok());
    let content = match memory.flatten() {
        Some((object, region)) => {
            let count = file.read_at(region, 0).await.0?;
            let object = Python::attach(|py| shortened(py, object, count));
            let object =
                object.map_err(|error| Error::local("read", path, io::Error::other(error)))?;
            Content::Object(object, count)
        }
        // The server may lie about the length, so the memory grows as data arrive.
        None => Content::Region(share.read(path).await?.into()),
    };
    file.close().await?;
    Ok(content)
}

/// A file that is opened once for all of its ranges.
type Opening = Shared<BoxFuture<'static, Result<Arc<File>, Error>>>;

/// Reads ranges of files into memory. Each file is opened once, and
/// stays open until its last range is read.
pub(crate) async fn read_ranges(
    share: &Share,
    ranges: Vec<(String, u64, Region)>,
) -> Vec<Result<usize, Error>> {
    let mut files: HashMap<String, Opening> = HashMap::new();
    let mut reads = Vec::with_capacity(ranges.len());
    for (path, offset, region) in ranges {
        let opening = files.entry(path).or_insert_with_key(|path| {
            let (share, path) = (share.clone(), path.clone());
            let open = async move {
                let options = OpenOptions::new().read(true).directory(false);
                share.open(&path, &options).await.map(Arc::new)
            };
            open.boxed().shared()
        });
        let opening = opening.clone();
        reads.push(async move {
            let file = opening.await?;
            file.read_at(region, offset).await.0
        });
    }
    // Each read holds its file, which closes after the last of them.
    drop(files);
    stream::iter(reads).buffered(RANGES).collect().await
}

/// The counts as a list of numbers and exceptions.
pub(crate) fn counts(py: Python<'_>, results: Vec<Result<usize, Error>>) -> PyResult<Py<PyAny>> {
    let list = PyList::empty(py);
    for result in results {
        match result {
            Ok(count) => list.append(count)?,
            Err(error) => list.append(exception(py, &error))?,
        }
    }
    Ok(list.into_any().unbind())
}
