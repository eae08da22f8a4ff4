//! Another name, or one more. \[MS-FSA\] 2.1.5.15.12, 2.1.5.15.7

use alloc::boxed::Box;
use alloc::sync::Arc;

use wire::access::FileAttributes;
use wire::fscc::{FileLinkInformation, FileRenameInformation};
use wire::{Status, Utf16};

use super::{done, wait};
use crate::effect::{FileOp, Metadata, Outcome};
use crate::path::SharePath;
use crate::server::context::{Context, Progress};
use crate::server::open::{Open, malformed};

/// What goes on once the world has answered.
pub(crate) struct Step {
    open: Arc<Open>,
    /// The name that the file has.
    from: SharePath,
    /// The name that it will have.
    to: SharePath,
    replace: bool,
    kind: Kind,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Rename,
    Link,
}

#[derive(Clone, Copy)]
enum Stage {
    /// Which file has the new name is being found out.
    LookUp,
    /// The new name is being given.
    Change,
}

pub(super) fn start_rename(
    context: &mut Context<'_>,
    open: Arc<Open>,
    buffer: &[u8],
) -> Result<Progress, Status> {
    let information = FileRenameInformation::decode(buffer).map_err(malformed)?;
    let to = target(information.root_directory, information.name)?;
    let from = name_of(context, &open)?;
    if from == to {
        return Ok(done());
    }
    let files = &context.server.files;
    // Windows moves no directory in which anything is open; smbtorture smb2.rename.rename_dir.
    if open.is_directory && files.is_open_below(open.file.share, &from) {
        return Err(Status::ACCESS_DENIED);
    }
    if !files.is_open_to_names(open.file.share, &to.parent()) {
        return Err(Status::SHARING_VIOLATION);
    }
    let step = Step {
        open,
        from,
        to,
        replace: information.is_replacing,
        kind: Kind::Rename,
        stage: Stage::LookUp,
    };
    Ok(step.look_up(context))
}

pub(super) fn start_link(
    context: &mut Context<'_>,
    open: Arc<Open>,
    buffer: &[u8],
) -> Result<Progress, Status> {
    let information = FileLinkInformation::decode(buffer).map_err(malformed)?;
    let to = target(information.root_directory, information.name)?;
    if open.is_directory {
        return Err(Status::FILE_IS_A_DIRECTORY);
    }
    let step = Step {
        from: name_of(context, &open)?,
        open,
        to,
        replace: information.is_replacing,
        kind: Kind::Link,
        stage: Stage::LookUp,
    };
    Ok(step.look_up(context))
}

/// The new name. \[MS-SMB2\] 3.3.5.21.1: RootDirectory is 0 over a network.
fn target(root_directory: u64, name: Utf16<'_>) -> Result<SharePath, Status> {
    if root_directory != 0 || name.is_empty() {
        return Err(Status::INVALID_PARAMETER);
    }
    SharePath::from_wire_target(name)
}

/// The name that the file has; the root of a share keeps its own.
fn name_of(context: &Context<'_>, open: &Open) -> Result<SharePath, Status> {
    let path = context.server.files.path(open.key, open.file);
    let path = path.filter(|path| !path.is_root());
    path.ok_or(Status::ACCESS_DENIED)
}

impl Step {
    fn look_up(self, context: &mut Context<'_>) -> Progress {
        let operation = FileOp::LookUp {
            file: self.open.file,
            path: self.to.clone(),
        };
        wait(context, operation, super::Step::Rename(Box::new(self)))
    }

    pub(super) fn resume(
        self,
        context: &mut Context<'_>,
        outcome: Outcome,
    ) -> Result<Progress, Status> {
        match (self.stage, outcome) {
            (Stage::LookUp, Outcome::Found(found)) => {
                if let Some(found) = found {
                    self.check_target(context, &found)?;
                }
                Ok(self.change(context))
            }
            (Stage::Change, Outcome::Renamed(path)) => {
                let Open { key, file, .. } = *self.open;
                let files = &context.server.files;
                files.rename(key, file.share, &self.from, &path);
                Ok(done())
            }
            (Stage::Change, Outcome::Done) => Ok(done()),
            _ => Err(Status::INTERNAL_ERROR),
        }
    }

    /// A file has the new name: may it give way?
    fn check_target(&self, context: &Context<'_>, found: &Metadata) -> Result<(), Status> {
        // The file itself: its name in another case, or another of its links.
        if found.key == self.open.key && self.kind == Kind::Rename {
            return Ok(());
        }
        if !self.replace {
            return Err(Status::OBJECT_NAME_COLLISION);
        }
        let is_read_only = found.attributes.contains(FileAttributes::READONLY);
        let is_open = context.server.files.is_open(found.key);
        if found.is_directory() || is_read_only || is_open {
            return Err(Status::ACCESS_DENIED);
        }
        Ok(())
    }

    fn change(mut self, context: &mut Context<'_>) -> Progress {
        self.stage = Stage::Change;
        let (file, to, replace) = (self.open.file, self.to.clone(), self.replace);
        let operation = match self.kind {
            Kind::Rename => FileOp::Rename { file, to, replace },
            Kind::Link => FileOp::Link { file, to, replace },
        };
        wait(context, operation, super::Step::Rename(Box::new(self)))
    }
}
