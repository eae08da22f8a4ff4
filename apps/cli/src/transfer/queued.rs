//! Files in the queue of a transfer. Small files of one share are read together.

use std::sync::Arc;

use smbeam_client::{Error, FILES_TOGETHER, Region};

use super::recover::RECONNECTS_MAX;
use super::{Compare, Item, Transfer};
use crate::exit::Exit;
use crate::failure::Outcome;
use crate::file_path::{FileInfo, FilePath, Kind, RemotePath};
use crate::progress::Action;

/// A file in the queue.
pub(super) struct QueuedFile {
    item: Item,
    old: Existing,
    /// Bytes of a message in which the file can be read together with others; 0 if it cannot.
    message_bytes: u64,
    /// The data of the file, if they were read together with those of others.
    read: Option<Read>,
}

/// The data of a file, or the error; `None` if the file does not fit in one message.
pub(super) type Read = Result<Option<Region>, Error>;

/// What is known about the existing target.
#[derive(Clone, Copy)]
pub(super) enum Existing {
    /// Not checked yet.
    Unknown,
    /// The metadata of the target, or `None` if it does not exist.
    Known(Option<FileInfo>),
}

impl QueuedFile {
    /// The path of the copy.
    pub(super) fn target(&self) -> &FilePath {
        &self.item.target
    }

    /// The source, if it is read with one request from a share.
    fn read_from(&self) -> Option<&RemotePath> {
        match &self.item.source {
            FilePath::Remote(remote) if self.message_bytes > 0 => Some(remote),
            _ => None,
        }
    }

    /// Whether the file can be read in one message with `others`.
    pub(super) fn can_join<'a>(&self, others: impl Iterator<Item = &'a Self>) -> bool {
        let Some(share) = self.read_from() else {
            return false;
        };
        let (mut count, mut bytes) = (1, self.item.info.size);
        for other in others {
            let is_there = |other: &RemotePath| Arc::ptr_eq(&other.root, &share.root);
            if !other.read_from().is_some_and(is_there) {
                return false;
            }
            count += 1;
            bytes += other.item.info.size;
        }
        count <= FILES_TOGETHER && bytes <= self.message_bytes
    }
}

impl Transfer<'_> {
    pub(super) fn queued(&self, item: Item, old: Existing) -> QueuedFile {
        let is_read = item.source.is_remote() && !item.target.is_remote();
        // A comparison of contents reads each file by itself.
        let is_needed = !self.policy.dry_run
            && self.policy.compare != Compare::Contents
            && !self.is_copied_link(&item.info);
        let message_bytes = match is_read && is_needed && self.is_small(item.info.size) {
            true => self.policy.request_bytes(),
            false => 0,
        };
        let queued = QueuedFile {
            item,
            old,
            message_bytes,
            read: None,
        };
        let is_due = self.policy.compare == Compare::Never || matches!(old, Existing::Known(None));
        if let Some(remote) = queued.read_from().filter(|_| is_due) {
            remote.share.announce(1);
        }
        queued
    }

    /// Reads the files that must be transferred with one message.
    pub(super) fn read_together(&self, files: Vec<&mut QueuedFile>) {
        // Errors are ignored here. The transfer of the file reports them.
        let is_ready = |file: &mut QueuedFile| {
            let is_due = matches!(self.is_due(file), Ok(true));
            // The connection may have been lost while the file was in the queue.
            let share = file.read_from().map(|remote| &remote.share);
            is_due && share.is_some_and(|share| !share.session().is_lost())
        };
        let due = files
            .into_iter()
            .filter_map(|file| is_ready(file).then_some(file));
        let due: Vec<_> = due.collect();
        let read = {
            let sources = due
                .iter()
                .map(|file| file.read_from().expect("others are not due"));
            let Some(RemotePath { share, .. }) = sources.clone().next() else {
                return;
            };
            let sizes = due.iter().map(|file| file.item.info.size as u32);
            let paths = sources.map(|source| source.path.as_str());
            let asked: Vec<_> = paths.zip(sizes).collect();
            self.unless_interrupted(share.read_each_small(&asked))
        };
        let Some(read) = read else { return };
        for (file, read) in due.into_iter().zip(read) {
            // Read these files again: by then, the share may have a new connection.
            let may_pass = matches!(read, Err(Error::Lost { .. } | Error::TimedOut { .. }));
            file.read = (!may_pass).then_some(read);
        }
    }

    /// Transfers a file, and reconnects if the connection is lost.
    pub(super) fn transfer_with_reconnects(&self, file: &mut QueuedFile) -> Outcome {
        let mut outcome = self.transfer(file);
        for _ in 0..RECONNECTS_MAX {
            match &outcome {
                Err(failure) if failure.exit == Exit::Lost && !self.is_over() => {}
                _ => break,
            }
            let item = &mut file.item;
            let is_new = self.reconnect([&mut item.source, &mut item.target])?;
            if !is_new && !self.is_resumed([&item.source, &item.target]) {
                break;
            }
            outcome = self.resumed().transfer(file);
        }
        outcome
    }

    fn transfer(&self, file: &mut QueuedFile) -> Outcome {
        if self.is_copied_link(&file.item.info) {
            return self.copy_link(&file.item, file.old);
        }
        if !self.is_due(file)? {
            let old = match &file.old {
                Existing::Known(old) => old.as_ref(),
                Existing::Unknown => None,
            };
            return self.refresh(&file.item, old);
        }
        let QueuedFile { item, old, .. } = file;
        let old = match old {
            Existing::Known(old) => old.as_ref(),
            Existing::Unknown => None,
        };
        if self.policy.dry_run {
            let action = Action::of_file(old.is_some());
            self.progress.would(action, &item.target, item.info.size);
            return Ok(());
        }
        self.copy_file(item, old, file.read.take())
    }

    /// Looks for the existing target. Where links are copied, a link is replaced, and its target
    /// stays.
    fn lookup_target(&self, target: &FilePath) -> Outcome<Option<FileInfo>> {
        if !self.policy.links {
            return target.lookup(true);
        }
        match target.lookup(false)? {
            Some(old) if old.kind == Kind::Link => {
                if !self.policy.dry_run {
                    self.set_aside(target, Kind::Link)?;
                }
                Ok(None)
            }
            old => Ok(old),
        }
    }

    /// Whether the server itself reports a conflict with the existing target. Then the check of the
    /// target, one request, is not needed.
    fn is_checked_by_server(&self, item: &Item) -> bool {
        let is_put = !item.source.is_remote() && item.target.is_remote();
        let is_unconditional = self.policy.compare == Compare::Never && !self.policy.dry_run;
        is_put && is_unconditional && !self.policy.atomic && self.is_small(item.info.size)
    }

    /// Checks the existing target, and returns whether to transfer the file.
    fn is_due(&self, file: &mut QueuedFile) -> Outcome<bool> {
        let item = &file.item;
        if matches!(file.old, Existing::Unknown) && self.is_checked_by_server(item) {
            return Ok(true);
        }
        let old = match file.old {
            Existing::Known(old) => old,
            Existing::Unknown => self.lookup_target(&item.target)?,
        };
        file.old = Existing::Known(old);
        match &old {
            Some(old) => Ok(!self.is_up_to_date(&item.source, &item.info, &item.target, old)?),
            None => Ok(true),
        }
    }
}
