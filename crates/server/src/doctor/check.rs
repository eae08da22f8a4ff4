//! The result of one check.

use std::fmt::Display;

/// The result of one check of the doctor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The examined object, such as `account alice` or a path.
    pub subject: String,
    /// Whether the object is as it should be.
    pub verdict: Verdict,
    /// Reason code of a warning or a refusal; `None` for [`Verdict::Ok`].
    pub code: Option<&'static str>,
    /// What the check found, for people.
    pub message: String,
    /// A command or an instruction that mends it; `None` if the message says enough.
    pub remedy: Option<String>,
}

/// Whether an examined object is as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// It works, and perhaps not as the administrator expects.
    Warning,
    /// It refuses clients.
    Refused,
}

impl Verdict {
    /// Returns the word for the verdict in output.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Refused => "refused",
        }
    }
}

impl Check {
    /// Makes a check without a fault.
    pub fn ok(subject: impl Display, message: impl Display) -> Self {
        Self {
            subject: subject.to_string(),
            verdict: Verdict::Ok,
            code: None,
            message: message.to_string(),
            remedy: None,
        }
    }

    /// Makes a warning with its reason code.
    pub fn warning(subject: impl Display, code: &'static str, message: impl Display) -> Self {
        Self {
            verdict: Verdict::Warning,
            code: Some(code),
            ..Self::ok(subject, message)
        }
    }

    /// Makes a refusal with its reason code.
    pub fn refused(subject: impl Display, code: &'static str, message: impl Display) -> Self {
        Self {
            verdict: Verdict::Refused,
            ..Self::warning(subject, code, message)
        }
    }

    /// Makes a refusal a warning: nothing needs what it refuses.
    #[must_use]
    pub(super) fn softened(self) -> Self {
        Self {
            verdict: self.verdict.min(Verdict::Warning),
            ..self
        }
    }

    /// Adds the command or instruction that mends the fault.
    #[must_use]
    pub fn mended_by(self, remedy: impl Display) -> Self {
        Self {
            remedy: Some(remedy.to_string()),
            ..self
        }
    }
}
