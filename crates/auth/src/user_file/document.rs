//! The text of the user file, and the accounts in it.

use std::path::Path;

use serde::Deserialize;
use toml::Spanned;
use toml::value::Datetime;
use zeroize::Zeroizing;

use super::error::UserFileError;
use crate::app_password::{APP_PASSWORDS_MAX, AppPassword};
use crate::groups::{GROUPS_MAX, Group};
use crate::login::{AppPasswordRights, FileTime};
use crate::names::check_name;
use crate::ntlm::keys::NtHash;
use crate::password_rules::PasswordRules;
use crate::users::{Account, USERS_MAX, Users};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    password_rules: Option<Spanned<Rules>>,
    #[serde(default)]
    user: Vec<Entry>,
    #[serde(default)]
    group: Vec<GroupEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
struct Rules {
    min_length: u32,
    min_classes: u32,
    refuse_name: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: Spanned<String>,
    nt_hash: Spanned<String>,
    unix: Option<String>,
    #[serde(default)]
    disabled: bool,
    #[serde(default)]
    app_password: Vec<AppPasswordEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AppPasswordEntry {
    name: Spanned<String>,
    nt_hash: Spanned<String>,
    expires: Option<Spanned<Datetime>>,
    #[serde(default)]
    shares: Vec<String>,
    #[serde(default)]
    read_only: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupEntry {
    name: Spanned<String>,
    #[serde(default)]
    members: Vec<Spanned<String>>,
}

/// Parses the text of the file at `path`.
pub(super) fn parse(path: &Path, content: &str) -> Result<Users, UserFileError> {
    let text = Text { path, content };
    let document: Document = toml::from_str(content).map_err(|error| {
        let line = error.span().map_or(0, |span| line_of(content, span.start));
        UserFileError::Syntax(path.into(), format!("line {line}: {}", error.message()))
    })?;
    let Document {
        password_rules,
        user,
        group,
    } = document;
    let mut users = Users::default();
    users.rules = text.rules(password_rules)?;
    for entry in user {
        text.add_user(&mut users, entry)?;
    }
    for entry in group {
        text.add_group(&mut users, entry)?;
    }
    Ok(users)
}

/// The text of the file, for the lines of errors.
#[derive(Clone, Copy)]
struct Text<'a> {
    path: &'a Path,
    content: &'a str,
}

impl Text<'_> {
    fn wrong<T>(self, at: &Spanned<T>, key: &'static str, reason: String) -> UserFileError {
        let line = line_of(self.content, at.span().start);
        UserFileError::Value(self.path.into(), line, key, reason)
    }

    fn rules(self, rules: Option<Spanned<Rules>>) -> Result<PasswordRules, UserFileError> {
        let Some(spanned) = rules else {
            return Ok(PasswordRules::default());
        };
        let Rules {
            min_length,
            min_classes,
            refuse_name,
        } = *spanned.get_ref();
        let rules = PasswordRules {
            min_length,
            min_classes,
            refuse_name,
        };
        let checked = rules.check_values();
        checked.map_err(|reason| self.wrong(&spanned, "password_rules", reason))?;
        Ok(rules)
    }

    fn add_user(self, users: &mut Users, entry: Entry) -> Result<(), UserFileError> {
        let Entry {
            name,
            nt_hash,
            unix,
            disabled,
            app_password,
        } = entry;
        self.check_name(&name)?;
        let nt_hash = self.hash(nt_hash)?;
        if users.len() >= USERS_MAX {
            return Err(self.wrong(&name, "name", format!("more than {USERS_MAX} users")));
        }
        let mut account = Account {
            name: name.get_ref().clone(),
            nt_hash,
            unix,
            is_disabled: disabled,
            app_passwords: Vec::new(),
        };
        for entry in app_password {
            self.add_app_password(&mut account, entry)?;
        }
        match users.insert(account) {
            true => Ok(()),
            false => Err(self.wrong(&name, "name", "the user is listed twice".into())),
        }
    }

    fn add_app_password(
        self,
        account: &mut Account,
        entry: AppPasswordEntry,
    ) -> Result<(), UserFileError> {
        const KEY: &str = "app_password.name";
        let AppPasswordEntry {
            name,
            nt_hash,
            expires,
            shares,
            read_only,
        } = entry;
        let nt_hash = self.hash(nt_hash)?;
        let rights = AppPasswordRights {
            name: name.get_ref().clone(),
            shares,
            read_only,
        };
        let checked = rights.check();
        checked.map_err(|error| self.wrong(&name, KEY, error.to_string()))?;
        if account.app_passwords.len() >= APP_PASSWORDS_MAX {
            let reason = format!("the user has more than {APP_PASSWORDS_MAX} app passwords");
            return Err(self.wrong(&name, KEY, reason));
        }
        if account.app_password(&rights.name).is_some() {
            let reason = "the user has two app passwords of this name".into();
            return Err(self.wrong(&name, KEY, reason));
        }
        account.app_passwords.push(AppPassword {
            rights,
            nt_hash,
            expires: expires.map(|expires| self.time(&expires)).transpose()?,
        });
        Ok(())
    }

    fn add_group(self, users: &mut Users, entry: GroupEntry) -> Result<(), UserFileError> {
        let GroupEntry { name, members } = entry;
        self.check_name(&name)?;
        if users.groups().len() >= GROUPS_MAX {
            return Err(self.wrong(&name, "name", format!("more than {GROUPS_MAX} groups")));
        }
        let mut group = Group::new(name.get_ref());
        for member in members {
            let Some(account) = users.find(member.get_ref()) else {
                let reason = format!("there is no user {}", member.get_ref());
                return Err(self.wrong(&member, "members", reason));
            };
            if !group.insert(&account.name) {
                let reason = format!("{} is listed twice", member.get_ref());
                return Err(self.wrong(&member, "members", reason));
            }
        }
        match users.insert_group(group) {
            true => Ok(()),
            false => Err(self.wrong(&name, "name", "the group is listed twice".into())),
        }
    }

    fn check_name(self, name: &Spanned<String>) -> Result<(), UserFileError> {
        check_name(name.get_ref()).map_err(|error| self.wrong(name, "name", error.to_string()))
    }

    fn hash(self, hash: Spanned<String>) -> Result<NtHash, UserFileError> {
        let at = Spanned::new(hash.span(), ());
        let hash = Zeroizing::new(hash.into_inner());
        let parsed = NtHash::from_hex(&hash);
        parsed.ok_or_else(|| self.wrong(&at, "nt_hash", "not 32 hexadecimal digits".into()))
    }

    fn time(self, at: &Spanned<Datetime>) -> Result<FileTime, UserFileError> {
        let time: Result<jiff::Timestamp, _> = at.get_ref().to_string().parse();
        let time = time.map_err(|_| {
            let reason = "not a time with its offset from UTC, such as 2030-01-31T12:00:00Z";
            self.wrong(at, "app_password.expires", reason.into())
        })?;
        Ok(FileTime::from_unix(time.as_second()))
    }
}

/// The line number, 1-based, of the byte offset `at`.
fn line_of(content: &str, at: usize) -> usize {
    content.as_bytes()[..at.min(content.len())]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
        + 1
}
