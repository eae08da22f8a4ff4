//! An open file.

pub(crate) mod io;
pub(crate) mod lease;
pub(crate) mod lock;
mod ranges;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use proto::client::request::{
    Attributes, Create, Created, Durability, FileRef, LeaseRequest, Reply,
};
use proto::client::{Request, Step};
use wire::access::OplockLevel;
use wire::create::CreateAction;
use wire::create_context::LeaseState as Rights;
use wire::fscc::{
    FileAllocationInformation, FileAttributeTagInformation, FileDispositionInformation,
    FileInternalInformation, FileNetworkOpenInformation,
};
use wire::fscc::{FileEndOfFileInformation, FileInfoClass, FileStandardInformation, InfoType};
use wire::fsctl::CtlCode;
use wire::tree_connect::ShareType;
use wire::{FileId, Status};

use crate::error::{Cause, Error, unexpected};
use crate::io::call::{Done, Memory, Pending};
use crate::io::leases::LeaseState;
use crate::io::opens::{Objects, OpenState};
use crate::metadata::{Changes, Metadata};
use crate::open_options::OpenOptions;
use crate::posix_query;
use crate::share::Share;
use crate::symlink::LinkWalk;

/// Length of FileNetworkOpenInformation in bytes. \[MS-FSCC\] 2.4.29
const NETWORK_OPEN_LEN: u32 = 56;
/// Length of the first query for a list in bytes: one credit. \[MS-SMB2\] 3.1.5.2
const LIST_LEN: u32 = 64 << 10;

/// An open file or directory on a server. A clone is cheap and refers to the same open. Dropping
/// the last clone closes the file in the background; [`close`](Self::close) waits for the response
/// of the server and returns its error.
///
/// A file stays valid after a loss of all connections, if its open is durable
/// ([`durable_timeout`](Self::durable_timeout)) or only reads a file that has not changed. Requests
/// wait until the client is connected again. If the server closed the file, requests fail with
/// [`Error::Lost`].
#[derive(Clone)]
pub struct File {
    inner: Arc<Inner>,
}

struct Inner {
    share: Share,
    path: String,
    /// FileId that the CREATE returned. Requests get the current one when they are sent.
    id: FileId,
    open: Arc<OpenState>,
    /// Attributes in the response to the CREATE.
    opened: Attributes,
    was_created: bool,
    is_append: bool,
    is_write_through: bool,
    is_closed: AtomicBool,
    /// Count of LOCKs, from which each gets its sequence number.
    locks: AtomicU32,
}

impl Share {
    /// Opens the file or directory `path`, relative to the root of the share, as `options`
    /// describe.
    ///
    /// # Errors
    /// The file does not exist, exists already (with `create_new`), the user lacks the right, or
    /// another open of it denies the access.
    pub async fn open(&self, path: &str, options: &OpenOptions) -> Result<File, Error> {
        let options = &self.options_here(options);
        self.open_at(path, options.to_wire(path)?, options).await
    }

    /// Opens a file as [`open`](Self::open) does, and queries its metadata. With the SMB3 POSIX
    /// extensions both are one message.
    ///
    /// # Errors
    /// As [`open`](Self::open) and [`File::metadata`].
    pub async fn open_with_metadata(
        &self,
        path: &str,
        options: &OpenOptions,
    ) -> Result<(File, Metadata), Error> {
        let options = &self.options_here(options);
        if options.posix.is_none() {
            let file = self.open(path, options).await?;
            let metadata = file.metadata().await?;
            return Ok((file, metadata));
        }
        let query = vec![posix_query::query_step(FileRef::Previous)];
        let opened = self.open_and(path, options.to_wire(path)?, (options, query));
        let (file, replies) = opened.await?;
        let metadata = match replies.into_iter().next() {
            Some(Ok(reply)) => posix_query::metadata_in(Some(&reply)),
            Some(Err(cause)) => Err(cause),
            None => Err(unexpected()),
        };
        let metadata = metadata.map_err(|cause| file.failed("query", cause))?;
        Ok((file, metadata))
    }

    /// Opens the path `wire` in the form of the protocol. `path` is the one of the caller.
    pub(crate) async fn open_at(
        &self,
        path: &str,
        wire: String,
        options: &OpenOptions,
    ) -> Result<File, Error> {
        let opened = self.open_and(path, wire, (options, Vec::new())).await;
        opened.map(|(file, _)| file)
    }

