//! Findings about a configuration that is valid, and does not do what its author expects.
//!
//! `smbeam config check` prints them, and a server logs them at its start.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use auth::{Account, UserFile, UserFileError, Users};

use crate::config::dialect;
use crate::config::{Config, ShareSection};
use crate::unix_account;

/// Share of the memory of the machine that buffers can take before it is a finding.
const MEMORY_SHARE: usize = 2;
/// Most accounts that one finding names.
const NAMES_MAX: usize = 10;

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
    if config.shares.is_empty() {
        findings.warn("share", None, "there is no share: add a section [[share]]");
    }
    for share in &config.shares {
        findings.guests(config, share);
        findings.share_users(config, share, accounts);
    }
    findings.security(config);
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

    /// Whether any user can log in.
    fn users(&mut self, config: &Config, accounts: &Accounts) {
        const KEY: &str = "server.users";
        let admits_guests = config.shares.iter().any(|share| share.guest);
        match accounts {
            Accounts::None if !admits_guests => {
                self.warn(KEY, None, "no user can log in: set the file of users");
            }
            Accounts::None => {}
            Accounts::Missing(path) => {
                let path = path.display();
                let what = format!(
                    "{path}: no such file: no user can log in with a password. \
                     Create it with: smbeam user add --file {path} NAME"
                );
                self.add(true, KEY, None, what);
            }
            Accounts::Of(path, users) => {
                if users.iter().all(|user| user.is_disabled) && !admits_guests {
                    let path = path.display();
                    let what = format!("{path}: no user can log in: it has no enabled user");
                    self.warn(KEY, None, what);
                }
            }
        }
    }

    /// Accounts that the server refuses, because file operations need a Unix account.
    fn unix_accounts(&mut self, users: &Users, machine: &Machine<'_>) {
        let unix_name = |user: &Account| user.unix.clone().unwrap_or_else(|| user.name.clone());
        let lacking: Vec<&Account> = users
            .iter()
            .filter(|user| !(machine.has_unix_account)(&unix_name(user)))
            .collect();
        for user in lacking.iter().take(NAMES_MAX) {
            self.warn(
                "server.users",
                None,
                missing_unix_account(&user.name, &unix_name(user)),
            );
        }
        if let Some(more) = lacking
            .len()
            .checked_sub(NAMES_MAX)
            .filter(|more| *more > 0)
        {
            let what = format!("{more} more users have no Unix account: the server refuses them");
            self.warn("server.users", None, what);
        }
    }

    /// Whether guests can reach a share that admits them.
    fn guests(&mut self, config: &Config, share: &ShareSection) {
        if !share.guest {
            if share.guest_unknown_users {
                let name = share.name.get_ref();
                let what = format!("share \"{name}\" admits no guests: set guest = true");
                self.warn("share.guest_unknown_users", config.line(&share.name), what);
            }
            return;
        }
        let security = &config.security;
        let excluding = [
            (
                "share.encryption_required",
                share.encryption_required,
                "encrypted",
            ),
            (
                "security.encryption_required",
                security.encryption_required,
                "encrypted",
            ),
            (
                "security.signing_required",
                security.signing_required,
                "signed",
            ),
        ];
        let line = config.line(&share.name);
        let name = share.name.get_ref();
        for (key, is_set, protection) in excluding {
            if is_set {
                let what = format!(
                    "guests cannot use share \"{name}\": sessions of guests are not {protection}, \
                     and {key} is true"
                );
                self.warn("share.guest", line, what);
            }
        }
    }

    /// Users of a share that do not exist.
    fn share_users(&mut self, config: &Config, share: &ShareSection, accounts: &Accounts) {
        let users = match accounts {
            Accounts::Of(_, users) => Some(users),
            _ => None,
        };
        let name = share.name.get_ref();
        for user in &share.users {
            let known = users.and_then(|users| users.find(user));
            let why = match known {
                Some(account) if !account.is_disabled => continue,
                Some(_) => "is disabled",
                None => "is not in the file of users",
            };
            let what = format!("user \"{user}\" of share \"{name}\" {why}");
            self.warn("share.users", config.line(&share.name), what);
        }
    }

    /// Requirements that no client can meet.
    fn security(&mut self, config: &Config) {
        const KEY: &str = "security.encryption_required";
        let max_dialect = config.security.max_dialect.get_ref();
        let can_encrypt = dialect(max_dialect) >= dialect("3.0");
        let line = config.line(&config.security.max_dialect);
        if config.security.encryption_required && !can_encrypt {
            let what = format!("no client can connect: dialect {max_dialect} has no encryption");
            self.warn(KEY, line, what);
        }
        for share in config
            .shares
            .iter()
            .filter(|share| share.encryption_required)
        {
            if !can_encrypt {
                let name = share.name.get_ref();
                let what = format!(
                    "no client can use share \"{name}\": dialect {max_dialect} has no encryption"
                );
                self.warn("share.encryption_required", config.line(&share.name), what);
            }
        }
        let (delay, limit) = (
            config.security.failed_login_delay_ms,
            config.limits.login_timeout_ms,
        );
        if delay >= limit {
            let what = format!(
                "a client with a wrong password gets no answer: it waits {delay} ms, and \
                 limits.login_timeout_ms is {limit}"
            );
            self.warn("security.failed_login_delay_ms", None, what);
        }
    }

    fn memory(&mut self, config: &Config, machine: &Machine<'_>) {
        let Machine {
            memory, workers, ..
        } = *machine;
        let each = config.server.buffer_memory_mb;
        let all = each.saturating_mul(workers);
        if all > (memory >> 20) / MEMORY_SHARE {
            let what = format!(
                "{workers} workers with {each} MiB each can take {all} MiB, and the machine has \
                 {} MiB",
                memory >> 20
            );
            self.warn("server.buffer_memory_mb", None, what);
        }
    }
}

