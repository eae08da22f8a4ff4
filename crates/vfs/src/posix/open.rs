//! Open and creation of files.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use proto::file::{
    Existing, FileKey, FileKind, KindWanted, LocalOpen, Metadata, OpenPlan, Opened, PosixOpen,
};
use proto::path::SharePath;
use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags, accessat, fcntl_setfl, mkdirat, unlinkat};
use rustix::io::Errno;
use wire::Status;
use wire::access::AccessMask;
use wire::security::SecurityDescriptor;

use super::Posix;
use super::access::{Decided, Subject};
use super::basic::keep;
use super::directory::{Entry, Parent, RACES, Run, open_name};
use super::file::{DirectDescriptor, Listing, Location, OpenFile};
use super::file_ref::FileRef;
use super::new_mode::{self, OWNER};
use super::reparse::Missing;
use super::stat::{Stat, by_descriptor, kind_of, stat};
use super::volume::Volume;
use crate::errno::{Context, status};
use crate::rights::{self, Permissions};
use crate::{Effort, Step, Stop, attributes, disposition, dosattrib::DosInfo, identity};

/// A file that an open found or created.
struct Target {
    /// An O_PATH descriptor, unless the file is new.
    fd: OwnedFd,
    metadata: Metadata,
    volume: Arc<Volume>,
    location: Location,
    /// The file of the name itself: the target, or the link to it.
    named: FileKey,
    /// Whether the name is a link that was followed.
    is_followed: bool,
    /// Whether the file is new; `fd` is then open for its data or entries.
    created: bool,
    /// The descriptor for the data or entries of an existing file, if it was opened before the
    /// checks.
    early: Option<Early>,
}

/// A file that was opened for its data or entries before the checks.
struct Early {
    fd: OwnedFd,
    /// The flags of the open.
    flags: OFlags,
}

/// The result of the open of a file for its data or entries.
enum Reopened {
    /// The name now refers to another file.
    Replaced,
    /// The same file; `None` if the rights require no more than O_PATH.
    Same(Option<OwnedFd>),
}

/// An open that is not in the table yet; its slot number is 0.
pub(super) struct Prepared {
    pub(super) file: OpenFile,
    pub(super) opened: Opened,
}

/// The access rights of an open.
#[derive(Clone, Copy)]
struct Rights {
    granted: AccessMask,
    implied: AccessMask,
    maximal: AccessMask,
}

impl Posix {
    pub(super) fn open(&self, plan: &OpenPlan, effort: Effort) -> Step<Opened> {
        if plan.share != self.share {
            return Err(Status::INVALID_PARAMETER.into());
        }
        let token = self.credentials(&plan.token);
        identity::assume(token)?;
        let root = self.root(token, effort)?;
        if self.options.large_streams {
            self.sweeps.start_if_due(&root);
        }
        let run = Run {
            token,
            user: &plan.token,
            root: &root,
            effort,
            is_exact: plan.posix.is_some(),
        };
        if let Some(stream) = plan.path.stream() {
            return self.open_stream(plan, stream, run);
        }
        self.open_file(plan, run)
            .map(|prepared| self.insert(prepared))
    }

    /// Adds an open to the table.
    pub(super) fn insert(&self, prepared: Prepared) -> Opened {
        let Prepared { file, mut opened } = prepared;
        opened.file.slot = self.files.insert(Arc::new(file));
        opened
    }

    /// Opens or creates the file of a plan. An open that fails because a directory of the path is
    /// missing has stopped if one of them is a reparse point.
    pub(super) fn open_file(&self, plan: &OpenPlan, run: Run<'_>) -> Step<Prepared> {
        let opened = self.open_path(plan, run);
        let missing = match &opened {
            Err(Stop::Failed(Status::OBJECT_PATH_NOT_FOUND)) => Missing::Directory,
            Err(Stop::Failed(Status::OBJECT_NAME_NOT_FOUND)) => Missing::Name,
            _ => return opened,
        };
        match self.leads_through_reparse(&plan.path, missing, run)? {
            true => Err(Status::STOPPED_ON_SYMLINK.into()),
            false => opened,
        }
    }

