//! Standard output and standard error. A closed pipe at standard output (`| head`) ends the program
//! silently.

use std::fmt::Display;
use std::io::{self, BufWriter, Stdout, Write};
use std::sync::Mutex;

use indicatif::ProgressBar;

use crate::mutex::lock;

/// The exit code for SIGPIPE by the convention of shells: 128 + 13.
const PIPE_CLOSED: i32 = 141;

/// Buffered lines for standard output.
pub(crate) struct Lines(BufWriter<Stdout>);

impl Lines {
    /// An empty buffer.
    pub(crate) fn new() -> Self {
        Self(BufWriter::with_capacity(64 * 1024, io::stdout()))
    }

    /// Adds a line.
    pub(crate) fn line(&mut self, line: &dyn Display) {
        let written = writeln!(self.0, "{line}");
        check(written);
    }

    /// Writes the buffered lines.
    pub(crate) fn flush(&mut self) {
        let flushed = self.0.flush();
        check(flushed);
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.flush();
    }
}

/// Writes one line to standard output at once.
pub(crate) fn line(line: &dyn Display) {
    check(writeln!(io::stdout(), "{line}"));
}

/// Writes one line to standard error with a single call, so that lines of several writers do not
/// mix. Errors are ignored, because there is no place to report them.
pub(crate) fn note(line: &dyn Display) {
    note_text(&format!("{line}\n"));
}

/// As [`note`], for text with its own line ends, or for a progress line.
pub(crate) fn note_text(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// The progress bar on the terminal, if there is one.
static BAR: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Sets or removes the progress bar that [`beside_bar`] respects.
pub(crate) fn set_bar(bar: Option<ProgressBar>) {
    *lock(&BAR) = bar;
}

/// Runs `write` while the progress bar is not on the terminal.
pub(crate) fn beside_bar(write: &dyn Fn()) {
    match &*lock(&BAR) {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}

/// Ends the program if standard output is closed or fails.
pub(crate) fn check(written: io::Result<()>) {
    if let Err(error) = written {
        if error.kind() != io::ErrorKind::BrokenPipe {
            note(&format_args!("smbeam: standard output: {error}"));
            std::process::exit(1);
        }
        std::process::exit(PIPE_CLOSED);
    }
}
