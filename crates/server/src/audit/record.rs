//! A record of the audit log. The names of its fields are a stable interface: docs/audit.md.

use std::borrow::Cow;
use std::net::SocketAddr;

use net::Transport;
use proto::audit::{Action, Event, Outcome};
use serde::Serialize;
use serde_json::Value;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use wire::Status;

use super::names;
use super::text::{FileName, escaped, limited};
use crate::config::AuditTarget;
use crate::journal::{Message, Priority};
use crate::rights::right_names;
use crate::status::kind_name;

/// The client of a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client {
    pub(crate) peer: SocketAddr,
    pub(crate) transport: Transport,
}

/// A record. Fields without a value are left out.
#[derive(Default, Serialize)]
pub(crate) struct Record {
    /// Time in UTC with microseconds. RFC 3339
    time: String,
    event: &'static str,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Cow<'static, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_port: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transport: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    workstation: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    share: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_hex: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    open: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_path_hex: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replaces: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    disposition: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    requested: Option<Vec<&'static str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    granted: Option<Vec<&'static str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delete_on_close: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_read: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_written: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    modified: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attributes: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<Vec<&'static str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    /// Whether a name is longer than a record may have it.
    #[serde(skip_serializing_if = "is_false")]
    cut: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

impl Record {
    /// The record of an event, which the client caused; `None` for an event of the server itself.
    pub(crate) fn of_event(event: &Event, client: Option<Client>) -> Self {
        let Event {
            session,
            user,
            kind,
            share,
            object,
            action,
            status,
        } = event;
        let mut record = Self {
            event: names::event(action),
            outcome: event.outcome().name(),
            status: Some(status_name(*status)),
            user: Some(limited(user)),
            user_kind: Some(kind_name(*kind)),
            session: session.map(|id| format!("{:016x}", id.0)),
            share: share.as_deref().map(limited),
            ..Self::now()
        };
        if let Some(object) = object {
            let name = FileName::from(&object.name);
            record.path = Some(name.text);
            record.path_hex = name.hex;
            record.cut = name.is_cut;
            let kind = |is_directory| if is_directory { "directory" } else { "file" };
            record.kind = object.is_directory.map(kind);
            record.open = object.open.map(|id| format!("{id:016x}"));
        }
        record.describe(action);
        record.from(client)
    }

    /// The record of a login that the server refuses before the core has an account for it. The
    /// client claims to be this user.
    pub(crate) fn of_refused_login(
        (user, workstation): (&str, &str),
        reason: &dyn std::fmt::Display,
        client: Client,
    ) -> Self {
        Self {
            event: "login",
            outcome: Outcome::Denied.name(),
            reason: Some(limited(&reason.to_string())),
            user: Some(limited(user)),
            workstation: (!workstation.is_empty()).then(|| limited(workstation)),
            ..Self::now()
        }
        .from(Some(client))
    }

    /// The record of lost records.
    pub(super) fn of_loss(count: u64) -> Self {
        Self {
            event: "records_lost",
            outcome: Outcome::Failed.name(),
            count: Some(count),
            ..Self::now()
        }
    }

    fn now() -> Self {
        let mut time = String::with_capacity(32);
        // Writing to a string does not fail.
        let _ = SystemTime.format_time(&mut Writer::new(&mut time));
        Self {
            time,
            ..Self::default()
        }
    }

    fn from(self, client: Option<Client>) -> Self {
        let Some(Client { peer, transport }) = client else {
            return self;
        };
        Self {
            client: Some(peer.ip().to_canonical().to_string()),
            client_port: Some(peer.port()),
            transport: Some(transport.name()),
            ..self
        }
    }

    fn describe(&mut self, action: &Action) {
        match action {
            Action::LogIn { refusal } => self.reason = refusal.map(|refusal| refusal.to_string()),
            Action::Connect { refusal } => self.reason = refusal.map(|refusal| refusal.to_string()),
            Action::LogOff | Action::Disconnect | Action::Delete | Action::Quota => {}
            Action::Open(opening) => {
                self.disposition = Some(names::disposition(opening.disposition));
                self.result = opening.result.map(names::result);
                self.requested = Some(right_names(opening.requested));
                self.granted = opening.granted.map(right_names);
                self.delete_on_close = opening.deletes_on_close.then_some(true);
            }
            Action::Close(closing) => {
                self.granted = Some(right_names(closing.granted));
                self.bytes_read = Some(closing.read);
                self.bytes_written = Some(closing.written);
                self.modified = Some(closing.is_modified);
            }
            Action::Rename { to, replaces } | Action::Link { to, replaces } => {
                let name = FileName::from(to);
                self.new_path = Some(name.text);
                self.new_path_hex = name.hex;
                self.cut |= name.is_cut;
                self.replaces = Some(*replaces);
            }
            Action::Attributes(attributes) => {
                self.attributes = Some(names::attributes(*attributes));
            }
            Action::Resize { bytes } => self.size = Some(*bytes),
            Action::Security(parts) => self.parts = Some(names::parts(*parts)),
        }
    }

    /// The bytes of the record for this target: a line of JSON, or a message for journald.
    pub(super) fn encode(&self, target: &AuditTarget) -> Vec<u8> {
        let json = serde_json::to_string(self).expect("a record consists of texts and numbers");
        let mut line = escaped(&json);
        match target {
            AuditTarget::File(_) => {
                line.push('\n');
                line.into_bytes()
            }
            AuditTarget::Journald => self.message(&line).into_bytes(),
        }
    }

    /// The message of the record: the line, and a field for each of its fields.
    fn message(&self, line: &str) -> Message {
        let priority = match self.outcome {
            "success" => Priority::Info,
            "denied" => Priority::Notice,
            _ if self.event == "records_lost" => Priority::Warning,
            _ => Priority::Info,
        };
        let mut message = Message::new(priority, line);
        message.field("SMBEAM_AUDIT", "1");
        let Ok(Value::Object(fields)) = serde_json::to_value(self) else {
            return message;
        };
        for (name, value) in fields {
            let name = format!("SMBEAM_{}", name.to_ascii_uppercase());
            match value {
                Value::String(text) => message.field(&name, &text),
                Value::Array(values) => {
                    let values = values.iter().filter_map(Value::as_str);
                    message.field(&name, &values.collect::<Vec<_>>().join(","));
                }
                value => message.field(&name, &value.to_string()),
            }
        }
        message
    }
}

fn status_name(status: Status) -> Cow<'static, str> {
    match status.name() {
        Some(name) => Cow::Borrowed(name),
        None => Cow::Owned(format!("{:#010x}", status.0)),
    }
}

#[cfg(test)]
mod tests;