    fn open_path(&self, plan: &OpenPlan, run: Run<'_>) -> Step<Prepared> {
        if plan.path.is_root() {
            return self.open_root(plan, run);
        }
        let path = self.canonical_for(&plan.path, plan.existing)?;
        let parent = self.finished_directory(&path.parent(), run)?;
        // Another process may create or remove the name at the same time; then start again.
        for _ in 0..RACES {
            let found = self.finished_entry(&parent.directory, path.name(), run)?;
            let opened = match found {
                Some(entry) => self.open_existing(plan, &parent, entry, run)?,
                None => self.create(plan, &parent, path.name(), run)?,
            };
            if let Some(opened) = opened {
                return Ok(opened);
            }
        }
        Err(Status::SHARING_VIOLATION.into())
    }

    fn open_root(&self, plan: &OpenPlan, run: Run<'_>) -> Step<Prepared> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let fd = self.beneath(&plan.path, flags, run)?;
        let fd = fd.map_err(|errno| status(errno, Context::Open))?;
        let stat = stat(&fd).map_err(|errno| status(errno, Context::Open))?;
        let location = Location {
            parent: run.root.clone(),
            name: String::new(),
            path: SharePath::root(),
        };
        let volume = run.root.volume.clone();
        let file_ref = FileRef {
            fd: &fd,
            volume: &volume,
            is_path: true,
            token: run.token,
            may_set_attributes: false,
        };
        let metadata = self.metadata(file_ref, &stat, "");
        let is_asked = plan.access.contains(AccessMask::DELETE);
        let may_remove = is_asked && self.may_remove(run, &metadata, (&fd, &volume, &stat), true);
        let target = Target {
            fd,
            metadata,
            volume,
            location,
            named: stat.key(),
            is_followed: false,
            created: false,
            early: None,
        };
        let opened = self.open_target(plan, target, may_remove, run)?;
        opened.ok_or(Status::SHARING_VIOLATION.into())
    }

    /// Opens an existing file; `None` if it no longer exists.
    fn open_existing(
        &self,
        plan: &OpenPlan,
        parent: &Parent,
        entry: Entry,
        run: Run<'_>,
    ) -> Step<Option<Prepared>> {
        let Entry {
            name,
            fd,
            stat: named,
        } = entry;
        let path = parent.path.join(&name);
        let is_link = kind_of(&named) == FileKind::Link;
        let opens_link = plan.open_link || run.is_exact;
        let is_followed = is_link && !opens_link && plan.existing != Existing::Create;
        let (fd, stat) = match is_followed {
            true => self.follow(&path, run)?,
            false => (fd, named),
        };
        let near = &parent.directory.volume;
        let volume = self.volumes.find(&fd, &stat, near, run.token);
        let metadata = self.metadata_with(&volume, &stat, None, &name);
        let location = Location {
            parent: parent.directory.clone(),
            name,
            path,
        };
        let mut target = Target {
            fd,
            metadata,
            volume,
            location,
            named: named.key(),
            is_followed,
            created: false,
            early: None,
        };
        target.early = self.open_early(plan, &mut target, run);
        target.metadata = self.metadata(target.file_ref(run), &stat, &target.location.name);
        disposition::existing(plan, &target.metadata)?;
        let deletes = AccessMask::DELETE | AccessMask::MAXIMUM_ALLOWED;
        let asks_kernel = (plan.access | plan.implied_access).intersects(deletes);
        let directory = (&*parent.directory.fd, &**near, &parent.stat);
        let may_remove = self.may_remove(run, &target.metadata, directory, asks_kernel);
        self.open_target(plan, target, may_remove, run)
    }

    /// The target of a link.
    pub(super) fn follow(&self, path: &SharePath, run: Run<'_>) -> Step<(OwnedFd, Stat)> {
        let fd = self.beneath(path, OFlags::PATH, run)?;
        let fd = fd.map_err(|errno| status(errno, Context::Open))?;
        let stat = stat(&fd).map_err(|errno| status(errno, Context::Open))?;
        Ok((fd, stat))
    }

