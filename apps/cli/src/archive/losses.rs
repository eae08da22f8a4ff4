//! What a target cannot hold.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::file_path::FilePath;
use crate::mutex::lock;
use crate::report::Report;

/// Most losses that are listed one by one.
const LISTED_MAX: u64 = 1000;

/// The parts of files that a target cannot hold. They are reported at the end.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    listed: Mutex<Vec<Failure>>,
    count: AtomicU64,
    /// The first file of which owner or group is not kept.
    owner: Mutex<Option<Failure>>,
    owners: AtomicU64,
}

impl Losses {
    /// Notes that `what` of the file is not kept, and why.
    pub(crate) fn add(&self, path: &FilePath, what: &str, why: &str) {
        if self.count.fetch_add(1, Ordering::Relaxed) < LISTED_MAX {
            let reason = format!("{what}: not kept: {why}");
            lock(&self.listed).push(Failure::new(Exit::Failed, path, reason));
        }
    }

    /// Notes that the owner or the group of the file is not kept. As in rsync that is no failure,
    /// because only an administrator may set them.
    pub(crate) fn add_owner(&self, failure: Failure) {
        if self.owners.fetch_add(1, Ordering::Relaxed) == 0 {
            *lock(&self.owner) = Some(failure);
        }
    }

    fn note_owners(&self, report: &Report) {
        if let Some(first) = lock(&self.owner).take() {
            let count = self.owners.load(Ordering::Relaxed);
            let files = crate::format::count(count, "file");
            report.note(&format!(
                "owner or group of {files} not kept, the first: {first}"
            ));
        }
    }

    /// Reports the losses as failures, each with the file, the part and the reason.
    pub(crate) fn report(&self, report: &Report) {
        self.note_owners(report);
        let mut listed = std::mem::take(&mut *lock(&self.listed));
        listed.sort_by(|one, other| one.subject.cmp(&other.subject));
        for loss in &listed {
            report.failed(loss);
        }
        let count = self.count.load(Ordering::Relaxed);
        if count > listed.len() as u64 {
            let more = count - listed.len() as u64;
            report.note(&format!("{more} more parts of files are not kept"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_failures_at_the_end() {
        let report = Report::new("test");
        let lines = std::sync::Arc::new(Mutex::new(Vec::new()));
        let printed = std::sync::Arc::clone(&lines);
        report.print_through(Some(Box::new(move |line| {
            lock(&printed).push(line.to_owned());
        })));
        let losses = Losses::default();
        report.succeeded();
        for number in 0..LISTED_MAX + 5 {
            let path = FilePath::Local("/x".into());
            losses.add(&path, &format!("stream {number}"), "No space left");
        }
        assert_eq!(report.failures(), 0);
        losses.report(&report);
        assert_eq!(report.exit(), Exit::Failed);
        let lines = lock(&lines);
        assert_eq!(
            lines[0],
            "smbeam: test: /x: stream 0: not kept: No space left"
        );
        let last = lines.last().map(String::as_str);
        assert_eq!(
            last,
            Some("smbeam: test: 5 more parts of files are not kept")
        );
    }
}
