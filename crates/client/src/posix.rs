//! The SMB3 POSIX extensions of Samba, Linux and smbeam: opens with exact names, and the Unix
//! metadata of files. "SMB3 POSIX Protocol Extensions"

use std::borrow::Cow;
use std::sync::Arc;

use proto::client::Step;
use proto::client::request::FileRef;
use wire::access::AccessMask;
use wire::fscc::{DispositionFlags, FileDispositionInformationEx, FileInfoClass};

use crate::buffer::IoSource;
use crate::error::{Error, unexpected};
use crate::file::File;
use crate::file::io::written;
use crate::io::call::Memory;
use crate::metadata::Metadata;
use crate::open_options::OpenOptions;
use crate::path;
use crate::posix_changes::PosixChanges;
use crate::posix_query::{metadata_in, query_step};
use crate::share::{Share, set};

/// The name of the query for messages.
const QUERY: &str = "query the Unix metadata of";
/// The name of a change for messages.
const CHANGE: &str = "change the attributes of";

impl File {
    /// Queries metadata with [`Metadata::unix`]. The file must be open with
    /// [`OpenOptions::posix`](crate::OpenOptions::posix).
    ///
    /// # Errors
    /// The open does not use the POSIX extensions, or the connection is lost.
    pub async fn posix_metadata(&self) -> Result<Metadata, Error> {
        let reply = self.start(vec![query_step(self.file())], Memory::None);
        let reply = reply.await.only().0;
        let decoded = reply.and_then(|reply| metadata_in(Some(&reply)));
        decoded.map_err(|cause| self.failed(QUERY, cause))
    }

    /// Changes attributes of the file in one message, and returns its metadata after that with
    /// [`Metadata::unix`].
    ///
    /// # Errors
    /// The open lacks a right: WRITE_DAC for the permissions, WRITE_OWNER for owner and group,
    /// FILE_WRITE_ATTRIBUTES for the rest, FILE_READ_ATTRIBUTES in any case; the user may not
    /// change the owner; the open does not use the POSIX extensions. Changes before the one that
    /// failed are done.
    pub async fn change_posix(&self, changes: &PosixChanges) -> Result<Metadata, Error> {
        let steps = self.change_steps(changes);
        let replies = self.start(steps, Memory::None).await.all().0;
        let decoded = replies.and_then(|replies| metadata_in(replies.last()));
        decoded.map_err(|cause| self.failed(CHANGE, cause))
    }

    /// Writes all bytes of the buffer to the file, starting at `offset` (bytes), and then changes
    /// attributes as [`change_posix`](Self::change_posix) does, in one message. The buffer is not
    /// longer than [`SMALL_WRITE`](Self::SMALL_WRITE). Returns the results of both and the buffer.
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at) and [`change_posix`](Self::change_posix). The changes are
    /// made even if the write fails.
    ///
    /// # Panics
    /// If the buffer is longer.
    pub async fn write_and_change_posix<B: IoSource>(
        &self,
        (buffer, offset): (B, u64),
        changes: &PosixChanges,
    ) -> (Result<(), Error>, Result<Metadata, Error>, B) {
        let source = buffer.into_source();
        let len = source.len();
        assert!(len <= Self::SMALL_WRITE, "{len} bytes are no small write");
        let mut steps = vec![self.write_step(len, offset)];
        steps.extend(self.change_steps(changes));
        let done = self.start(steps, Memory::Source(source)).await;
        let buffer = done.memory.into_source();
        let buffer = buffer.map_or_else(B::lost_source, B::from_source);
        let mut replies = match done.replies {
            Ok(replies) => replies.into_iter(),
            Err(cause) => {
                let failed = self.failed("write", cause.clone());
                return (Err(failed), Err(self.failed(CHANGE, cause)), buffer);
            }
        };
        let first = replies.next().unwrap_or_else(|| Err(unexpected()));
        let wrote = written(first, len).map(drop);
        let changed = replies.collect::<Result<Vec<_>, _>>();
        let changed = changed.and_then(|replies| metadata_in(replies.last()));
        (
            wrote.map_err(|cause| self.failed("write", cause)),
            changed.map_err(|cause| self.failed(CHANGE, cause)),
            buffer,
        )
    }

    /// Length in bytes of the longest write of
    /// [`write_and_change_posix`](Self::write_and_change_posix): one credit.
    pub const SMALL_WRITE: usize = 64 << 10;

    fn change_steps(&self, changes: &PosixChanges) -> Vec<Step> {
        let mut steps = changes.steps(self.file());
        steps.push(query_step(self.file()));
        steps
    }
}

impl Share {
    /// Returns the share with the SMB3 POSIX extensions for all opens by a path; `None` if
    /// [`has_posix`](Self::has_posix) is false. Paths have exact names as in
    /// [`OpenOptions::posix`], [`metadata`](Self::metadata) and [`read_dir`](Self::read_dir) return
    /// [`Metadata::unix`], and a removal or rename does not depend on open files.
    #[must_use]
    pub fn with_posix(&self) -> Option<Self> {
        self.has_posix().then(|| Self {
            inner: Arc::clone(&self.inner),
            uses_posix: true,
        })
    }

