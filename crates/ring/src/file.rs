//! Positioned reads, writes and syncs of files.

use std::fmt;
use std::fs;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use io_uring::squeue::Entry;
use io_uring::{opcode, types};

use crate::buffer::Buffer;
use crate::op::Hold;
use crate::runtime::Handle;
use crate::sys;

/// Unix credentials that io_uring uses for operations on files. They are registered with the ring
/// of one runtime and valid only there, until the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Personality(Rc<Registered>);

struct Registered {
    id: u16,
    handle: Handle,
}

impl Drop for Registered {
    fn drop(&mut self) {
        if let Some(uring) = self.handle.inner().uring() {
            // An error means that the ring does not know the credentials any more.
            let _ = uring.unregister_personality(self.id);
        }
    }
}

impl fmt::Debug for Registered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.id)
    }
}

/// The file system's support for reads without waiting is not known yet.
const UNKNOWN: u8 = 0;
/// `preadv2` with `RWF_NOWAIT` returns data in the page cache.
const NOWAIT: u8 = 1;
/// The file system is memory, so a plain read does not wait. (tmpfs does not support NOWAIT, and
/// io_uring would give each read to a worker thread.)
const MEMORY: u8 = 2;
/// The file system supports neither.
const NEVER: u8 = 3;

/// An open file for reads and writes at an offset by a runtime. Clones and pending operations share
/// the descriptor. Dropping the last clone closes the file.
#[derive(Clone, Debug)]
pub struct File {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    file: fs::File,
    inline: AtomicU8,
}

impl From<OwnedFd> for File {
    fn from(fd: OwnedFd) -> Self {
        Self::from(fs::File::from(fd))
    }
}

impl From<fs::File> for File {
    fn from(file: fs::File) -> Self {
        Self {
            shared: Arc::new(Shared {
                file,
                inline: AtomicU8::new(UNKNOWN),
            }),
        }
    }
}

impl File {
    /// Makes a [`File`] of a descriptor that was opened with O_DIRECT. Offsets, lengths and memory
    /// of its operations must be aligned as the file system requires. No read of this file runs on
    /// the calling thread, since each read waits for the disk.
    #[must_use]
    pub fn direct(fd: OwnedFd) -> Self {
        let file = Self::from(fd);
        file.shared.inline.store(NEVER, Ordering::Relaxed);
        file
    }
}

impl AsFd for Shared {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl AsFd for File {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.file.as_fd()
    }
}

impl File {
    /// Reads inline if that does not wait. `None` when the driver has to read.
    fn read_inline(&self, into: &mut [u8], offset: u64) -> Option<usize> {
        let inline = &self.shared.inline;
        match inline.load(Ordering::Relaxed) {
            NEVER => None,
            MEMORY => self.shared.file.read_at(into, offset).ok(),
            _ => match sys::read_nowait(self.as_fd(), into, offset) {
                Ok(count) => {
                    inline.store(NOWAIT, Ordering::Relaxed);
                    Some(count)
                }
                Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                    let is_memory = sys::is_in_memory(self.as_fd());
                    inline.store(if is_memory { MEMORY } else { NEVER }, Ordering::Relaxed);
                    is_memory.then(|| self.shared.file.read_at(into, offset).ok())?
                }
                Err(_) => None,
            },
        }
    }

    /// The reference by which an operation keeps the file open.
    fn descriptor(&self) -> Arc<dyn AsFd> {
        Arc::<Shared>::clone(&self.shared)
    }

    fn fd(&self) -> types::Fd {
        types::Fd(self.shared.file.as_raw_fd())
    }
}

#[derive(Clone, Copy)]
enum Transfer {
    Read,
    Write,
}

type Outcome<T> = (io::Result<T>, Buffer);

impl Handle {
    /// Reads into `range` of `buffer`, starting at `offset` (bytes) of the file. Returns the count
    /// of read bytes and the buffer, which returns after an error as well. The count is smaller
    /// than the range only at the end of the file, or before an error that the next read reports.
    ///
    /// The calling thread reads data in the page cache at once. With io_uring, the kernel reads the
    /// rest with the Unix credentials of `personality`, or with those of the process if it is
    /// `None`. With epoll another thread reads the rest, and `personality` must be `None`.
    pub async fn read_at(
        &self,
        file: &File,
        buffer: Buffer,
        range: Range<usize>,
        offset: u64,
        personality: Option<Personality>,
    ) -> Outcome<usize> {
        self.transfer_all(Transfer::Read, file, buffer, range, offset, personality)
            .await
    }

    /// Writes the bytes of `range` of `buffer` at `offset` (bytes) of the file. Returns the count
    /// of written bytes and the buffer, which returns after an error as well. The count is smaller
    /// than the range only before an error that the next write reports (for example ENOSPC).
    ///
    /// With io_uring, the kernel writes with the Unix credentials of `personality`, or with those
    /// of the process if it is `None`. With epoll `personality` must be `None`.
    pub async fn write_at(
        &self,
        file: &File,
        buffer: Buffer,
        range: Range<usize>,
        offset: u64,
        personality: Option<Personality>,
    ) -> Outcome<usize> {
        self.transfer_all(Transfer::Write, file, buffer, range, offset, personality)
            .await
    }

