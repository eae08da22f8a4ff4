//! The state of a server as tables.

use std::time::{Duration, SystemTime};

use smbeam_server::status::{
    AuditStatus, ConnectionStatus, DisconnectedStatus, FileStatus, LeftOut, Protection,
    SessionStatus, Status, TotalsStatus,
};

use crate::format;
use crate::table;

/// The status as lines.
pub(super) fn text(status: &Status) -> Vec<String> {
    let mut lines = head(status);
    lines.extend(section(
        "connections",
        &[
            "CONNECTION",
            "PEER",
            "TRANSPORT",
            "DIALECT",
            "PROTECTION",
            "NEGOTIATED",
            "SINCE",
            "RECEIVED",
            "SENT",
            "REQUESTS",
            "ERRORS",
        ],
        status.connections.iter().map(connection).collect(),
    ));
    lines.extend(sessions(&status.sessions));
    lines.extend(files(&status.files));
    if !status.disconnected.is_empty() {
        lines.extend(disconnected_files(&status.disconnected));
    }
    lines.extend(left_out(status.left_out));
    lines
}

fn sessions(sessions: &[SessionStatus]) -> Vec<String> {
    let heads = [
        "SESSION",
        "USER",
        "PROTECTION",
        "SINCE",
        "CHANNELS",
        "SHARES",
        "FILES",
    ];
    section("sessions", &heads, sessions.iter().map(session).collect())
}

/// The open files as a table after an empty line.
pub(crate) fn files<'a>(files: impl IntoIterator<Item = &'a FileStatus>) -> Vec<String> {
    let heads = [
        "OPEN", "SESSION", "USER", "SHARE", "PATH", "ACCESS", "SHARING", "OPLOCK", "LOCKS",
    ];
    section("open files", &heads, files.into_iter().map(file).collect())
}

/// The open files without a session as a table after an empty line.
pub(crate) fn disconnected_files<'a>(
    files: impl IntoIterator<Item = &'a DisconnectedStatus>,
) -> Vec<String> {
    let heads = ["OPEN", "USER", "SHARE", "PATH", "SECONDS LEFT"];
    let rows = files.into_iter().map(disconnected).collect();
    section("files that wait for their clients", &heads, rows)
}

fn disconnected(file: &DisconnectedStatus) -> Vec<String> {
    vec![
        file.id.clone(),
        user(&file.user),
        format::name(&file.share),
        format::name(&file.path),
        (file.remaining_ms / 1000).to_string(),
    ]
}

fn head(status: &Status) -> Vec<String> {
    let server = &status.server;
    let workers = format::count(server.workers as u64, "worker");
    let mut lines = vec![format!(
        "{}: smbeam {}, process {}, {workers}, since {}",
        format::name(&server.name),
        server.release,
        server.pid,
        time(server.since)
    )];
    if let Some(config) = &server.config {
        lines.push(format!(
            "started with {}",
            format::name(&config.to_string_lossy())
        ));
    }
    let listening = server.listening.iter();
    lines.extend(
        listening
            .map(|endpoint| format!("listening on {} ({})", endpoint.address, endpoint.transport)),
    );
    let disabled = server.shares.iter().filter(|share| !share.is_enabled);
    lines.extend(disabled.map(|share| format!("share disabled: {}", format::name(&share.name))));
    lines.push(totals(&server.totals));
    lines.extend(server.audit.as_ref().map(audit));
    lines
}

fn totals(totals: &TotalsStatus) -> String {
    let TotalsStatus {
        connections,
        logins,
        received,
        sent,
        answered,
        errors,
    } = *totals;
    format!(
        "in all {}, {}, {} received, {} sent, {}, {}",
        format::count(connections, "connection"),
        format::count(logins, "login"),
        format::size(received),
        format::size(sent),
        format::count(answered, "request"),
        format::count(errors, "error response"),
    )
}

fn audit(audit: &AuditStatus) -> String {
    let AuditStatus {
        target,
        written,
        lost,
    } = audit;
    format!(
        "audit log {}: {}, {lost} lost",
        format::name(target),
        format::count(*written, "record"),
    )
}

fn connection(connection: &ConnectionStatus) -> Vec<String> {
    let or_none = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
    vec![
        connection.id.clone(),
        connection.peer.clone(),
        transport(connection),
        or_none(&connection.dialect),
        connection.protection.map_or("-", protection).to_owned(),
        negotiated(connection),
        time(connection.since),
        format::size(connection.received),
        format::size(connection.sent),
        connection.answered.to_string(),
        connection.errors.to_string(),
    ]
}

