//! Another name, or one more. \[MS-FSA\] 2.1.5.15.12, 2.1.5.15.7

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;

use wire::access::FileAttributes;
use wire::fscc::{
    FileAction, FileLinkInformation, FileLinkInformationEx, FileRenameInformation,
    FileRenameInformationEx, RenameFlags,
};
use wire::{Status, Utf16};

use super::{done, stream_name, wait};
use crate::effect::Outcome;
use crate::file::{self, FileKey, FileOp, LocalOpen, Metadata, Operation, Replace};
use crate::path::SharePath;
use crate::report::NeededAccess;
use crate::server::change_notify::of_name;
use crate::server::context::{Context, Parked, Progress};
use crate::server::notices::Notices;
use crate::server::open::{Open, malformed};
use crate::server::watch::Event;

/// The state of a request that waits for the file system.
pub(crate) struct Step {
    open: Arc<Open>,
    /// The name that the file has.
    from: SharePath,
    /// The name that it will have.
    to: SharePath,
    replace: Replace,
    /// Whether it replaces a file that is open: POSIX semantics.
    replaces_open: bool,
    kind: Kind,
    stage: Stage,
    /// The opens below the directory for which the request waits; empty before it waits.
    below: BTreeSet<LocalOpen>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Rename,
    Link,
}

#[derive(Clone, Copy)]
enum Stage {
    /// Another client has to close its opens; then everything starts again.
    Begin,
    /// Which file has the new name is being found out.
    LookUp,
    /// The new name is being given.
    Change,
}

pub(super) fn start_rename(
    context: &mut Context<'_>,
    open: Arc<Open>,
    buffer: &[u8],
) -> Result<Progress<super::Step>, Status> {
    let information = FileRenameInformation::decode(buffer).map_err(malformed)?;
    if open.is_named_stream() {
        return stream_name::start(context, open, &information);
    }
    let to = target(&open, information.root_directory, information.name)?;
    // smbtorture smb2.streams.names3
    if context.server.files.has_open_named_stream(open.key) {
        return Err(Status::ACCESS_DENIED);
    }
    let step = Step {
        from: name_of(context, &open)?,
        to,
        replace: replace(&open, information.is_replacing.into()),
        replaces_open: open.is_posix,
        open,
        kind: Kind::Rename,
        stage: Stage::Begin,
        below: BTreeSet::new(),
    };
    step.begin(context)
}

/// Flags of FileRenameInformationEx that concern storage which no file system here has.
const IGNORED: RenameFlags = RenameFlags(
    RenameFlags::SUPPRESS_PIN_STATE_INHERITANCE.0
        | RenameFlags::SUPPRESS_STORAGE_RESERVE_INHERITANCE.0
        | RenameFlags::NO_INCREASE_AVAILABLE_SPACE.0
        | RenameFlags::NO_DECREASE_AVAILABLE_SPACE.0,
);

/// Which file flags permit to replace, and whether it may be open.
fn permitted(flags: RenameFlags) -> Result<(Replace, bool), Status> {
    let known = IGNORED
        | RenameFlags::REPLACE_IF_EXISTS
        | RenameFlags::POSIX_SEMANTICS
        | RenameFlags::IGNORE_READONLY_ATTRIBUTE;
    if !known.contains(flags) {
        return Err(Status::INVALID_PARAMETER);
    }
    let replace = match flags.contains(RenameFlags::REPLACE_IF_EXISTS) {
        false => Replace::Nothing,
        true if flags.contains(RenameFlags::IGNORE_READONLY_ATTRIBUTE) => Replace::Any,
        true => Replace::Writable,
    };
    Ok((replace, flags.contains(RenameFlags::POSIX_SEMANTICS)))
}

/// A rename with flags. \[MS-FSCC\] 2.4.43
pub(super) fn start_rename_ex(
    context: &mut Context<'_>,
    open: Arc<Open>,
    buffer: &[u8],
) -> Result<Progress<super::Step>, Status> {
    let information = FileRenameInformationEx::decode(buffer).map_err(malformed)?;
    let (replace, replaces_open) = permitted(information.flags)?;
    let step = Step {
        from: name_of(context, &open)?,
        to: target(&open, information.root_directory, information.name)?,
        replace: self::replace(&open, replace),
        replaces_open: open.is_posix || replaces_open,
        open,
        kind: Kind::Rename,
        stage: Stage::Begin,
        below: BTreeSet::new(),
    };
    step.begin(context)
}

pub(super) fn start_link(
    context: &mut Context<'_>,
    open: Arc<Open>,
    buffer: &[u8],
) -> Result<Progress<super::Step>, Status> {
    let information = FileLinkInformation::decode(buffer).map_err(malformed)?;
    let to = target(&open, information.root_directory, information.name)?;
    link(context, open, to, (information.is_replacing.into(), false))
}

/// A further name with flags. Samba does not have the class. \[MS-FSCC\] 2.4.28
pub(super) fn start_link_ex(
    context: &mut Context<'_>,
    open: Arc<Open>,
    buffer: &[u8],
) -> Result<Progress<super::Step>, Status> {
    let information = FileLinkInformationEx::decode(buffer).map_err(malformed)?;
    let to = target(&open, information.root_directory, information.name)?;
    link(context, open, to, permitted(information.flags)?)
}

