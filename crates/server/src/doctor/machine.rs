//! Checks of the process and the machine: privileges, descriptors, the state directory.

use std::path::Path;

use rustix::fs::{Access, access};
use rustix::process::{Resource, geteuid, getrlimit};

use super::account;
use super::check::Check;
use super::diagnosis::Diagnosis;
use crate::codes::Reason as _;
use crate::config::Config;
use crate::unix_account;

/// Descriptors that a server needs apart from those of connections and opens.
const OWN_DESCRIPTORS: u64 = 256;

pub(super) fn examine(config: &Config, checks: &mut Vec<Check>) {
    checks.push(identities());
    checks.push(descriptors(config));
    checks.push(state_directory(&config.state_directory()));
}

/// Whether file operations run as the user of each client.
fn identities() -> Check {
    let subject = "identities";
    if unix_account::may_assume_identities() {
        return Check::ok(
            subject,
            "root: each operation runs as the user of the client",
        );
    }
    let own = account::user(geteuid().as_raw());
    let message = format!("not root: a server of this user does all file operations as {own}");
    let check = Check::warning(subject, Diagnosis::OneIdentity.code(), message);
    check.mended_by("run the server, and this command, as root")
}

/// A connection needs a descriptor, and so does an open file.
fn descriptors(config: &Config) -> Check {
    let subject = "open descriptors (RLIMIT_NOFILE)";
    let Some(limit) = getrlimit(Resource::Nofile).maximum else {
        return Check::ok(subject, "without a limit");
    };
    let wanted = config.limits.connections as u64 + OWN_DESCRIPTORS;
    if limit >= wanted {
        return Check::ok(subject, format!("{limit} at most"));
    }
    let message = format!(
        "{limit} at most: too few for limits.connections = {} and open files",
        config.limits.connections
    );
    let check = Check::warning(subject, Diagnosis::Descriptors.code(), message);
    check.mended_by("LimitNOFILE=1048576 in the unit, or ulimit -Hn 1048576")
}

/// The directory, or the nearest one above it, must be writable.
fn state_directory(directory: &Path) -> Check {
    let subject = format!("state directory {}", directory.display());
    let existing = directory.ancestors().find(|above| above.exists());
    let Some(existing) = existing else {
        return Check::ok(subject, "it does not exist");
    };
    if access(existing, Access::WRITE_OK | Access::EXEC_OK).is_ok() {
        return Check::ok(subject, "writable");
    }
    let message = format!(
        "{} cannot be written: the SID and the certificate of the server change at each start",
        existing.display()
    );
    let check = Check::warning(subject, Diagnosis::StateDirectory.code(), message);
    check.mended_by("set server.state_directory to a directory of the user of the server")
}
