//! `smbeam doctor` on the server: which check refuses a user, and how to mend it.
//!
//! [`examine`] runs the same code as the server: the user file, the accounts of Unix, the walk of
//! paths and the access checks of `vfs`. It changes no file and listens on no address.

mod account;
mod certificate;
mod check;
mod diagnosis;
mod examined;
mod machine;
mod path;
mod permissions;
mod port_owner;
mod ports;
mod protection;
mod question;
mod share;

use crate::codes::{Reason as _, RefusedConfig};
use crate::config::Config;
use crate::findings;

pub use self::check::{Check, Verdict};
pub use self::diagnosis::Diagnosis;
pub use self::question::{Access, Question};

/// Runs all checks, in the order in which a client meets them. May block on the look-up of accounts
/// and on disks.
pub fn examine(config: &Config, question: &Question) -> Vec<Check> {
    let mut checks = Vec::new();
    findings_of(config, &mut checks);
    machine::examine(config, &mut checks);
    if !question.is_running {
        ports::examine(config, &mut checks);
    }
    certificate::examine(config, &mut checks);
    protection::examine(config, &mut checks);
    let user = match &question.user {
        Some(name) => match account::examine(config, name, &mut checks) {
            Some(user) => Some(user),
            None => return checks,
        },
        None => None,
    };
    share::examine(config, question, user.as_ref(), &mut checks);
    checks
}

/// The findings of `smbeam config check`.
fn findings_of(config: &Config, checks: &mut Vec<Check>) {
    let file = match config.file() {
        Some(file) => format!("configuration {}", file.display()),
        None => "configuration".to_owned(),
    };
    let found = match findings(config) {
        Ok(found) => found,
        Err(error) => {
            let code = RefusedConfig::Users.code();
            return checks.push(Check::refused(file, code, error));
        }
    };
    if found.is_empty() {
        checks.push(Check::ok(&file, "no findings"));
    }
    for finding in found {
        let code = RefusedConfig::Doubtful.code();
        checks.push(match finding.is_error {
            true => Check::refused(&file, code, finding),
            false => Check::warning(&file, code, finding),
        });
    }
}

#[cfg(test)]
mod tests;