fn link(
    context: &mut Context<'_>,
    open: Arc<Open>,
    to: SharePath,
    (replace, replaces_open): (Replace, bool),
) -> Result<Progress<super::Step>, Status> {
    if open.is_directory {
        return Err(Status::FILE_IS_A_DIRECTORY);
    }
    // Names belong to files. Samba gives the same status.
    if open.is_named_stream() {
        return Err(Status::NOT_SUPPORTED);
    }
    let step = Step {
        from: name_of(context, &open)?,
        open,
        to,
        replace,
        replaces_open,
        kind: Kind::Link,
        stage: Stage::Begin,
        below: BTreeSet::new(),
    };
    step.begin(context)
}

/// The new name. \[MS-SMB2\] 3.3.5.21.1: RootDirectory is 0 over a network.
fn target(open: &Open, root_directory: u64, name: Utf16<'_>) -> Result<SharePath, Status> {
    if root_directory != 0 || name.is_empty() {
        return Err(Status::INVALID_PARAMETER);
    }
    match open.is_posix {
        true => SharePath::from_posix_wire_target(name),
        false => SharePath::from_wire_target(name),
    }
}

/// What a rename replaces: through an open of the SMB3 POSIX extensions that of rename(2), if
/// anything.
fn replace(open: &Open, asked: Replace) -> Replace {
    match asked {
        Replace::Nothing => Replace::Nothing,
        _ if open.is_posix => Replace::Posix,
        asked => asked,
    }
}

/// The name that the file has; the root of a share keeps its own.
fn name_of(context: &Context<'_>, open: &Open) -> Result<SharePath, Status> {
    let path = context.server.files.path(open.key, open.file);
    let path = path.filter(|path| !path.is_root());
    path.ok_or(Status::ACCESS_DENIED)
}

impl Step {
    fn begin(mut self, context: &mut Context<'_>) -> Result<Progress<super::Step>, Status> {
        if self.kind == Kind::Link {
            return Ok(self.look_up(context));
        }
        self.from = name_of(context, &self.open)?;
        // A rename to the same name breaks leases, too: smbtorture
        // smb2.compound_async.rename_same_srcdst_non_compound_no_async. The file may have lost the
        // name to another one.
        if self.from == self.to {
            return match context.wait_for_handle_leases(&self.open) {
                Some(parked) => Ok(self.park(parked)),
                None => Ok(self.look_up(context)),
            };
        }
        let share = self.open.file.share;
        let files = &context.server.files;
        // Windows moves no directory in which anything is open; smbtorture smb2.rename.rename_dir.
        if self.open.is_directory {
            let below = files.opens_below(share, &self.from, self.open.is_posix);
            // A file that was opened during the wait is not waited for. smbtorture
            // smb2.lease.rename_dir_openfile
            if !self.below.is_empty() && !below.is_subset(&self.below) {
                return Err(Status::ACCESS_DENIED);
            }
            if !below.is_empty() {
                self.below = below;
                return self.wait_for_handles(context, None);
            }
        }
        let parent = self.to.parent();
        if !files.is_open_to_names(share, &parent, self.open.is_posix) {
            return self.wait_for_parent(context, &parent);
        }
        match context.wait_for_handle_leases(&self.open) {
            Some(parked) => Ok(self.park(parked)),
            None => Ok(self.look_up(context)),
        }
    }

    /// Something is open that is in the way: a file to be replaced, or files in the directory. Its
    /// clients may have closed it and keep it for its oplock: they are asked to let it go.
    /// \[MS-FSA\] 2.1.5.15.12
    fn wait_for_handles(
        mut self,
        context: &mut Context<'_>,
        target: Option<FileKey>,
    ) -> Result<Progress<super::Step>, Status> {
        let wait = context.break_wait();
        let mut notices = Notices::new();
        let (files, share) = (&context.server.files, self.open.file.share);
        let found = match target {
            Some(key) => files.break_handle_caching(key, &wait, &mut notices),
            None => files.break_handle_caching_below(share, &self.from, &wait, &mut notices),
        };
        context.post(notices);
        if let Some((key, until)) = found {
            self.stage = Stage::Begin;
            return Ok(self.park(Parked::new(&wait, key, until)));
        }
        // With POSIX semantics opens of the file stay valid. But the name of a file that is marked
        // for deletion stays until its last close.
        let is_marked = |key| context.server.files.has_delete_pending(key);
        match target {
            Some(key) if self.replaces_open && !is_marked(key) && !self.open.is_posix => {
                Ok(self.change(context))
            }
            _ => Err(Status::ACCESS_DENIED),
        }
    }

    /// An open of the new parent directory permits no new names. Its client may have closed it and
    /// keep it for its lease. smbtorture smb2.dirlease.rename_dst_parent
    fn wait_for_parent(
        self,
        context: &mut Context<'_>,
        parent: &SharePath,
    ) -> Result<Progress<super::Step>, Status> {
        let wait = context.break_wait();
        let mut notices = Notices::new();
        let (files, share) = (&context.server.files, self.open.file.share);
        let found = files.break_handle_caching_at(share, parent, &wait, &mut notices);
        context.post(notices);
        let (key, until) = found.ok_or(Status::SHARING_VIOLATION)?;
        Ok(self.park(Parked::new(&wait, key, until)))
    }