    /// As [`Self::open_at`], with further messages of the same compound. Returns their results.
    async fn open_and(
        &self,
        path: &str,
        wire: String,
        (options, steps): (&OpenOptions, Vec<Step>),
    ) -> Result<(File, Vec<Result<Reply, Cause>>), Error> {
        self.check_posix(options)
            .map_err(|cause| cause.of("open", path))?;
        let mut walk = LinkWalk::at(self.place(), wire);
        loop {
            let (mut open, mut done) = self.try_open((walk.path(), false), options, &steps).await;
            if open.is_refused(&done) {
                // Another file has taken the place of the one with the lease of the path.
                (open, done) = self.try_open((walk.path(), true), options, &steps).await;
            }
            let was_repeated = done.was_repeated;
            let mut replies = done
                .replies
                .map_err(|cause| cause.of("open", path))?
                .into_iter();
            let cause = match replies.next() {
                Some(Ok(Reply::Created(created))) => {
                    let file = File::new(self, path, (&created, open), options);
                    return Ok((file, replies.collect()));
                }
                Some(Err(cause)) if was_repeated && is_collision(&cause) => {
                    let why = "the connection was lost while the server created the file";
                    Cause::Lost(why.into())
                }
                Some(Err(cause)) => cause,
                Some(Ok(_)) | None => unexpected(),
            };
            if !walk.follow(&cause) {
                return Err(cause.of("open", path));
            }
        }
    }

    /// Sends the CREATE of a path with the messages behind it. `is_own`: with a lease that no other
    /// open has.
    async fn try_open(
        &self,
        (path, is_own): (&str, bool),
        options: &OpenOptions,
        behind: &[Step],
    ) -> (Arc<OpenState>, Done) {
        let (create, lease) = self.create_request(path, options, is_own);
        let open = OpenState::new(&self.inner.tree, create.clone(), lease);
        let mut steps = vec![Step::Create(create)];
        steps.extend_from_slice(behind);
        let pending = self.start_open(steps, Memory::None, &open);
        let done = pending.await;
        (open, done)
    }

    /// The CREATE of a path, with a lease and the request for a durable open where the server
    /// supports that. \[MS-SMB2\] 3.2.4.3.5, 3.2.4.3.8
    fn create_request(
        &self,
        path: &str,
        options: &OpenOptions,
        is_own: bool,
    ) -> (Create, Option<Arc<LeaseState>>) {
        let session = self.session();
        let dispatch = session.dispatch();
        let is_disk = self.share_type() == ShareType::DISK && dispatch.is_here();
        let may_cache = is_disk && session.has_leases() && options.may_cache();
        let rights = options.wanted_lease();
        let is_durable = may_cache
            && rights.contains(Rights::HANDLE_CACHING)
            && options.durable
            && session.has_durable_opens();
        let guid = session.fresh_guid(is_durable);
        let mut create = options.create_request(path.to_owned(), guid);
        if !may_cache || rights.is_empty() {
            return (create, None);
        }
        let fresh = session.inner.client.fresh_guid();
        let lease = dispatch.lease_for(&self.inner.tree, path, fresh, is_own);
        create.oplock = OplockLevel::LEASE;
        create.lease = Some(LeaseRequest {
            parent: dispatch.parent_lease(&self.inner.tree, path),
            ..LeaseRequest::new(lease.key, rights.0)
        });
        create.driver_acknowledges = true;
        if is_durable {
            create.durable = Durability::Request;
        }
        (create, Some(lease))
    }
}

impl OpenState {
    /// Whether the server refused the CREATE because its lease belongs to another file.
    /// \[MS-SMB2\] 3.3.5.9.11
    fn is_refused(&self, done: &Done) -> bool {
        let status = |reply: &Result<Reply, Cause>| reply.as_ref().err().and_then(Cause::status);
        let lease = self.lease.as_ref();
        let is_shared = lease.is_some_and(|lease| lease.now().is_granted());
        let first = done.replies.as_ref().ok().and_then(|it| it.first());
        is_shared && first.and_then(status) == Some(Status::INVALID_PARAMETER)
    }
}

/// Whether a CREATE failed because the file exists.
fn is_collision(cause: &Cause) -> bool {
    cause.status() == Some(Status::OBJECT_NAME_COLLISION)
}

