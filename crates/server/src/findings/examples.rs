//! Configurations and accounts for tests of findings.

use std::path::Path;
use std::sync::Arc;

use auth::{Account, Users};

use super::{Accounts, Finding, Machine, examine};
use crate::config::Config;

/// A machine with two Unix accounts and two cores.
pub(super) const MACHINE: Machine<'static> = Machine {
    has_unix_account: &|name| name == "root" || name == "alice",
    has_unix_group: &|name| name == "wheel",
    memory: 8 << 30,
    workers: 2,
};

/// A configuration from the text of its file.
pub(super) fn config(text: &str) -> Config {
    Config::parse(Path::new("smbeam.toml"), text).expect("a good file")
}

/// A user file: name, Unix account, and whether the user is disabled.
pub(super) fn users(names: &[(&str, Option<&str>, bool)]) -> Accounts {
    let mut users = Users::default();
    for (name, unix, is_disabled) in names {
        let mut account = Account::new(name, "password").expect("a good name");
        account.unix = unix.map(Into::into);
        account.is_disabled = *is_disabled;
        users.insert(account);
    }
    Accounts::Of("/etc/users.toml".into(), Arc::new(users))
}

/// The findings about a configuration: fields of [`Finding`] in their order.
pub(super) fn found(
    text: &str,
    accounts: &Accounts,
) -> Vec<(bool, &'static str, Option<usize>, String)> {
    let findings = examine(&config(text), accounts, &MACHINE).into_iter();
    let parts = |finding: Finding| {
        let Finding {
            is_error,
            key,
            line,
            message,
        } = finding;
        (is_error, key, line, message)
    };
    findings.map(parts).collect()
}

/// The only finding.
pub(super) fn only(text: &str, accounts: &Accounts) -> (bool, &'static str, Option<usize>, String) {
    let mut found = found(text, accounts);
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

/// A share of an existing directory.
pub(super) const SHARE: &str = "[[share]]\nname = \"data\"\npath = \"/\"\n";
