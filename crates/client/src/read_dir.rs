//! Directory listings: a stream of entries, requested ahead of the reader.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use proto::client::Step;
use proto::client::request::{FileRef, Reply};
use wire::Status;
use wire::access::AccessMask;
use wire::fscc::{DirectoryEntries, DirectoryEntry, FileInfoClass};
use wire::text::Utf16;

use crate::Wait;
use crate::error::{Cause, Error, unexpected};
use crate::file::File;
use crate::io::call::{Memory, Pending};
use crate::io::opens::OpenState;
use crate::metadata::Metadata;
use crate::open_options::OpenOptions;
use crate::path;
use crate::share::{Share, first_created};
use crate::symlink::LinkWalk;

/// Length of the first buffer in bytes: a small directory takes one message.
const FIRST_LEN: u32 = 64 << 10;
/// Length of each further buffer in bytes.
const NEXT_LEN: u32 = 1 << 20;
/// Count of the entries `.` and `..`.
const DOTS_MAX: usize = 2;
/// The shortest class with all values of [`Metadata`].
const WHOLE: FileInfoClass = FileInfoClass::ID_FULL_DIRECTORY;
/// A class without the number of the file. It is the only class with times and sizes that lacks the
/// size of the extended attributes, which costs Samba a further system call for each file.
const WITHOUT_ID: FileInfoClass = FileInfoClass::DIRECTORY;

/// An entry of a directory: a file or a subdirectory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// Name of the file within the directory. A name with a separator, `.` and `..` never occur.
    pub name: String,
    /// Metadata of the file or directory that this entry names: times, sizes and DOS attributes.
    pub metadata: Metadata,
}

/// The entries of a directory, in the order of the server, without `.` and `..`. The client
/// requests the next entries while the caller reads the previous ones. Made by [`Share::read_dir`]
/// and [`Share::read_dir_without_ids`].
///
/// With the cargo feature `futures` this is a `futures_core::Stream`.
pub struct ReadDir {
    directory: File,
    pattern: String,
    class: FileInfoClass,
    entries: VecDeque<Result<Entry, Error>>,
    /// Request for the next buffer.
    ahead: Option<Pending>,
    failed: Option<Error>,
    is_done: bool,
    /// Count of `.` and `..` in buffers without other entries.
    dots: usize,
}

impl Share {
    /// Lists the entries of a directory with names that match a pattern with `*` and `?`. The empty
    /// pattern matches all names. `path` is relative to the root of the share; the empty path is
    /// the root.
    ///
    /// # Errors
    /// The directory does not exist, the user may not list it, or the connection is lost.
    pub async fn read_dir(&self, path: &str, pattern: &str) -> Result<ReadDir, Error> {
        let class = match self.uses_posix {
            true => FileInfoClass::POSIX,
            false => WHOLE,
        };
        self.read_dir_as(path, pattern, class).await
    }

    /// Lists the entries of a directory with names that match a pattern with `*` and `?`; the empty
    /// pattern matches all names. `path` is relative to the root of the share. Unlike
    /// [`Share::read_dir`], the entries have no file identifier: [`Metadata::file_id`] is `None`.
    /// This is less work for the server, and fewer bytes.
    ///
    /// # Errors
    /// The directory does not exist, the user may not list it, or the connection is lost.
    pub async fn read_dir_without_ids(&self, path: &str, pattern: &str) -> Result<ReadDir, Error> {
        self.read_dir_as(path, pattern, WITHOUT_ID).await
    }

    /// Lists the entries of a directory with [`Metadata::unix`], by the SMB3 POSIX extensions. The
    /// entries have exact names, which can contain `\` and all other characters but `/` and NUL,
    /// and differ in case only. The path is as in [`posix_metadata`](Self::posix_metadata); the
    /// empty pattern matches all names.
    ///
    /// # Errors
    /// The server does not have the extensions, the directory does not exist, the user may not list
    /// it, or the connection is lost.
    pub async fn read_dir_posix(&self, path: &str, pattern: &str) -> Result<ReadDir, Error> {
        self.read_dir_as(path, pattern, FileInfoClass::POSIX).await
    }

