//! Failures: what failed, why, and the exit code.

use std::fmt;
use std::io;

use crate::exit::{Exit, exit_of_io};
use crate::location::LocationError;
use crate::names::NameError;

/// What failed, and why.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The code.
    pub(crate) exit: Exit,
    /// The path or the host.
    pub(crate) subject: String,
    /// Why.
    pub(crate) reason: String,
}

/// What comes of a step of a command.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// A failure of `subject`.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "texts, paths and paths alike"
    )]
    pub(crate) fn new(exit: Exit, subject: impl ToString, reason: impl ToString) -> Self {
        Self {
            exit,
            subject: subject.to_string(),
            reason: reason.to_string(),
        }
    }

    /// The command line asks for what cannot be.
    pub(crate) fn usage(subject: impl ToString, reason: impl ToString) -> Self {
        Self::new(Exit::Usage, subject, reason)
    }

    /// A name stays where it is.
    pub(crate) fn name(subject: &(impl ToString + ?Sized), error: NameError) -> Self {
        Self::new(Exit::BadName, subject.to_string(), error)
    }

    /// Something of this machine failed.
    pub(crate) fn local(subject: &(impl ToString + ?Sized), error: &io::Error) -> Self {
        Self::new(exit_of_io(error), subject.to_string(), plain_reason(error))
    }

    /// Somebody pressed Ctrl-C.
    pub(crate) fn interrupted(subject: impl ToString) -> Self {
        Self::new(Exit::Interrupted, subject, "interrupted")
    }

    /// Whether going on with other files is pointless.
    pub(crate) fn is_fatal(&self) -> bool {
        matches!(
            self.exit,
            Exit::Unreachable | Exit::LoginRefused | Exit::Lost | Exit::Full | Exit::Interrupted
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

/// The reason without the number that nobody reads.
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
    fn errors_of_this_machine_are_told_without_numbers() {
        let error = io::Error::from_raw_os_error(28);
        let failure = Failure::local("/x", &error);
        assert_eq!(failure.exit, Exit::Full);
        assert_eq!(failure.to_string(), "/x: No space left on device");
    }
}
