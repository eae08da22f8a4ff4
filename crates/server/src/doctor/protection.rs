//! The demands of the server on the protection of sessions, and what they mean for usual clients.

use super::check::Check;
use crate::config::{Config, dialect};

pub(super) fn examine(config: &Config, checks: &mut Vec<Check>) {
    let security = &config.security;
    let (min, max) = (
        security.min_dialect.get_ref(),
        security.max_dialect.get_ref(),
    );
    let clients = if dialect(min) >= dialect("3.1.1") {
        "mount.cifs needs vers=3.1.1; no Windows before 10, no macOS before 10.14"
    } else if dialect(min) >= dialect("3.0") {
        "mount.cifs needs vers=3.0 or later; no Windows before 8, no macOS before 10.10"
    } else {
        "mount.cifs needs vers=2.0 or later; clients of SMB 1 only are refused"
    };
    checks.push(Check::ok("dialects", format!("{min} to {max}: {clients}")));
    let signing = match security.signing_required {
        true => "required: all current clients sign; guests cannot",
        false => "not required",
    };
    checks.push(Check::ok("signing", signing));
    let encryption = match security.encryption_required {
        true => {
            "required: clients need dialect 3.0 or later (mount.cifs: vers=3.1.1); guests cannot"
        }
        false => "not required by the server; a share can require it",
    };
    checks.push(Check::ok("encryption", encryption));
}
