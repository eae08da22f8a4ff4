//! Findings about single shares: whether the clients that the share admits can use it.

use proto::server::share_users::Principal;

use super::{Accounts, Findings, Machine};
use crate::config::{Config, ShareSection, principal};

impl Findings {
    /// Whether guests can reach a share that admits them.
    pub(super) fn guests(&mut self, config: &Config, share: &ShareSection) {
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

    /// Users and groups of a share that do not exist.
    pub(super) fn share_users(
        &mut self,
        config: &Config,
        share: &ShareSection,
        accounts: &Accounts,
        machine: &Machine<'_>,
    ) {
        let users = match accounts {
            Accounts::Of(_, users) => Some(users),
            _ => None,
        };
        let name = share.name.get_ref();
        let lists = share.lists_of_users().into_iter();
        let entries = lists.flat_map(|(key, list)| list.iter().map(move |entry| (key, entry)));
        for (key, entry) in entries {
            let (kind, entry, why) = match principal(entry.get_ref()) {
                Principal::User(user) => {
                    let why = match users.and_then(|users| users.find(&user)) {
                        Some(account) if !account.is_disabled => continue,
                        Some(_) => "is disabled",
                        None => "is not in the file of users",
                    };
                    ("user", user, why)
                }
                Principal::Group(group) => {
                    let of_file = users.and_then(|users| users.find_group(&group));
                    if of_file.is_some() || (machine.has_unix_group)(&group) {
                        continue;
                    }
                    (
                        "group",
                        group,
                        "is neither in the file of users nor a Unix group",
                    )
                }
            };
            let what = format!("{kind} \"{entry}\" of share \"{name}\" {why}");
            self.warn(key, config.line(&share.name), what);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::findings::examples::{SHARE, found, only, users};

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
        assert_eq!((found[0].1, found[0].2), ("share.valid_users", Some(2)));
    }

    #[test]
    fn unknown_groups_of_a_share_are_reported() {
        let accounts = users(&[("alice", None, false)]);
        let text = format!("{SHARE}read_users = [\"alice\", \"@wheel\", \"@staf\"]\n");
        let (_, key, line, message) = only(&text, &accounts);
        assert_eq!((key, line), ("share.read_users", Some(2)));
        let expected =
            "group \"staf\" of share \"data\" is neither in the file of users nor a Unix";
        assert_eq!(message, format!("{expected} group"));
    }

    #[test]
    fn a_configuration_without_shares_is_reported() {
        assert_eq!(only("", &users(&[("alice", None, false)])).1, "share");
    }
}
