//! A share: operations on files by path.

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, OnceLock};

use proto::client::request::{Create, Created, FileRef, LeaseRequest, Reply};
use proto::client::{Request, Step};
use tracing::debug;
use wire::access::{AccessMask, CreateDisposition, FileAttributes, OplockLevel};
use wire::fscc::{
    FileAttributeTagInformation, FileDispositionInformation, FileFsAttributeInformation,
    FileFsFullSizeInformation, FileFsVolumeInformation, FileInfoClass, FileInternalInformation,
    FileRenameInformation, FileStandardInformation, FileSystemAttributes, FsInfoClass, InfoType,
};
use wire::tree_connect::{ShareFlags, ShareType};
use wire::{Status, TreeId, Utf16};

use crate::error::{Cause, Error, unexpected};
use crate::io::call::{Memory, Pending};
use crate::io::dispatch::Links;
use crate::io::opens::{Objects, OpenState};
use crate::io::tree::TreeState;
use crate::metadata::{Changes, Metadata, Volume};
use crate::open_options::OpenOptions;
use crate::path;
use crate::session::Session;
use crate::symlink::{LinkWalk, Place};

/// Length of a query for a volume in bytes: the longest names fit.
const VOLUME_LEN: u32 = 1024;
/// Largest file in bytes that is opened, read or written, and closed in one message. For a larger
/// file a further round trip costs little beside the data.
pub(crate) const WHOLE_BYTES_MAX: u32 = 1 << 20;

/// A share of a server. Cheap to clone. Dropping the last clone disconnects the share.
///
/// Paths are relative to the root of the share. `/` and `\` separate components. The empty path is
/// the root. A path with `..`, a colon or another character that SMB excludes fails with
/// [`Error::InvalidName`] before any request is sent. [`Share::with_posix`] returns the share with
/// other names.
#[derive(Clone)]
pub struct Share {
    pub(crate) inner: Arc<Inner>,
    /// Whether all opens by path use the SMB3 POSIX extensions.
    pub(crate) uses_posix: bool,
}

pub(crate) struct Inner {
    pub(crate) session: Session,
    pub(crate) tree: Arc<TreeState>,
    share_type: ShareType,
    maximal_access: AccessMask,
    /// The same share on the session that replaced a lost one.
    pub(crate) successor: OnceLock<Share>,
    /// The same share on a second session.
    pub(crate) second_session: SecondSession,
    /// Whether the first READ requests more bytes than it needs. After that the malloc of smbd
    /// keeps enough memory for the next ones instead of returning it to the kernel after each.
    pub(crate) is_fresh: AtomicBool,
    /// Whether the server accepts only one CREATE per message.
    pub(crate) opens_one: AtomicBool,
}

/// A login under way.
pub(crate) type Opening = Pin<Box<dyn Future<Output = Result<Share, Error>> + Send>>;

/// What there is of a second session.
#[derive(Default)]
pub(crate) struct SecondSession {
    pub(crate) share: Mutex<Option<Share>>,
    /// A login that nobody waits for: who reads next looks whether it is done.
    pub(crate) opening: Mutex<Option<Opening>>,
    /// Small files that were announced, and that were asked for.
    pub(crate) announced: AtomicUsize,
    pub(crate) asked: AtomicUsize,
    /// Whether there was a login for their sake.
    pub(crate) was_begun: AtomicBool,
}

impl Session {
    /// Connects to a share. `name` is the share alone: `data`, not `\\server\data`.
    ///
    /// # Errors
    /// The share does not exist, or the user may not connect to it.
    pub async fn share(&self, name: &str) -> Result<Share, Error> {
        Share::connect(self, name).await
    }
}