impl File {
    /// The file of a response to a CREATE, and its open.
    pub(crate) fn new(
        share: &Share,
        path: &str,
        (created, open): (&Created, Arc<OpenState>),
        options: &OpenOptions,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                share: share.clone(),
                path: path.to_owned(),
                id: created.file_id,
                open,
                opened: created.attributes,
                was_created: created.action == CreateAction::CREATED.0,
                is_append: options.append,
                is_write_through: options.write_through,
                is_closed: AtomicBool::new(false),
                locks: AtomicU32::new(0),
            }),
        }
    }

    /// Returns the path that the caller opened, relative to the root of the share.
    pub fn path(&self) -> &str {
        &self.inner.path
    }

    /// Returns the share on which the file was opened.
    pub fn share(&self) -> &Share {
        &self.inner.share
    }

    pub(crate) fn file(&self) -> FileRef {
        FileRef::Id(self.inner.id)
    }

    /// The open, as it outlives its connection.
    pub(crate) fn open_state(&self) -> &Arc<OpenState> {
        &self.inner.open
    }

    /// Starts a request of these steps.
    pub(crate) fn start(&self, steps: Vec<Step>, memory: Memory) -> Pending {
        self.start_request(Request::new(None, steps), memory)
    }

    /// Starts a request.
    pub(crate) fn start_request(&self, request: Request, memory: Memory) -> Pending {
        let is_write = matches!(request.steps[..], [Step::Write { .. }, ..]);
        let is_counted = is_write && self.inner.share.session().dispatch().is_here();
        let lease = self.inner.open.lease.as_ref().filter(|_| is_counted);
        let objects = Objects {
            tree: None,
            open: Some(Arc::clone(&self.inner.open)),
            _write: lease.map(LeaseState::begin_write),
        };
        self.inner.share.start_on(request, memory, objects)
    }

    pub(crate) fn is_write_through(&self) -> bool {
        self.inner.is_write_through
    }

    pub(crate) fn is_append(&self) -> bool {
        self.inner.is_append
    }

    /// Returns whether the open created the file. An open with
    /// [`create`](crate::OpenOptions::create) opens an existing one.
    pub fn was_created(&self) -> bool {
        self.inner.was_created
    }

    /// Returns the metadata that the server sent when it opened the file. Sends no request.
    /// [`Metadata::file_id`] is `None`.
    pub fn opened_metadata(&self) -> Metadata {
        Metadata::from_attributes(&self.inner.opened, None)
    }

    /// Makes the error of a failed operation.
    pub(crate) fn failed(&self, operation: &'static str, cause: Cause) -> Error {
        cause.of(operation, self.path())
    }

    /// Queries the current metadata of the file from the server.
    ///
    /// # Errors
    /// The open has no right to read attributes, or the connection is lost.
    pub async fn metadata(&self) -> Result<Metadata, Error> {
        if self.inner.share.uses_posix {
            return self.posix_metadata().await;
        }
        let operation = "query";
        let info = self.query(FileInfoClass::NETWORK_OPEN, NETWORK_OPEN_LEN);
        let number = self.query(FileInfoClass::INTERNAL, FileInternalInformation::LEN as u32);
        let standard = self.start_len();
        let info = output(info.await).map_err(|cause| self.failed(operation, cause))?;
        let info = FileNetworkOpenInformation::decode(&info)
            .map_err(|error| self.failed(operation, error.into()))?;
        // A server without file numbers refuses this query.
        let number = output(number.await)
            .ok()
            .and_then(|bytes| FileInternalInformation::decode(&bytes).ok());
        let attributes = Attributes {
            created: info.created,
            accessed: info.accessed,
            written: info.written,
            changed: info.changed,
            allocation: info.allocation_size,
            size: info.end_of_file,
            attributes: info.attributes,
        };
        let number = number.map(|number| number.index_number);
        let mut metadata = Metadata::from_attributes(&attributes, number);
        let standard = output(standard.await).ok();
        metadata.set_links(standard.and_then(|it| FileStandardInformation::decode(&it).ok()));
        if metadata.has_unknown_tag() {
            let length = FileAttributeTagInformation::LEN as u32;
            let done = self.query(FileInfoClass::ATTRIBUTE_TAG, length).await;
            let tag = output(done).map_err(|cause| self.failed(operation, cause))?;
            let tag = FileAttributeTagInformation::decode(&tag)
                .map_err(|error| self.failed(operation, error.into()))?;
            metadata.set_tag(tag.reparse_tag);
        }
        Ok(metadata)
    }

    /// Queries the current length of the file in bytes from the server.
    ///
    /// # Errors
    /// The open has no right to read attributes, or the connection is lost.
    #[expect(
        clippy::len_without_is_empty,
        reason = "the length is a query to the server"
    )]
    pub async fn len(&self) -> Result<u64, Error> {
        self.finish_len(self.start_len().await)
    }

    /// Starts a query for the length of the file.
    pub(crate) fn start_len(&self) -> Pending {
        let length = FileStandardInformation::LEN as u32;
        self.query(FileInfoClass::STANDARD, length)
    }

    /// Takes the response to [`Self::start_len`].
    pub(crate) fn finish_len(&self, done: Done) -> Result<u64, Error> {
        let bytes = output(done).map_err(|cause| self.failed("query", cause))?;
        FileStandardInformation::decode(&bytes)
            .map(|info| info.end_of_file)
            .map_err(|error| self.failed("query", error.into()))
    }

    fn query(&self, class: FileInfoClass, length: u32) -> Pending {
        let step = Step::QueryInfo {
            file: self.file(),
            info_type: InfoType::FILE,
            class: class.0,
            additional: 0,
            length,
        };
        self.start(vec![step], Memory::None)
    }

    /// Queries information of any length. Servers return the first part of a list that does not fit
    /// (BUFFER_OVERFLOW), or refuse the query; then a second one has the longest buffer.
    pub(crate) async fn query_all(
        &self,
        info_type: InfoType,
        class: u8,
        additional: u32,
    ) -> Result<Vec<u8>, Cause> {
        let longest = self.share().session().negotiated().negotiated.max_transact;
        for length in [LIST_LEN.min(longest), longest] {
            let step = Step::QueryInfo {
                file: self.file(),
                info_type,
                class,
                additional,
                length,
            };
            match self.start(vec![step], Memory::None).await.only().0 {
                Ok(Reply::Output(bytes, false)) => return Ok(bytes),
                Ok(Reply::Output(..)) => {}
                Ok(_) => return Err(unexpected()),
                Err(cause) if Self::is_too_short(&cause) => {}
                Err(cause) => return Err(cause),
            }
        }
        Err(Cause::Unsendable(
            "the information is too long for one response",
        ))
    }

    /// Whether a query failed because its buffer is too short.
    pub(crate) fn is_too_short(cause: &Cause) -> bool {
        matches!(
            cause.status(),
            Some(Status::BUFFER_TOO_SMALL | Status::BUFFER_OVERFLOW | Status::INFO_LENGTH_MISMATCH)
        )
    }

    /// Truncates or extends the file to `len` bytes. New bytes are zeros.
    ///
    /// # Errors
    /// The open has no right to write, the volume is full, or a byte-range lock denies the change.
    pub async fn set_len(&self, len: u64) -> Result<(), Error> {
        let mut buffer = Vec::new();
        FileEndOfFileInformation { end_of_file: len }.encode(&mut buffer);
        self.set("resize", FileInfoClass::END_OF_FILE, buffer).await
    }

    /// Sets whether the server removes the file when its last open closes. Until then no new open
    /// of the file succeeds, and the present ones stay valid.
    ///
    /// # Errors
    /// The open has no DELETE right, the file is read-only, or a directory is not empty.
    pub async fn set_delete(&self, is_delete_pending: bool) -> Result<(), Error> {
        let mut buffer = Vec::new();
        FileDispositionInformation { is_delete_pending }.encode(&mut buffer);
        self.set("remove", FileInfoClass::DISPOSITION, buffer).await
    }

    /// Sets the disk space that the server allocates for the file, in bytes. A length below that of
    /// the file truncates the file.
    ///
    /// # Errors
    /// The open has no right to write, or the volume is full.
    pub async fn set_allocation(&self, len: u64) -> Result<(), Error> {
        let mut buffer = Vec::new();
        FileAllocationInformation {
            allocation_size: len,
        }
        .encode(&mut buffer);
        self.set("allocate", FileInfoClass::ALLOCATION, buffer)
            .await
    }

    /// Sends a FLUSH to the server and waits until all bytes written so far are on stable storage
    /// of the server.
    ///
    /// # Errors
    /// The open has no right to write, or the server cannot write the bytes.
    pub async fn sync(&self) -> Result<(), Error> {
        self.ask("sync", Step::Flush(self.file())).await.map(drop)
    }

    /// Changes timestamps and attributes of the file; values that are `None` in `changes` stay.
    ///
    /// # Errors
    /// The open has no right to write attributes.
    pub async fn set_metadata(&self, changes: &Changes) -> Result<(), Error> {
        let operation = "change the attributes of";
        self.set(operation, FileInfoClass::BASIC, changes.encode())
            .await
    }

    /// Renames or moves the file to the path `to`, relative to the root of the same share. If
    /// `replace` is true, the file replaces an existing file at that path.
    ///
    /// # Errors
    /// A file exists at that path and `replace` is false, the open has no DELETE right, or another
    /// open of the file denies the rename.
    pub async fn rename(&self, to: &str, replace: bool) -> Result<(), Error> {
        let buffer = self.inner.share.rename_buffer(to, replace)?;
        let target = self.inner.share.to_wire(to)?;
        let renamed = self.set("rename", FileInfoClass::RENAME, buffer.clone());
        if let Err(error) = renamed.await {
            // The server may have renamed the file before the connection was lost.
            if !error.is_lost() || self.inner.open.file_id().is_err() {
                return Err(error);
            }
            if !self.is_at(to).await? {
                self.set("rename", FileInfoClass::RENAME, buffer).await?;
            }
        }
        let from = self.inner.open.path();
        self.inner.share.has_renamed(&from, &target);
        Ok(())
    }

    /// Whether the path is that of this file.
    async fn is_at(&self, path: &str) -> Result<bool, Error> {
        let own = self.metadata().await?.file_id;
        match self.inner.share.symlink_metadata(path).await {
            Ok(found) => Ok(own.is_some() && found.file_id == own),
            Err(error) if error.is_lost() => Err(error),
            Err(_) => Ok(false),
        }
    }

    /// Sends an FSCTL. Returns its output, and whether the output is truncated.
    pub(crate) async fn ioctl(
        &self,
        code: CtlCode,
        input: Vec<u8>,
        max_output: u32,
    ) -> Result<(Vec<u8>, bool), Cause> {
        let step = Step::Ioctl {
            file: Some(self.file()),
            code,
            input,
            max_output,
        };
        match self.start(vec![step], Memory::None).await.only() {
            (Ok(Reply::Ioctl(output, has_more)), _) => Ok((output, has_more)),
            (Ok(_), _) => Err(unexpected()),
            (Err(cause), _) => Err(cause),
        }
    }

    /// Closes the file. All clones of this [`File`] fail from then on. A second call does nothing.
    ///
    /// # Errors
    /// The server reports an error, or the connection is lost.
    pub async fn close(&self) -> Result<(), Error> {
        if self.inner.is_closed.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        let step = Step::Close {
            file: self.file(),
            query: false,
        };
        self.ask("close", step).await.map(drop)
    }

    pub(crate) async fn set(
        &self,
        operation: &'static str,
        class: FileInfoClass,
        buffer: Vec<u8>,
    ) -> Result<(), Error> {
        let step = Step::SetInfo {
            file: self.file(),
            info_type: InfoType::FILE,
            class: class.0,
            additional: 0,
            buffer,
        };
        self.ask(operation, step).await.map(drop)
    }

    pub(crate) async fn ask(&self, operation: &'static str, step: Step) -> Result<Reply, Error> {
        let (reply, _) = self.start(vec![step], Memory::None).await.only();
        reply.map_err(|cause| self.failed(operation, cause))
    }
}

/// The output buffer of a query.
pub(crate) fn output(done: Done) -> Result<Vec<u8>, Cause> {
    match done.only().0? {
        Reply::Output(bytes, _) => Ok(bytes),
        _ => Err(unexpected()),
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if !self.is_closed.swap(true, Ordering::SeqCst) && self.share.session().dispatch().is_here()
        {
            let step = Step::Close {
                file: FileRef::Id(self.id),
                query: false,
            };
            drop(self.share.start_with(vec![step], Memory::None, &self.open));
        }
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "File({})", self.path())
    }
}
