//! A file system of fuser that serves files from memory: what a mount can reach at most.
//!
//! `memory_filesystem DIRECTORY` mounts it until it is unmounted. It has one directory. The bench
//! of mounts (`bench/compare/mounts.py`) compares `smbeam mount` with it.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, SystemTime};

use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyWrite, Request, Session, TimeOrNow, WriteFlags,
};

/// Time for which the kernel may use names and attributes.
const VALID: Duration = Duration::from_secs(1);
/// Length of a piece of a file in bytes. Largest READ and WRITE of the kernel.
const PIECE: usize = 1 << 20;
const ROOT: u64 = 1;

#[derive(Default)]
struct File {
    pieces: Vec<Vec<u8>>,
    size: u64,
}

#[derive(Default)]
struct Memory {
    names: Mutex<HashMap<OsString, u64>>,
    files: Mutex<HashMap<u64, Arc<RwLock<File>>>>,
    created: AtomicU64,
}

impl File {
    fn write(&mut self, mut at: usize, mut bytes: &[u8]) {
        self.size = self.size.max((at + bytes.len()) as u64);
        while !bytes.is_empty() {
            let (index, from) = (at / PIECE, at % PIECE);
            let (now, rest) = bytes.split_at(bytes.len().min(PIECE - from));
            if self.pieces.len() <= index {
                self.pieces.resize_with(index + 1, || vec![0; PIECE]);
            }
            self.pieces[index][from..from + now.len()].copy_from_slice(now);
            (at, bytes) = (at + now.len(), rest);
        }
    }

    fn read(&self, at: u64, len: usize) -> Vec<u8> {
        let end = (at + len as u64).min(self.size);
        let (mut at, end) = (at.min(end) as usize, end as usize);
        let mut bytes = Vec::with_capacity(end - at);
        while at < end {
            let from = at % PIECE;
            let now = (end - at).min(PIECE - from);
            bytes.extend_from_slice(&self.pieces[at / PIECE][from..from + now]);
            at += now;
        }
        bytes
    }
}

impl Memory {
    fn file(&self, ino: INodeNo) -> Result<Arc<RwLock<File>>, Errno> {
        let files = self.files.lock().expect("files");
        files.get(&ino.0).cloned().ok_or(Errno::ENOENT)
    }

    fn attributes(&self, ino: u64) -> FileAttr {
        let file = self.file(INodeNo(ino));
        let size = file.map_or(0, |file| file.read().expect("a file").size);
        let kind = match ino {
            ROOT => FileType::Directory,
            _ => FileType::RegularFile,
        };
        FileAttr {
            ino: INodeNo(ino),
            size,
            blocks: size.div_ceil(512),
            atime: SystemTime::UNIX_EPOCH,
            mtime: SystemTime::UNIX_EPOCH,
            ctime: SystemTime::UNIX_EPOCH,
            crtime: SystemTime::UNIX_EPOCH,
            kind,
            perm: 0o755,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 1 << 20,
            flags: 0,
        }
    }
}

impl Filesystem for Memory {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let failed = |limit: u32| io::Error::other(format!("the kernel's limit is {limit}"));
        config.set_max_write(PIECE as u32).map_err(failed)?;
        if let Err(most) = config.set_max_readahead(PIECE as u32) {
            config.set_max_readahead(most).map_err(failed)?;
        }
        let background = config.set_max_background(64);
        background.map(drop).map_err(|limit| failed(limit.into()))
    }

    fn lookup(&self, _request: &Request, _parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = self.names.lock().expect("names").get(name).copied();
        match found {
            Some(ino) => reply.entry(&VALID, &self.attributes(ino), Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: Option<FileHandle>,
        reply: ReplyAttr,
    ) {
        reply.attr(&VALID, &self.attributes(ino.0));
    }

    fn setattr(
        &self,
        _request: &Request,
        ino: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        size: Option<u64>,
        _accessed: Option<TimeOrNow>,
        _written: Option<TimeOrNow>,
        _changed: Option<SystemTime>,
        _handle: Option<FileHandle>,
        _created: Option<SystemTime>,
        _change_time: Option<SystemTime>,
        _backup: Option<SystemTime>,
        _flags: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        if let (Some(size), Ok(file)) = (size, self.file(ino)) {
            file.write().expect("a file").size = size;
        }
        reply.attr(&VALID, &self.attributes(ino.0));
    }

    fn create(
        &self,
        _request: &Request,
        _parent: INodeNo,
        name: &OsStr,
        _mode: u32,
        _umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        let ino = ROOT + 1 + self.created.fetch_add(1, Ordering::Relaxed);
        self.files
            .lock()
            .expect("files")
            .insert(ino, Arc::default());
        self.names
            .lock()
            .expect("names")
            .insert(name.to_owned(), ino);
        let attributes = self.attributes(ino);
        let (handle, flags) = (FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE);
        reply.created(&VALID, &attributes, Generation(0), handle, flags);
    }

    fn open(&self, _request: &Request, _ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE);
    }

    fn read(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.file(ino) {
            Ok(file) => reply.data(&file.read().expect("a file").read(offset, size as usize)),
            Err(error) => reply.error(error),
        }
    }

    fn write(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: FileHandle,
        offset: u64,
        bytes: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.file(ino) {
            Ok(file) => {
                file.write().expect("a file").write(offset as usize, bytes);
                reply.written(bytes.len() as u32);
            }
            Err(error) => reply.error(error),
        }
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

    fn fsync(
        &self,
        _request: &Request,
        _ino: INodeNo,
        _handle: FileHandle,
        _is_data_only: bool,
        reply: ReplyEmpty,
    ) {
        reply.ok();
    }

    fn unlink(&self, _request: &Request, _parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        if let Some(ino) = self.names.lock().expect("names").remove(name) {
            self.files.lock().expect("files").remove(&ino);
        }
        reply.ok();
    }
}

fn main() -> io::Result<()> {
    let target = std::env::args_os().nth(1);
    let target = target.ok_or_else(|| io::Error::other("usage: memory_filesystem DIRECTORY"))?;
    let mut config = Config::default();
    config.mount_options = vec![MountOption::FSName("memory".to_owned())];
    config.n_threads = Some(2);
    config.clone_fd = true;
    Session::new(Memory::default(), target, &config)?.run()
}
