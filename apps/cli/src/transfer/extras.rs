//! Transfer of the metadata that `--archive` keeps, and of links.

use smbeam_client::{FileAttributes, OpenOptions, Wait as _, transfer};

use super::queued::{Existing, Read};
use super::{Item, Transfer};
use crate::archive::{
    COMPARED_MAX, Descriptor, Extras, Link, is_only_mode, is_same_descriptor, open_stream, writing,
};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::file_path::{FileInfo, FilePath, KEPT_ATTRIBUTES, Kind, RemotePath};
use crate::progress::Action;
use crate::unix::{Unix, Unkept};

/// The parts of the metadata of a file and its copy, during the comparison.
struct Pair<'a> {
    source: &'a FilePath,
    target: &'a FilePath,
    here: Extras,
    there: Extras,
}

impl Transfer<'_> {
    /// Copies a file with everything that belongs to it. The data come first and the times last: an
    /// interrupted copy has other times than its source, so the next run repeats it.
    pub(super) fn copy_archived(
        &self,
        item: &Item,
        old: Option<&FileInfo>,
        read: Option<Read>,
    ) -> Outcome {
        self.plain().copy_file(item, old, read)?;
        self.copy_extras(&item.source, &item.info, &item.target, None)
    }

    /// Makes the metadata of the target equal to that of the source. Parts that the target cannot
    /// hold are noted, and the others are copied. `old` has the metadata of a target with the same
    /// data.
    pub(super) fn copy_extras(
        &self,
        source: &FilePath,
        info: &FileInfo,
        target: &FilePath,
        old: Option<&FileInfo>,
    ) -> Outcome {
        let (info, is_complete) = source.stored_info(info);
        let here = match source.extras() {
            Ok(here) => here,
            Err(failure) => {
                let what = "streams, extended attributes and permissions";
                self.keep(source, what, Err(failure))?;
                return target.set_info(&info, is_complete);
            }
        };
        let there = match target.extras() {
            Err(failure) if failure.is_fatal() => return Err(failure),
            // What cannot be compared is written.
            there => there.unwrap_or_default(),
        };
        let pair = Pair {
            source,
            target,
            here,
            there,
        };
        let has_changed = self.copy_streams(&pair)?;
        self.copy_attributes(&pair)?;
        if is_complete && pair.stores_info(&info) {
            let stored = target.store_info(&info);
            self.keep(target, "DOS attributes and time of creation", stored)?;
        }
        let is_same = !has_changed
            && old.is_some_and(|old| is_same_info(&info, old, target.is_remote() && is_complete));
        let info = pair.settable(info);
        let set_info = || match is_same {
            true => Ok(()),
            false => target.set_info(&info, is_complete),
        };
        // A server can deny changes of attributes by the new descriptor. This machine denies
        // extended attributes after READONLY has cleared the permission to write.
        match target.is_remote() {
            true => {
                set_info()?;
                self.copy_unix(&pair, &info);
                self.copy_descriptor(&pair)
            }
            false => {
                self.copy_descriptor(&pair)?;
                set_info()?;
                self.copy_unix(&pair, &info);
                Ok(())
            }
        }
    }

    /// Copies mode, owner and group.
    fn copy_unix(&self, pair: &Pair<'_>, info: &FileInfo) {
        if let Some(unix) = &pair.here.unix {
            self.set_unix(pair.target, unix, pair.there.unix.as_ref(), info);
        }
    }

    fn set_unix(&self, target: &FilePath, unix: &Unix, old: Option<&Unix>, info: &FileInfo) {
        let Unkept { mode, owner } = target.set_unix(unix, old, info);
        if let Some(failure) = mode {
            self.losses.add(target, "mode", &failure.reason);
        }
        if let Some(failure) = owner {
            self.losses.add_owner(failure);
        }
    }

    /// Copies times, owner and group of a link, and the mode of a special file.
    fn copy_link_info(&self, item: &Item, kind: Kind) -> Outcome {
        let Item { source, target, .. } = item;
        // A server lists special files as links.
        let info = FileInfo {
            kind,
            ..source.info(false)?
        };
        let (here, there) = (source.unix(), target.unix());
        if let (Ok(Some(here)), Ok(there)) = (here, there) {
            self.set_unix(target, &here, there.as_ref(), &info);
        }
        let old = target.info(false)?;
        match old.written == info.written {
            true => Ok(()),
            false => self.keep(target, "times", target.set_own_times(&info)),
        }
    }

    /// Copies streams that differ, and removes those that the source does not have. Returns whether
    /// any differed.
    fn copy_streams(&self, pair: &Pair<'_>) -> Outcome<bool> {
        let mut has_changed = false;
        for (name, size) in &pair.here.streams {
            let what = format!("stream {name}");
            let copied = match pair.there.streams.get(name) == Some(size) {
                true => self.has_same_stream(pair, name, *size),
                false => Ok(false),
            };
            let copied = copied.and_then(|is_same| match is_same {
                true => Ok(()),
                false => {
                    has_changed = true;
                    without_readonly(pair.target, || self.copy_stream(pair, name, *size))
                }
            });
            self.keep(pair.target, &what, copied)?;
        }
        for name in pair.there.streams.keys() {
            if !pair.here.streams.contains_key(name) {
                has_changed = true;
                let what = format!("removal of stream {name}");
                let removed = without_readonly(pair.target, || pair.target.remove_stream(name));
                self.keep(pair.target, &what, removed)?;
            }
        }
        Ok(has_changed)
    }

    fn has_same_stream(&self, pair: &Pair<'_>, name: &str, size: u64) -> Outcome<bool> {
        if size > COMPARED_MAX {
            return Ok(false);
        }
        let here = pair.source.read_stream(name, size)?;
        Ok(here == pair.target.read_stream(name, size)?)
    }

    fn copy_stream(&self, pair: &Pair<'_>, name: &str, size: u64) -> Outcome {
        match (pair.source, pair.target) {
            (FilePath::Remote(source), FilePath::Remote(target)) if size > COMPARED_MAX => {
                self.relay_stream(source, target, name, size)
            }
            (FilePath::Remote(_), FilePath::Local(_)) if size > COMPARED_MAX => {
                let reason = "an extended attribute holds at most 65,535 bytes of a stream";
                Err(Failure::new(Exit::Failed, pair.target, reason))
            }
            (source, target) => target.write_stream(name, source.read_stream(name, size)?),
        }
    }

    /// Copies a long stream between servers.
    fn relay_stream(
        &self,
        source: &RemotePath,
        target: &RemotePath,
        name: &str,
        size: u64,
    ) -> Outcome {
        let input = open_stream(source, name, &OpenOptions::new().read(true));
        let input = input.map_err(source.failed())?;
        let output = open_stream(target, name, &writing()).map_err(target.failed())?;
        let options = self.options();
        let whole = 0..size;
        let ranges = vec![whole];
        let mut progress = |_: u64| {};
        let moving = transfer::relay(&input, &output, (ranges, 0), &options, &mut progress);
        match self.unless_interrupted(moving) {
            Some(Ok(bytes)) if bytes == size => {}
            Some(Ok(_)) => {
                return Err(Self::changed_meanwhile(&FilePath::Remote(source.clone())));
            }
            Some(Err(error)) => return Err(target.failure(&error)),
            None => return Err(Failure::interrupted(source)),
        }
        output.close().wait().map_err(target.failed())
    }

    /// Copies extended attributes that differ, and removes those that the source does not have.
    fn copy_attributes(&self, pair: &Pair<'_>) -> Outcome {
        for (key, (name, value)) in &pair.here.attributes {
            let old = pair.there.attributes.get(key).map(|(_, value)| value);
            if old != Some(value) {
                let what = format!("extended attribute {}", name.escape_ascii());
                self.keep(pair.target, &what, pair.target.set_attribute(name, value))?;
            }
        }
        for (key, (name, _)) in &pair.there.attributes {
            if !pair.here.attributes.contains_key(key) {
                let what = format!("removal of extended attribute {}", name.escape_ascii());
                self.keep(pair.target, &what, pair.target.set_attribute(name, &[]))?;
            }
        }
        Ok(())
    }

    /// Copies the descriptor if it differs.
    fn copy_descriptor(&self, pair: &Pair<'_>) -> Outcome {
        let Some(descriptor) = &pair.here.descriptor else {
            return Ok(());
        };
        if pair.is_unix() && is_only_mode(descriptor) {
            return Ok(());
        }
        let old = pair.there.descriptor.as_ref();
        if old.is_some_and(|old| is_same_descriptor(descriptor, old)) {
            return Ok(());
        }
        match pair.target.set_descriptor(descriptor) {
            Descriptor::Whole => Ok(()),
            Descriptor::WithoutOwner(failure) => {
                self.keep(pair.target, "owner and group", Err(failure))
            }
            Descriptor::Nothing(failure) => self.keep(pair.target, "permissions", Err(failure)),
            Descriptor::Changed => {
                let why = "the server accepted them, but it stores others";
                self.losses.add(pair.target, "permissions", why);
                Ok(())
            }
        }
    }

    /// Notes the failure of a part, unless it ends the command.
    fn keep(&self, path: &FilePath, what: &str, kept: Outcome) -> Outcome {
        self.noted(path, what, kept).map(drop)
    }

    fn noted<T>(&self, path: &FilePath, what: &str, outcome: Outcome<T>) -> Outcome<Option<T>> {
        match outcome {
            Ok(value) => Ok(Some(value)),
            // A limit of one file, as the disk has space for its data.
            Err(failure) if failure.is_fatal() && failure.exit != Exit::Full => Err(failure),
            Err(failure) => {
                self.losses.add(path, what, &failure.reason);
                Ok(None)
            }
        }
    }

    /// Whether the entry is copied as a link.
    pub(super) fn is_copied_link(&self, info: &FileInfo) -> bool {
        let is_special = info.kind == Kind::Other && self.policy.archive;
        self.policy.links && (info.kind == Kind::Link || is_special)
    }

    /// Copies a link, in place of a file or link with its name.
    pub(super) fn copy_link(&self, item: &Item, old: Existing) -> Outcome {
        let Item {
            source,
            info,
            target,
            relative: _,
        } = item;
        self.check(source)?;
        let link = Link::read(source, info)?;
        if let Some(why) = link.obstacle(target) {
            self.losses.add(source, "link", &why);
            return Ok(());
        }
        let old = match old {
            // A listing on a server may show the metadata of the target of a link.
            Existing::Known(None) => None,
            _ => target.lookup(false)?,
        };
        if let Some(old) = &old {
            let is_link = matches!(old.kind, Kind::Link | Kind::Other);
            if is_link && Link::read(target, old).is_ok_and(|old| link.is_same(&old)) {
                self.progress.unchanged();
                return self.finish_link(item, link.kind());
            }
        }
        if self.policy.dry_run {
            self.progress
                .would(Action::of_file(old.is_some()), target, 0);
            return Ok(());
        }
        if let Some(old) = &old {
            match old.is_directory() {
                true => return Err(super::file::is_directory(target)),
                false => self.set_aside(target, old.kind)?,
            }
        }
        let created = self.noted(target, "link", link.create(target))?;
        if created.is_some() {
            let action = Action::of_file(old.is_some());
            self.progress.file_done(action, target, 0);
            self.finish_link(item, link.kind())?;
        }
        Ok(())
    }

    /// Copies the metadata of a link that is in place.
    fn finish_link(&self, item: &Item, kind: Kind) -> Outcome {
        match self.policy.archive && !self.policy.dry_run {
            true => self.copy_link_info(item, kind),
            false => Ok(()),
        }
    }

    /// Copies the metadata of a file with data that are up to date.
    pub(super) fn refresh(&self, item: &Item, old: Option<&FileInfo>) -> Outcome {
        if self.policy.archive && !self.policy.dry_run {
            self.copy_extras(&item.source, &item.info, &item.target, old)?;
        }
        self.progress.unchanged();
        Ok(())
    }
}

