//! The section `[audit]`: the audit log, and the operations that it records.

use std::fmt;
use std::path::PathBuf;

use proto::audit::{Operation, Outcome, Selection};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Spanned;

/// The section `[audit]` of the configuration: the audit log, and the operations that it records.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AuditSection {
    /// Destination of the audit log: the path of a file, which gets a line of JSON for each record,
    /// or `journald`. `None` (the default): the server has no audit log.
    #[schemars(with = "Option<String>")]
    pub target: Option<Spanned<AuditTarget>>,
    /// Operations that the audit log records in shares without the key `audit`: `connect`, `open`,
    /// `create`, `read`, `write`, `close`, `rename`, `link`, `delete`, `attributes`, `resize`,
    /// `security`, `quota`, or `all`. A colon and an outcome may follow: `success`, `denied`, or
    /// `failed` for all failures. The log has logins and log-offs in any case.
    #[schemars(with = "Vec<String>")]
    pub operations: Vec<AuditChoice>,
    /// Size of the file in MiB at which it is renamed and a new one begins; 0 for no limit.
    /// Default: 100.
    pub max_size_mb: usize,
    /// Number of renamed files that stay, 1 to 1000. Default: 10.
    pub keep: usize,
    /// Number of records that can wait to be written, 100 to 1,000,000. Further ones are lost, and
    /// the log has their number. Default: 10,000.
    pub queue: usize,
}

impl Default for AuditSection {
    fn default() -> Self {
        let choice = |text: &str| AuditChoice::try_from(text.to_owned()).expect("a valid choice");
        Self {
            target: None,
            operations: [
                "connect",
                "create",
                "write",
                "rename",
                "link",
                "delete",
                "security",
                "quota",
                "all:denied",
            ]
            .map(choice)
            .to_vec(),
            max_size_mb: 100,
            keep: 10,
            queue: 10_000,
        }
    }
}

impl AuditSection {
    /// The operations that the audit log records in a share with these choices.
    pub(crate) fn selection(&self, share: Option<&[AuditChoice]>) -> Selection {
        if self.target.is_none() {
            return Selection::NONE;
        }
        let choices = share.unwrap_or(&self.operations);
        let selections = choices.iter().map(|choice| choice.selection);
        selections.fold(Selection::NONE, Selection::and)
    }
}

/// The value of `audit.target`: the destination of the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub enum AuditTarget {
    /// The socket of journald.
    Journald,
    /// A file.
    File(PathBuf),
}

impl TryFrom<String> for AuditTarget {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match &*text {
            "" => Err("an empty path: leave the key out for no audit log".to_owned()),
            "journald" => Ok(Self::Journald),
            path if !path.contains('/') => Err(format!(
                "unknown destination `{path}`: use journald, or a path such as ./{path}"
            )),
            path => Ok(Self::File(PathBuf::from(path))),
        }
    }
}

impl From<AuditTarget> for String {
    fn from(target: AuditTarget) -> Self {
        target.to_string()
    }
}

impl fmt::Display for AuditTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Journald => f.write_str("journald"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

/// An element of `audit.operations` and of `share.audit`: operations with their outcomes, such as
/// `rename` or `open:denied`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct AuditChoice {
    text: String,
    selection: Selection,
}

impl TryFrom<String> for AuditChoice {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (operations, outcomes) = match text.split_once(':') {
            Some((name, outcome)) => (operations(name)?, outcomes_of(outcome)?),
            None => (operations(&text)?, &Outcome::ALL[..]),
        };
        let mut selection = Selection::NONE;
        for operation in operations {
            for outcome in outcomes {
                selection = selection.and(Selection::of(operation, *outcome));
            }
        }
        Ok(Self { text, selection })
    }
}

impl From<AuditChoice> for String {
    fn from(choice: AuditChoice) -> Self {
        choice.text
    }
}

fn operations(name: &str) -> Result<Vec<Operation>, String> {
    if name == "all" {
        return Ok(Operation::ALL.to_vec());
    }
    let mut known = Operation::ALL.into_iter();
    match known.find(|operation| operation.name() == name) {
        Some(operation) => Ok(vec![operation]),
        None => {
            let names = Operation::ALL.map(Operation::name).join(", ");
            Err(format!("unknown operation `{name}`: use {names} or all"))
        }
    }
}

fn outcomes_of(name: &str) -> Result<&'static [Outcome], String> {
    match name {
        "success" => Ok(&[Outcome::Success]),
        "denied" => Ok(&[Outcome::Denied]),
        "failed" => Ok(&[Outcome::Denied, Outcome::Failed]),
        _ => Err(format!(
            "unknown outcome `{name}`: use success, denied or failed"
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Config;

    fn parse(text: &str) -> Result<Config, String> {
        let parsed = Config::parse(Path::new("/etc/smbeam.toml"), text);
        parsed.map_err(|error| error.to_string())
    }

    fn selection(text: &str) -> Selection {
        let config = parse(text).expect("good");
        config.audit.selection(config.shares[0].audit.as_deref())
    }

    #[test]
    fn a_share_replaces_the_operations() {
        let share = "[[share]]\nname = \"data\"\npath = \"/\"\n";
        let audit = "[audit]\ntarget = \"/log\"\noperations = [\"rename\", \"open:failed\"]\n";
        let of = Selection::of;
        assert_eq!(selection(share), Selection::NONE, "no target");
        let inherited = selection(&format!("{audit}{share}"));
        for outcome in Outcome::ALL {
            assert!(inherited.has(Operation::Rename, outcome));
            assert!(!inherited.has(Operation::Create, outcome));
        }
        assert!(!inherited.has(Operation::Open, Outcome::Success));
        assert!(inherited.has(Operation::Open, Outcome::Denied));
        let own = selection(&format!("{audit}{share}audit = [\"delete:success\"]\n"));
        assert_eq!(own, of(Operation::Delete, Outcome::Success));
        let none = selection(&format!("{audit}{share}audit = []\n"));
        assert!(none.is_empty());
        let default = selection(&format!("[audit]\ntarget = \"journald\"\n{share}"));
        assert!(default.has(Operation::Create, Outcome::Success));
        assert!(default.has(Operation::Open, Outcome::Denied));
        assert!(!default.has(Operation::Open, Outcome::Failed));
    }

    #[test]
    fn relative_files_start_at_the_directory_of_the_configuration() {
        let config = parse("[audit]\ntarget = \"./a.jsonl\"\n").expect("good");
        let target = config.audit.target.expect("set").into_inner();
        assert_eq!(target, AuditTarget::File(PathBuf::from("/etc/./a.jsonl")));
    }

    #[test]
    fn bad_values_have_a_reason() {
        for (keys, expected) in [
            (
                "target = \"syslog\"",
                "audit.target: unknown destination `syslog`",
            ),
            (
                "operations = [\"opens\"]",
                "audit.operations: unknown operation `opens`",
            ),
            (
                "operations = [\"open:ok\"]",
                "audit.operations: unknown outcome `ok`",
            ),
            ("queue = 5", "audit.queue: 5 is not valid: use at least 100"),
            ("keep = 0", "audit.keep: 0 is not valid: use at least 1"),
        ] {
            let error = parse(&format!("[audit]\n{keys}\n")).expect_err(keys);
            let expected = format!("/etc/smbeam.toml, line 2: {expected}");
            assert!(error.starts_with(&expected), "{error}");
        }
    }
}
