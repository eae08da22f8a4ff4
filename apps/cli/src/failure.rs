//! Failures: what failed, why, and the exit code.

use std::fmt;
use std::io;

use crate::exit::{Exit, exit_of_io};
use crate::location::LocationError;
use crate::names::NameError;

/// A failure of a command, for one object.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The exit code, if all failures of the command have the same one.
    pub(crate) exit: Exit,
    /// The path, URL or host that the failure is about.
    pub(crate) subject: String,
    /// The reason, and what to do if that is known.
    pub(crate) reason: String,
}

/// The result of a step of a command.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// Creates a failure for `subject`.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "callers pass strings, paths and URLs"
    )]
    pub(crate) fn new(exit: Exit, subject: impl ToString, reason: impl ToString) -> Self {
        Self {
            exit,
            subject: subject.to_string(),
            reason: reason.to_string(),
        }
    }

    /// A usage error: the arguments are invalid or do not fit together.
    pub(crate) fn usage(subject: impl ToString, reason: impl ToString) -> Self {
        Self::new(Exit::Usage, subject, reason)
    }

    /// A name that one side does not allow.
    pub(crate) fn name(subject: &(impl ToString + ?Sized), error: NameError) -> Self {
        Self::new(Exit::BadName, subject.to_string(), error)
    }

    /// An I/O error of this machine.
    pub(crate) fn local(subject: &(impl ToString + ?Sized), error: &io::Error) -> Self {
        Self::new(exit_of_io(error), subject.to_string(), plain_reason(error))
    }

    /// The user interrupted the command.
    pub(crate) fn interrupted(subject: impl ToString) -> Self {
        Self::new(Exit::Interrupted, subject, "interrupted")
    }

    /// Whether the command cannot continue with other files.
    pub(crate) fn is_fatal(&self) -> bool {
        matches!(
            self.exit,
            Exit::Unreachable
                | Exit::LoginRefused
                | Exit::Lost
                | Exit::Full
                | Exit::TooManyRemovals
                | Exit::Interrupted
        )
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject, self.reason)
    }
}

impl From<(&str, LocationError)> for Failure {
    fn from((subject, error): (&str, LocationError)) -> Self {
        Self::usage(subject, error)
    }
}

/// The message of an I/O error without the error number.
pub(crate) fn plain_reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_errors_have_no_numbers() {
        let error = io::Error::from_raw_os_error(28);
        let failure = Failure::local("/x", &error);
        assert_eq!(failure.exit, Exit::Full);
        assert_eq!(failure.to_string(), "/x: No space left on device");
    }
}
