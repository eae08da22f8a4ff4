//! Requests of the kernel: each starts a task that replies.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use fuser::{
    BsdFileFlags, FileHandle, Filesystem, FopenFlags, INodeNo, InitFlags, KernelConfig, LockOwner,
    OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};

use crate::attributes::{kind_of, time};
use crate::directory::OpenDirectory;
use crate::executor::Executor;
use crate::names::NAME_MAX;
use crate::volume::{Answer, Found, Volume, Wanted};

/// Largest WRITE of the kernel in bytes, which is also its largest READ.
const WRITE_MAX: u32 = 1 << 20;
/// Largest number of requests in flight that no program waits for: read-ahead and direct I/O.
const BACKGROUND_MAX: u16 = 64;

/// Capabilities that the mount uses if the kernel has them.
const WANTED: [InitFlags; 6] = [
    InitFlags::FUSE_AUTO_INVAL_DATA,
    InitFlags::FUSE_PARALLEL_DIROPS,
    InitFlags::FUSE_ASYNC_DIO,
    InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP,
    InitFlags::FUSE_POSIX_LOCKS,
    InitFlags::FUSE_FLOCK_LOCKS,
];

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
        self.executor.spawn(task(Arc::clone(&self.volume)));
    }
}

fn entry(reply: ReplyEntry, answer: Answer<Found>) {
    match answer {
        Ok(found) => reply.entry(&found.time, &found.attributes, found.generation),
        Err(error) => reply.error(error),
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
        _handle: Option<FileHandle>,
        reply: ReplyAttr,
    ) {
        self.task(async move |volume| match volume.attributes(ino.0).await {
            Ok((attributes, time)) => reply.attr(&time, &attributes),
            Err(error) => reply.error(error),
        });
    }

    fn setattr(
        &self,
        _request: &Request,
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
        self.task(
            async move |volume| match volume.set(ino.0, handle, wanted).await {
                Ok((attributes, time)) => reply.attr(&time, &attributes),
                Err(error) => reply.error(error),
            },
        );
    }

    fn readlink(&self, _request: &Request, ino: INodeNo, reply: ReplyData) {
        self.task(async move |volume| match volume.read_link(ino.0).await {
            Ok(target) => reply.data(&target),
            Err(error) => reply.error(error),
        });
    }

    fn mkdir(
        &self,
        _request: &Request,
        parent: INodeNo,
        name: &OsStr,
        _mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        let name = name.to_owned();
        self.task(async move |volume| entry(reply, volume.make_directory(parent.0, &name).await));
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
        _request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let (name, target) = (name.to_owned(), target.as_os_str().to_owned());
        self.task(async move |volume| {
            entry(reply, volume.symlink(parent.0, &name, &target).await);
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
            Err(error) => reply.error(error),
        });
    }

    fn create(
        &self,
        _request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let (name, mode) = (name.to_owned(), mode & !umask);
        self.task(async move |volume| {
            let created = volume.create((parent.0, &name), mode, OpenFlags(flags));
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
                Ok(bytes) => reply.data(&bytes),
                Err(error) => reply.error(error),
            },
        );
    }

    fn write(
        &self,
        _request: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        bytes: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        // The thread uses the buffer for the next request, and the server gets the bytes later.
        let bytes = bytes.to_vec();
        self.task(
            async move |volume| match volume.write(handle, offset, bytes).await {
                Ok(written) => reply.written(written),
                Err(error) => reply.error(error),
            },
        );
    }

    fn flush(
        &self,
        _request: &Request,
        _ino: INodeNo,
        _handle: FileHandle,
        _owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        reply.ok();
    }

    fn release(
        &self,
        _request: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.task(async move |volume| empty(reply, volume.release(handle).await));
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
        match self.volume.directories.add(OpenDirectory::new(ino.0)) {
            Ok(handle) => reply.opened(handle, FopenFlags::empty()),
            Err(error) => reply.error(error),
        }
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
    listing.seek(volume, directory.ino, offset).await?;
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
        let kind = entry
            .metadata
            .as_ref()
            .map_or(fuser::FileType::Directory, kind_of);
        let ino = INodeNo(id.unwrap_or(directory.ino));
        if reply.add(ino, entry.offset, kind, &entry.name) {
            break;
        }
        index += 1;
    }
    Ok(())
}