impl Share {
    async fn connect(session: &Session, name: &str) -> Result<Self, Error> {
        if name.is_empty() || name.contains(['/', '\\', '\0']) {
            let why = "the name of a share cannot be empty or contain / or \\";
            return Err(Error::InvalidName(name.to_owned(), why));
        }
        let step = Step::TreeConnect(name.to_owned());
        let request = Request::new(None, vec![step]);
        let pending = session.dispatch().start(request, Memory::None);
        let (reply, _) = pending.await.only();
        let operation = "connect to share";
        match reply.map_err(|cause| cause.of(operation, name))? {
            Reply::TreeConnected {
                tree,
                share_type,
                flags,
                capabilities: _,
                maximal_access,
            } => {
                let encrypt = flags.contains(ShareFlags::ENCRYPT_DATA);
                let host = session.host();
                debug!(
                    host,
                    share = name,
                    ?share_type,
                    encrypt,
                    "connected to a share"
                );
                let tree = TreeState::new(name, encrypt, tree);
                session.dispatch().opens(|table| table.add_tree(&tree));
                Ok(Self {
                    inner: Arc::new(Inner {
                        session: session.clone(),
                        tree,
                        share_type,
                        maximal_access,
                        successor: OnceLock::new(),
                        second_session: SecondSession::default(),
                        is_fresh: AtomicBool::new(false),
                        opens_one: AtomicBool::new(false),
                    }),
                    uses_posix: false,
                })
            }
            _ => Err(unexpected().of(operation, name)),
        }
    }

    /// Returns the name of the share as the caller gave it to [`Session::share`].
    pub fn name(&self) -> &str {
        &self.inner.tree.name
    }