impl Pair<'_> {
    /// Whether both sides have modes and owners, which DOS attributes and descriptors express.
    fn is_unix(&self) -> bool {
        self.here.unix.is_some() && self.source.is_unix() && self.target.is_unix()
    }

    /// Whether DOS attributes and the time of creation are stored with a local file. A file of Unix
    /// has none that it could lose.
    fn stores_info(&self, info: &FileInfo) -> bool {
        let of_windows = FileAttributes::HIDDEN | FileAttributes::SYSTEM;
        !self.is_unix() || info.attributes.intersects(of_windows)
    }

    /// The metadata to set. Without READONLY where the mode says the same.
    fn settable(&self, info: FileInfo) -> FileInfo {
        match self.is_unix() {
            true => FileInfo {
                attributes: info.attributes.without(FileAttributes::READONLY),
                ..info
            },
            false => info,
        }
    }
}

/// Calls `act`, and again after clearing READONLY of a file on a server, which denies changes of
/// its streams.
fn without_readonly(target: &FilePath, act: impl Fn() -> Outcome) -> Outcome {
    match (act(), target) {
        (Err(failure), FilePath::Remote(remote)) if failure.exit == Exit::Denied => {
            match remote.clear_readonly() {
                true => act(),
                false => Err(failure),
            }
        }
        (done, _) => done,
    }
}

/// Whether a target with the same data has the times of its source, and the attributes that a copy
/// keeps. `is_complete`: both have DOS attributes and a time of creation.
fn is_same_info(info: &FileInfo, old: &FileInfo, is_complete: bool) -> bool {
    let kept = match is_complete {
        true => KEPT_ATTRIBUTES,
        false => FileAttributes::READONLY.0,
    };
    let attributes = |info: &FileInfo| info.attributes.0 & kept;
    let created = |info: &FileInfo| info.created.filter(|_| is_complete);
    info.written == old.written
        && attributes(info) == attributes(old)
        && created(info) == created(old)
}

/// The metadata of an entry that is copied as a link: it has no data.
pub(super) fn without_data(info: FileInfo) -> FileInfo {
    FileInfo {
        size: 0,
        allocation: 0,
        attributes: info.attributes.without(FileAttributes::SPARSE_FILE),
        ..info
    }
}
