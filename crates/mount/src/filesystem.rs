//! Requests of the kernel: each starts a task that replies.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use fuser::{
    BsdFileFlags, CopyFileRangeFlags, Errno, FileHandle, FileType, Filesystem, FopenFlags, INodeNo,
    InitFlags, KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyLock, ReplyLseek, ReplyOpen, ReplyStatfs,
    ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use rustix::fs::OFlags;

use crate::attributes::{kind_of, time};
use crate::directory::OpenDirectory;
use crate::executor::Executor;
use crate::leased::Confirmed;
use crate::locks::Lock;
use crate::names::NAME_MAX;
use crate::volume::{Answer, Caller, Found, Shown, Sought, Volume, Wanted};

/// Largest WRITE of the kernel in bytes, which is also its largest READ.
const WRITE_MAX: u32 = 1 << 20;
/// Largest number of requests in flight that no program waits for: read-ahead and direct I/O.
const BACKGROUND_MAX: u16 = 64;

/// Capabilities that the mount uses if the kernel has them.
const WANTED: [InitFlags; 7] = [
    InitFlags::FUSE_AUTO_INVAL_DATA,
    InitFlags::FUSE_PARALLEL_DIROPS,
    InitFlags::FUSE_ASYNC_DIO,
    InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP,
    // Otherwise the kernel asks for an attribute before each write.
    InitFlags::FUSE_HANDLE_KILLPRIV_V2,
    InitFlags::FUSE_POSIX_LOCKS,
    InitFlags::FUSE_FLOCK_LOCKS,
];

/// The error for a file that is not at the name by which the kernel knows it: the kernel looks the
/// name up again.
fn stale(error: Errno) -> Errno {
    match error {
        Errno::ENOENT => Errno::ESTALE,
        error => error,
    }
}

/// Receives the requests of the kernel.
pub(crate) struct Requests {
    pub(crate) volume: Arc<Volume>,
    pub(crate) executor: Arc<Executor>,
}