    /// Whether the token may remove a file's name from a directory. If the mode does not permit it,
    /// the kernel decides, because an access control list may.
    pub(super) fn may_remove(
        &self,
        run: Run<'_>,
        file: &Metadata,
        (directory, volume, stat): (&OwnedFd, &Volume, &Stat),
        asks_kernel: bool,
    ) -> bool {
        let token = identity::effective(run.token);
        let parent = self.metadata_with(volume, stat, None, "");
        let mut has = Permissions::of(&token, &parent);
        if asks_kernel && !has.changes_names() {
            has = with_kernel_permissions(directory, has);
        }
        rights::may_remove(&token, file, &parent, has)
    }

    /// Opens a file that was found; `None` if its name now refers to another one.
    fn open_target(
        &self,
        plan: &OpenPlan,
        mut target: Target,
        may_remove: bool,
        run: Run<'_>,
    ) -> Step<Option<Prepared>> {
        disposition::existing(plan, &target.metadata)?;
        let mut rights = self.rights(plan, &target, may_remove, run)?;
        let mut opened = self.reopen(&mut target, rights.granted | rights.implied, run)?;
        let named = plan.access | plan.implied_access;
        let is_optional = !named.intersects(rights::WRITE_DATA);
        if is_optional
            && let Err(Errno::ACCESS | Errno::ROFS | Errno::PERM | Errno::TXTBSY) = opened
        {
            // With MAXIMUM_ALLOWED, the kernel may permit less than the mode does.
            rights.granted = rights.granted.without(rights::WRITE_DATA);
            opened = self.reopen(&mut target, rights.granted, run)?;
        }
        match opened.map_err(|errno| status(errno, Context::Open))? {
            Reopened::Replaced => Ok(None),
            Reopened::Same(fd) => {
                let may_keep = self
                    .descriptor_reserve
                    .check(fd.as_ref().unwrap_or(&target.fd));
                may_keep.map_err(|errno| status(errno, Context::Open))?;
                Ok(Some(self.enter(plan, target, fd, rights, run)))
            }
        }
    }

    /// The access rights of an open of an existing file.
    fn rights(
        &self,
        plan: &OpenPlan,
        target: &Target,
        may_remove: bool,
        run: Run<'_>,
    ) -> Step<Rights> {
        let parent = &target.location.parent;
        let parent = FileRef {
            fd: &parent.fd,
            volume: &parent.volume,
            is_path: true,
            token: run.token,
            may_set_attributes: false,
        };
        let subject = Subject {
            file: target.file_ref(run),
            metadata: &target.metadata,
            parent: (!target.location.is_root()).then_some(parent),
            may_remove,
        };
        if let Some(Decided { granted, maximal }) = self.decide(plan, subject, run) {
            return Ok(Rights {
                granted: granted?,
                implied: plan.implied_access,
                maximal,
            });
        }
        let token = identity::effective(&plan.token);
        let file = &target.metadata;
        let has = Permissions::of(&token, file);
        let (asked, implied) = (plan.access, plan.implied_access);
        let mut maximal = rights::maximal(&token, file, has, may_remove);
        let mut granted = rights::grant(maximal, asked, implied, file);
        let wants_more = granted.is_err() || asked.contains(AccessMask::MAXIMUM_ALLOWED);
        if wants_more && !(has.read && has.write) {
            // The mode does not include access control lists, so the kernel decides.
            let has = with_kernel_permissions(&target.fd, has);
            maximal = rights::maximal(&token, file, has, may_remove);
            granted = rights::grant(maximal, asked, implied, file);
        }
        Ok(Rights {
            granted: granted?,
            implied,
            maximal,
        })
    }

    /// Opens an existing file with the access mode for the rights that the request names, before
    /// the rights are checked. The attributes then cost a sixth of what they cost through an O_PATH
    /// descriptor, which needs a path below `/proc` for them. `None` if that fails, or if the
    /// rights require no more than O_PATH.
    fn open_early(&self, plan: &OpenPlan, target: &mut Target, run: Run<'_>) -> Option<Early> {
        if plan.existing == Existing::Create {
            return None;
        }
        let access = plan.access | plan.implied_access;
        let flags = flags_for(target.metadata.kind, access)?;
        match self.reopen(target, access, run) {
            Ok(Ok(Reopened::Same(fd))) => Some(Early { fd: fd?, flags }),
            _ => None,
        }
    }