    fn park(self, parked: Parked) -> Progress<super::Step> {
        Progress::Park(parked, super::Step::Rename(Box::new(self)))
    }

    fn look_up(mut self, context: &mut Context<'_>) -> Progress<super::Step> {
        self.stage = Stage::LookUp;
        let operation = FileOp::OnOpen(
            self.open.file,
            Operation::LookUp {
                path: self.to.clone(),
            },
        );
        wait(context, operation, super::Step::Rename(Box::new(self)))
    }

    pub(super) fn resume(
        self,
        context: &mut Context<'_>,
        outcome: Outcome,
    ) -> Result<Progress<super::Step>, Status> {
        match self.stage {
            Stage::Begin => {
                outcome.expect_woken()?;
                self.begin(context)
            }
            Stage::LookUp => match outcome.expect_file()?.expect_found() {
                None => Ok(self.change(context)),
                Some(found) => self.replace(context, &found),
            },
            Stage::Change if self.kind == Kind::Rename => {
                let outcome = outcome.expect_file();
                let path = self.reported(context, outcome)?.expect_renamed();
                let Open { key, file, .. } = *self.open;
                let files = &context.server.files;
                files.rename(key, file.share, &self.from, &path);
                self.report_rename(context, &path);
                context.audit_renamed(&path);
                Ok(done())
            }
            Stage::Change => {
                let outcome = outcome.expect_file();
                self.reported(context, outcome)?.expect_done();
                let filter = of_name(&self.open);
                context.report_at(&self.open, FileAction::ADDED, filter, &self.to);
                Ok(done())
            }
        }
    }

    /// Reports a denied access.
    fn reported(
        &self,
        context: &mut Context<'_>,
        outcome: Result<file::Outcome, Status>,
    ) -> Result<file::Outcome, Status> {
        if let Err(status) = outcome {
            context.report_denied(status, || {
                let mut needs = Vec::from([(self.to.clone(), NeededAccess::Add)]);
                if self.kind == Kind::Rename {
                    needs.insert(0, (self.from.clone(), NeededAccess::Remove));
                }
                needs
            });
        }
        outcome
    }

    /// Within a directory the name changes; from one to another it goes and comes.
    fn report_rename(&self, context: &mut Context<'_>, to: &SharePath) {
        let actions = if self.from.parent() == to.parent() {
            [FileAction::RENAMED_OLD_NAME, FileAction::RENAMED_NEW_NAME]
        } else {
            [FileAction::REMOVED, FileAction::ADDED]
        };
        let filter = of_name(&self.open);
        let event = |action, path| Event {
            action,
            filter,
            path,
        };
        let events = [event(actions[0], &self.from), event(actions[1], to)];
        context.report(&self.open, &events);
    }

    /// A file has the new name: checks whether it may be replaced.
    fn replace(
        self,
        context: &mut Context<'_>,
        found: &Metadata,
    ) -> Result<Progress<super::Step>, Status> {
        // The file itself: its name in another case, or another of its links.
        if found.key == self.open.key && self.kind == Kind::Rename {
            // rename(2): two names of one file stay as they are.
            let stays = self.replace == Replace::Posix || self.from == self.to;
            return match stays {
                true => Ok(done()),
                false => Ok(self.change(context)),
            };
        }
        if self.replace == Replace::Nothing {
            return Err(Status::OBJECT_NAME_COLLISION);
        }
        context.audit_replaces();
        if self.replace == Replace::Posix {
            return self.replace_posix(context, found);
        }
        let is_read_only = found.attributes.contains(FileAttributes::READONLY);
        if found.is_directory() || is_read_only && self.replace != Replace::Any {
            return Err(Status::ACCESS_DENIED);
        }
        if context.server.files.is_open(found.key) {
            return self.wait_for_handles(context, Some(found.key));
        }
        Ok(self.change(context))
    }

    /// A client of the SMB3 POSIX extensions replaces a file, open or not: as with Samba, only
    /// opens of other clients are in the way. The file system checks the rest.
    fn replace_posix(
        self,
        context: &mut Context<'_>,
        found: &Metadata,
    ) -> Result<Progress<super::Step>, Status> {
        if context.server.files.is_open_to_others(found.key) {
            return self.wait_for_handles(context, Some(found.key));
        }
        Ok(self.change(context))
    }

    fn change(mut self, context: &mut Context<'_>) -> Progress<super::Step> {
        self.stage = Stage::Change;
        let (file, to, replace) = (self.open.file, self.to.clone(), self.replace);
        let operation = match self.kind {
            Kind::Rename => FileOp::OnOpen(file, Operation::Rename { to, replace }),
            Kind::Link => {
                let replace = replace != Replace::Nothing;
                FileOp::OnOpen(file, Operation::Link { to, replace })
            }
        };
        wait(context, operation, super::Step::Rename(Box::new(self)))
    }
}