    async fn read_dir_as(
        &self,
        path: &str,
        pattern: &str,
        class: FileInfoClass,
    ) -> Result<ReadDir, Error> {
        let mut options = OpenOptions::new();
        if class == FileInfoClass::POSIX {
            options = options.posix(0);
        }
        let options = options
            .access(
                AccessMask::FILE_LIST_DIRECTORY
                    | AccessMask::FILE_READ_ATTRIBUTES
                    | AccessMask::SYNCHRONIZE,
            )
            .directory(true);
        let pattern = match pattern {
            "" => "*".to_owned(),
            pattern if pattern.contains(['/', '\\', '\0']) => {
                let why = "a pattern cannot contain a separator";
                return Err(Error::InvalidName(pattern.to_owned(), why));
            }
            pattern => pattern.to_owned(),
        };
        let length = FIRST_LEN.min(self.session().negotiated().negotiated.max_transact);
        let first = query(FileRef::Previous, class, &pattern, length);
        let failed = |cause: Cause| cause.of("list", path);
        self.check_posix(&options).map_err(failed)?;
        let mut walk = LinkWalk::at(self.place(), options.to_wire(path)?);
        let (open, created, mut replies) = loop {
            let create = options.create_request(walk.path().to_owned(), None);
            let open = OpenState::new(&self.inner.tree, create.clone(), None);
            let steps = vec![Step::Create(create), first.clone()];
            let done = self.start_open(steps, Memory::None, &open).await;
            let mut replies = done.replies.map_err(failed)?.into_iter();
            match first_created(replies.next()) {
                Ok(created) => break (open, created, replies),
                Err(cause) if walk.follow(&cause) => {}
                Err(cause) => return Err(failed(cause)),
            }
        };
        let mut listing = ReadDir {
            directory: File::new(self, path, (&created, open), &options),
            pattern,
            class,
            entries: VecDeque::new(),
            ahead: None,
            failed: None,
            is_done: false,
            dots: 0,
        };
        listing.take(replies.next().unwrap_or_else(|| Err(unexpected())));
        Ok(listing)
    }
}

impl ReadDir {
    /// Returns the next entry; `None` at the end and after an error that ends the listing. The
    /// error [`Error::InvalidName`] is about one entry with a name that no client can use, and the
    /// listing continues. Every other error ends it.
    pub async fn next(&mut self) -> Option<Result<Entry, Error>> {
        poll_fn(|context| self.poll_entry(context)).await
    }

