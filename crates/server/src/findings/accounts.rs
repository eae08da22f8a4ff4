//! Findings about the accounts: whether users can log in.

use auth::{Account, Users};

use super::{Accounts, Findings, Machine};
use crate::config::Config;
use crate::unix_account;

/// Most accounts that one finding names.
const NAMES_MAX: usize = 10;

impl Findings {
    /// Whether any user can log in.
    pub(super) fn users(&mut self, config: &Config, accounts: &Accounts) {
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
    pub(super) fn unix_accounts(&mut self, users: &Users, machine: &Machine<'_>) {
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

#[cfg(test)]
mod tests {
    use crate::findings::Accounts;
    use crate::findings::examples::{SHARE, found, only, users};

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
}