    /// Waits until the written data of the file are on stable storage, as fsync(2). If
    /// `is_data_only` is true, a crash may lose timestamps, as with fdatasync(2).
    ///
    /// # Errors
    /// An I/O error of the file system, also one of an earlier write to the file: EIO, ENOSPC or
    /// EDQUOT. ECANCELED if the runtime has ended.
    pub async fn fsync(&self, file: &File, is_data_only: bool) -> io::Result<()> {
        if self.inner().uring().is_none() {
            let file = file.clone();
            let sync = move || sync_blocking(&file.shared.file, is_data_only);
            return self.blocking(sync).await;
        }
        let flags = if is_data_only {
            types::FsyncFlags::DATASYNC
        } else {
            types::FsyncFlags::empty()
        };
        let entry = opcode::Fsync::new(file.fd()).flags(flags).build();
        // SAFETY: the entry refers to no memory; the hold owns the file.
        let (result, _hold) = unsafe { self.operate(entry, Hold::Sync(file.descriptor())) }.await;
        result.map(drop)
    }

    /// Registers the current Unix credentials of this thread with the io_uring instance of this
    /// runtime, for operations on files.
    ///
    /// # Errors
    /// `Unsupported` with epoll: there, switch the credentials inside a `blocking` closure.
    pub fn register_personality(&self) -> io::Result<Personality> {
        let uring = self.inner().uring().ok_or(io::ErrorKind::Unsupported)?;
        let id = uring.register_personality()?;
        let handle = self.clone();
        Ok(Personality(Rc::new(Registered { id, handle })))
    }

    async fn transfer_all(
        &self,
        transfer: Transfer,
        file: &File,
        mut buffer: Buffer,
        range: Range<usize>,
        offset: u64,
        personality: Option<Personality>,
    ) -> Outcome<usize> {
        assert!(
            range.start <= range.end,
            "a range does not end before its start"
        );
        assert!(range.end <= buffer.len(), "a range is inside its buffer");
        let mut done = 0;
        while done < range.len() {
            let rest = range.start + done..range.end;
            let result;
            let position = offset + done as u64;
            (result, buffer) = self
                .step(transfer, file, buffer, rest, position, personality.as_ref())
                .await;
            match result {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if done == 0 => return (Err(error), buffer),
                Err(_) => break,
            }
        }
        (Ok(done), buffer)
    }

    async fn step(
        &self,
        transfer: Transfer,
        file: &File,
        mut buffer: Buffer,
        range: Range<usize>,
        offset: u64,
        personality: Option<&Personality>,
    ) -> Outcome<usize> {
        if let Transfer::Read = transfer
            && let Some(count) = file.read_inline(&mut buffer[range.clone()], offset)
        {
            return (Ok(count), buffer);
        }
        if self.inner().uring().is_none() {
            assert!(personality.is_none(), "epoll has no personalities");
            let file = file.clone();
            return self
                .blocking(move || blocking(transfer, &file, buffer, range, offset))
                .await;
        }
        let slot = buffer.slot(&self.inner().buffers);
        let entry = entry(transfer, file, &mut buffer, &range, offset, slot);
        let entry = entry.personality(personality.map_or(0, |personality| personality.0.id));
        // SAFETY: the entry points into the buffer. Its memory does not move with the value, and
        // the hold owns the buffer and the file.
        let operation = unsafe { self.operate(entry, Hold::File(file.descriptor(), buffer)) };
        match operation.await {
            (result, Hold::File(_, buffer)) => (result.map(|count| count as usize), buffer),
            _ => unreachable!("an operation returns its hold"),
        }
    }
}

fn entry(
    transfer: Transfer,
    file: &File,
    buffer: &mut Buffer,
    range: &Range<usize>,
    offset: u64,
    slot: Option<u16>,
) -> Entry {
    let length = u32::try_from(range.len()).expect("a buffer is smaller than 4 GiB");
    let (fd, start) = (file.fd(), buffer.pointer(range));
    match (transfer, slot) {
        (Transfer::Read, Some(slot)) => opcode::ReadFixed::new(fd, start, length, slot)
            .offset(offset)
            .build(),
        (Transfer::Read, None) => opcode::Read::new(fd, start, length).offset(offset).build(),
        (Transfer::Write, Some(slot)) => opcode::WriteFixed::new(fd, start, length, slot)
            .offset(offset)
            .build(),
        (Transfer::Write, None) => opcode::Write::new(fd, start, length).offset(offset).build(),
    }
}

fn blocking(
    transfer: Transfer,
    file: &File,
    mut buffer: Buffer,
    range: Range<usize>,
    offset: u64,
) -> Outcome<usize> {
    let result = match transfer {
        Transfer::Read => file.shared.file.read_at(&mut buffer[range], offset),
        Transfer::Write => file.shared.file.write_at(&buffer[range], offset),
    };
    (result, buffer)
}

fn sync_blocking(file: &fs::File, is_data_only: bool) -> io::Result<()> {
    if is_data_only {
        file.sync_data()
    } else {
        file.sync_all()
    }
}
