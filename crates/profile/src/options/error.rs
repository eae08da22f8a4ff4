//! Errors of connection options.

use std::fmt;

/// The reason why a connection option is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionError {
    /// No option has this name.
    Unknown(String),
    /// The value is not accepted.
    Value {
        /// The name of the option.
        name: String,
        /// The value.
        value: String,
        /// The accepted values, or the fault of this one.
        reason: String,
    },
    /// An option has no value.
    NoValue(String),
    /// An argument of a remote is not an option.
    Argument(String),
    /// Two options exclude each other.
    Conflict(&'static str, &'static str),
    /// The first option is of use only with the second one.
    Requires(&'static str, &'static str),
}

impl OptionError {
    pub(super) fn value(name: &str, value: &str, reason: &dyn fmt::Display) -> Self {
        Self::Value {
            name: name.to_owned(),
            value: value.to_owned(),
            reason: reason.to_string(),
        }
    }
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => write!(f, "no connection option has the name `{name}`"),
            Self::Value {
                name,
                value,
                reason,
            } => write!(f, "connection option {name}={value}: {reason}"),
            Self::NoValue(name) => write!(f, "the connection option `{name}` needs a value"),
            Self::Argument(text) => write!(f, "`{text}` is not a connection option"),
            Self::Conflict(one, other) => {
                write!(f, "the options `{one}` and `{other}` exclude each other")
            }
            Self::Requires(one, other) => {
                write!(f, "the option `{one}` needs the option `{other}`")
            }
        }
    }
}

impl std::error::Error for OptionError {}
