//! Directory listings.
//!
//! Entries are read in batches of 32 KiB. For each selected entry the kernel returns metadata and
//! Samba's extended attribute, by name within the directory and without an open. A name that SMB
//! cannot carry is mapped to another one, or omitted (see [`super::Options::names`]).
//!
//! A link is listed as its target within the share. A link without such a target is listed as a
//! link, so that clients can see and remove it. Clients of the SMB3 POSIX extensions follow links
//! themselves: for them every link is listed as one.

use std::os::fd::OwnedFd;
use std::sync::{Arc, PoisonError};

use proto::file::{DirectoryEntry, DirectoryPlan, FileKind, Outcome, Select};
use rustix::fs::{Mode, OFlags, RawDir, SeekFrom, lgetxattr, openat, seek};
use rustix::io::Errno;
use wire::Status;
use wire::file_name::NameMapping;

use super::Posix;
use super::directory::Run;
use super::file::{Listing, Location, OpenFile};
use super::file_ref::FileRef;
use super::reparse::stored as reparse;
use super::scan::BUFFER;
use super::stat::{
    Stat, by_descriptor, kind_of, or_as_server, stat, stat_name, supports_attributes,
};
use super::volume::Volume;
use crate::dosattrib::{self, DosInfo};
use crate::errno::{Context, status};
use crate::{Effort, Step, Stop};

impl Posix {
    pub(super) fn read_directory(
        &self,
        file: &OpenFile,
        plan: &DirectoryPlan,
        run: Run<'_>,
    ) -> Step<Outcome> {
        let DirectoryPlan {
            restart,
            select,
            limit,
        } = plan;
        if file.kind != FileKind::Directory {
            return Err(Status::INVALID_PARAMETER.into());
        }
        if file.is_path {
            return Err(Status::ACCESS_DENIED.into());
        }
        if run.effort == Effort::Cached && !matches!(select, Select::Name(_)) {
            return Err(Stop::WouldBlock);
        }
        let mut listing = file.listing.lock().unwrap_or_else(PoisonError::into_inner);
        if *restart {
            *listing = Listing::default();
            seek(&*file.fd, SeekFrom::Start(0)).map_err(|errno| status(errno, Context::Data))?;
        }
        let entries = match select {
            Select::Name(name) => self.one(file, &mut listing, name, run)?,
            Select::All | Select::Matching(_) => {
                self.next(file, &mut listing, select, *limit as usize, run)?
            }
        };
        Ok(Outcome::Directory(entries))
    }

    /// Returns the entry of one name at the first call, and no entry afterward.
    fn one(
        &self,
        file: &OpenFile,
        listing: &mut Listing,
        name: &str,
        run: Run<'_>,
    ) -> Step<Vec<DirectoryEntry>> {
        if listing.is_begun {
            return Ok(Vec::new());
        }
        let found = match name {
            "." | ".." => Some(name.to_owned()),
            name => self.listed_name(file, name, run)?,
        };
        listing.is_begun = true;
        let mut lister = Lister::new(self, file, run);
        Ok(found
            .and_then(|name| lister.entry(name))
            .into_iter()
            .collect())
    }

    /// The name of an entry as a listing spells it; `None` if it does not exist.
    fn listed_name(&self, file: &OpenFile, name: &str, run: Run<'_>) -> Step<Option<String>> {
        let Some(name) = self.options.names.canonical(name) else {
            return Ok(None);
        };
        if file.key == run.root.key && self.hides_in_root(&name) {
            return Ok(None);
        }
        let entry = self.entry(&file.directory(), &name, run)?;
        Ok(entry.map(|entry| entry.name))
    }

    /// Returns the next selected entries.
    fn next(
        &self,
        file: &OpenFile,
        listing: &mut Listing,
        select: &Select,
        limit: usize,
        run: Run<'_>,
    ) -> Step<Vec<DirectoryEntry>> {
        if !listing.is_begun {
            listing.is_begun = true;
            listing.names.extend([".", ".."].map(str::to_owned));
        }
        let hides = |name: &str| file.key == run.root.key && self.hides_in_root(name);
        let mut lister = Lister::new(self, file, run);
        let mut entries = Vec::new();
        while entries.len() < limit {
            let Some(name) = listing.names.pop_front() else {
                if !fill(&file.fd, listing, self.options.names)? {
                    break;
                }
                continue;
            };
            if crate::selects(select, &name) && !hides(&name) {
                entries.extend(lister.entry(name));
            }
        }
        Ok(entries)
    }
}

/// Reads a batch of names. Returns false at the end of the directory.
fn fill(directory: &OwnedFd, listing: &mut Listing, names: NameMapping) -> Result<bool, Status> {
    let mut buffer = Box::new_uninit_slice(BUFFER);
    let mut entries = RawDir::new(directory, &mut buffer);
    let mut skipped = 0;
    while let Some(entry) = entries.next() {
        let entry = match entry {
            Ok(entry) => entry,
            // The directory was removed while it was open, and is empty.
            Err(Errno::NOENT) => return Ok(false),
            Err(errno) => return Err(status(errno, Context::Data)),
        };
        match entry.file_name().to_bytes() {
            b"." | b".." => {}
            name => match names.to_wire(name) {
                Some(name) => listing.names.push_back(name.into_owned()),
                None => skipped += 1,
            },
        }
        if entries.is_buffer_empty() {
            if skipped > 0 {
                tracing::debug!(skipped, "omitted names that SMB cannot carry");
            }
            return Ok(true);
        }
    }
    Ok(false)
}

