//! Modes of the built-in function `open`.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use smbeam_client::OpenOptions;

/// A mode, and whether a file was opened with it. Only the first open creates or truncates.
pub(crate) struct Mode {
    kind: Kind,
    updates: bool,
    was_opened: AtomicBool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    Append,
    Create,
}

impl Mode {
    /// Parses a mode: one of `r`, `w`, `a` and `x`, and possibly a `+`.
    pub(crate) fn parse(text: &str) -> PyResult<Self> {
        let (kind, updates) = match text.strip_suffix('+') {
            Some(kind) => (kind, true),
            None => (text, false),
        };
        let kind = match kind {
            "r" => Kind::Read,
            "w" => Kind::Write,
            "a" => Kind::Append,
            "x" => Kind::Create,
            _ => return Err(PyValueError::new_err(format!("invalid mode: {text:?}"))),
        };
        Ok(Self {
            kind,
            updates,
            was_opened: AtomicBool::new(false),
        })
    }

    pub(crate) fn writes(&self) -> bool {
        self.kind != Kind::Read || self.updates
    }

    pub(crate) fn appends(&self) -> bool {
        self.kind == Kind::Append
    }

    pub(crate) fn set_opened(&self) {
        self.was_opened.store(true, Ordering::Relaxed);
    }

    /// The options of an open. A file that is opened again exists, and keeps its content.
    pub(crate) fn options(&self) -> OpenOptions {
        let again = self.was_opened.load(Ordering::Relaxed);
        let options = OpenOptions::new().directory(false);
        match self.kind {
            Kind::Read => options.read(true).write(self.updates),
            Kind::Write => options
                .write(true)
                .read(self.updates)
                .create(!again)
                .truncate(!again),
            Kind::Append => options.append(true).read(self.updates).create(!again),
            Kind::Create => options.write(true).read(self.updates).create_new(!again),
        }
    }
}