impl Requests {
    /// Runs a task with the volume.
    fn task<F>(&self, task: impl FnOnce(Arc<Volume>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.volume.counters.requests.add(1);
        self.executor.spawn(task(Arc::clone(&self.volume)));
    }
}

fn entry(reply: ReplyEntry, answer: Answer<Found>) {
    match answer {
        Ok(found) => {
            let is_directory = found.attributes.kind == FileType::Directory;
            let leased = found.leased.as_ref();
            let confirmed = leased.and_then(|leased| leased.confirm(is_directory));
            let (name, attributes) = found.times(confirmed.is_some());
            reply.entry_with_ttls(&attributes, &name, &found.attributes, found.generation);
            // The lease can end now: the kernel has the name.
            drop(confirmed);
        }
        Err(error) => reply.error(error),
    }
}

fn attributes(reply: ReplyAttr, answer: Answer<Shown>) {
    match answer {
        Ok(shown) => {
            let is_directory = shown.attributes.kind == FileType::Directory;
            let leases = shown.leases.iter().flatten();
            let confirmed: Option<Vec<_>> = leases.map(|it| it.confirm(is_directory)).collect();
            let is_leased = shown.leases.is_some() && confirmed.is_some();
            reply.attr(&shown.time(is_leased), &shown.attributes);
            drop(confirmed);
        }
        Err(error) => reply.error(stale(error)),
    }
}

fn empty(reply: ReplyEmpty, answer: Answer<()>) {
    match answer {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

impl Filesystem for Requests {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        for wanted in WANTED {
            // A kernel without a capability works without it.
            let _ = config.add_capabilities(wanted);
        }
        let failed = |limit: u32| io::Error::other(format!("the kernel's limit is {limit}"));
        config.set_max_write(WRITE_MAX).map_err(failed)?;
        // The kernel may allow less than this.
        if let Err(most) = config.set_max_readahead(WRITE_MAX) {
            config.set_max_readahead(most).map_err(failed)?;
        }
        let background = config.set_max_background(BACKGROUND_MAX);
        background.map(drop).map_err(|limit| failed(limit.into()))
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let name = name.to_owned();
        self.task(async move |volume| entry(reply, volume.lookup(parent.0, &name).await));
    }

    fn forget(&self, _request: &Request, ino: INodeNo, count: u64) {
        self.volume.forget(ino.0, count);
    }

    fn getattr(
        &self,
        _request: &Request,
        ino: INodeNo,
        handle: Option<FileHandle>,
        reply: ReplyAttr,
    ) {
        self.task(async move |volume| attributes(reply, volume.attributes(ino.0, handle).await));
    }

    fn setattr(
        &self,
        request: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        accessed: Option<TimeOrNow>,
        written: Option<TimeOrNow>,
        _changed: Option<SystemTime>,
        handle: Option<FileHandle>,
        _created: Option<SystemTime>,
        _change_time: Option<SystemTime>,
        _backup: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let wanted = Wanted {
            mode,
            uid,
            gid,
            size,
            accessed: accessed.map(time),
            written: written.map(time),
        };
        let caller = Caller::of(request);
        self.task(async move |volume| {
            attributes(reply, volume.set((ino.0, caller), handle, wanted).await);
        });
    }

    fn readlink(&self, _request: &Request, ino: INodeNo, reply: ReplyData) {
        self.task(async move |volume| match volume.read_link(ino.0).await {
            Ok(target) => reply.data(&target),
            Err(error) => reply.error(error),
        });
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        let (name, new) = (name.to_owned(), (Caller::of(request), mode & !umask));
        self.task(async move |volume| {
            let made = volume.make_directory((parent.0, &name), new);
            entry(reply, made.await);
        });
    }

    fn unlink(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = name.to_owned();
        self.task(async move |volume| empty(reply, volume.unlink(parent.0, &name).await));
    }

    fn rmdir(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = name.to_owned();
        self.task(async move |volume| empty(reply, volume.remove_directory(parent.0, &name).await));
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let (name, target) = (name.to_owned(), target.as_os_str().to_owned());
        let caller = Caller::of(request);
        self.task(async move |volume| {
            let made = volume.symlink((parent.0, &name), caller, &target);
            entry(reply, made.await);
        });
    }

    fn rename(
        &self,
        _request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let (name, new_name) = (name.to_owned(), new_name.to_owned());
        self.task(async move |volume| {
            let (from, to) = ((parent.0, &*name), (new_parent.0, &*new_name));
            empty(reply, volume.rename(from, to, flags).await);
        });
    }

    fn link(
        &self,
        _request: &Request,
        ino: INodeNo,
        parent: INodeNo,
        name: &OsStr,
        reply: ReplyEntry,
    ) {
        let name = name.to_owned();
        self.task(async move |volume| entry(reply, volume.link(ino.0, parent.0, &name).await));
    }

    fn open(&self, _request: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        self.task(async move |volume| match volume.open(ino.0, flags).await {
            Ok(opened) => reply.opened(opened.handle, opened.flags),
            Err(error) => reply.error(stale(error)),
        });
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let (name, new) = (name.to_owned(), (Caller::of(request), mode & !umask));
        self.task(async move |volume| {
            let created = volume.create((parent.0, &name), new, OpenFlags(flags));
            match created.await {
                Ok((found, opened)) => reply.created(
                    &found.time,
                    &found.attributes,
                    found.generation,
                    opened.handle,
                    opened.flags,
                ),
                Err(error) => reply.error(error),
            }
        });
    }

    fn read(
        &self,
        _request: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.task(
            async move |volume| match volume.read(handle, offset, size).await {
                Ok((bytes, dropped)) => {
                    reply.data(&bytes);
                    volume.drop_later(dropped);
                }
                Err(error) => reply.error(error),
            },
        );
    }

    fn write(
        &self,
        _request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        bytes: &[u8],
        write_flags: WriteFlags,
        flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let flags = OFlags::from_bits_retain(flags.0.cast_unsigned());
        let is_direct = flags.contains(OFlags::DIRECT);
        // The thread uses the buffer for the next request, and the server gets the bytes later.
        let bytes = bytes.to_vec();
        let clears = write_flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID);
        self.task(async move |volume| {
            if clears && let Err(error) = volume.clear_special_bits(ino.0).await {
                return reply.error(error);
            }
            match volume.write(handle, offset, bytes, is_direct).await {
                Ok(written) => {
                    reply.written(written.count);
                    volume.drop_later(written.dropped);
                    if let Some(sending) = written.sending {
                        volume.send_later(sending).await;
                    }
                }
                Err(error) => reply.error(error),
            }
        });
    }

    fn flush(
        &self,
        _request: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        self.task(async move |volume| empty(reply, volume.flush(handle, owner.0).await));
    }

    fn release(
        &self,
        _request: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        let owner = owner.map(|owner| owner.0);
        self.task(
            async move |volume| match volume.release(handle, owner).await {
                Ok(needs_sweeper) => {
                    reply.ok();
                    if needs_sweeper {
                        volume.sweep().await;
                    }
                }
                Err(error) => reply.error(error),
            },
        );
    }

    fn fsync(
        &self,
        _request: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        _is_data_only: bool,
        reply: ReplyEmpty,
    ) {
        self.task(async move |volume| empty(reply, volume.sync(handle).await));
    }

    fn opendir(&self, _request: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        self.task(async move |volume| {
            let leased = volume.leased(ino.0, None).await;
            let directory = OpenDirectory::new(ino.0, volume.names());
            match volume.directories.add(directory) {
                Ok(handle) => {
                    let mut confirmed = leased.as_ref().and_then(|it| it.confirm(true));
                    reply.opened(handle, listing_flags(confirmed.as_mut()));
                    drop(confirmed);
                }
                Err(error) => reply.error(error),
            }
        });
    }

    fn readdir(
        &self,
        _request: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        self.task(
            async move |volume| match list(&volume, handle, offset, &mut reply).await {
                Ok(()) => reply.ok(),
                Err(error) => reply.error(error),
            },
        );
    }

    fn releasedir(
        &self,
        _request: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.volume.directories.remove(handle);
        reply.ok();
    }

    fn fsyncdir(
        &self,
        _request: &Request,
        _ino: INodeNo,
        _handle: FileHandle,
        _is_data_only: bool,
        reply: ReplyEmpty,
    ) {
        // The server has changed the directory before it responded.
        reply.ok();
    }

    fn statfs(&self, _request: &Request, ino: INodeNo, reply: ReplyStatfs) {
        self.task(async move |volume| match volume.space(ino.0).await {
            Ok(space) => reply.statfs(
                space.total,
                space.free,
                space.available,
                0,
                0,
                space.block,
                NAME_MAX as u32,
                space.block,
            ),
            Err(error) => reply.error(error),
        });
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        device: u32,
        reply: ReplyEntry,
    ) {
        let (name, new) = (name.to_owned(), (Caller::of(request), mode & !umask));
        self.task(async move |volume| {
            let made = volume.make_node((parent.0, &name), new, device);
            entry(reply, made.await);
        });
    }

    fn getxattr(
        &self,
        _request: &Request,
        ino: INodeNo,
        name: &OsStr,
        size: u32,
        reply: ReplyXattr,
    ) {
        let name = name.to_owned();
        self.task(async move |volume| xattr(reply, size, volume.xattr(ino.0, &name).await));
    }

    fn listxattr(&self, _request: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        self.task(async move |volume| xattr(reply, size, volume.xattr_names(ino.0).await));
    }

    fn setxattr(
        &self,
        _request: &Request,
        ino: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        let (name, value) = (name.to_owned(), value.to_vec());
        self.task(async move |volume| {
            empty(reply, volume.set_xattr(ino.0, &name, &value, flags).await);
        });
    }

    fn removexattr(&self, _request: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = name.to_owned();
        self.task(async move |volume| empty(reply, volume.remove_xattr(ino.0, &name).await));
    }

    fn getlk(
        &self,
        _request: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        owner: LockOwner,
        start: u64,
        end: u64,
        kind: i32,
        pid: u32,
        reply: ReplyLock,
    ) {
        let wanted = lock_of(owner, (start, end), kind, pid);
        self.task(
            async move |volume| match volume.find_lock(handle, wanted).await {
                Ok(None) => reply.locked(0, 0, F_UNLCK, 0),
                Ok(Some(found)) => {
                    let kind = match found.is_exclusive {
                        true => F_WRLCK,
                        false => F_RDLCK,
                    };
                    reply.locked(found.range.start, found.range.end - 1, kind, found.pid);
                }
                Err(error) => reply.error(error),
            },
        );
    }

    fn setlk(
        &self,
        request: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        owner: LockOwner,
        start: u64,
        end: u64,
        kind: i32,
        _pid: u32,
        waits: bool,
        reply: ReplyEmpty,
    ) {
        // The thread of the request has the signals that end the wait.
        let change = lock_of(owner, (start, end), kind, request.pid());
        self.task(async move |volume| {
            let done = volume.set_lock(handle, change, kind == F_UNLCK, waits);
            empty(reply, done.await);
        });
    }

    fn fallocate(
        &self,
        _request: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        len: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        self.task(async move |volume| {
            empty(reply, volume.allocate(handle, (offset, len), mode).await);
        });
    }

    fn lseek(
        &self,
        _request: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let sought = match whence {
            SEEK_DATA => Sought::Data,
            SEEK_HOLE => Sought::Hole,
            _ => return reply.error(Errno::EINVAL),
        };
        let Ok(offset) = u64::try_from(offset) else {
            return reply.error(Errno::ENXIO);
        };
        self.task(
            async move |volume| match volume.seek(handle, offset, sought).await {
                Ok(at) => reply.offset(i64::try_from(at).unwrap_or(i64::MAX)),
                Err(error) => reply.error(error),
            },
        );
    }

    fn copy_file_range(
        &self,
        _request: &Request,
        _source_ino: INodeNo,
        source: FileHandle,
        from: u64,
        _target_ino: INodeNo,
        target: FileHandle,
        to: u64,
        len: u64,
        _flags: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        self.task(
            async move |volume| match volume.copy((source, from), (target, to), len).await {
                Ok(copied) => reply.written(copied),
                Err(error) => reply.error(error),
            },
        );
    }
}

/// Kinds of locks, and of seeks. fcntl.h, unistd.h
const F_RDLCK: i32 = 0;
const F_WRLCK: i32 = 1;
const F_UNLCK: i32 = 2;
const SEEK_DATA: i32 = 3;
const SEEK_HOLE: i32 = 4;

/// The lock of a request of the kernel. The range of the request includes its last byte.
fn lock_of(owner: LockOwner, (start, last): (u64, u64), kind: i32, pid: u32) -> Lock {
    Lock {
        owner: owner.0,
        pid,
        range: start..last.saturating_add(1),
        is_exclusive: kind == F_WRLCK,
    }
}

fn xattr(reply: ReplyXattr, size: u32, answer: Answer<Vec<u8>>) {
    match answer {
        Err(error) => reply.error(error),
        Ok(bytes) if size == 0 => reply.size(u32::try_from(bytes.len()).unwrap_or(u32::MAX)),
        Ok(bytes) if bytes.len() > size as usize => reply.error(Errno::ERANGE),
        Ok(bytes) => reply.data(&bytes),
    }
}

/// The flags of an open directory. Under a lease the kernel caches the listing.
fn listing_flags(lease: Option<&mut Confirmed<'_>>) -> FopenFlags {
    match lease.map(Confirmed::list) {
        None => FopenFlags::empty(),
        // The kernel drops an older listing.
        Some(false) => FopenFlags::FOPEN_CACHE_DIR,
        Some(true) => FopenFlags::FOPEN_CACHE_DIR | FopenFlags::FOPEN_KEEP_CACHE,
    }
}

/// Fills a reply with the entries behind `offset`.
async fn list(
    volume: &Volume,
    handle: FileHandle,
    offset: u64,
    reply: &mut ReplyDirectory,
) -> Answer<()> {
    let directory = volume.directories.of(handle)?;
    let mut listing = directory.listing.lock().await;
    let path = volume.path(directory.ino)?;
    listing.seek((&volume.share, &path), offset).await?;
    let mut index = 0;
    // A reply with some entries does not wait for the server.
    while index == 0 || listing.has_more_here(index) {
        let Some(entry) = listing.entry(index).await? else {
            break;
        };
        let id = entry
            .metadata
            .as_ref()
            .and_then(|metadata| metadata.file_id);
        let kind = entry.metadata.as_ref().map_or(FileType::Directory, kind_of);
        let ino = INodeNo(id.unwrap_or(directory.ino));
        if reply.add(ino, entry.offset, kind, &entry.name) {
            break;
        }
        index += 1;
    }
    Ok(())
}
