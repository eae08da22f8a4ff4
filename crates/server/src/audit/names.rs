//! The names of values in records.

use proto::audit::{Action, Attributes};
use wire::access::CreateDisposition;
use wire::create::CreateAction;
use wire::query_info::SecurityInformation;

/// The name of the event of an action.
pub(super) fn event(action: &Action) -> &'static str {
    match action {
        Action::LogIn { .. } => "login",
        Action::LogOff => "logoff",
        Action::Connect { .. } => "connect",
        Action::Disconnect => "disconnect",
        Action::Open(opening) => opening.operation().name(),
        Action::Close(_) => "close",
        Action::Rename { .. } => "rename",
        Action::Link { .. } => "link",
        Action::Delete => "delete",
        Action::Attributes(_) => "attributes",
        Action::Resize { .. } => "resize",
        Action::Security(_) => "security",
        Action::Quota => "quota",
    }
}

/// \[MS-SMB2\] 2.2.13, CreateDisposition
pub(super) fn disposition(disposition: CreateDisposition) -> &'static str {
    match disposition {
        CreateDisposition::SUPERSEDE => "supersede",
        CreateDisposition::OPEN => "open",
        CreateDisposition::CREATE => "create",
        CreateDisposition::OPEN_IF => "open_if",
        CreateDisposition::OVERWRITE => "overwrite",
        CreateDisposition::OVERWRITE_IF => "overwrite_if",
        _ => "unknown",
    }
}

/// \[MS-SMB2\] 2.2.14, CreateAction
pub(super) fn result(action: CreateAction) -> &'static str {
    match action {
        CreateAction::SUPERSEDED => "superseded",
        CreateAction::OPENED => "opened",
        CreateAction::CREATED => "created",
        CreateAction::OVERWRITTEN => "overwritten",
        _ => "unknown",
    }
}

pub(super) fn attributes(attributes: Attributes) -> &'static str {
    match attributes {
        Attributes::Basic => "basic",
        Attributes::Extended => "extended",
        Attributes::Reparse => "reparse",
    }
}

/// The parts of a security descriptor.
pub(super) fn parts(parts: SecurityInformation) -> Vec<&'static str> {
    let names = [
        (SecurityInformation::OWNER, "owner"),
        (SecurityInformation::GROUP, "group"),
        (SecurityInformation::DACL, "dacl"),
        (SecurityInformation::SACL, "sacl"),
        (SecurityInformation::LABEL, "label"),
        (SecurityInformation::ATTRIBUTE, "attribute"),
    ];
    let held = names.into_iter().filter(|(part, _)| parts.contains(*part));
    held.map(|(_, name)| name).collect()
}