    /// Opens a file with the access mode for these rights.
    fn reopen(
        &self,
        target: &mut Target,
        access: AccessMask,
        run: Run<'_>,
    ) -> Step<Result<Reopened, Errno>> {
        let Some(flags) = flags_for(target.metadata.kind, access) else {
            return Ok(Ok(Reopened::Same(None)));
        };
        if let Some(early) = target.early.take_if(|early| early.flags == flags) {
            return Ok(Ok(Reopened::Same(Some(early.fd))));
        }
        // Another process may have replaced the file by a FIFO or a device.
        let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = match target.is_followed || target.location.is_root() {
            true => self.beneath(&target.location.path, flags, run)?,
            false => open_name(
                &target.location.parent,
                &self.disk_name(&target.location.name)?,
                flags,
                run.effort,
            )?,
        };
        Ok(match opened {
            Ok(fd) => same_file(fd, target, flags),
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO | Errno::NOTDIR) => Ok(Reopened::Replaced),
            Err(errno) => Err(errno),
        })
    }

    /// Makes an open, with the O_PATH descriptor of the target or the reopened one.
    fn enter(
        &self,
        plan: &OpenPlan,
        target: Target,
        fd: Option<OwnedFd>,
        rights: Rights,
        run: Run<'_>,
    ) -> Prepared {
        let Target {
            fd: path_fd,
            metadata,
            volume,
            location,
            named,
            is_followed: _,
            created,
            early: _,
        } = target;
        let Rights {
            granted,
            implied,
            maximal,
        } = rights;
        let path = location.path.clone();
        let access = granted | implied;
        let file = OpenFile {
            token: run.token.clone(),
            user: plan.token.clone(),
            access,
            key: metadata.key,
            volume,
            root: run.root.clone(),
            kind: metadata.kind,
            is_path: fd.is_none() && !created,
            fd: Arc::new(fd.unwrap_or(path_fd)),
            link: self.links.share(named, location),
            is_exact: plan.posix.is_some(),
            stream: None,
            listing: Mutex::new(Listing::default()),
            direct_descriptor: DirectDescriptor::default(),
            write_gate: self
                .write_gates
                .as_ref()
                .map(|gates| gates.of(metadata.key)),
        };
        let opened = Opened {
            file: LocalOpen {
                share: self.share,
                slot: 0,
            },
            created,
            granted,
            maximal,
            metadata,
            path,
        };
        Prepared { file, opened }
    }

    /// Creates a file; `None` if another process has created the name.
    fn create(
        &self,
        plan: &OpenPlan,
        parent: &Parent,
        name: &str,
        run: Run<'_>,
    ) -> Step<Option<Prepared>> {
        let granted = disposition::absent(plan)?;
        // fallocate may allocate many extents, which takes long.
        if plan.allocation > 0 && run.effort == Effort::Cached {
            return Err(Stop::WouldBlock);
        }
        let on_disk = self.disk_name(name)?;
        let _name_lock = self.index.lock_name(&parent.directory, name, run.effort)?;
        if !run.is_exact && self.index.spell(&parent.directory, name, run)?.is_some() {
            return Ok(None);
        }
        let is_directory = plan.kind == KindWanted::Directory;
        let inherits = self.parent_descriptor(is_directory, parent, run)?;
        // The mode of a POSIX client decides. The directory's default list still limits it.
        let inherits = inherits.filter(|_| plan.posix.is_none());
        let has_descriptor = inherits.is_some() || plan.security.is_some();
        let _creation = has_descriptor.then(|| self.unfinished.begin());
        self.changes.will_change(parent.directory.key);
        let Some(fd) = self.make(plan, parent, &on_disk, granted | plan.implied_access)? else {
            return Ok(None);
        };
        let furnished = self.furnish(plan, (&fd, parent), inherits.as_ref(), run);
        let descriptor = furnished.inspect_err(|_| {
            let flags = match plan.kind {
                KindWanted::Directory => AtFlags::REMOVEDIR,
                KindWanted::Any | KindWanted::File => AtFlags::empty(),
            };
            let _ = unlinkat(&parent.directory.fd, &*on_disk, flags);
        })?;
        let stat = stat(&fd).map_err(|errno| status(errno, Context::Open))?;
        if kind_of(&stat) == FileKind::Directory {
            self.changes
                .created(parent.directory.key, name, &fd, run.token);
        }
        let near = &parent.directory.volume;
        let volume = self.volumes.find(&fd, &stat, near, run.token);
        let file_ref = FileRef {
            fd: &fd,
            volume: &volume,
            is_path: false,
            token: run.token,
            may_set_attributes: true,
        };
        let metadata = self.metadata(file_ref, &stat, name);
        let path = parent.path.join(name);
        let location = Location {
            parent: parent.directory.clone(),
            name: name.to_owned(),
            path,
        };
        let token = identity::effective(run.user);
        let has = Permissions::of(&token, &metadata);
        let maximal = match descriptor.filter(|_| !token.is_root()) {
            Some(descriptor) => {
                let owners = super::security::owners(&metadata);
                self.granted(&descriptor, &token, owners) | AccessMask::DELETE
            }
            None => rights::maximal(&token, &metadata, has, true),
        };
        let maximal = maximal | granted;
        let rights = Rights {
            granted,
            implied: plan.implied_access,
            maximal,
        };
        let named = stat.key();
        let target = Target {
            fd,
            metadata,
            volume,
            location,
            named,
            is_followed: false,
            created: true,
            early: None,
        };
        Ok(Some(self.enter(plan, target, None, rights, run)))
    }

    /// Creates a file or directory and opens it; `None` if the name exists.
    fn make(
        &self,
        plan: &OpenPlan,
        parent: &Parent,
        name: &[u8],
        access: AccessMask,
    ) -> Step<Option<OwnedFd>> {
        let made = match plan.kind {
            KindWanted::Directory => self.make_directory(plan, parent, name),
            KindWanted::Any | KindWanted::File => self.make_file(plan, parent, name, access),
        };
        match made {
            Ok(fd) => Ok(Some(fd)),
            Err(Errno::EXIST | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            // The parent directory was removed.
            Err(Errno::NOENT) => Err(Status::OBJECT_PATH_NOT_FOUND.into()),
            Err(errno) => Err(status(errno, Context::Open).into()),
        }
    }

    fn make_file(
        &self,
        plan: &OpenPlan,
        parent: &Parent,
        name: &[u8],
        access: AccessMask,
    ) -> Result<OwnedFd, Errno> {
        let flags = flags_for(FileKind::File, access).unwrap_or(OFlags::RDONLY);
        let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = plan
            .posix
            .map_or(self.options.file_mode, |posix| posix.mode);
        let mode = Mode::from_raw_mode(mode);
        rustix::fs::openat(&parent.directory.fd, name, flags, mode)
    }

    fn make_directory(
        &self,
        plan: &OpenPlan,
        parent: &Parent,
        name: &[u8],
    ) -> Result<OwnedFd, Errno> {
        let own = self.options.directory_mode;
        let mode = plan.posix.map_or(own, |posix| posix.mode | OWNER);
        let mode = Mode::from_raw_mode(mode);
        mkdirat(&parent.directory.fd, name, mode)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(&parent.directory.fd, name, flags, Mode::empty())
    }

    /// Sets attributes, creation time, reserved space and security descriptor of a new file. Fails
    /// if the descriptor reserve does not permit the open. Returns the security descriptor, if it
    /// has one beside its permissions.
    fn furnish(
        &self,
        plan: &OpenPlan,
        (fd, parent): (&OwnedFd, &Parent),
        inherits: Option<&SecurityDescriptor>,
        run: Run<'_>,
    ) -> Step<Option<SecurityDescriptor>> {
        let may_keep = self.descriptor_reserve.check(fd);
        may_keep.map_err(|errno| status(errno, Context::Open))?;
        let kind = match plan.kind {
            KindWanted::Directory => FileKind::Directory,
            KindWanted::Any | KindWanted::File => FileKind::File,
        };
        if kind == FileKind::File && plan.allocation > 0 {
            super::data::reserve(fd, plan.allocation)?;
        }
        let file_ref = FileRef {
            fd,
            volume: &parent.directory.volume,
            is_path: false,
            token: run.token,
            may_set_attributes: true,
        };
        let stored = attributes::of_new(plan.attributes, kind);
        let info = DosInfo {
            attributes: Some(stored),
            created: Some(super::basic::now()),
        };
        if let Some(posix) = plan.posix {
            self.furnish_posix(plan, posix, file_ref, parent)?;
        }
        keep(file_ref, info);
        // With a service account, descriptors alone decide, those of POSIX clients too.
        if plan.posix.is_some() && !self.has_service_account() {
            return Ok(None);
        }
        self.secure(plan, file_ref, inherits, run)
    }
}

