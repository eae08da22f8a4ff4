//! Files of a directory on a server, reached by the client of smbeam.

use std::sync::Mutex;

use anyhow::{Context as _, Result, ensure};
use futures_util::future::{join_all, try_join_all};
use smbeam_client::transfer::{Source, TransferOptions, download, upload};
use smbeam_client::{Error, File, OpenOptions, Region, Share, Status, Wait as _, WriteOptions};

use super::access::{Check, Entry, Extent, Fill, Reader, Writer};
use crate::bench::cpu;
use crate::bench::run::session_line;
use crate::bench::session_factory::SessionFactory;
use crate::bench::test_files::ends_of;
use crate::mutex::lock;

/// Longest file in bytes that shares a message with others: see `Share::read_each`.
const SMALL: u64 = 1 << 20;

/// A directory on a server, with one session for each worker or rank.
pub(crate) struct RemoteStore {
    factory: SessionFactory,
    shares: Mutex<Vec<Option<Share>>>,
}

impl std::fmt::Debug for RemoteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RemoteStore({})", self.factory.url)
    }
}

impl RemoteStore {
    pub(super) fn new(factory: SessionFactory) -> Self {
        let shares = Mutex::default();
        Self { factory, shares }
    }

    /// The share on the session with this number. Logs in if there is none.
    fn share(&self, session: usize) -> Result<Share> {
        let mut shares = lock(&self.shares);
        if shares.len() <= session {
            shares.resize_with(session + 1, || None);
        }
        if let Some(share) = &shares[session] {
            return Ok(share.clone());
        }
        let share = self.factory.share().wait()?;
        shares[session] = Some(share.clone());
        Ok(share)
    }

    /// The path on the share.
    fn path(&self, path: &str) -> String {
        joined(&self.factory.url.path, path)
    }

    pub(super) fn create_dir(&self, path: &str) -> Result<()> {
        Ok(self.share(0)?.create_dir_all(&self.path(path)).wait()?)
    }

    pub(super) fn list(&self, path: &str) -> Result<Vec<Entry>> {
        let share = self.share(0)?;
        let entries = match share.read_dir_without_ids(&self.path(path), "*").wait() {
            Err(error) if is_missing(&error) => return Ok(Vec::new()),
            entries => entries?,
        };
        let entries = entries.blocking().map(|entry| {
            let entry = entry?;
            Ok(Entry {
                size: entry.metadata.size,
                is_directory: entry.metadata.is_dir(),
                name: entry.name,
            })
        });
        entries.collect()
    }

    pub(super) fn read_small(&self, path: &str) -> Result<Option<Vec<u8>>> {
        match self.share(0)?.read(&self.path(path)).wait() {
            Err(error) if is_missing(&error) => Ok(None),
            bytes => Ok(Some(bytes?)),
        }
    }

    pub(super) fn write(&self, path: &str, bytes: Vec<u8>, session: usize) -> Result<Vec<u8>> {
        let (share, path) = (self.share(session)?, self.path(path));
        if bytes.len() as u64 <= SMALL {
            share
                .write(&path, bytes.clone(), &WriteOptions::default())
                .wait()?;
            return Ok(bytes);
        }
        let file = share.open(&path, &new_file()).wait()?;
        let (result, bytes) = file.write_at(bytes, 0).wait();
        result?;
        file.close().wait()?;
        Ok(bytes)
    }

    pub(super) fn remove_dir(&self, path: &str) -> Result<()> {
        let share = self.share(0)?;
        let directory = self.path(path);
        for entry in self.list(path)? {
            share.remove_file(&joined(&directory, &entry.name)).wait()?;
        }
        Ok(share.remove_dir(&directory).wait()?)
    }

    pub(super) fn files(&self, session: usize) -> Result<RemoteFiles> {
        Ok(RemoteFiles {
            share: self.share(session)?,
            root: self.factory.url.path.clone(),
            buffer: None,
        })
    }

    pub(super) fn server(&self) -> Option<cpu::Server> {
        let shares = lock(&self.shares);
        let sessions = shares.iter().flatten().map(Share::session);
        cpu::Server::of(&ends_of(sessions), &self.factory.rdma)
    }

    pub(super) fn session_line(&self) -> Option<String> {
        let shares = lock(&self.shares);
        let share = shares.iter().flatten().next()?;
        Some(session_line(&share.session().info()))
    }
}

/// Reads or writes files on one share, with a reused buffer.
pub(super) struct RemoteFiles {
    share: Share,
    root: String,
    buffer: Option<Region>,
}

impl RemoteFiles {
    fn path(&self, path: &str) -> String {
        joined(&self.root, path)
    }

