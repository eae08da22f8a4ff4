//! The user and the password for a location.

use std::env;
use std::fmt;
use std::path::PathBuf;

use smbeam_client::{Credentials, Url};

use crate::credentials_file::{CredentialsFile, LoginEntry};
use crate::error::Error;
use crate::location::Location;
use crate::password::{password_of, password_of_file};

/// The environment variable with the password.
pub const PASSWORD_VARIABLE: &str = "SMBEAM_PASSWORD";

/// The user and the sources of the password that a caller sets beside the location. The default
/// sets none.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Login {
    /// User name if the URL has none: `name`, `DOMAIN\name` or `DOMAIN;name`.
    pub user: Option<String>,
    /// Domain of the user if neither the URL nor `user` has one.
    pub domain: Option<String>,
    /// The password.
    pub password: Option<String>,
    /// File with the password in its first line. `-` is standard input.
    pub password_file: Option<PathBuf>,
    /// File with user names and passwords. Without it, [`CredentialsFile::path`] if it exists.
    pub credentials_file: Option<PathBuf>,
    /// Whether to log in without a user name. Precedes all other fields.
    pub anonymous: bool,
    /// Whether to log in as guest, without a password. Precedes the fields above.
    pub guest: bool,
}

/// The result of [`Login::resolve`].
#[derive(Clone, Debug)]
pub enum Resolved {
    /// The credentials are complete.
    Credentials(Credentials),
    /// No source has a password: the program can ask the user.
    NeedsPassword(NeedsPassword),
}

/// A login without a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeedsPassword {
    /// The domain of the user, if one is known.
    pub domain: Option<String>,
    /// The user name.
    pub user: String,
    /// The name or the address of the server.
    pub host: String,
}

impl NeedsPassword {
    /// The credentials with the password that the user has entered.
    pub fn with_password(&self, password: &str) -> Credentials {
        Credentials::new(self.domain.as_deref(), &self.user, password)
    }
}

impl Login {
    /// Whether the login has no password, so that the session has no keys.
    pub fn is_without_password(&self) -> bool {
        self.anonymous || self.guest
    }

    /// Finds the credentials for a location.
    ///
    /// The user comes from the URL, else from [`Self::user`], the credentials file, the variable
    /// `USER`, or the Unix account of the process. The password comes from the options, else from
    /// [`Self::password_file`], the variable `SMBEAM_PASSWORD`, the source of the remote, or the
    /// credentials file.
    ///
    /// It reads files and can run a command, so it can block.
    ///
    /// # Errors
    /// A file or the command of the remote cannot be used, or no source names a user.
    pub fn resolve(&self, location: &Location) -> Result<Resolved, Error> {
        if self.anonymous {
            return Ok(Resolved::Credentials(Credentials::anonymous()));
        }
        if self.guest {
            let guest = Credentials::new(None, "guest", "");
            return Ok(Resolved::Credentials(guest));
        }
        let url = &location.url;
        let (domain, user) = self.named(url);
        let entry = self.entry(url, user.as_deref())?;
        let of_entry = |field: fn(&LoginEntry) -> &Option<String>| {
            entry.as_ref().and_then(|entry| field(entry).clone())
        };
        let user = user
            .or_else(|| of_entry(|entry| &entry.user))
            .or_else(|| user_of_process(env::var("USER").ok(), unix_account));
        let wanted = NeedsPassword {
            domain: domain.or_else(|| of_entry(|entry| &entry.domain)),
            user: user.ok_or_else(|| Error::NoUser {
                host: url.host.clone(),
            })?,
            host: url.host.clone(),
        };
        let variable = env::var(PASSWORD_VARIABLE).ok();
        Ok(match self.password(variable, location, entry)? {
            Some(password) => Resolved::Credentials(wanted.with_password(&password)),
            None => Resolved::NeedsPassword(wanted),
        })
    }

    /// Domain and user from the URL, or else from the fields.
    fn named(&self, url: &Url) -> (Option<String>, Option<String>) {
        let domain = || url.domain.clone().or_else(|| self.domain.clone());
        if url.user.is_some() {
            return (domain(), url.user.clone());
        }
        let Some(user) = &self.user else {
            return (domain(), None);
        };
        match user.split_once(['\\', ';']) {
            Some((domain, user)) => (Some(domain.into()), Some(user.into())),
            None => (domain(), Some(user.clone())),
        }
    }

    /// The matching entry of the credentials file. The file must exist if
    /// [`Self::credentials_file`] names it.
    fn entry(&self, url: &Url, user: Option<&str>) -> Result<Option<LoginEntry>, Error> {
        let given = self.credentials_file.clone();
        let default = || CredentialsFile::path().filter(|path| path.exists());
        let Some(path) = given.or_else(default) else {
            return Ok(None);
        };
        let file = CredentialsFile::load(&path)?;
        Ok(file.find(&url.host, url.share.as_deref(), user).cloned())
    }

    fn password(
        &self,
        variable: Option<String>,
        location: &Location,
        entry: Option<LoginEntry>,
    ) -> Result<Option<String>, Error> {
        if let Some(password) = &self.password {
            return Ok(Some(password.clone()));
        }
        if let Some(path) = &self.password_file {
            return password_of_file(path).map(Some);
        }
        if variable.is_some() {
            return Ok(variable);
        }
        if let Some(source) = &location.password {
            return password_of(source).map(Some);
        }
        match entry {
            Some(LoginEntry {
                password: Some(password),
                ..
            }) => Ok(Some(password)),
            Some(LoginEntry {
                password_file: Some(path),
                ..
            }) => password_of_file(&path).map(Some),
            _ => Ok(None),
        }
    }
}