impl Posix {
    /// Sets owner and mode of a new file of a POSIX client. The mode comes last: a change of the
    /// owner removes bits.
    fn furnish_posix(
        &self,
        plan: &OpenPlan,
        PosixOpen { mode }: PosixOpen,
        file: FileRef<'_>,
        parent: &Parent,
    ) -> Step<()> {
        let failed = |errno| status(errno, Context::Attributes);
        let made = stat(file.fd).map_err(failed)?;
        let sent = plan.security.as_deref();
        if let Some(descriptor) = sent.filter(|_| !self.has_service_account()) {
            let hands_down_group = u32::from(parent.stat.0.stx_mode) & new_mode::SET_GROUP_ID != 0;
            self.own_new(file, descriptor, hands_down_group)?;
        }
        let corrected = new_mode::correct(file.fd, &made, &parent.directory, mode);
        Ok(corrected.map_err(failed)?)
    }
}

impl Target {
    /// The file for its extended attributes, by the descriptor for which they cost least.
    fn file_ref<'a>(&'a self, run: Run<'a>) -> FileRef<'a> {
        FileRef {
            fd: self.early.as_ref().map_or(&self.fd, |early| &early.fd),
            volume: &self.volume,
            is_path: self.early.is_none(),
            token: run.token,
            may_set_attributes: false,
        }
    }
}

