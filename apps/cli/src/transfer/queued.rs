//! A file that waits for its turn, and what is done when that comes. Small files that wait for one
//! share are read together.

use std::sync::Arc;

use smbeam_client::{Error, FILES_TOGETHER, Region};

use super::{Compare, Item, Transfer};
use crate::exit::{Exit, Outcome};
use crate::place::{Facts, Place, Remote};

/// How often the connection may be lost in the midst of one file. A file that is lost with every
/// connection is not worth more of them.
const RECONNECTS_MAX: usize = 4;

/// A file that waits.
pub(super) struct Queued {
    item: Item,
    old: Old,
    /// Bytes of the message in which it may be read together with others; 0: it may not.
    room: u64,
    /// Its bytes, where they were.
    read: Option<Read>,
}

/// A whole file, or why it was not read; nothing if it does not come in one message.
pub(super) type Read = Result<Option<Region>, Error>;

/// What stands where a file is to go.
#[derive(Clone, Copy)]
pub(super) enum Old {
    /// Nobody has looked yet.
    Unknown,
    /// What was seen there, if anything.
    Known(Option<Facts>),
}

impl Queued {
    /// The share that it is read from in one request, if so.
    fn read_from(&self) -> Option<&Remote> {
        match &self.item.source {
            Place::Remote(remote) if self.room > 0 => Some(remote),
            _ => None,
        }
    }

    /// Whether it may be read together with others.
    pub(super) fn goes_with<'a>(&self, others: impl Iterator<Item = &'a Self>) -> bool {
        let Some(share) = self.read_from() else {
            return false;
        };
        let (mut count, mut bytes) = (1, self.item.facts.size);
        for other in others {
            let is_there = |other: &Remote| Arc::ptr_eq(&other.root, &share.root);
            if !other.read_from().is_some_and(is_there) {
                return false;
            }
            count += 1;
            bytes += other.item.facts.size;
        }
        count <= FILES_TOGETHER && bytes <= self.room
    }
}

impl Transfer<'_> {
    pub(super) fn queued(&self, item: Item, old: Old) -> Queued {
        let is_read = item.source.is_remote() && !item.target.is_remote();
        // Reading of what is there is a matter of each file.
        let is_needed = !self.policy.dry_run && self.policy.compare != Compare::Contents;
        let room = match is_read && is_needed && self.is_small(item.facts.size) {
            true => self.policy.request_bytes(),
            false => 0,
        };
        let queued = Queued {
            item,
            old,
            room,
            read: None,
        };
        let is_due = self.policy.compare == Compare::Never || matches!(old, Old::Known(None));
        if let Some(remote) = queued.read_from().filter(|_| is_due) {
            remote.share.announce(1);
        }
        queued
    }

    /// Reads those that are to be transferred of files that go together.
    pub(super) fn read_together(&self, files: Vec<&mut Queued>) {
        // Why another one is not is said when its turn comes.
        let is_ready = |file: &mut Queued| {
            let is_due = matches!(self.is_due(file), Ok(true));
            // It may have waited since the connection was lost.
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
            let Some(Remote { share, .. }) = sources.clone().next() else {
                return;
            };
            let sizes = due.iter().map(|file| file.item.facts.size as u32);
            let paths = sources.map(|source| source.path.as_str());
            let asked: Vec<_> = paths.zip(sizes).collect();
            self.until_over(share.read_each_small(&asked))
        };
        let Some(read) = read else { return };
        for (file, read) in due.into_iter().zip(read) {
            // Its own share may be another one by now.
            let may_pass = matches!(read, Err(Error::Lost { .. } | Error::TimedOut { .. }));
            file.read = (!may_pass).then_some(read);
        }
    }

    /// Does a file, also where the connection is lost meanwhile.
    pub(super) fn persist(&self, file: &mut Queued) -> Outcome {
        let mut outcome = self.transfer(file);
        for _ in 0..RECONNECTS_MAX {
            match &outcome {
                Err(failure) if failure.exit == Exit::Lost && !self.is_over() => {}
                _ => break,
            }
            let item = &mut file.item;
            if !self.reconnect([&mut item.source, &mut item.target])? {
                break;
            }
            outcome = self.resumed().transfer(file);
        }
        outcome
    }

    fn transfer(&self, file: &mut Queued) -> Outcome {
        if !self.is_due(file)? {
            self.progress.unchanged();
            return Ok(());
        }
        let Queued { item, old, .. } = file;
        let old = match old {
            Old::Known(old) => old.as_ref(),
            Old::Unknown => None,
        };
        if self.policy.dry_run {
            let word = if old.is_some() { "update" } else { "copy" };
            self.progress
                .say(&format_args!("would {word} {}", item.target));
            return Ok(());
        }
        self.copy_file(item, old, file.read.take())
    }

    /// Whether what stands there now makes no difference but to the server, which says so: one
    /// request less where the file itself takes one.
    fn is_told_by_target(&self, item: &Item) -> bool {
        let is_put = !item.source.is_remote() && item.target.is_remote();
        let is_whatever = self.policy.compare == Compare::Never && !self.policy.dry_run;
        is_put && is_whatever && !self.policy.atomic && self.is_small(item.facts.size)
    }

    /// Looks at what stands there now, and says whether that is to be replaced.
    fn is_due(&self, file: &mut Queued) -> Outcome<bool> {
        let item = &file.item;
        if matches!(file.old, Old::Unknown) && self.is_told_by_target(item) {
            return Ok(true);
        }
        let old = match file.old {
            Old::Known(old) => old,
            Old::Unknown => item.target.look(true)?,
        };
        file.old = Old::Known(old);
        match &old {
            Some(old) => Ok(!self.is_up_to_date(&item.source, &item.facts, &item.target, old)?),
            None => Ok(true),
        }
    }
}