/// The user name without any other: the variable `USER`, or else the Unix account of the process,
/// because cron and containers do not set the variable.
fn user_of_process(
    variable: Option<String>,
    account: impl FnOnce() -> Option<String>,
) -> Option<String> {
    variable.filter(|user| !user.is_empty()).or_else(account)
}

fn unix_account() -> Option<String> {
    let user = uzers::get_user_by_uid(rustix::process::getuid().as_raw())?;
    Some(user.name().to_string_lossy().into_owned())
}

/// Without the password.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("user", &self.user)
            .field("domain", &self.domain)
            .field("password_file", &self.password_file)
            .field("credentials_file", &self.credentials_file)
            .field("anonymous", &self.anonymous)
            .field("guest", &self.guest)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::location::PasswordSource;

    fn url(text: &str) -> Url {
        text.parse().expect("a URL")
    }

    fn login(user: Option<&str>) -> Login {
        Login {
            user: user.map(str::to_owned),
            ..Login::default()
        }
    }

    fn named(user: Option<&str>, text: &str) -> (Option<String>, Option<String>) {
        login(user).named(&url(text))
    }

    fn pair(domain: Option<&str>, user: &str) -> (Option<String>, Option<String>) {
        (domain.map(str::to_owned), Some(user.to_owned()))
    }

    #[test]
    fn the_user_of_the_url_comes_first() {
        assert_eq!(named(Some("bob"), "smb://alice@nas/d"), pair(None, "alice"));
        assert_eq!(named(Some("bob"), "smb://nas/d"), pair(None, "bob"));
        assert_eq!(named(Some("W\\bob"), "//nas/d"), pair(Some("W"), "bob"));
        assert_eq!(named(Some("W;bob"), "//nas/d"), pair(Some("W"), "bob"));
        assert_eq!(named(None, "smb://W;a@nas"), pair(Some("W"), "a"));
        let mut login = login(Some("bob"));
        login.domain = Some("D".to_owned());
        assert_eq!(login.named(&url("//nas")), pair(Some("D"), "bob"));
        assert_eq!(login.named(&url("smb://W;a@nas")), pair(Some("W"), "a"));
    }

    #[test]
    fn a_process_without_the_variable_has_the_name_of_its_account() {
        let account = || Some("daemon".to_owned());
        let user = |variable: Option<&str>| user_of_process(variable.map(str::to_owned), account);
        assert_eq!(user(Some("alice")).as_deref(), Some("alice"));
        assert_eq!(user(Some("")).as_deref(), Some("daemon"));
        assert_eq!(user(None).as_deref(), Some("daemon"));
        assert_eq!(user_of_process(None, || None), None);
    }

    #[test]
    fn the_sources_of_the_password_have_an_order() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("p");
        fs::write(&file, "of the file\n").expect("a file");
        let mut login = Login {
            password: Some("own".to_owned()),
            password_file: Some(file),
            ..Login::default()
        };
        let command = PasswordSource::Command("echo of the remote".to_owned());
        let mut location = Location {
            password: Some(command),
            ..url("smb://nas").into()
        };
        let mut variable = Some("of the variable".to_owned());
        let entry = LoginEntry {
            password: Some("of the entry".to_owned()),
            ..LoginEntry::default()
        };
        let password = |login: &Login, variable: &Option<String>, location: &Location| {
            let found = login.password(variable.clone(), location, Some(entry.clone()));
            found.expect("good sources").expect("a password")
        };
        assert_eq!(password(&login, &variable, &location), "own");
        login.password = None;
        assert_eq!(password(&login, &variable, &location), "of the file");
        login.password_file = None;
        assert_eq!(password(&login, &variable, &location), "of the variable");
        variable = None;
        assert_eq!(password(&login, &variable, &location), "of the remote");
        location.password = None;
        assert_eq!(password(&login, &variable, &location), "of the entry");
        let none = login.password(None, &location, None);
        assert_eq!(none.expect("no source"), None);
    }

    #[test]
    fn an_entry_of_the_credentials_file_completes_a_login() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("credentials.toml");
        let text = "[[login]]\nhost = \"nas\"\nuser = \"eve\"\ndomain = \"W\"\n";
        fs::write(&path, text).expect("a file");
        fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("a mode");
        let login = Login {
            credentials_file: Some(path),
            ..Login::default()
        };
        let entry = login.entry(&url("//nas/data"), None).expect("a good file");
        let entry = entry.expect("an entry");
        assert_eq!(entry.user.as_deref(), Some("eve"));
        assert_eq!(entry.domain.as_deref(), Some("W"));
        let missing = Login {
            credentials_file: Some("/nowhere/credentials.toml".into()),
            ..Login::default()
        };
        let error = missing.resolve(&url("//nas").into()).expect_err("no file");
        assert!(error.to_string().starts_with("/nowhere/"), "{error}");
    }

    #[test]
    fn a_login_without_a_password_needs_no_source() {
        for (anonymous, guest) in [(true, false), (false, true)] {
            let login = Login {
                anonymous,
                guest,
                password_file: Some("/nowhere".into()),
                ..Login::default()
            };
            let resolved = login.resolve(&url("//nas").into()).expect("credentials");
            assert!(matches!(resolved, Resolved::Credentials(_)));
        }
    }

    #[test]
    fn the_debug_form_has_no_password() {
        let login = Login {
            password: Some("secret".to_owned()),
            ..Login::default()
        };
        assert!(!format!("{login:?}").contains("secret"));
    }
}
