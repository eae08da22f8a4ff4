//! A share to test with.
#![allow(dead_code)] // Not every test binary does everything.

use std::path::PathBuf;
use std::sync::Arc;

use proto::file::{
    BasicChanges, DirectoryEntry, DirectoryPlan, Existing, FileOp, KindWanted, LocalOpen, Metadata,
    OpenPlan, Opened, Operation, Outcome, Select, ShareId,
};
use proto::path::SharePath;
use proto::token::Token;
use tempfile::TempDir;
use vfs::memory::{self, Memory};
use vfs::posix::{self, Posix};
use vfs::{Attempt, Effort, FileSystem, identity};
use wire::Status;
use wire::access::{AccessMask, FileAttributes};

/// The share under test.
pub(crate) struct Share {
    pub(crate) fs: Arc<dyn FileSystem>,
    pub(crate) token: Arc<Token>,
    /// The folder on disk, which goes with the share.
    folder: Option<TempDir>,
}

/// A folder and its share.
pub(crate) struct Folder {
    pub(crate) share: Share,
    pub(crate) posix: Arc<Posix>,
}

impl Folder {
    pub(crate) fn new(options: posix::Options) -> Self {
        Self::of(TempDir::new().expect("a folder"), options)
    }

    /// A folder that belongs to an ordinary user, where that can be had.
    fn of(folder: TempDir, options: posix::Options) -> Self {
        if identity::switches() {
            identity::own().expect("the server itself");
            std::os::unix::fs::chown(folder.path(), Some(1000), Some(1000)).expect("a chown");
        }
        let posix = Posix::new(ShareId(3), folder.path(), options).expect("a share");
        let posix = Arc::new(posix);
        let token = identity::effective(&user(1000, &[]));
        let share = Share {
            fs: posix.clone(),
            token,
            folder: Some(folder),
        };
        Self { share, posix }
    }

    /// A path of the folder, for what others do behind the server's back. They are root.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        identity::own().expect("the server itself");
        let folder = self
            .share
            .folder
            .as_ref()
            .expect("a share of a folder has one");
        folder.path().join(name)
    }

    /// The same share for another user.
    pub(crate) fn as_user(&self, token: Arc<Token>) -> Share {
        Share {
            fs: self.posix.clone(),
            token,
            folder: None,
        }
    }
}

/// The token of a user whose group has the same number.
pub(crate) fn user(id: u32, groups: &[u32]) -> Arc<Token> {
    Arc::new(Token {
        uid: id,
        gid: id,
        groups: groups.to_vec(),
    })
}

/// All rights to the bytes, and to delete.
pub(crate) const ALL: AccessMask = AccessMask(0x001F_01FF);

impl Share {
    /// A share in memory.
    pub(crate) fn memory() -> Self {
        let options = memory::Options {
            uid: 1000,
            gid: 1000,
            ..Default::default()
        };
        let fs = Arc::new(Memory::new(ShareId(3), options));
        let token = Token {
            uid: 1000,
            gid: 1000,
            groups: vec![],
        };
        Self {
            fs,
            token: Arc::new(token),
            folder: None,
        }
    }

    /// A share of a folder on the disk.
    pub(crate) fn posix() -> Self {
        Folder::new(posix::Options::default()).share
    }

    /// A share of a folder on a file system in memory, where there is one.
    pub(crate) fn tmpfs() -> Self {
        match TempDir::new_in("/dev/shm") {
            Ok(folder) => Folder::of(folder, posix::Options::default()).share,
            Err(error) => {
                println!("no tmpfs to be had ({error}): the disk stands in");
                Self::posix()
            }
        }
    }

    /// An operation as a server does it: first without waiting, then with.
    pub(crate) fn execute(&self, op: &FileOp) -> Result<Outcome, Status> {
        match self.fs.execute(op, Effort::Cached) {
            Attempt::Done(outcome) => outcome,
            Attempt::WouldBlock => self
                .fs
                .execute(op, Effort::Blocking)
                .done()
                .expect("it waited"),
        }
    }

    /// The plan to open a name with all rights.
    pub(crate) fn plan(&self, path: &str, existing: Existing, kind: KindWanted) -> OpenPlan {
        OpenPlan {
            share: ShareId(3),
            token: self.token.clone(),
            path: SharePath::from_trusted(path),
            access: ALL,
            implied_access: AccessMask::NONE,
            existing,
            kind,
            attributes: FileAttributes::NONE,
            allocation: 0,
            open_link: false,
        }
    }

    pub(crate) fn open_plan(&self, plan: OpenPlan) -> Result<Opened, Status> {
        Ok(self.execute(&FileOp::Open(plan))?.expect_opened())
    }

    /// Opens what is there.
    pub(crate) fn open(&self, path: &str) -> Result<Opened, Status> {
        self.open_plan(self.plan(path, Existing::Open, KindWanted::Any))
    }

    /// Opens what is there with these rights.
    pub(crate) fn open_for(&self, path: &str, access: AccessMask) -> Result<Opened, Status> {
        let plan = self.plan(path, Existing::Open, KindWanted::Any);
        self.open_plan(OpenPlan { access, ..plan })
    }

