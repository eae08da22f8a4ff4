//! Checks of the account of a user, and of its Unix account.

use std::sync::Arc;

use auth::{GuestLogins, UserFile};
use proto::login::{Account, AccountKind, AccountsRevision};
use proto::token::{Logon, Token};

use super::check::Check;
use crate::accounts::{group_names, guest_logins};
use crate::codes::{Reason as _, RefusedConfig};
use crate::config::{Config, ShareSection, share_users};
use crate::counters::RefusedLogin;
use crate::unix_account;

/// A user that can log in.
pub(super) struct User {
    /// The name in the user file, or that of the client for a guest.
    pub(super) name: String,
    pub(super) is_guest: bool,
    /// The names of the groups in the user file and of Unix; none for guests.
    pub(super) groups: Arc<[String]>,
    /// The identity of file operations, without regard to shares.
    pub(super) token: Arc<Token>,
    /// Name of the Unix account; `None` for guests.
    pub(super) unix: Option<String>,
}

impl User {
    /// The account in the form of the core.
    pub(super) fn account(&self) -> Account {
        Account {
            name: self.name.clone(),
            kind: match self.is_guest {
                true => AccountKind::Guest,
                false => AccountKind::Named,
            },
            token: Arc::clone(&self.token),
            revision: AccountsRevision::default(),
            groups: Arc::clone(&self.groups),
            app_password: None,
        }
    }

    /// Whether the user only reads in a share that admits the user.
    pub(super) fn is_reader(&self, section: &ShareSection) -> bool {
        match self.is_guest {
            true => section.read_only,
            false => share_users(section).is_reader(&self.account(), section.read_only),
        }
    }
}

/// Examines the login of a user. `None` if the server refuses it.
pub(super) fn examine(config: &Config, name: &str, checks: &mut Vec<Check>) -> Option<User> {
    let subject = format!("account {name}");
    let users = match &config.server.users {
        None => None,
        Some(file) => match UserFile::load(file) {
            Ok(found) => Some(found.users()),
            Err(error) => {
                let code = RefusedConfig::Users.code();
                checks.push(Check::refused(subject, code, error));
                return None;
            }
        },
    };
    let account = users.as_ref().and_then(|users| users.find(name));
    let Some(account) = account else {
        return guest(config, name, checks);
    };
    if account.is_disabled {
        let code = RefusedLogin::Disabled.code();
        let check = Check::refused(subject, code, "the account is disabled (disabled = true)");
        let remedy = format!("smbeam user enable{} {name}", file_option(config));
        checks.push(check.mended_by(remedy));
        return None;
    }
    checks.push(Check::ok(subject, "enabled, with a password"));
    let unix = account.unix.clone().unwrap_or_else(|| account.name.clone());
    let user = unix_identity(&account.name, unix, checks)?;
    let of_unix = user.groups.to_vec();
    let groups = users
        .as_ref()
        .map(|users| group_names(users, &user.name, of_unix));
    Some(User {
        groups: groups.unwrap_or_default(),
        ..user
    })
}

/// The option of `smbeam user` that names the user file.
fn file_option(config: &Config) -> String {
    let file = config.server.users.as_ref();
    file.map_or_else(String::new, |file| format!(" --file {}", file.display()))
}

/// A name without an account: a guest, or a refusal.
fn guest(config: &Config, name: &str, checks: &mut Vec<Check>) -> Option<User> {
    let is_guest_name = name.is_empty() || name.eq_ignore_ascii_case("guest");
    let is_guest = match guest_logins(config) {
        GuestLogins::Refused => false,
        GuestLogins::ByName => is_guest_name,
        GuestLogins::ByUnknownName => true,
    };
    let subject = format!("account {name}");
    if !is_guest {
        let message = match &config.server.users {
            Some(file) => format!("no such user in {}", file.display()),
            None => "server.users is not set: no account exists".to_owned(),
        };
        let remedy = format!("smbeam user add{} {name}", file_option(config));
        let check = Check::refused(subject, RefusedLogin::UnknownUser.code(), message);
        checks.push(check.mended_by(remedy));
        return None;
    }
    let security = &config.security;
    for (is_set, refused, key) in [
        (
            security.signing_required,
            RefusedLogin::GuestCannotSign,
            "security.signing_required",
        ),
        (
            security.encryption_required,
            RefusedLogin::GuestCannotEncrypt,
            "security.encryption_required",
        ),
    ] {
        if is_set {
            let message = format!("the user is a guest, which has no key, and {key} is true");
            let check = Check::refused(&subject, refused.code(), message);
            let remedy = format!("log in with a password, or set {key} = false");
            checks.push(check.mended_by(remedy));
            return None;
        }
    }
    checks.push(Check::ok(
        subject,
        "a guest: neither signed nor encrypted, with the permissions of the account for guests",
    ));
    Some(User {
        name: name.to_owned(),
        is_guest: true,
        groups: Arc::default(),
        token: unix_account::guest(Logon::Guest),
        unix: None,
    })
}

fn unix_identity(name: &str, unix: String, checks: &mut Vec<Check>) -> Option<User> {
    let subject = format!("Unix account {unix}");
    let (token, groups) = match unix_account::identity(&unix) {
        Ok(found) => found,
        Err(error) => {
            let check = Check::refused(subject, RefusedLogin::NoUnixAccount.code(), error);
            let remedy = format!("useradd {unix}, or smbeam user add --unix ACCOUNT {name}");
            checks.push(check.mended_by(remedy));
            return None;
        }
    };
    if unix_account::may_assume_identities() {
        checks.push(identity(&subject, &token));
    }
    Some(User {
        name: name.to_owned(),
        is_guest: false,
        groups: groups.into(),
        token,
        unix: Some(unix),
    })
}

/// Takes on the identity, as the server does for each file operation.
fn identity(subject: &str, token: &Arc<Token>) -> Check {
    let assumed = vfs::identity::assume(token);
    let returned = vfs::identity::own();
    if assumed.is_err() || returned.is_err() {
        let message = "the server cannot switch to the user and groups of the account";
        let check = Check::refused(subject, vfs::identity::REFUSED_CODE, message);
        return check.mended_by("give the service CAP_SETUID and CAP_SETGID");
    }
    let groups = std::iter::once(&token.gid).chain(&token.groups);
    let groups: Vec<String> = groups.map(|gid| group(*gid)).collect();
    let message = format!("uid {}, groups {}", token.uid, groups.join(", "));
    Check::ok(subject, message)
}

/// A group, as `name(gid)`.
pub(super) fn group(gid: u32) -> String {
    match unix_account::group_name(gid) {
        Some(name) => format!("{name}({gid})"),
        None => gid.to_string(),
    }
}

/// A user, as `name(uid)`.
pub(super) fn user(uid: u32) -> String {
    match unix_account::account_name(uid) {
        Some(name) => format!("{name}({uid})"),
        None => uid.to_string(),
    }
}
