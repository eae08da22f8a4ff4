//! The failures of a command: reported as they happen, counted for the exit code.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde::Serialize;

use crate::describe::json;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::mutex::lock;
use crate::output::{self, beside_bar, note};

/// Reports the failures of a command, and counts results for the exit code. Threads share it.
pub(crate) struct Report {
    command: &'static str,
    failures: AtomicU64,
    successes: AtomicU64,
    state: Mutex<State>,
    is_over: AtomicBool,
    /// Whether failures are also lines of JSON on standard output.
    prints_json: AtomicBool,
    /// Whether a comparison found differences.
    differs: AtomicBool,
}

/// A failure in JSON, between the actions of a transfer.
#[derive(Serialize)]
struct FailureLine<'a> {
    action: &'static str,
    path: &'a str,
    reason: &'a str,
    /// The exit code for this failure alone.
    code: u8,
}

#[derive(Default)]
struct State {
    /// The exit code of all failures so far, as long as they have the same one.
    common: Option<Exit>,
    /// The exit code of the failure that ended the command.
    fatal: Option<Exit>,
    /// Prints a line beside a progress bar. Without it, lines go to standard error.
    print: Option<Print>,
}

/// Prints one line.
pub(crate) type Print = Box<dyn Fn(&str) + Send>;

impl Report {
    /// A report for the command with this name.
    pub(crate) fn new(command: &'static str) -> Self {
        Self {
            command,
            failures: AtomicU64::new(0),
            successes: AtomicU64::new(0),
            state: Mutex::default(),
            is_over: AtomicBool::new(false),
            prints_json: AtomicBool::new(false),
            differs: AtomicBool::new(false),
        }
    }

    /// Sets whether failures are also lines of JSON on standard output.
    pub(crate) fn print_json(&self, prints_json: bool) {
        self.prints_json.store(prints_json, Ordering::Relaxed);
    }

    /// Reports and counts a failure. Only the first fatal failure is reported: the others have the
    /// same reason. A full disk is different, because the message names a file that is not copied.
    pub(crate) fn failed(&self, failure: &Failure) {
        let mut state = lock(&self.state);
        let is_fatal = failure.is_fatal();
        if is_fatal && state.fatal.is_some() && failure.exit != Exit::Full {
            return;
        }
        let is_first = self.failures.fetch_add(1, Ordering::Relaxed) == 0;
        state.common = match state.common {
            None if is_first => Some(failure.exit),
            common => common.filter(|exit| *exit == failure.exit),
        };
        if is_fatal {
            state.fatal.get_or_insert(failure.exit);
            self.is_over.store(true, Ordering::Relaxed);
        }
        let line = format!("smbeam: {}: {failure}", self.command);
        print_with(&state, &line);
        if self.prints_json.load(Ordering::Relaxed) {
            beside_bar(&|| output::line(&json(&FailureLine::of(failure))));
        }
    }

    /// Sets the exit code for two sides that differ, unless something failed. The differences were
    /// printed.
    pub(crate) fn found_difference(&self) {
        self.differs.store(true, Ordering::Relaxed);
    }

    /// Prints a line that is not a failure.
    pub(crate) fn note(&self, text: &str) {
        let line = format!("smbeam: {}: {text}", self.command);
        print_with(&lock(&self.state), &line);
    }

    /// Counts a success.
    pub(crate) fn succeeded(&self) {
        self.successes.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a success, or reports a failure.
    pub(crate) fn take(&self, outcome: Outcome) {
        match outcome {
            Ok(()) => self.succeeded(),
            Err(failure) => self.failed(&failure),
        }
    }

    /// Returns the list, or reports the failure and returns an empty list.
    pub(crate) fn found<T>(&self, found: Outcome<Vec<T>>) -> Vec<T> {
        found.unwrap_or_else(|failure| {
            self.failed(&failure);
            Vec::new()
        })
    }

    /// Whether a fatal failure ended the command.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// The exit code of the failure that ended the command.
    pub(crate) fn fatal(&self) -> Option<Exit> {
        lock(&self.state).fatal
    }

    /// Number of failures so far.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Sets or removes the function that prints lines beside a progress bar.
    pub(crate) fn print_through(&self, print: Option<Print>) {
        lock(&self.state).print = print;
    }

    /// The exit code: that of a fatal failure, or the common code of all failures if nothing
    /// succeeded, or 1 for other failures.
    pub(crate) fn exit(&self) -> Exit {
        let state = lock(&self.state);
        if let Some(fatal) = state.fatal {
            return fatal;
        }
        if self.failures() == 0 {
            return match self.differs.load(Ordering::Relaxed) {
                true => Exit::Differs,
                false => Exit::Success,
            };
        }
        match state.common {
            Some(common) if self.successes.load(Ordering::Relaxed) == 0 => common,
            _ => Exit::Failed,
        }
    }
}

impl<'a> FailureLine<'a> {
    fn of(failure: &'a Failure) -> Self {
        Self {
            action: "fail",
            path: &failure.subject,
            reason: &failure.reason,
            code: failure.exit as u8,
        }
    }
}

fn print_with(state: &State, line: &str) {
    match &state.print {
        Some(print) => print(line),
        None => note(&line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(exit: Exit) -> Failure {
        Failure::new(exit, "x", "y")
    }

    fn quiet() -> Report {
        let report = Report::new("test");
        report.print_through(Some(Box::new(|_| {})));
        report
    }

    #[test]
    fn nothing_failed() {
        let report = quiet();
        report.succeeded();
        assert_eq!(report.exit(), Exit::Success);
    }

    #[test]
    fn a_difference_is_no_failure_and_has_a_code() {
        let report = quiet();
        report.succeeded();
        report.found_difference();
        assert_eq!((report.exit(), report.failures()), (Exit::Differs, 0));
        report.failed(&failure(Exit::Denied));
        assert_eq!(report.exit(), Exit::Failed);
    }

    #[test]
    fn a_failure_in_json_has_its_code() {
        let failure = failure(Exit::Denied);
        let line = json(&FailureLine::of(&failure));
        let wanted = "{\"action\":\"fail\",\"path\":\"x\",\"reason\":\"y\",\"code\":6}";
        assert_eq!(line, wanted);
    }

    #[test]
    fn one_reason_gives_its_code() {
        let report = quiet();
        report.failed(&failure(Exit::NotFound));
        report.failed(&failure(Exit::NotFound));
        assert_eq!(report.exit(), Exit::NotFound);
        report.succeeded();
        assert_eq!(report.exit(), Exit::Failed);
    }

    #[test]
    fn several_reasons_give_one() {
        let report = quiet();
        report.failed(&failure(Exit::NotFound));
        report.failed(&failure(Exit::Denied));
        report.failed(&failure(Exit::NotFound));
        assert_eq!(report.exit(), Exit::Failed);
    }

    #[test]
    fn each_file_for_which_a_disk_has_no_space_is_named() {
        let report = quiet();
        report.succeeded();
        report.failed(&failure(Exit::Full));
        report.failed(&failure(Exit::Full));
        report.failed(&failure(Exit::Lost));
        assert_eq!((report.exit(), report.failures()), (Exit::Full, 2));
        assert_eq!(report.fatal(), Some(Exit::Full));
    }

    #[test]
    fn what_ends_everything_gives_its_code() {
        let report = quiet();
        report.succeeded();
        report.failed(&failure(Exit::NotFound));
        assert!(!report.is_over());
        report.failed(&failure(Exit::Lost));
        report.failed(&failure(Exit::Lost));
        assert!(report.is_over());
        assert_eq!((report.exit(), report.failures()), (Exit::Lost, 2));
    }
}
