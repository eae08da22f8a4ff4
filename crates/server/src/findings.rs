//! Findings about a configuration that is valid, and does not do what its author expects.
//!
//! `smbeam config check` prints them, and a server logs them at its start.

mod accounts;
#[cfg(test)]
mod examples;
mod files;
mod requirements;
mod shares;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use auth::{UserFile, UserFileError, Users};

use crate::codes::{Reason as _, RefusedConfig};
use crate::config::Config;
use crate::unix_account;

pub use self::accounts::unix_account_warning;

/// A likely mistake in a valid configuration, with a message for the administrator. [`findings`]
/// returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether the configuration is certainly wrong, such as a missing user file. If false, the
    /// finding is only a warning.
    pub is_error: bool,
    /// The configuration key that the finding is about, such as `server.users` or `share.guest`.
    pub key: &'static str,
    /// Line in the configuration file of the key or share that causes the finding, from 1; `None`
    /// if no single line causes it.
    pub line: Option<usize>,
    /// Text for the administrator: the consequence of the configuration, and how to change it.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        write!(f, "{}: {}", self.key, self.message)
    }
}

/// The user file of a configuration.
enum Accounts {
    /// `server.users` is not set.
    None,
    /// The file is missing.
    Missing(PathBuf),
    /// The accounts of the file.
    Of(PathBuf, Arc<Users>),
}

/// The parts of the machine that findings depend on.
struct Machine<'a> {
    /// Returns whether a Unix account has this name. Without root, file operations have the rights
    /// of the process, and every name will do.
    has_unix_account: &'a dyn Fn(&str) -> bool,
    /// Returns whether a Unix group has this name.
    has_unix_group: &'a dyn Fn(&str) -> bool,
    /// Bytes of memory.
    memory: usize,
    workers: usize,
}

/// Examines a valid configuration for likely mistakes and returns them. Reads the user file and the
/// Unix accounts of the system.
///
/// # Errors
/// The user file cannot be used.
pub fn findings(config: &Config) -> Result<Vec<Finding>, UserFileError> {
    let accounts = match &config.server.users {
        None => Accounts::None,
        Some(path) if !path.exists() => Accounts::Missing(path.clone()),
        Some(path) => Accounts::Of(path.clone(), UserFile::load(path)?.users()),
    };
    let machine = Machine {
        has_unix_account: &|name| unix_account::token(name).is_ok(),
        has_unix_group: &|name| unix_account::gid(name).is_some(),
        memory: memory(),
        workers: crate::start::worker_count(config),
    };
    Ok(examine(config, &accounts, &machine))
}

fn memory() -> usize {
    let info = rustix::system::sysinfo();
    let bytes = info.totalram.saturating_mul(info.mem_unit.into());
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

fn examine(config: &Config, accounts: &Accounts, machine: &Machine<'_>) -> Vec<Finding> {
    let mut findings = Findings::default();
    findings.users(config, accounts);
    if let Accounts::Of(_, users) = accounts {
        findings.unix_accounts(users, machine);
    }
    findings.directory_of_users(accounts);
    findings.private_key(config);
    if config.shares.is_empty() {
        findings.warn("share", None, "there is no share: add a section [[share]]");
    }
    for share in &config.shares {
        findings.guests(config, share);
        findings.share_users(config, share, accounts, machine);
        findings.directory_of_share(config, share);
    }
    findings.security(config);
    findings.smb_direct(config);
    findings.memory(config, machine);
    findings.0
}

#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, is_error: bool, key: &'static str, line: Option<usize>, message: String) {
        self.0.push(Finding {
            is_error,
            key,
            line,
            message,
        });
    }

    fn warn(&mut self, key: &'static str, line: Option<usize>, message: impl Into<String>) {
        self.add(false, key, line, message.into());
    }
}

/// Logs all [`findings`] about a configuration as warnings. The server calls this when it starts
/// and when it reads the configuration file again.
pub fn log_findings(config: &Config) {
    let file = config.file().unwrap_or(Path::new("command line"));
    let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    match findings(config) {
        Ok(findings) => {
            for finding in findings {
                let Finding {
                    key, line, message, ..
                } = finding;
                let code = RefusedConfig::Doubtful.code();
                tracing::warn!(file = %file.display(), line, key, code, "{message}");
            }
        }
        // The start of the server reports it.
        Err(error) => tracing::debug!(%error, "cannot examine the accounts"),
    }
}

#[cfg(test)]
mod tests {
    use super::Accounts;
    use super::examples::{SHARE, found, users};

    #[test]
    fn a_good_configuration_has_no_findings() {
        let accounts = users(&[("alice", None, false), ("bob", Some("root"), false)]);
        let text = format!("{SHARE}users = [\"ALICE\"]\n");
        assert_eq!(found(&text, &accounts), []);
        let text = format!("{SHARE}guest = true\n[security]\nsigning_required = false\n");
        assert_eq!(found(&text, &Accounts::None), []);
    }
}