    /// A buffer of `len` bytes.
    fn buffer(&mut self, len: usize) -> Result<Region> {
        if let Some(mut buffer) = self.buffer.take()
            && buffer.set_len(len)
        {
            return Ok(buffer);
        }
        Region::of_pages(len).context("memory for a buffer")
    }

    /// Reads small files, several with each message.
    async fn read_small(&self, extents: &[Extent<'_>], check: Check<'_>) -> Result<u64> {
        let paths: Vec<String> = extents
            .iter()
            .map(|extent| self.path(extent.path))
            .collect();
        let sizes = extents.iter().map(|extent| extent.file_bytes as u32);
        let files: Vec<(&str, u32)> = paths.iter().map(String::as_str).zip(sizes).collect();
        let mut total = 0;
        for (bytes, (path, _)) in self.share.read_each(&files).await.into_iter().zip(&files) {
            let bytes = bytes?;
            check(&bytes).with_context(|| (*path).to_owned())?;
            total += bytes.len() as u64;
        }
        Ok(total)
    }

    /// Reads extents of large files one after the other, all into the same buffer. The files are
    /// opened together. A second extent in flight needs a second buffer. Its misses in the cache
    /// of the processor cost more than the pause between two extents.
    async fn read_large(&mut self, extents: &[Extent<'_>], check: Check<'_>) -> Result<u64> {
        let options = OpenOptions::new().read(true).directory(false);
        let paths: Vec<String> = extents
            .iter()
            .map(|extent| self.path(extent.path))
            .collect();
        let opens = paths.iter().map(|path| self.share.open(path, &options));
        let files = try_join_all(opens).await?;
        let mut total = 0;
        for (file, extent) in files.iter().zip(extents) {
            let end = file.opened_metadata().size;
            let range = extent.range.clone().unwrap_or(0..end);
            let len = range.end.saturating_sub(range.start);
            let buffer = self.buffer(usize::try_from(len)?)?;
            let (count, buffer) = file.read_at(buffer, range.start).await;
            ensure!(
                count? as u64 == len,
                "{} is shorter than expected",
                extent.path
            );
            check(&buffer).with_context(|| extent.path.to_owned())?;
            self.buffer = Some(buffer);
            total += len;
        }
        join_all(files.iter().map(File::close)).await;
        Ok(total)
    }

    /// Reads a whole file as a transfer does: with longer READs than those of `File::read_at`,
    /// which a server reads from its disk at once.
    async fn stream_file(&mut self, path: &str) -> Result<u64> {
        let options = OpenOptions::new().read(true).directory(false);
        let file = self.share.open(&self.path(path), &options).await?;
        let end = file.opened_metadata().size;
        let mut sink = |_: u64, _: &[u8]| Ok(());
        let options = TransferOptions::default();
        let count = download(&file, 0..end, &mut sink, &options, &mut |_| {}).await?;
        ensure!(count == end, "{path} is shorter than expected");
        file.close().await?;
        Ok(end)
    }
}

impl Reader for RemoteFiles {
    fn read(&mut self, extents: &[Extent<'_>], check: Check<'_>) -> Result<u64> {
        let is_small = |extent: &Extent<'_>| extent.range.is_none() && extent.file_bytes <= SMALL;
        match extents.iter().all(is_small) {
            true => self.read_small(extents, check).wait(),
            false => self.read_large(extents, check).wait(),
        }
    }

    fn stream(&mut self, path: &str) -> Result<u64> {
        self.stream_file(path).wait()
    }
}

impl Writer for RemoteFiles {
    fn write(&mut self, path: &str, len: u64, sync: bool, fill: Fill<'_>) -> Result<()> {
        let file = self.share.open(&self.path(path), &new_file()).wait()?;
        let mut content = Content { len, fill };
        let options = TransferOptions::default();
        upload(&file, 0..len, &mut content, &options, &mut |_| {}).wait()?;
        if sync {
            file.sync().wait()?;
        }
        Ok(file.close().wait()?)
    }
}

/// The content of a new file.
struct Content<'a> {
    len: u64,
    fill: Fill<'a>,
}

impl Source for Content<'_> {
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> std::io::Result<usize> {
        let left = usize::try_from(self.len.saturating_sub(offset)).unwrap_or(usize::MAX);
        let count = left.min(buffer.len());
        (self.fill)(offset, &mut buffer[..count]);
        Ok(count)
    }
}

/// Options for a file that is created or replaced.
fn new_file() -> OpenOptions {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .directory(false)
}

fn is_missing(error: &Error) -> bool {
    matches!(
        error.status(),
        Some(Status::OBJECT_NAME_NOT_FOUND | Status::OBJECT_PATH_NOT_FOUND | Status::NO_SUCH_FILE)
    )
}

fn joined(directory: &str, path: &str) -> String {
    match directory {
        "" => path.to_owned(),
        directory => format!("{directory}/{path}"),
    }
}