    /// Makes a file.
    pub(crate) fn create(&self, path: &str) -> Result<Opened, Status> {
        self.open_plan(self.plan(path, Existing::Create, KindWanted::File))
    }

    /// Makes a file with bytes and leaves it open.
    pub(crate) fn file(&self, path: &str, bytes: &[u8]) -> LocalOpen {
        let file = self.create(path).expect("a new file").file;
        self.write(file, Some(0), bytes)
            .expect("bytes in a new file");
        file
    }

    /// Makes a directory and leaves it open.
    pub(crate) fn directory(&self, path: &str) -> LocalOpen {
        let plan = self.plan(path, Existing::Create, KindWanted::Directory);
        self.open_plan(plan).expect("a new directory").file
    }

    pub(crate) fn close(&self, file: LocalOpen) {
        self.execute(&FileOp::OnOpen(file, Operation::Close))
            .expect("a close never fails");
    }

    pub(crate) fn stat(&self, file: LocalOpen) -> Result<Metadata, Status> {
        self.metadata(&FileOp::OnOpen(file, Operation::Stat))
    }

    pub(crate) fn set_basic(
        &self,
        file: LocalOpen,
        changes: BasicChanges,
    ) -> Result<Metadata, Status> {
        self.metadata(&FileOp::OnOpen(file, Operation::SetBasic(changes)))
    }

    /// An operation that comes to metadata.
    pub(crate) fn metadata(&self, op: &FileOp) -> Result<Metadata, Status> {
        Ok(self.execute(op)?.expect_metadata())
    }

    pub(crate) fn write(
        &self,
        file: LocalOpen,
        at: Option<u64>,
        bytes: &[u8],
    ) -> Result<usize, Status> {
        match self.fs.write(file, at, bytes, false, Effort::Cached) {
            Attempt::Done(result) => result,
            Attempt::WouldBlock => {
                let attempt = self.fs.write(file, at, bytes, false, Effort::Blocking);
                attempt.done().expect("it waited")
            }
        }
    }

    /// Reads up to `count` bytes.
    pub(crate) fn read(&self, file: LocalOpen, at: u64, count: usize) -> Result<Vec<u8>, Status> {
        let mut into = vec![0xAA; count];
        let read = match self.fs.read(file, at, &mut into, Effort::Cached) {
            Attempt::Done(result) => result,
            Attempt::WouldBlock => self
                .fs
                .read(file, at, &mut into, Effort::Blocking)
                .done()
                .expect("it waited"),
        }?;
        into.truncate(read);
        Ok(into)
    }

    /// The whole file of a name.
    pub(crate) fn content(&self, path: &str) -> Result<Vec<u8>, Status> {
        let file = self.open_for(path, AccessMask::FILE_READ_DATA)?.file;
        let bytes = self.read(file, 0, 1 << 16);
        self.close(file);
        bytes
    }

    /// Renames; the name as the file system spells it.
    pub(crate) fn rename(
        &self,
        file: LocalOpen,
        to: &str,
        replace: bool,
    ) -> Result<String, Status> {
        let to = SharePath::from_trusted(to);
        let op = FileOp::OnOpen(file, Operation::Rename { to, replace });
        let path = self.execute(&op)?.expect_renamed();
        Ok(path.as_str().to_owned())
    }

    pub(crate) fn link(&self, file: LocalOpen, to: &str, replace: bool) -> Result<(), Status> {
        self.unit(&FileOp::OnOpen(
            file,
            Operation::Link {
                to: SharePath::from_trusted(to),
                replace,
            },
        ))
    }

    /// By the name that the open itself has, wherever a rename has taken it.
    pub(crate) fn unlink(&self, file: LocalOpen) -> Result<(), Status> {
        let path = SharePath::root();
        self.unit(&FileOp::OnOpen(file, Operation::Unlink { path }))
    }

    /// An operation with nothing to say.
    pub(crate) fn unit(&self, op: &FileOp) -> Result<(), Status> {
        self.execute(op)?.expect_done();
        Ok(())
    }

    pub(crate) fn look_up(&self, file: LocalOpen, path: &str) -> Result<Option<Metadata>, Status> {
        let path = SharePath::from_trusted(path);
        let op = FileOp::OnOpen(file, Operation::LookUp { path });
        Ok(self.execute(&op)?.expect_found())
    }

    /// The next entries of a directory.
    pub(crate) fn list(
        &self,
        file: LocalOpen,
        restart: bool,
        select: Select,
        limit: u32,
    ) -> Result<Vec<DirectoryEntry>, Status> {
        let plan = DirectoryPlan {
            restart,
            select,
            limit,
        };
        let op = FileOp::OnOpen(file, Operation::ReadDirectory(plan));
        Ok(self.execute(&op)?.expect_directory())
    }

    /// The names in a directory, sorted, without `.` and `..`.
    pub(crate) fn names(&self, path: &str) -> Vec<String> {
        let file = self
            .open_for(path, AccessMask::FILE_LIST_DIRECTORY)
            .expect("a directory")
            .file;
        let entries = self
            .list(file, true, Select::All, 10_000)
            .expect("a listing");
        self.close(file);
        let mut names: Vec<String> = entries
            .into_iter()
            .skip(2)
            .map(|entry| entry.name)
            .collect();
        names.sort();
        names
    }
}
