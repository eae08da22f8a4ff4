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
    /// The directory on disk, which is deleted with the share.
    temp_dir: Option<TempDir>,
}

/// A directory on disk and its share.
pub(crate) struct LocalDirectory {
    pub(crate) share: Share,
    pub(crate) posix: Arc<Posix>,
}

impl LocalDirectory {
    pub(crate) fn new(options: posix::Options) -> Self {
        Self::of(TempDir::new().expect("a directory"), options)
    }

    /// A share of a directory on a file system in memory; `None` if the system has none.
    pub(crate) fn tmpfs(options: posix::Options) -> Option<Self> {
        let temp_dir = TempDir::new_in("/dev/shm");
        let temp_dir = temp_dir.inspect_err(|error| println!("no tmpfs available ({error})"));
        Some(Self::of(temp_dir.ok()?, options))
    }

    /// A share of this directory. As root, the directory belongs to an ordinary user.
    fn of(temp_dir: TempDir, options: posix::Options) -> Self {
        if identity::switches() {
            identity::own().expect("the server itself");
            std::os::unix::fs::chown(temp_dir.path(), Some(1000), Some(1000)).expect("a chown");
        }
        let posix = Posix::new(ShareId(3), temp_dir.path(), options).expect("a share");
        let posix = Arc::new(posix);
        let token = identity::effective(&user(1000, &[]));
        let share = Share {
            fs: posix.clone(),
            token,
            temp_dir: Some(temp_dir),
        };
        Self { share, posix }
    }

    /// A path in the directory, for changes by root outside the server.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        identity::own().expect("the server itself");
        let temp_dir = self
            .share
            .temp_dir
            .as_ref()
            .expect("a share of a local directory has one");
        temp_dir.path().join(name)
    }

    /// The same share for another user.
    pub(crate) fn as_user(&self, token: Arc<Token>) -> Share {
        Share {
            fs: self.posix.clone(),
            token,
            temp_dir: None,
        }
    }
}

/// The token of a user and a group with the same id.
pub(crate) fn user(id: u32, groups: &[u32]) -> Arc<Token> {
    Arc::new(Token::new(id, id, groups.to_vec()))
}

/// All access rights.
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
        let token = Token::new(1000, 1000, vec![]);
        Self {
            fs,
            token: Arc::new(token),
            temp_dir: None,
        }
    }

    /// A share of a directory on disk.
    pub(crate) fn posix() -> Self {
        LocalDirectory::new(Self::options()).share
    }

    /// The default options, with a descriptor attribute that this process can write.
    fn options() -> posix::Options {
        let security_attribute = match identity::switches() {
            true => posix::SecurityAttribute::Security,
            false => posix::SecurityAttribute::User,
        };
        posix::Options {
            security_attribute,
            ..posix::Options::default()
        }
    }

    /// A share of a directory on a file system in memory, if the system has one.
    pub(crate) fn tmpfs() -> Self {
        match LocalDirectory::tmpfs(Self::options()) {
            Some(local) => local.share,
            None => Self::posix(),
        }
    }

    /// A share of a directory on disk that keeps large streams.
    pub(crate) fn large_streams() -> Self {
        let options = posix::Options {
            large_streams: true,
            ..Self::options()
        };
        LocalDirectory::new(options).share
    }

    /// Runs an operation as a server does: first without blocking, then with it.
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
            security: None,
            open_link: false,
            posix: None,
        }
    }

    pub(crate) fn open_plan(&self, plan: OpenPlan) -> Result<Opened, Status> {
        Ok(self.execute(&FileOp::Open(plan))?.expect_opened())
    }

    /// Opens an existing file or directory.
    pub(crate) fn open(&self, path: &str) -> Result<Opened, Status> {
        self.open_plan(self.plan(path, Existing::Open, KindWanted::Any))
    }

    /// Opens an existing file or directory with these rights.
    pub(crate) fn open_for(&self, path: &str, access: AccessMask) -> Result<Opened, Status> {
        let plan = self.plan(path, Existing::Open, KindWanted::Any);
        self.open_plan(OpenPlan { access, ..plan })
    }

    /// Creates a file.
    pub(crate) fn create(&self, path: &str) -> Result<Opened, Status> {
        self.open_plan(self.plan(path, Existing::Create, KindWanted::File))
    }

    /// Creates a file with these bytes and leaves it open.
    pub(crate) fn file(&self, path: &str, bytes: &[u8]) -> LocalOpen {
        let file = self.create(path).expect("a new file").file;
        self.write(file, Some(0), bytes)
            .expect("bytes in a new file");
        file
    }

    /// Creates a directory and leaves it open.
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

    /// Runs an operation that returns metadata.
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

    /// All bytes of a file.
    pub(crate) fn content(&self, path: &str) -> Result<Vec<u8>, Status> {
        let file = self.open_for(path, AccessMask::FILE_READ_DATA)?.file;
        let bytes = self.read(file, 0, 1 << 16);
        self.close(file);
        bytes
    }

    /// Renames a file. Returns the name as spelled by the file system.
    pub(crate) fn rename(
        &self,
        file: LocalOpen,
        to: &str,
        replace: bool,
    ) -> Result<String, Status> {
        let (to, replace) = (SharePath::from_trusted(to), replace.into());
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

    /// Removes the open's own name, also after a rename.
    pub(crate) fn unlink(&self, file: LocalOpen) -> Result<(), Status> {
        let path = SharePath::root();
        self.unit(&FileOp::OnOpen(file, Operation::Unlink { path }))
    }

    /// Runs an operation that returns nothing.
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
