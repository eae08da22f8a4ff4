//! Files of a directory of this machine: a local file system, or a mount of NFS, cifs.ko or FUSE.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use rustix::fs::OFlags;
use smbeam_client::Region;

use super::access::{Check, Entry, Extent, Fill, PIECE, Reader, Writer};

/// Alignment of offsets and lengths for O_DIRECT in bytes.
const BLOCK: usize = 4096;

/// A directory.
#[derive(Debug)]
pub(crate) struct LocalStore {
    root: PathBuf,
}

impl LocalStore {
    pub(super) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
        }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn create_dir(&self, path: &str) -> Result<()> {
        let path = self.root.join(path);
        fs::create_dir_all(&path).with_context(|| format!("create {}", path.display()))
    }

    pub(super) fn list(&self, path: &str) -> Result<Vec<Entry>> {
        let path = self.root.join(path);
        let entries = match fs::read_dir(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.with_context(|| format!("list {}", path.display()))?,
        };
        let entries = entries.map(|entry| {
            let entry = entry?;
            let metadata = entry.metadata()?;
            Ok(Entry {
                name: entry.file_name().to_string_lossy().into_owned(),
                size: metadata.len(),
                is_directory: metadata.is_dir(),
            })
        });
        let entries: std::io::Result<Vec<Entry>> = entries.collect();
        entries.with_context(|| format!("list {}", path.display()))
    }

    pub(super) fn read_small(&self, path: &str) -> Result<Option<Vec<u8>>> {
        let path = self.root.join(path);
        match fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            bytes => Ok(Some(
                bytes.with_context(|| format!("read {}", path.display()))?,
            )),
        }
    }

    pub(super) fn write(&self, path: &str, bytes: Vec<u8>) -> Result<Vec<u8>> {
        let path = self.root.join(path);
        fs::write(&path, &bytes).with_context(|| format!("write {}", path.display()))?;
        Ok(bytes)
    }

    pub(super) fn remove_dir(&self, path: &str) -> Result<()> {
        let directory = self.root.join(path);
        for entry in self.list(path)? {
            let path = directory.join(entry.name);
            fs::remove_file(&path).with_context(|| format!("remove {}", path.display()))?;
        }
        fs::remove_dir(&directory).with_context(|| format!("remove {}", directory.display()))
    }

    pub(super) fn files(&self, direct: bool) -> LocalFiles {
        LocalFiles {
            root: self.root.clone(),
            direct,
            buffer: Region::from(Vec::new()),
        }
    }
}

/// Reads or writes files with one buffer. Its address suits O_DIRECT.
pub(super) struct LocalFiles {
    root: PathBuf,
    direct: bool,
    buffer: Region,
}

impl LocalFiles {
    fn open(&self, path: &str, options: &mut OpenOptions) -> Result<File> {
        let path = self.root.join(path);
        if self.direct {
            options.custom_flags(OFlags::DIRECT.bits().cast_signed());
        }
        let opened = options.open(&path);
        opened.with_context(|| match self.direct {
            true => format!("open {} with O_DIRECT", path.display()),
            false => format!("open {}", path.display()),
        })
    }

    /// Makes the buffer at least `len` bytes long, rounded up to whole blocks.
    fn grow(&mut self, len: usize) -> Result<()> {
        let len = len.next_multiple_of(BLOCK);
        if self.buffer.len() < len {
            self.buffer = Region::of_pages(len).context("memory for a buffer")?;
        }
        Ok(())
    }

    fn read_extent(&mut self, extent: &Extent<'_>) -> Result<(usize, usize)> {
        let file = self.open(extent.path, OpenOptions::new().read(true))?;
        let context = || format!("read {}", self.root.join(extent.path).display());
        let range = match &extent.range {
            Some(range) => range.clone(),
            None => 0..file.metadata().with_context(context)?.len(),
        };
        // O_DIRECT reads whole blocks.
        let skipped = match self.direct {
            true => (range.start % BLOCK as u64) as usize,
            false => 0,
        };
        let len = (range.end - range.start) as usize;
        self.grow(skipped + len)?;
        let wanted = match self.direct {
            true => (skipped + len).next_multiple_of(BLOCK),
            false => len,
        };
        let start = range.start - skipped as u64;
        let count = read_full(&file, &mut self.buffer[..wanted], start)
            .with_context(|| format!("read {}", self.root.join(extent.path).display()))?;
        ensure!(
            count >= skipped + len,
            "{} is shorter than expected",
            self.root.join(extent.path).display()
        );
        Ok((skipped, len))
    }
}