/// The transport, with the kind of an RDMA network.
fn transport(connection: &ConnectionStatus) -> String {
    let transport = &connection.transport;
    match &connection.rdma {
        Some(rdma) => format!("{transport} ({rdma})"),
        None => transport.clone(),
    }
}

/// The cipher and the signing algorithm that both ends support. Sessions need not use them.
fn negotiated(connection: &ConnectionStatus) -> String {
    let ConnectionStatus {
        cipher, signing, ..
    } = connection;
    match (cipher, signing) {
        (Some(cipher), Some(signing)) => format!("{cipher}, {signing}"),
        (Some(one), None) | (None, Some(one)) => one.clone(),
        (None, None) => "-".to_owned(),
    }
}

fn protection(protection: Protection) -> &'static str {
    match protection {
        Protection::Encrypted => "encrypted",
        Protection::Tls => "TLS",
        Protection::Signed => "signed",
        Protection::None => "none",
    }
}

/// The protection of a session with its algorithm.
pub(crate) fn session_protection(session: &SessionStatus) -> String {
    match (Protection::of(session), &session.cipher) {
        (Protection::Encrypted, Some(cipher)) => format!("encrypted ({cipher})"),
        (Protection::Signed, _) => format!("signed ({})", session.signing),
        (other, _) => protection(other).to_owned(),
    }
}

/// The names of the shares of a session.
pub(crate) fn shares(session: &SessionStatus) -> String {
    let shares = session.trees.iter().map(|tree| format::name(&tree.share));
    listed(&shares.collect::<Vec<_>>())
}

fn session(session: &SessionStatus) -> Vec<String> {
    vec![
        session.id.clone(),
        user(&session.user),
        session_protection(session),
        time(session.since),
        session.channels.join(","),
        shares(session),
        session.files.to_string(),
    ]
}

fn file(file: &FileStatus) -> Vec<String> {
    let path = match file.path.as_str() {
        "" => "/".to_owned(),
        path => format::name(path),
    };
    vec![
        file.id.clone(),
        file.session.clone(),
        user(&file.user),
        format::name(&file.share),
        path,
        listed(&file.access),
        listed(&file.sharing),
        caching(file),
        file.lock_count.to_string(),
    ]
}

/// The oplock, or the rights of the lease by their initials.
fn caching(file: &FileStatus) -> String {
    if file.oplock != "lease" {
        return file.oplock.clone();
    }
    let initials: String = file
        .caching
        .iter()
        .filter_map(|right| right.chars().next())
        .collect();
    match initials.as_str() {
        "" => "lease".to_owned(),
        initials => format!("lease {}", initials.to_uppercase()),
    }
}

/// A user name, or a dash.
pub(crate) fn user(name: &str) -> String {
    match name {
        "" => "-".to_owned(),
        name => format::name(name),
    }
}

/// Words with commas, or a dash.
pub(crate) fn listed(words: &[String]) -> String {
    match words {
        [] => "-".to_owned(),
        words => words.join(","),
    }
}

/// A time in seconds since 1970 (UTC), as local time.
pub(crate) fn time(seconds: u64) -> String {
    format::local_time(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}

/// A table after an empty line, or a line that says that there are no rows.
fn section(what: &str, heads: &[&str], rows: Vec<Vec<String>>) -> Vec<String> {
    let lines = match rows.is_empty() {
        true => vec![format!("no {what}")],
        false => table::lines(heads, rows),
    };
    std::iter::once(String::new()).chain(lines).collect()
}

fn left_out(left_out: LeftOut) -> Vec<String> {
    if left_out == LeftOut::default() {
        return Vec::new();
    }
    let parts = [
        (left_out.connections, "connection"),
        (left_out.sessions, "session"),
        (left_out.files, "file"),
    ];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    let mut parts: Vec<String> = parts
        .map(|(count, noun)| format::count(count as u64, noun))
        .collect();
    if left_out.workers > 0 {
        let workers = format::count(left_out.workers as u64, "worker");
        parts.push(format!("the connections of {workers} too busy to answer"));
    }
    vec![String::new(), format!("not listed: {}", parts.join(", "))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn omitted_entries_are_counted() {
        assert!(left_out(LeftOut::default()).is_empty());
        let some = LeftOut {
            files: 2,
            workers: 1,
            ..LeftOut::default()
        };
        let wanted = "not listed: 2 files, the connections of 1 worker too busy to answer";
        assert_eq!(left_out(some)[1], wanted);
    }
}