/// Returns the warning that file operations of the user `user` have no Unix account. `unix` is the
/// Unix account that the user file sets; `None` stands for the account with the name `user`.
/// Returns `None` if the account exists, or if the process is not root and needs none.
pub fn unix_account_warning(user: &str, unix: Option<&str>) -> Option<String> {
    let unix = unix.unwrap_or(user);
    let is_missing = unix_account::token(unix).is_err();
    is_missing.then(|| missing_unix_account(user, unix))
}

fn missing_unix_account(user: &str, unix: &str) -> String {
    format!(
        "user \"{user}\" cannot log in: there is no Unix account \"{unix}\", which gives its \
         permissions. Create it (useradd), or name another one (smbeam user add --unix ACCOUNT)"
    )
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
                tracing::warn!(file = %file.display(), line, key, "{message}");
            }
        }
        // The start of the server reports it.
        Err(error) => tracing::debug!(%error, "cannot examine the accounts"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: Machine<'static> = Machine {
        has_unix_account: &|name| name == "root" || name == "alice",
        memory: 8 << 30,
        workers: 2,
    };

    fn config(text: &str) -> Config {
        Config::parse(Path::new("smbeam.toml"), text).expect("a good file")
    }

    fn users(names: &[(&str, Option<&str>, bool)]) -> Accounts {
        let mut users = Users::default();
        for (name, unix, is_disabled) in names {
            let mut account = Account::new(name, "password").expect("a good name");
            account.unix = unix.map(Into::into);
            account.is_disabled = *is_disabled;
            users.insert(account);
        }
        Accounts::Of("/etc/users.toml".into(), Arc::new(users))
    }

    fn found(text: &str, accounts: &Accounts) -> Vec<(bool, &'static str, Option<usize>, String)> {
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
    fn only(text: &str, accounts: &Accounts) -> (bool, &'static str, Option<usize>, String) {
        let mut found = found(text, accounts);
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    }

    const SHARE: &str = "[[share]]\nname = \"data\"\npath = \"/\"\n";

    #[test]
    fn a_good_configuration_has_no_findings() {
        let accounts = users(&[("alice", None, false), ("bob", Some("root"), false)]);
        let text = format!("{SHARE}users = [\"ALICE\"]\n");
        assert_eq!(found(&text, &accounts), []);
        let text = format!("{SHARE}guest = true\n[security]\nsigning_required = false\n");
        assert_eq!(found(&text, &Accounts::None), []);
    }

    #[test]
    fn a_missing_user_file_is_an_error() {
        let missing = Accounts::Missing("/etc/users.toml".into());
        let (is_error, key, _, message) = only(SHARE, &missing);
        assert!(is_error && key == "server.users");
        assert!(
            message.starts_with("/etc/users.toml: no such file"),
            "{message}"
        );
    }

    #[test]
    fn a_server_without_users_is_reported() {
        let (_, key, _, message) = only(SHARE, &Accounts::None);
        assert_eq!(
            (key, &*message),
            ("server.users", "no user can log in: set the file of users")
        );
        let disabled = users(&[("alice", None, true)]);
        assert!(only(SHARE, &disabled).3.ends_with("it has no enabled user"));
    }

    #[test]
    fn users_without_a_unix_account_are_named() {
        let accounts = users(&[("carol", Some("nosuch"), false), ("dave", None, false)]);
        let found = found(SHARE, &accounts);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].3.contains("user \"carol\"") && found[0].3.contains("\"nosuch\""));
        assert!(found[1].3.contains("there is no Unix account \"dave\""));
        let many: Vec<String> = (0..15).map(|n| format!("u{n}")).collect();
        let many: Vec<_> = many
            .iter()
            .map(|name| (name.as_str(), None, false))
            .collect();
        let found = self::found(SHARE, &users(&many));
        assert_eq!(found.len(), 11);
        assert!(found[10].3.starts_with("5 more users"), "{}", found[10].3);
    }

    #[test]
    fn guests_that_cannot_enter_are_reported() {
        let alice = users(&[("alice", None, false)]);
        for (setting, section) in [
            ("encryption_required", "[security]"),
            ("signing_required", "[security]"),
            ("encryption_required", "[[share]]"),
        ] {
            let text = match section {
                "[security]" => {
                    let other = match setting {
                        "signing_required" => "",
                        _ => "signing_required = false\n",
                    };
                    format!("[security]\n{setting} = true\n{other}{SHARE}guest = true\n")
                }
                _ => format!(
                    "{SHARE}guest = true\n{setting} = true\n[security]\nsigning_required = false\n"
                ),
            };
            let (is_error, key, line, message) = only(&text, &alice);
            assert!(!is_error && key == "share.guest" && line.is_some());
            assert!(
                message.contains("share \"data\"") && message.contains(setting),
                "{message}"
            );
        }
    }

    #[test]
    fn unknown_users_need_guests() {
        let text = format!("{SHARE}guest_unknown_users = true\n");
        let alice = users(&[("alice", None, false)]);
        let (_, key, line, message) = only(&text, &alice);
        assert_eq!((key, line), ("share.guest_unknown_users", Some(2)));
        assert!(message.ends_with("set guest = true"), "{message}");
    }

    #[test]
    fn unknown_users_of_a_share_are_reported() {
        let accounts = users(&[("alice", None, false), ("bob", Some("root"), true)]);
        let text = format!("{SHARE}users = [\"zoe\", \"alice\", \"bob\"]\n");
        let found = found(&text, &accounts);
        let messages: Vec<&str> = found.iter().map(|found| &*found.3).collect();
        let expected = [
            "user \"zoe\" of share \"data\" is not in the file of users",
            "user \"bob\" of share \"data\" is disabled",
        ];
        assert_eq!(messages, expected);
        assert_eq!((found[0].1, found[0].2), ("share.users", Some(2)));
    }

    #[test]
    fn a_configuration_without_shares_is_reported() {
        assert_eq!(only("", &users(&[("alice", None, false)])).1, "share");
    }

    #[test]
    fn requirements_that_no_client_meets_are_reported() {
        let alice = users(&[("alice", None, false)]);
        let text =
            format!("[security]\nencryption_required = true\nmax_dialect = \"2.1\"\n{SHARE}");
        let (_, key, line, message) = only(&text, &alice);
        assert_eq!((key, line), ("security.encryption_required", Some(3)));
        assert_eq!(
            message,
            "no client can connect: dialect 2.1 has no encryption"
        );
        let text = format!("[security]\nfailed_login_delay_ms = 30000\n{SHARE}");
        assert_eq!(only(&text, &alice).1, "security.failed_login_delay_ms");
        let text = format!("[server]\nbuffer_memory_mb = 4096\n{SHARE}");
        assert_eq!(only(&text, &alice).1, "server.buffer_memory_mb");
    }
}