impl Reader for LocalFiles {
    fn read(&mut self, extents: &[Extent<'_>], check: Check<'_>) -> Result<u64> {
        let mut total = 0;
        for extent in extents {
            let (start, len) = self.read_extent(extent)?;
            check(&self.buffer[start..start + len]).with_context(|| extent.path.to_owned())?;
            total += len as u64;
        }
        Ok(total)
    }

    fn stream(&mut self, path: &str) -> Result<u64> {
        let file = self.open(path, OpenOptions::new().read(true))?;
        self.grow(PIECE)?;
        let mut offset = 0;
        loop {
            let read = read_full(&file, &mut self.buffer[..PIECE], offset);
            let count = read.with_context(|| format!("read {}", self.root.join(path).display()))?;
            offset += count as u64;
            if count < PIECE {
                return Ok(offset);
            }
        }
    }
}

impl Writer for LocalFiles {
    fn write(&mut self, path: &str, len: u64, sync: bool, fill: Fill<'_>) -> Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        let mut file = self.open(path, &mut options)?;
        self.grow(PIECE)?;
        let context = || format!("write {}", self.root.join(path).display());
        let mut offset = 0;
        while offset < len {
            let count = (len - offset).min(PIECE as u64) as usize;
            let piece = match self.direct {
                true => count.next_multiple_of(BLOCK),
                false => count,
            };
            let piece = &mut self.buffer[..piece];
            fill(offset, piece);
            file.write_all(piece).with_context(context)?;
            offset += count as u64;
        }
        if self.direct && !len.is_multiple_of(BLOCK as u64) {
            file.set_len(len).with_context(context)?;
        }
        match sync {
            true => file.sync_all().with_context(context),
            false => Ok(()),
        }
    }
}

/// Reads until the buffer is full or the file ends. Returns the number of read bytes.
fn read_full(file: &File, buffer: &mut [u8], offset: u64) -> std::io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(&mut buffer[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // After the end of the file the offset is no multiple of a block.
            Err(error) if error.kind() == ErrorKind::InvalidInput && done > 0 => break,
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::super::{Access, Store};
    use super::*;

    #[test]
    fn extents_are_read_with_and_without_the_page_cache() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::local(directory.path());
        store.create_dir("a/b").expect("created");
        let bytes: Vec<u8> = (0..20_001).map(|at: u32| at as u8).collect();
        store.write("a/b/file", bytes.clone(), 0).expect("written");
        assert_eq!(store.list("a/b").expect("listed")[0].size, 20_001);
        for direct in [false, true] {
            let access = Access { direct, session: 0 };
            let mut reader = store.reader(access).expect("a reader");
            for range in [None, Some(5000..9001), Some(4096..20_001)] {
                let expected = range.clone().map_or(0..20_001, |it: std::ops::Range<u64>| {
                    it.start as usize..it.end as usize
                });
                let extent = Extent {
                    path: "a/b/file",
                    file_bytes: 20_001,
                    range,
                };
                let mut check = |read: &[u8]| {
                    assert_eq!(read, &bytes[expected.clone()]);
                    Ok(())
                };
                let count = reader.read(&[extent], &mut check).expect("read");
                assert_eq!(count, expected.len() as u64);
            }
            assert_eq!(reader.stream("a/b/file").expect("read"), 20_001);
        }
        store.remove_dir("a/b").expect("removed");
        assert!(store.list("a/b").expect("listed").is_empty());
    }

    #[test]
    fn streamed_files_have_their_length() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::local(directory.path());
        for direct in [false, true] {
            let mut writer = store
                .writer(Access { direct, session: 0 })
                .expect("a writer");
            let mut fill = |offset: u64, piece: &mut [u8]| piece.fill(offset as u8 + 7);
            writer
                .write("file", 10_001, true, &mut fill)
                .expect("written");
            let read = store.read_small("file").expect("read").expect("a file");
            assert_eq!(read, vec![7; 10_001]);
        }
    }

    #[test]
    fn missing_and_short_files_are_errors() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::local(directory.path());
        store.write("short", vec![1; 10], 0).expect("written");
        let mut reader = store.reader(Access::default()).expect("a reader");
        let mut read = |path, range| {
            let extent = Extent {
                path,
                file_bytes: 10,
                range,
            };
            reader
                .read(&[extent], &mut |_| Ok(()))
                .expect_err("an error")
                .to_string()
        };
        assert!(read("none", None).contains("open "));
        assert!(read("short", Some(5..11)).contains("shorter than expected"));
        assert_eq!(store.read_small("none").expect("no error"), None);
    }
}