/// The flags to open a file with these rights; `None` if they require no more than O_PATH.
fn flags_for(kind: FileKind, access: AccessMask) -> Option<OFlags> {
    let reads = access.intersects(rights::READ_DATA);
    let writes = access.intersects(rights::WRITE_DATA);
    match kind {
        FileKind::File => match (reads, writes) {
            (true, true) => Some(OFlags::RDWR),
            (false, true) => Some(OFlags::WRONLY),
            (true, false) => Some(OFlags::RDONLY),
            (false, false) => None,
        },
        FileKind::Directory if access.contains(AccessMask::FILE_LIST_DIRECTORY) => {
            Some(OFlags::RDONLY | OFlags::DIRECTORY)
        }
        FileKind::Directory | FileKind::Link | FileKind::Special => None,
    }
}

/// Checks that the descriptor is the file that was found.
fn same_file(fd: OwnedFd, target: &Target, flags: OFlags) -> Result<Reopened, Errno> {
    if stat(&fd)?.key() != target.metadata.key {
        return Ok(Reopened::Replaced);
    }
    // io_uring interprets O_NONBLOCK on a file as: never wait.
    fcntl_setfl(&fd, flags.difference(OFlags::NONBLOCK | OFlags::NOCTTY))?;
    Ok(Reopened::Same(Some(fd)))
}

/// The permissions of the mode, and those that the kernel grants beyond them through access control
/// lists.
pub(super) fn with_kernel_permissions(fd: &OwnedFd, has: Permissions) -> Permissions {
    let path = by_descriptor(fd);
    let allows = |access| accessat(CWD, path.as_str(), access, AtFlags::EACCESS).is_ok();
    Permissions {
        read: has.read || allows(Access::READ_OK),
        write: has.write || allows(Access::WRITE_OK),
        execute: has.execute || allows(Access::EXEC_OK),
    }
}