/// Creates entries from names.
struct Lister<'a> {
    posix: &'a Posix,
    file: &'a OpenFile,
    run: Run<'a>,
    location: Location,
    /// The path of the directory through its descriptor, followed by the name of the last entry.
    path: Vec<u8>,
    stem: usize,
}

impl<'a> Lister<'a> {
    fn new(posix: &'a Posix, file: &'a OpenFile, run: Run<'a>) -> Self {
        let path = by_descriptor(&*file.fd).into_bytes();
        let stem = path.len();
        Self {
            posix,
            file,
            run,
            location: file.link.location(),
            path,
            stem,
        }
    }

    /// The entry of a name; `None` if it no longer exists or is not accessible.
    fn entry(&mut self, name: String) -> Option<DirectoryEntry> {
        let metadata = match name.as_str() {
            "." => self.metadata_of(&self.file.fd, ".")?,
            ".." if self.location.is_root() => self.metadata_of(&self.file.fd, "..")?,
            ".." => self.metadata_of(&self.location.parent.fd, "..")?,
            name => {
                let on_disk = self.posix.disk_name(name).ok()?;
                let stat = stat_name(&*self.file.fd, &on_disk).ok()?;
                if self.posix.options.hides_unreadable && !self.may_read(&on_disk, &stat) {
                    return None;
                }
                match kind_of(&stat) {
                    FileKind::Link if !self.run.is_exact => self.linked(name, &on_disk, &stat),
                    _ => {
                        let volume = self.volume(&on_disk, &stat);
                        let stored = self.stored(&on_disk, &volume, &stat);
                        let mut metadata = self.posix.metadata_with(&volume, &stat, stored, name);
                        if reparse::is_stored(&metadata) {
                            // `stored` has left the path of the entry.
                            let kind = reparse::read_kind_at(&self.path, self.run.token);
                            reparse::describe(&mut metadata, kind);
                        }
                        metadata
                    }
                }
            }
        };
        Some(DirectoryEntry { name, metadata })
    }

    /// Whether the user may read an entry. A link counts as its target; one without a target in the
    /// share is shown.
    fn may_read(&self, on_disk: &[u8], of: &Stat) -> bool {
        let (token, here) = (self.run.token, &self.file.volume);
        let entry = match kind_of(of) {
            FileKind::Link => {
                let Some(name) = self.posix.options.names.to_wire(on_disk) else {
                    return true;
                };
                let path = self.location.path.join(&name);
                let Ok(target) = self.posix.follow(&path, self.run) else {
                    return true;
                };
                target
            }
            FileKind::File | FileKind::Directory | FileKind::Special => {
                let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                match openat(&self.file.fd, on_disk, flags, Mode::empty()) {
                    Ok(fd) => (fd, *of),
                    Err(_) => return false,
                }
            }
        };
        let (fd, stat) = entry;
        let file = FileRef {
            fd: &fd,
            volume: &self.posix.volumes.find(&fd, &stat, here, token),
            is_path: true,
            token,
            may_set_attributes: false,
        };
        self.posix.is_listed(file, &stat, self.run.user)
    }

    fn metadata_of(&self, fd: &OwnedFd, name: &str) -> Option<proto::file::Metadata> {
        let (stat, token) = (stat(fd).ok()?, self.run.token);
        let volumes = &self.posix.volumes;
        let file_ref = FileRef {
            fd,
            volume: &volumes.find(fd, &stat, &self.file.volume, token),
            is_path: true,
            token,
            may_set_attributes: false,
        };
        Some(self.posix.metadata(file_ref, &stat, name))
    }

    /// The file system of an entry. An entry that is the root of another file system is opened if
    /// that is not known yet. If another process replaces the entry meanwhile, the properties of
    /// the directory's file system are used.
    fn volume(&self, on_disk: &[u8], of: &Stat) -> Arc<Volume> {
        let here = &self.file.volume;
        if here.holds(of) {
            return here.clone();
        }
        let open = || {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let fd = openat(&self.file.fd, on_disk, flags, Mode::empty()).ok()?;
            let stat = stat(&fd).ok().filter(|stat| stat.key() == of.key())?;
            let volumes = &self.posix.volumes;
            Some(volumes.find(&fd, &stat, here, self.run.token))
        };
        let known = self.posix.volumes.get(of);
        known.or_else(open).unwrap_or_else(|| here.clone())
    }

    /// The metadata of the target of a link, or of the link itself.
    fn linked(&self, name: &str, on_disk: &[u8], link: &Stat) -> proto::file::Metadata {
        let path = self.location.path.join(name);
        match self.posix.follow(&path, self.run) {
            Ok((fd, stat)) => {
                let (token, near) = (self.run.token, &self.file.volume);
                let file_ref = FileRef {
                    fd: &fd,
                    volume: &self.posix.volumes.find(&fd, &stat, near, token),
                    is_path: true,
                    token,
                    may_set_attributes: false,
                };
                self.posix.metadata(file_ref, &stat, name)
            }
            Err(_) => {
                let volume = self.volume(on_disk, link);
                self.posix.metadata_with(&volume, link, None, name)
            }
        }
    }

    /// The DOS attributes in Samba's extended attribute of an entry.
    fn stored(&mut self, on_disk: &[u8], volume: &Volume, stat: &Stat) -> Option<DosInfo> {
        if !volume.stores_attributes || !supports_attributes(stat) {
            return None;
        }
        self.path.truncate(self.stem);
        self.path.push(b'/');
        self.path.extend_from_slice(on_disk);
        let mut value = [0; dosattrib::MAX_LEN];
        let read = || lgetxattr(&*self.path, dosattrib::NAME, &mut value[..]);
        let length = or_as_server(self.run.token, read).ok()?;
        DosInfo::decode(&value[..length])
    }
}
