//! `smbeam doctor`: names the check that refuses a user, and the command that mends it.

mod codes;
mod local;
mod probe;
mod remote;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use smbeam_server::doctor::{Check, Verdict};

use crate::connect::ConnectArguments;
use crate::exit::Exit;
use crate::location::Url;
use crate::output::{self, Lines};

#[cfg(test)]
pub(crate) use self::codes::codes;

/// Arguments of `smbeam doctor`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Examine a server from this machine: name, ports, negotiation, login, share and path.
    #[arg(
        long,
        value_name = "URL",
        value_parser = crate::location::url,
        conflicts_with_all = ["config", "as_user", "share", "path", "access"]
    )]
    url: Option<Url>,
    /// Configuration file of the server to examine on this machine [default: that of the running
    /// server, smbeam.toml, or /etc/smbeam/smbeam.toml].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Examine the login and the permissions of this user.
    #[arg(long = "as", value_name = "USER")]
    as_user: Option<String>,
    /// Examine this share only.
    #[arg(long, value_name = "SHARE")]
    share: Option<String>,
    /// Examine this path: one from the root of the share, or a local path below a share.
    #[arg(long, value_name = "PATH", requires = "as_user")]
    path: Option<PathBuf>,
    /// The accesses that must be possible. The refusal of another one is only a warning.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "read",
        requires = "as_user"
    )]
    access: Vec<Access>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connect: ConnectArguments,
}

/// An access to a file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Access {
    /// Read a file, list a directory.
    Read,
    /// Write to a file, create files in a directory.
    Write,
    /// Delete or rename.
    Delete,
}

/// Runs `smbeam doctor`.
pub(crate) fn run(arguments: &Arguments) -> Exit {
    let checks = match &arguments.url {
        Some(url) => remote::examine(url, &arguments.connect),
        None => local::examine(arguments),
    };
    match arguments.json {
        true => output::line(&as_json(&checks)),
        false => print(&checks),
    }
    let is_refused = |check: &Check| check.verdict == Verdict::Refused;
    match checks.iter().any(is_refused) {
        true => Exit::Failed,
        false => Exit::Success,
    }
}

fn as_json(checks: &[Check]) -> Value {
    let rows = checks.iter().map(|check| {
        let Check {
            subject,
            verdict,
            code,
            message,
            remedy,
        } = check;
        json!({
            "subject": subject,
            "verdict": verdict.word(),
            "code": code,
            "message": message,
            "remedy": remedy,
        })
    });
    let good = checks.iter().all(|check| check.verdict != Verdict::Refused);
    json!({ "good": good, "checks": rows.collect::<Vec<_>>() })
}

fn print(checks: &[Check]) {
    let mut lines = Lines::new();
    for check in checks {
        for line in text(check) {
            lines.line(&line);
        }
    }
    let count = |verdict| {
        checks
            .iter()
            .filter(|check| check.verdict == verdict)
            .count()
    };
    let (refused, warnings) = (count(Verdict::Refused), count(Verdict::Warning));
    lines.line(&format_args!(
        "{} checks: {refused} refused, {warnings} warnings",
        checks.len()
    ));
    if refused + warnings > 0 {
        lines.line(&"smbeam explain CODE explains a code");
    }
}

/// The lines of a check. Names may contain control characters, which would change the terminal.
fn text(check: &Check) -> Vec<String> {
    let Check {
        subject,
        verdict,
        code,
        message,
        remedy,
    } = check;
    let code = code.map_or_else(String::new, |code| format!(" [{code}]"));
    let mut lines = vec![format!("{:<8} {subject}: {message}{code}", verdict.word())];
    lines.extend(
        remedy
            .iter()
            .map(|remedy| format!("{:<8} mend: {remedy}", "")),
    );
    for line in &mut lines {
        *line = line.replace(char::is_control, "?");
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_has_its_code_and_its_remedy() {
        let check = Check::refused("share a\u{1b}b", "share-no-guests", "no guests");
        let check = check.mended_by("log in");
        let expected = [
            "refused  share a?b: no guests [share-no-guests]",
            "         mend: log in",
        ];
        assert_eq!(text(&check), expected);
        let json = as_json(&[check, Check::ok("name", "found")]);
        assert_eq!(json["good"], false);
        assert_eq!(json["checks"][0]["code"], "share-no-guests");
        assert_eq!(json["checks"][1]["code"], Value::Null);
    }
}
