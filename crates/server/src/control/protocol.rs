//! The messages of the control socket. A further request needs a variant of [`Request`] and a
//! method of [`Commands`].

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::activity::Activity;
use crate::reload::ShareStateError;
use crate::status::Status;

/// A request to a server, as one line of JSON: `{"command": "status"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// The status of the server. The result is a [`Status`].
    Status {},
    /// Read the configuration, the users and the certificates again, as at SIGHUP. The result is a
    /// [`ReloadReport`].
    Reload {},
    /// The counters by command, share and client. The result is an [`Activity`].
    Activity {},
    /// End a session. The result is `null`.
    EndSession {
        /// Its [`SessionStatus::id`](crate::status::SessionStatus::id).
        id: String,
    },
    /// Close an open file, directory or pipe, also one that waits for its client. The result is
    /// `null`.
    CloseOpen {
        /// Its [`FileStatus::id`](crate::status::FileStatus::id).
        id: String,
    },
    /// Disable a share until it is enabled again, or the server starts again. The result is true,
    /// or false if it was disabled already.
    DisableShare {
        /// Its name.
        share: String,
    },
    /// Enable a disabled share. The result is true, or false if it was enabled already.
    EnableShare {
        /// Its name.
        share: String,
    },
}

impl Request {
    /// Returns whether the request changes the server. Only root and the user of the server may
    /// send such a request.
    pub fn is_change(&self) -> bool {
        match self {
            Self::Status {} | Self::Activity {} => false,
            Self::Reload {}
            | Self::EndSession { .. }
            | Self::CloseOpen { .. }
            | Self::DisableShare { .. }
            | Self::EnableShare { .. } => true,
        }
    }
}

/// The response to a request, as one line of JSON: `{"ok": RESULT}` or `{"error": FAILURE}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Response {
    /// The result. Its form depends on the request.
    Ok(Value),
    /// The request failed.
    Error(Failure),
}

/// The failure of a request: `{"kind": "refused", "message": "..."}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The kind of the failure, for programs.
    pub kind: FailureKind,
    /// The reason, for people.
    pub message: String,
}

/// The kind of the failure of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// The line is not a request: it is no JSON, too long, incomplete, or names no known command.
    Malformed,
    /// The user of the client may not send this request.
    Denied,
    /// The server has refused the request, such as a configuration with a mistake.
    Refused,
    /// The server has no such session, open or share.
    Missing,
    /// The server serves too many clients.
    Busy,
}

/// The result of [`Request::Reload {}`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadReport {
    /// Keys and shares with a change that is in effect now, such as `log.level` and
    /// `share "data" (added)`.
    pub applied: Vec<String>,
    /// Keys with a change that needs a restart of the server.
    pub restart: Vec<String>,
    /// Likely mistakes in the configuration, as `smbeam config check` finds them.
    pub warnings: Vec<String>,
}

/// The requests that a server serves. Each call may block, and calls run at the same time.
pub trait Commands: Send + Sync {
    /// Returns the status of the server.
    fn status(&self) -> Status;

    /// Reads the configuration again.
    ///
    /// # Errors
    /// The reason why the configuration stays as it was, for users.
    fn reload(&self) -> Result<ReloadReport, String>;

    /// Returns the activity of the server.
    fn activity(&self) -> Activity;

    /// Ends the session with this SessionId. Returns whether there was one.
    fn end_session(&self, id: u64) -> bool;

    /// Closes the open with this persistent part of its FileId. Returns whether there was one.
    fn close_open(&self, id: u64) -> bool;

    /// Disables or enables a share. Returns whether its state has changed.
    ///
    /// # Errors
    /// There is no share of this name, or it cannot be enabled.
    fn set_share_enabled(&self, share: &str, is_enabled: bool) -> Result<bool, ShareStateError>;
}

impl Failure {
    pub(super) fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}

impl From<Result<Value, Failure>> for Response {
    fn from(result: Result<Value, Failure>) -> Self {
        match result {
            Ok(value) => Self::Ok(value),
            Err(failure) => Self::Error(failure),
        }
    }
}

impl From<Response> for Result<Value, Failure> {
    fn from(response: Response) -> Self {
        match response {
            Response::Ok(value) => Ok(value),
            Response::Error(failure) => Err(failure),
        }
    }
}
