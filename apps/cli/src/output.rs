//! What a command prints: lines on standard output, many at once. A reader that has seen enough
//! (`| head`) ends the program without a word.

use std::fmt::Display;
use std::io::{self, BufWriter, Stdout, Write};

/// The code of a program that SIGPIPE ended, by the shells' rule 128 + 13.
const PIPE_CLOSED: i32 = 141;

/// Lines that are written when there are enough of them.
pub(crate) struct Lines(BufWriter<Stdout>);

impl Lines {
    /// None yet.
    pub(crate) fn new() -> Self {
        Self(BufWriter::with_capacity(64 * 1024, io::stdout()))
    }

    /// Adds a line.
    pub(crate) fn line(&mut self, line: &dyn Display) {
        let written = writeln!(self.0, "{line}");
        check(written);
    }

    /// Writes what was added.
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

/// Writes one line now.
pub(crate) fn line(line: &dyn Display) {
    check(writeln!(io::stdout(), "{line}"));
}

/// Writes one line now to standard error, whole: whoever reads along, or writes to the same file,
/// meets no part of it. What cannot be told there can be told nowhere.
pub(crate) fn note(line: &dyn Display) {
    note_text(&format!("{line}\n"));
}

/// The same for text that has its line ends, or is a line that the next one overwrites.
pub(crate) fn note_text(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Ends the program if nobody reads what it writes.
pub(crate) fn check(written: io::Result<()>) {
    if let Err(error) = written {
        if error.kind() != io::ErrorKind::BrokenPipe {
            note(&format_args!("smbeam: standard output: {error}"));
            std::process::exit(1);
        }
        std::process::exit(PIPE_CLOSED);
    }
}
