//! The checks on the machine of the server.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use smbeam_server::config::{Config, Layers};
use smbeam_server::doctor::{self, Check, Diagnosis, Question};
use smbeam_server::{Reason as _, RefusedConfig};

use super::{Access, Arguments};
use crate::exit::Exit;
use crate::failure::Outcome;
use crate::local_server::{LocalServer, ServerArguments};

/// The configuration file of the packages.
const SYSTEM_FILE: &str = "/etc/smbeam/smbeam.toml";
/// The configuration file of `smbeam config check`.
const DEFAULT_FILE: &str = "smbeam.toml";

pub(super) fn examine(arguments: &Arguments) -> Vec<Check> {
    let file = arguments.config.clone().unwrap_or_else(default_file);
    let config = match Layers::new(Some(&file)).with_environment().load() {
        Ok(config) => config,
        Err(error) => return vec![invalid(&file, &error)],
    };
    let running = ServerArguments::of_config(&file).find();
    let mut checks = vec![server(&file, &config, &running)];
    let question = Question {
        user: arguments.as_user.clone(),
        share: arguments.share.clone(),
        path: arguments.path.clone(),
        access: arguments.access.iter().copied().map(Into::into).collect(),
        is_running: is_running(&running),
    };
    checks.extend(doctor::examine(&config, &question));
    checks
}

impl From<Access> for doctor::Access {
    fn from(access: Access) -> Self {
        match access {
            Access::Read => Self::Read,
            Access::Write => Self::Write,
            Access::Delete => Self::Delete,
        }
    }
}

/// The file of the only running server, else that of this directory, else that of the system.
fn default_file() -> PathBuf {
    let running = ServerArguments::of_any().find();
    let of_server = running.ok().and_then(|server| server.status.server.config);
    of_server.unwrap_or_else(|| match Path::new(DEFAULT_FILE).exists() {
        true => DEFAULT_FILE.into(),
        false => SYSTEM_FILE.into(),
    })
}

fn invalid(file: &Path, error: &dyn std::fmt::Display) -> Check {
    let code = RefusedConfig::Invalid.code();
    let check = Check::refused(format!("configuration {}", file.display()), code, error);
    check.mended_by(format!("smbeam config check {}", file.display()))
}

/// Whether the ports of the configuration belong to a server of it. A server that this user may not
/// ask counts.
fn is_running(running: &Outcome<LocalServer>) -> bool {
    match running {
        Ok(_) => true,
        Err(failure) => failure.exit == Exit::Denied,
    }
}

/// Whether a server runs with the configuration, and with its present content.
fn server(file: &Path, config: &Config, running: &Outcome<LocalServer>) -> Check {
    let server = match running {
        Ok(found) => &found.status.server,
        Err(failure) => {
            let code = Diagnosis::NotRunning.code();
            let check = Check::warning("server", code, failure);
            return match failure.exit {
                Exit::Denied => check.mended_by("run this command as root"),
                _ => check.mended_by("systemctl start smbeam, or smbeam serve --config FILE"),
            };
        }
    };
    let subject = format!("server (pid {})", server.pid);
    let disabled = server.shares.iter().filter(|share| !share.is_enabled);
    let disabled: Vec<&str> = disabled.map(|share| share.name.as_str()).collect();
    if let Some(first) = disabled.first() {
        let message = format!(
            "an administrator has disabled share {}",
            disabled.join(", ")
        );
        let check = Check::warning(subject, Diagnosis::ShareDisabled.code(), message);
        return check.mended_by(format!("smbeam share enable {first}"));
    }
    let served = |name: &String| {
        let mut served = server.shares.iter();
        served.any(|served| served.name.eq_ignore_ascii_case(name))
    };
    let shares = config.shares.iter().map(|share| share.name.get_ref());
    let missing: Vec<&str> = shares
        .filter(|name| !served(name))
        .map(String::as_str)
        .collect();
    let stale = if !missing.is_empty() {
        Some(format!("it does not serve share {}", missing.join(", ")))
    } else if changed_since(file, server.configured) {
        Some("the configuration file has changed since the server read it".to_owned())
    } else {
        None
    };
    match stale {
        None => Check::ok(subject, format!("runs with {}", file.display())),
        Some(message) => {
            let check = Check::warning(subject, Diagnosis::NotReloaded.code(), message);
            check.mended_by(format!("smbeam reload --config {}", file.display()))
        }
    }
}

/// Whether a file changed after a time in seconds since 1970.
fn changed_since(file: &Path, seconds: u64) -> bool {
    let modified = std::fs::metadata(file).and_then(|metadata| metadata.modified());
    let since = modified
        .ok()
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.is_some_and(|since| since.as_secs() > seconds)
}
