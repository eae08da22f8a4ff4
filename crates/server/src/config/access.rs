//! Lists of users and of addresses: the users of a share, and the clients of a share or server.

use auth::USER_NAME_LEN_MAX;
use proto::server::hosts::{HostRules, Network};
use proto::server::share_users::{Principal, ShareUsers};
use toml::Spanned;

use super::{Check, ConfigError, ShareSection};

/// Maximum number of entries of one list.
const ENTRIES_MAX: usize = 10_000;

/// The lists of users of a share, in the form of the core.
pub(crate) fn share_users(section: &ShareSection) -> ShareUsers {
    let valid = principals(&section.valid_users);
    ShareUsers {
        valid: (!valid.is_empty()).then_some(valid),
        invalid: principals(&section.invalid_users),
        read: principals(&section.read_users),
        write: principals(&section.write_users),
    }
}

/// The rules about addresses in the form of the core.
pub(crate) fn host_rules(allow: &[Spanned<String>], deny: &[Spanned<String>]) -> HostRules {
    HostRules {
        allow: networks(allow),
        deny: networks(deny),
    }
}

/// Parses an entry of a list of users: a name, or `@` and the name of a group.
pub(crate) fn principal(entry: &str) -> Principal {
    match entry.strip_prefix('@') {
        Some(group) => Principal::Group(group.to_owned()),
        None => Principal::User(entry.to_owned()),
    }
}

fn principals(list: &[Spanned<String>]) -> Vec<Principal> {
    list.iter()
        .map(|entry| principal(entry.get_ref()))
        .collect()
}

fn networks(list: &[Spanned<String>]) -> Vec<Network> {
    let parsed = list.iter().map(|entry| entry.get_ref().parse());
    parsed
        .map(|network| network.expect("checked when the file was read"))
        .collect()
}

impl ShareSection {
    /// The lists of users, with the keys of their names.
    pub(crate) fn lists_of_users(&self) -> [(&'static str, &[Spanned<String>]); 4] {
        [
            ("share.valid_users", &self.valid_users),
            ("share.invalid_users", &self.invalid_users),
            ("share.read_users", &self.read_users),
            ("share.write_users", &self.write_users),
        ]
    }
}

impl Check<'_> {
    /// Checks the lists of users and addresses of a share.
    pub(super) fn access(&self, share: &ShareSection) -> Result<(), ConfigError> {
        for (key, list) in share.lists_of_users() {
            self.length(key, list)?;
            for entry in list {
                self.principal(key, entry)?;
            }
        }
        self.hosts("share.hosts_allow", &share.hosts_allow)?;
        self.hosts("share.hosts_deny", &share.hosts_deny)
    }

    /// Checks a list of addresses and networks.
    pub(super) fn hosts(&self, key: &str, list: &[Spanned<String>]) -> Result<(), ConfigError> {
        self.length(key, list)?;
        for entry in list {
            let text = entry.get_ref();
            if let Err(error) = text.parse::<Network>() {
                let what = format!(
                    "{key}: `{text}`: {error}; an entry is an address or a network, such as \
                     192.0.2.7, 192.0.2.0/24 or 2001:db8::/32"
                );
                return Err(self.error(entry, what));
            }
        }
        Ok(())
    }

    fn length(&self, key: &str, list: &[Spanned<String>]) -> Result<(), ConfigError> {
        match list.get(ENTRIES_MAX) {
            Some(entry) => {
                let what = format!("{key}: the list has more than {ENTRIES_MAX} entries");
                Err(self.error(entry, what))
            }
            None => Ok(()),
        }
    }

    fn principal(&self, key: &str, entry: &Spanned<String>) -> Result<(), ConfigError> {
        let text = entry.get_ref();
        let name = text.strip_prefix('@').unwrap_or(text);
        let what = if name.trim().is_empty() {
            format!("{key}: `{text}` has no name: an entry is a user, or @ and a group")
        } else if name.starts_with(['+', '&', '%', '@']) {
            format!("{key}: `{text}`: smbeam has no `+`, `&` and `%` of Samba: use @ for groups")
        } else if name.encode_utf16().count() > USER_NAME_LEN_MAX {
            format!("{key}: the name is longer than {USER_NAME_LEN_MAX} characters")
        } else {
            return Ok(());
        };
        Err(self.error(entry, what))
    }
}