    fn poll_entry(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Entry, Error>>> {
        loop {
            if let Some(entry) = self.entries.pop_front() {
                return Poll::Ready(Some(entry));
            }
            if let Some(error) = self.failed.take() {
                return Poll::Ready(Some(Err(error)));
            }
            let Some(ahead) = &mut self.ahead else {
                return Poll::Ready(None);
            };
            let done = ready!(Pin::new(ahead).poll(context));
            self.ahead = None;
            self.take(done.only().0);
        }
    }

    /// Returns the number of entries that the client has already received: [`next`](Self::next)
    /// returns this many entries without waiting for the server.
    pub fn buffered(&self) -> usize {
        self.entries.len()
    }

    /// Ends the listing and waits until the server has closed the directory. Dropping the listing
    /// closes the directory in the background: the server may then handle a later request before
    /// the close.
    ///
    /// # Errors
    /// The server reports an error, or the connection is lost.
    pub async fn close(self) -> Result<(), Error> {
        self.directory.close().await
    }

    /// Converts the listing to an iterator that blocks the thread while it waits for the server.
    pub fn blocking(self) -> Blocking {
        Blocking(self)
    }

    /// Takes the entries of a buffer, and requests the next one.
    fn take(&mut self, reply: Result<Reply, Cause>) {
        let result = match reply {
            Ok(Reply::Output(bytes, _)) => self.parse(&bytes),
            Ok(_) => Err(unexpected()),
            Err(cause) => Err(cause),
        };
        match result {
            Ok(()) => self.ask(),
            Err(cause) => {
                self.is_done = true;
                let is_end = matches!(
                    cause.status(),
                    Some(Status::NO_MORE_FILES | Status::NO_SUCH_FILE)
                );
                if !is_end {
                    self.failed = Some(cause.of("list", self.directory.path()));
                }
            }
        }
    }

    fn ask(&mut self) {
        let share = self.directory.share();
        let length = NEXT_LEN.min(share.session().negotiated().negotiated.max_transact);
        let step = query(self.directory.file(), self.class, &self.pattern, length);
        self.ahead = Some(self.directory.start(vec![step], Memory::None));
    }

    fn parse(&mut self, bytes: &[u8]) -> Result<(), Cause> {
        let entries = DirectoryEntries::new(self.class, bytes).expect("a class that lists");
        let (mut count, before) = (0, self.entries.len());
        let is_component = match self.class {
            FileInfoClass::POSIX => path::is_posix_component,
            _ => path::is_component,
        };
        for entry in entries {
            let entry = entry?;
            count += 1;
            let name = entry.name.decode();
            if matches!(name.as_deref(), Some("." | "..")) {
                continue;
            }
            let name = name.ok_or_else(|| lossy(entry.name));
            self.entries.push_back(match name {
                Ok(name) if is_component(&name) => Ok(Entry {
                    name,
                    metadata: self.metadata(&entry),
                }),
                Ok(name) => Err(Error::InvalidName(
                    name,
                    "the server lists a name that is no name",
                )),
                Err(name) => Err(Error::InvalidName(name, "the name is not valid UTF-16")),
            });
        }
        match self.entries.len() > before {
            true => Ok(()),
            false => self.note_empty(count),
        }
    }

    fn metadata(&self, entry: &DirectoryEntry<'_>) -> Metadata {
        let metadata = Metadata::from_entry(entry);
        match self.class {
            FileInfoClass::POSIX => metadata.with_unix(&entry.posix),
            _ => metadata,
        }
    }

    /// The end of a listing has its own status. A server that sends empty buffers instead would do
    /// so without an end. `.` and `..` arrive once each.
    fn note_empty(&mut self, dots: usize) -> Result<(), Cause> {
        self.dots += dots;
        match (1..=DOTS_MAX).contains(&dots) && self.dots <= DOTS_MAX {
            true => Ok(()),
            false => Err(Cause::Malformed("the listing makes no progress".to_owned())),
        }
    }
}

/// A name that is not valid UTF-16, for messages.
fn lossy(name: Utf16<'_>) -> String {
    let (units, _) = name.0.as_chunks::<2>();
    let units: Vec<u16> = units.iter().map(|unit| u16::from_le_bytes(*unit)).collect();
    String::from_utf16_lossy(&units)
}

fn query(file: FileRef, class: FileInfoClass, pattern: &str, length: u32) -> Step {
    Step::QueryDirectory {
        file,
        class: class.0,
        restart: false,
        pattern: pattern.to_owned(),
        length,
    }
}

/// An iterator over the entries of a directory that blocks the thread while it waits for the
/// server. Made by [`ReadDir::blocking`].
#[derive(Debug)]
pub struct Blocking(ReadDir);

impl Blocking {
    /// Ends the listing, closes the directory, and blocks the thread until the server responds.
    ///
    /// # Errors
    /// The server reports an error, or the connection is lost.
    pub fn close(self) -> Result<(), Error> {
        self.0.close().wait()
    }
}

impl Iterator for Blocking {
    type Item = Result<Entry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().wait()
    }
}

impl fmt::Debug for ReadDir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadDir")
            .field("directory", &self.directory)
            .field("buffered", &self.entries.len())
            .field("is_done", &self.is_done)
            .finish_non_exhaustive()
    }
}

#[cfg(feature = "futures")]
impl futures_core::Stream for ReadDir {
    type Item = Result<Entry, Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_entry(context)
    }
}