    /// Returns whether all opens by a path use the SMB3 POSIX extensions.
    pub fn uses_posix(&self) -> bool {
        self.uses_posix
    }

    /// The options of an open of this share.
    pub(crate) fn options_here<'a>(&self, options: &'a OpenOptions) -> Cow<'a, OpenOptions> {
        match self.uses_posix {
            true => Cow::Owned(options.clone().with_posix()),
            false => Cow::Borrowed(options),
        }
    }

    /// Converts a path to the form of the protocol.
    pub(crate) fn to_wire(&self, path: &str) -> Result<String, Error> {
        match self.uses_posix {
            true => path::to_posix(path),
            false => path::to_wire(path),
        }
    }

    /// Removes the name of a file or of an empty directory at once, even if the file is open.
    /// \[MS-FSCC\] 2.4.12
    pub(crate) async fn remove_with_posix(
        &self,
        path: &str,
        is_directory: bool,
    ) -> Result<(), Error> {
        let mut options = OpenOptions::new()
            .access(AccessMask::DELETE)
            .directory(is_directory)
            .follow(false)
            .with_posix();
        // Opens of the file keep their caching rights, and so survive a loss of the connection.
        options.shares_lease = !is_directory;
        let mut buffer = Vec::new();
        let flags = DispositionFlags::DELETE | DispositionFlags::POSIX_SEMANTICS;
        FileDispositionInformationEx { flags }.encode(&mut buffer);
        let step = set(FileInfoClass::DISPOSITION_EX.0, buffer);
        let done = self.alone_with(path, &options, vec![step]).await;
        done.map(drop).map_err(|cause| cause.of("remove", path))
    }

    /// Returns whether the server has the SMB3 POSIX extensions, and the client asked for them
    /// ([`Options::posix`](crate::Options::posix)).
    pub fn has_posix(&self) -> bool {
        self.session().negotiated().negotiated.posix
    }

    /// Queries metadata of the file or directory `path` with [`Metadata::unix`], by the SMB3 POSIX
    /// extensions. `path` has the exact names of the files, with `/` between them, relative to the
    /// root of the share. If the path is a symbolic link, returns the metadata of the link itself.
    ///
    /// # Errors
    /// The server does not have the extensions, the file does not exist, or the user may not access
    /// it.
    pub async fn posix_metadata(&self, path: &str) -> Result<Metadata, Error> {
        self.look_with_posix(path, false).await
    }

    /// Creates a file or directory with the permission bits `mode`, by the SMB3 POSIX extensions,
    /// and returns its metadata with [`Metadata::unix`]. `path` is as in
    /// [`posix_metadata`](Self::posix_metadata).
    ///
    /// # Errors
    /// The server does not have the extensions, the path exists, or the user may not create it.
    pub async fn create_posix(
        &self,
        path: &str,
        mode: u32,
        is_directory: bool,
    ) -> Result<Metadata, Error> {
        let options = OpenOptions::new()
            .access(AccessMask::FILE_READ_ATTRIBUTES)
            .directory(is_directory)
            .create_new(true)
            .follow(false)
            .posix(mode);
        self.query_with_posix(("create", path), &options, Vec::new())
            .await
    }

    /// Queries metadata with [`Metadata::unix`], of a link or of its target.
    pub(crate) async fn look_with_posix(
        &self,
        path: &str,
        follow: bool,
    ) -> Result<Metadata, Error> {
        let options = OpenOptions::new()
            .access(AccessMask::FILE_READ_ATTRIBUTES)
            .follow(follow)
            .posix(0);
        self.query_with_posix((QUERY, path), &options, Vec::new())
            .await
    }

    /// Opens a file, executes `steps`, queries its metadata and closes it, all in one message.
    async fn query_with_posix(
        &self,
        (operation, path): (&'static str, &str),
        options: &OpenOptions,
        mut steps: Vec<Step>,
    ) -> Result<Metadata, Error> {
        steps.push(query_step(FileRef::Previous));
        let last = steps.len();
        let wire = options.to_wire(path)?;
        let replies = self.alone_wire(wire, options, steps).await;
        let decoded = replies.and_then(|replies| metadata_in(replies.get(last)));
        decoded.map_err(|cause| cause.of(operation, path))
    }

    /// Changes attributes of the file or directory `path` in one message, by the SMB3 POSIX
    /// extensions, and returns its metadata after that with [`Metadata::unix`]. `path` is as in
    /// [`posix_metadata`](Self::posix_metadata). If it is a symbolic link, the link itself is
    /// changed, not its target; a link has no permissions to change.
    ///
    /// # Errors
    /// The server does not have the extensions, the file does not exist, or the user may not change
    /// it. Changes before the one that failed are done.
    pub async fn change_posix(
        &self,
        path: &str,
        changes: &PosixChanges,
    ) -> Result<Metadata, Error> {
        let options = OpenOptions::new()
            .access(changes.access() | AccessMask::FILE_READ_ATTRIBUTES)
            .follow(false)
            .posix(0);
        let steps = changes.steps(FileRef::Previous);
        self.query_with_posix((CHANGE, path), &options, steps).await
    }
}