    /// The place in which links of a path stay.
    pub(crate) fn place(&self) -> Place<'_> {
        Place {
            host: self.session().host(),
            share: self.name(),
        }
    }

    /// Returns the session through which the client is connected to the share.
    pub fn session(&self) -> &Session {
        &self.inner.session
    }

    /// Returns the type of the share: disk, pipe or printer.
    pub fn share_type(&self) -> ShareType {
        self.inner.share_type
    }

    /// Returns the access rights of the user on the root of the share, as the server reported them.
    pub fn maximal_access(&self) -> AccessMask {
        self.inner.maximal_access
    }

    /// Starts a request of these steps.
    pub(crate) fn start(&self, steps: Vec<Step>, memory: Memory) -> Pending {
        self.start_on(Request::new(None, steps), memory, Objects::default())
    }

    /// Starts a request of these steps with a CREATE that makes an open. The open is in the table
    /// of the session before its response can arrive, so that the client can reclaim it.
    pub(crate) fn start_open(
        &self,
        steps: Vec<Step>,
        memory: Memory,
        open: &Arc<OpenState>,
    ) -> Pending {
        let dispatch = self.session().dispatch();
        if dispatch.is_here() {
            dispatch.add_open(open);
        }
        self.start_with(steps, memory, open)
    }

    /// Starts a request of these steps that uses an open.
    pub(crate) fn start_with(
        &self,
        steps: Vec<Step>,
        memory: Memory,
        open: &Arc<OpenState>,
    ) -> Pending {
        let objects = Objects {
            open: Some(Arc::clone(open)),
            ..Objects::default()
        };
        self.start_on(Request::new(None, steps), memory, objects)
    }

    /// Starts a request.
    pub(crate) fn start_on(
        &self,
        mut request: Request,
        memory: Memory,
        mut objects: Objects,
    ) -> Pending {
        let tree = &self.inner.tree;
        // A tree that the server refused to connect again has no number. The request fails.
        request.tree = tree.id().ok().or(Some(TreeId(0)));
        request.encrypt = tree.encrypt;
        objects.tree = Some(Arc::clone(tree));
        self.inner
            .session
            .dispatch()
            .start_on(request, memory, objects)
    }

    /// Queries the metadata of a file or directory. If the path is a link, returns the metadata of
    /// the target.
    ///
    /// # Errors
    /// The file does not exist, or the user may not access it.
    pub async fn metadata(&self, path: &str) -> Result<Metadata, Error> {
        self.look(path, true).await
    }

    /// Queries the metadata of a file or directory. If the path is a link, returns the metadata of
    /// the link itself.
    ///
    /// # Errors
    /// The file does not exist, or the user may not access it.
    pub async fn symlink_metadata(&self, path: &str) -> Result<Metadata, Error> {
        self.look(path, false).await
    }

    async fn look(&self, path: &str, follow: bool) -> Result<Metadata, Error> {
        if self.uses_posix {
            return self.look_with_posix(path, follow).await;
        }
        let options = OpenOptions::new()
            .access(AccessMask::FILE_READ_ATTRIBUTES)
            .follow(follow);
        let number = query(
            InfoType::FILE,
            FileInfoClass::INTERNAL.0,
            FileInternalInformation::LEN as u32,
        );
        let standard = query(
            InfoType::FILE,
            FileInfoClass::STANDARD.0,
            FileStandardInformation::LEN as u32,
        );
        let mut walk = LinkWalk::new(self.place(), path)?;
        let (created, mut replies) = loop {
            let queries = vec![number.clone(), standard.clone()];
            let steps = compound_at(walk.path().to_owned(), &options, queries);
            let done = self.start(steps, Memory::None).await;
            let mut replies = done
                .replies
                .map_err(|cause| cause.of("query", path))?
                .into_iter();
            match first_created(replies.next()) {
                Ok(created) => break (created, replies),
                Err(cause) if walk.follow(&cause) => {}
                Err(cause) => return Err(cause.of("look at", path)),
            }
        };
        // A server without file numbers refuses this query.
        let number = match replies.next() {
            Some(Ok(Reply::Output(bytes, _))) => FileInternalInformation::decode(&bytes).ok(),
            _ => None,
        };
        let number = number.map(|number| number.index_number);
        let mut metadata = Metadata::from_attributes(&created.attributes, number);
        if let Some(Ok(Reply::Output(bytes, _))) = replies.next() {
            metadata.set_links(FileStandardInformation::decode(&bytes).ok());
        }
        if metadata.has_unknown_tag() {
            let tag = self.reparse_tag(walk.path(), &options).await;
            metadata.set_tag(tag.map_err(|cause| cause.of("query", path))?);
        }
        Ok(metadata)
    }

    /// Queries the tag of a reparse point.
    async fn reparse_tag(&self, path: &str, options: &OpenOptions) -> Result<u32, Cause> {
        let class = FileInfoClass::ATTRIBUTE_TAG.0;
        let length = FileAttributeTagInformation::LEN as u32;
        let steps = vec![query(InfoType::FILE, class, length)];
        let steps = compound_at(path.to_owned(), options, steps);
        match self.start(steps, Memory::None).await.all().0?.get(1) {
            Some(Reply::Output(bytes, _)) => {
                Ok(FileAttributeTagInformation::decode(bytes)?.reparse_tag)
            }
            _ => Err(unexpected()),
        }
    }

    /// Creates a directory.
    ///
    /// # Errors
    /// The name exists, the parent directory does not exist, or the user may not create a directory
    /// there.
    pub async fn create_dir(&self, path: &str) -> Result<(), Error> {
        let options = OpenOptions::new()
            .access(AccessMask::FILE_READ_ATTRIBUTES)
            .attributes(FileAttributes::DIRECTORY)
            .directory(true)
            .create_new(true);
        self.alone("make directory", path, &options, Vec::new())
            .await
            .map(drop)
    }

    /// Creates a directory and its missing parents. Succeeds if the directory exists.
    ///
    /// # Errors
    /// The user may not create a directory there, or a component of the path is a file.
    pub async fn create_dir_all(&self, path: &str) -> Result<(), Error> {
        let wire = path::to_wire(path)?;
        let options = OpenOptions::new()
            .access(AccessMask::FILE_READ_ATTRIBUTES)
            .attributes(FileAttributes::DIRECTORY)
            .directory(true)
            .create(true);
        // Mostly the one above is there: from the longest path down, then up again. Servers do not
        // agree on the word for one that is not (impacket's says ACCESS_DENIED); on the way up the
        // same word is told.
        let ends: Vec<_> = (0..wire.len())
            .filter(|at| wire.as_bytes()[*at] == b'\\')
            .chain([wire.len()])
            .collect();
        let mut depth = ends.len();
        let mut is_climbing = true;
        while depth > 0 {
            let part = &wire[..ends[depth - 1]];
            match self
                .alone("make directory", part, &options, Vec::new())
                .await
            {
                Ok(_) if depth == ends.len() => return Ok(()),
                Ok(_) => {
                    is_climbing = false;
                    depth += 1;
                }
                Err(error) if is_climbing && depth > 1 && error.status().is_some() => depth -= 1,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Removes a file. If the path is a link, removes the link and not the target.
    ///
    /// # Errors
    /// The file does not exist, is a directory or read-only, the user may not delete it, or another
    /// open denies the deletion.
    pub async fn remove_file(&self, path: &str) -> Result<(), Error> {
        self.remove(path, false).await
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// The directory is not empty or does not exist, the path is a file, or another open denies the
    /// deletion.
    pub async fn remove_dir(&self, path: &str) -> Result<(), Error> {
        self.remove(path, true).await
    }

    /// By disposition: it fails for a directory that is not empty, which deleting on close does
    /// not. \[MS-FSA\] 2.1.5.15.3
    async fn remove(&self, path: &str, is_directory: bool) -> Result<(), Error> {
        if self.uses_posix {
            match self.remove_with_posix(path, is_directory).await {
                Err(error) if is_unknown_class(&error) => {}
                removed => return removed,
            }
        }
        let options = OpenOptions::new()
            .access(AccessMask::DELETE | AccessMask::FILE_READ_ATTRIBUTES)
            .directory(is_directory)
            .follow(false);
        let mut buffer = Vec::new();
        FileDispositionInformation {
            is_delete_pending: true,
        }
        .encode(&mut buffer);
        let step = set(FileInfoClass::DISPOSITION.0, buffer);
        self.alone("remove", path, &options, vec![step])
            .await
            .map(drop)
    }

    /// Renames or moves a file or directory from the path `from` to the path `to` of the same
    /// share. If `replace` is true, it replaces an existing file at the path `to`.
    ///
    /// # Errors
    /// The path `to` exists and `replace` is false, or another open of the file denies the rename.
    pub async fn rename(&self, from: &str, to: &str, replace: bool) -> Result<(), Error> {
        let options = OpenOptions::new()
            .access(AccessMask::DELETE | AccessMask::FILE_READ_ATTRIBUTES)
            .follow(false);
        let step = set(FileInfoClass::RENAME.0, self.rename_buffer(to, replace)?);
        self.alone("rename", from, &options, vec![step]).await?;
        self.has_renamed(&self.to_wire(from)?, &self.to_wire(to)?);
        Ok(())
    }

    /// Creates a hard link: another name `link` of the file `path`, both relative to the root of
    /// the share.
    ///
    /// # Errors
    /// The path `link` exists, the file is a directory, or the server does not support hard links.
    pub async fn hard_link(&self, path: &str, link: &str) -> Result<(), Error> {
        let options = OpenOptions::new()
            .access(AccessMask::FILE_WRITE_ATTRIBUTES | AccessMask::FILE_READ_ATTRIBUTES)
            .follow(false);
        let step = set(FileInfoClass::LINK.0, self.rename_buffer(link, false)?);
        self.alone("create a hard link to", path, &options, vec![step])
            .await
            .map(drop)
    }

    /// Changes the paths of the opens of a file or directory that was renamed. The paths are in the
    /// form of the protocol.
    pub(crate) fn has_renamed(&self, from: &str, to: &str) {
        let dispatch = self.session().dispatch();
        dispatch.renamed(&self.inner.tree, from, to);
    }

    /// Changes timestamps and attributes of a file or directory; values that are `None` in
    /// `changes` stay.
    ///
    /// # Errors
    /// The file does not exist, or the user may not change its attributes.
    pub async fn set_metadata(&self, path: &str, changes: &Changes) -> Result<(), Error> {
        let options = OpenOptions::new().access(AccessMask::FILE_WRITE_ATTRIBUTES);
        let step = set(FileInfoClass::BASIC.0, changes.encode());
        self.alone("change the attributes of", path, &options, vec![step])
            .await
            .map(drop)
    }

    /// As [`set_metadata`](Self::set_metadata), but if the path is a link, changes the link itself.
    ///
    /// # Errors
    /// The file does not exist, or the user may not change its attributes.
    pub async fn set_symlink_metadata(&self, path: &str, changes: &Changes) -> Result<(), Error> {
        let options = OpenOptions::new()
            .access(AccessMask::FILE_WRITE_ATTRIBUTES)
            .follow(false);
        let step = set(FileInfoClass::BASIC.0, changes.encode());
        self.alone("change the attributes of", path, &options, vec![step])
            .await
            .map(drop)
    }

    /// The TCP connections, if a transfer may choose the length of its requests to suit them.
    pub(crate) fn links(&self) -> Option<Links> {
        let options = self.session().options();
        let is_free = options.io_size == 0 && options.depth == 0;
        is_free.then(|| self.session().dispatch().links())?
    }

    /// Largest READ in bytes.
    pub(crate) fn max_read(&self) -> u32 {
        self.session()
            .negotiated()
            .max_read(self.inner.tree.encrypt)
    }

    /// Largest WRITE in bytes.
    pub(crate) fn max_write(&self) -> u32 {
        self.session()
            .negotiated()
            .max_write(self.inner.tree.encrypt)
    }

    /// Whether messages of the share are signed or encrypted.
    pub(crate) fn is_protected(&self) -> bool {
        self.session()
            .negotiated()
            .is_protected(self.inner.tree.encrypt)
    }

    /// Queries the size and the free space of the volume of the share's root directory.
    ///
    /// # Errors
    /// The user may not open the root of the share, or the server refuses the query.
    pub async fn volume(&self) -> Result<Volume, Error> {
        self.volume_of("").await
    }

    /// Queries the size and the free space of the volume that holds the file or directory `path`,
    /// relative to the root of the share. The volume can differ from that of the root, because
    /// servers can mount volumes below it.
    ///
    /// # Errors
    /// The path does not exist, or the server reports an error.
    pub async fn volume_of(&self, path: &str) -> Result<Volume, Error> {
        let fs = |class: FsInfoClass| query(InfoType::FILESYSTEM, class.0, VOLUME_LEN);
        let queries = vec![
            fs(FsInfoClass::FULL_SIZE),
            fs(FsInfoClass::VOLUME),
            fs(FsInfoClass::ATTRIBUTE),
        ];
        let options = OpenOptions::new().access(AccessMask::FILE_READ_ATTRIBUTES);
        let operation = "query the volume of";
        let replies = self.alone_with(path, &options, queries).await;
        let subject = if path.is_empty() { self.name() } else { path };
        replies
            .and_then(|replies| volume(&replies))
            .map_err(|cause| cause.of(operation, subject))
    }

    /// Opens a file, executes the steps and closes the file, all in one message.
    async fn alone(
        &self,
        operation: &'static str,
        path: &str,
        options: &OpenOptions,
        steps: Vec<Step>,
    ) -> Result<Vec<Reply>, Error> {
        let options = &self.options_here(options);
        let wire = options.to_wire(path)?;
        self.alone_at(operation, (path, wire), options, steps).await
    }

    /// As [`Self::alone`], for the path `wire` in the form of the protocol. `path` is the one of
    /// the caller.
    pub(crate) async fn alone_at(
        &self,
        operation: &'static str,
        (path, wire): (&str, String),
        options: &OpenOptions,
        steps: Vec<Step>,
    ) -> Result<Vec<Reply>, Error> {
        let mut walk = LinkWalk::at(self.place(), wire);
        let replies = self.try_alone(&mut walk, options, steps).await;
        replies.map_err(|cause| cause.of(operation, path))
    }

    /// As [`Self::alone`], with the cause of a failure.
    pub(crate) async fn alone_with(
        &self,
        path: &str,
        options: &OpenOptions,
        steps: Vec<Step>,
    ) -> Result<Vec<Reply>, Cause> {
        let options = &self.options_here(options);
        let wire = options.to_wire(path);
        let wire = wire.map_err(|_| Cause::Status(Status::OBJECT_NAME_INVALID))?;
        self.alone_wire(wire, options, steps).await
    }

    /// As [`Self::alone_with`], for the path `wire` in the form of the protocol.
    pub(crate) async fn alone_wire(
        &self,
        wire: String,
        options: &OpenOptions,
        steps: Vec<Step>,
    ) -> Result<Vec<Reply>, Cause> {
        self.try_alone(&mut LinkWalk::at(self.place(), wire), options, steps)
            .await
    }

    /// Fails if an open wants the SMB3 POSIX extensions, and the server does not have them.
    pub(crate) fn check_posix(&self, options: &OpenOptions) -> Result<(), Cause> {
        match options.posix.is_some() && !self.has_posix() {
            true => {
                let why = "the server does not have the SMB3 POSIX extensions";
                Err(Cause::Unsendable(why))
            }
            false => Ok(()),
        }
    }

    async fn try_alone(
        &self,
        walk: &mut LinkWalk<'_>,
        options: &OpenOptions,
        steps: Vec<Step>,
    ) -> Result<Vec<Reply>, Cause> {
        self.check_posix(options)?;
        let mut shares_lease = options.shares_lease;
        loop {
            let mut compound = compound_at(walk.path().to_owned(), options, steps.clone());
            let mut has_lease = false;
            if let Some(Step::Create(create)) = compound.first_mut() {
                has_lease = shares_lease && self.share_lease(create);
                self.name_parent_lease(create);
            }
            match self.start(compound, Memory::None).await.all().0 {
                Err(cause) if walk.follow(&cause) => {}
                // The path has become another file. [MS-SMB2] 3.3.5.9.11
                Err(cause) if has_lease && cause.status() == Some(Status::INVALID_PARAMETER) => {
                    shares_lease = false;
                }
                replies => return replies,
            }
        }
    }

    /// Lets a CREATE name the lease of this client on the path, which it then does not break.
    /// Returns whether the client has one.
    fn share_lease(&self, create: &mut Create) -> bool {
        let tree = &self.inner.tree;
        let Some(lease) = self.session().dispatch().known_lease(tree, &create.name) else {
            return false;
        };
        create.oplock = OplockLevel::LEASE;
        create.lease = Some(LeaseRequest::new(lease.key, lease.now().state.0));
        create.driver_acknowledges = true;
        true
    }

    /// Names the lease on the directory in a CREATE that changes the directory: the server does not
    /// break it then. An open without a lease gets no rights by that. \[MS-SMB2\] 2.2.13.2.10
    fn name_parent_lease(&self, create: &mut Create) {
        let reads = AccessMask::FILE_READ_ATTRIBUTES | AccessMask::READ_CONTROL;
        let only_reads =
            reads.contains(create.access) && create.disposition == CreateDisposition::OPEN;
        let session = self.session();
        let dispatch = session.dispatch();
        if only_reads || !session.has_leases() || !dispatch.is_here() {
            return;
        }
        if let Some(parent) = dispatch.parent_lease(&self.inner.tree, &create.name) {
            create.oplock = OplockLevel::LEASE;
            let fresh = || LeaseRequest::new(session.inner.client.fresh_guid(), 0);
            create.lease.get_or_insert_with(fresh).parent = Some(parent);
        }
    }

    /// FileRenameInformation for the new path.
    pub(crate) fn rename_buffer(&self, to: &str, replace: bool) -> Result<Vec<u8>, Error> {
        let name = wire::text::utf16(&self.to_wire(to)?);
        if name.is_empty() {
            let why = "a file cannot replace the root of the share";
            return Err(Error::InvalidName(to.to_owned(), why));
        }
        let mut buffer = Vec::new();
        FileRenameInformation {
            is_replacing: replace,
            root_directory: 0,
            name: Utf16(&name),
        }
        .encode(&mut buffer);
        Ok(buffer)
    }

    pub(crate) fn compound(
        &self,
        path: &str,
        options: &OpenOptions,
        steps: Vec<Step>,
    ) -> Result<Vec<Step>, Error> {
        let options = &self.options_here(options);
        Ok(compound_at(options.to_wire(path)?, options, steps))
    }
}

/// A compound that opens a path in the form of the protocol, executes the steps and closes it.
pub(crate) fn compound_at(wire: String, options: &OpenOptions, steps: Vec<Step>) -> Vec<Step> {
    let create: Create = options.create_request(wire, None);
    let close = Step::Close {
        file: FileRef::Previous,
        query: false,
    };
    let compound = [Step::Create(create)].into_iter().chain(steps);
    compound.chain([close]).collect()
}

/// The reply to the CREATE of a compound.
pub(crate) fn first_created(reply: Option<Result<Reply, Cause>>) -> Result<Created, Cause> {
    match reply {
        Some(Ok(Reply::Created(created))) => Ok(created),
        Some(Err(cause)) => Err(cause),
        _ => Err(unexpected()),
    }
}

fn query(info_type: InfoType, class: u8, length: u32) -> Step {
    Step::QueryInfo {
        file: FileRef::Previous,
        info_type,
        class,
        additional: 0,
        length,
    }
}

pub(crate) fn set(class: u8, buffer: Vec<u8>) -> Step {
    Step::SetInfo {
        file: FileRef::Previous,
        info_type: InfoType::FILE,
        class,
        additional: 0,
        buffer,
    }
}

/// Whether a server does not know an information class.
fn is_unknown_class(error: &Error) -> bool {
    let unknown = [
        Status::INVALID_INFO_CLASS,
        Status::NOT_SUPPORTED,
        Status::INVALID_PARAMETER,
    ];
    error.status().is_some_and(|it| unknown.contains(&it))
}

fn volume(replies: &[Reply]) -> Result<Volume, Cause> {
    let [
        _,
        Reply::Output(size, _),
        Reply::Output(label, _),
        Reply::Output(kind, _),
        ..,
    ] = replies
    else {
        return Err(unexpected());
    };
    let size = FileFsFullSizeInformation::decode(size)?;
    let label = FileFsVolumeInformation::decode(label)?;
    let kind = FileFsAttributeInformation::decode(kind)?;
    let block = u64::from(size.sectors_per_allocation_unit) * u64::from(size.bytes_per_sector);
    let bytes = |units: u64| units.saturating_mul(block);
    Ok(Volume {
        total: bytes(size.total_allocation_units),
        available: bytes(size.caller_available_allocation_units),
        free: bytes(size.actual_available_allocation_units),
        block,
        serial: label.serial_number,
        label: label.label.decode().unwrap_or_default(),
        filesystem: kind.file_system_name.decode().unwrap_or_default(),
        keeps_access_lists: kind
            .attributes
            .contains(FileSystemAttributes::PERSISTENT_ACLS),
    })
}

impl Drop for Inner {
    fn drop(&mut self) {
        let dispatch = self.session.dispatch();
        // The LOGOFF of the session, which follows, ends its tree connects. A request on another
        // channel could reach the server after it.
        if dispatch.is_here()
            && !self.session.is_last()
            && let Ok(id) = self.tree.id()
        {
            let mut request = Request::new(Some(id), vec![Step::TreeDisconnect]);
            request.encrypt = self.tree.encrypt;
            let objects = Objects {
                tree: Some(Arc::clone(&self.tree)),
                ..Objects::default()
            };
            drop(dispatch.start_on(request, Memory::None, objects));
        }
    }
}

impl fmt::Debug for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Share({} on {})", self.name(), self.session().host())
    }
}
