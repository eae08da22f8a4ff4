//! User name and password. The password comes from a file, the environment, the credentials file or
//! the terminal, never from an argument, which other users can see.

mod file;

use std::env;
use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use clap::Args;
use smbeam_client::Credentials;

use crate::failure::{Failure, Outcome};
use crate::input;
use crate::location::{Url, shown};
use crate::password_command;
use crate::remotes::{self, PasswordSource};
use file::{CredentialsFile, Login};

/// The environment variable with the password.
const PASSWORD_VARIABLE: &str = "SMBEAM_PASSWORD";
/// Maximum length of a password in a file, in bytes.
const MAX_PASSWORD_BYTES: usize = 4096;

/// Options for the login.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Login")]
pub(crate) struct LoginArguments {
    /// User name if the URL has none: `name`, `DOMAIN\name` or `DOMAIN;name`.
    #[arg(short = 'U', long, value_name = "USER")]
    user: Option<String>,
    /// Read the password from the first line of this file. `-` is standard input.
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Read user names and passwords from this file instead of ~/.config/smbeam/credentials.toml.
    #[arg(long, value_name = "FILE")]
    credentials: Option<PathBuf>,
    /// Log in without a user name (anonymous).
    #[arg(long, conflicts_with_all = ["guest", "user", "password_file"])]
    anonymous: bool,
    /// Log in as guest, without a password.
    #[arg(long, conflicts_with_all = ["user", "password_file"])]
    guest: bool,
}

impl LoginArguments {
    /// Sets an option from `-o` of `smbeam mount`: `user`, `password_file` or `credentials`.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        match name {
            "user" => self.user = Some(value.to_owned()),
            "password_file" => self.password_file = Some(value.into()),
            _ => self.credentials = Some(value.into()),
        }
    }

    /// Whether the login has no password, so that the session has no keys.
    pub(crate) fn is_without_password(&self) -> bool {
        self.anonymous || self.guest
    }

    /// Finds the credentials for the server or share of `url`. It asks for a password if none is
    /// given.
    pub(crate) fn for_url(&self, url: &Url) -> Outcome<Credentials> {
        if self.anonymous {
            return Ok(Credentials::anonymous());
        }
        if self.guest {
            return Ok(Credentials::new(None, "guest", ""));
        }
        let (domain, user) = self.named(url);
        let known = self.known(url, user.as_deref())?;
        let domain = domain.or_else(|| known.as_ref().and_then(|login| login.domain.clone()));
        let user = user
            .or_else(|| known.as_ref().and_then(|login| login.user.clone()))
            .or_else(|| user_of_process(env::var("USER").ok(), unix_account))
            .ok_or_else(|| {
                Failure::usage(
                    url,
                    "no user name given: use smb://user@host, --user or --anonymous",
                )
            })?;
        let password = self.password(url, &user, known)?;
        Ok(Credentials::new(domain.as_deref(), &user, &password))
    }

    /// Domain and user from the URL, or else from the arguments.
    fn named(&self, url: &Url) -> (Option<String>, Option<String>) {
        if url.user.is_some() {
            return (url.domain.clone(), url.user.clone());
        }
        let Some(user) = &self.user else {
            return (url.domain.clone(), None);
        };
        match user.split_once(['\\', ';']) {
            Some((domain, user)) => (Some(domain.into()), Some(user.into())),
            None => (url.domain.clone(), Some(user.clone())),
        }
    }

    /// The matching entry of the credentials file. The file must exist if `--credentials` names it.
    fn known(&self, url: &Url, user: Option<&str>) -> Outcome<Option<Login>> {
        let path = match &self.credentials {
            Some(path) => path.clone(),
            None => match default_file().filter(|path| path.exists()) {
                Some(path) => path,
                None => return Ok(None),
            },
        };
        let file =
            CredentialsFile::load(&path).map_err(|reason| Failure::usage(shown(&path), reason))?;
        Ok(file.find(&url.host, url.share.as_deref(), user).cloned())
    }

    fn password(&self, url: &Url, user: &str, known: Option<Login>) -> Outcome<String> {
        if let Some(path) = &self.password_file {
            return read_password(path);
        }
        if let Ok(password) = env::var(PASSWORD_VARIABLE) {
            return Ok(password);
        }
        match remotes::password_source(url) {
            Some(PasswordSource::File(path)) => return read_password(&path),
            Some(PasswordSource::Command(command)) => {
                return password_command::password_of_command(&command);
            }
            None => {}
        }
        match known {
            Some(Login {
                password: Some(password),
                ..
            }) => return Ok(password),
            Some(Login {
                password_file: Some(path),
                ..
            }) => return read_password(&path),
            _ => {}
        }
        // With a pipe as standard input, the user can still answer on the terminal of standard
        // error.
        if !io::stdin().is_terminal() && !io::stderr().is_terminal() {
            return Err(Failure::usage(
                url,
                format!(
                    "no password for {user}, and no terminal to ask for it: use \
                     --password-file, {PASSWORD_VARIABLE} or a credentials file"
                ),
            ));
        }
        let prompt = format!("Password for {user} at {}: ", url.host);
        rpassword::prompt_password(prompt).map_err(|error| Failure::local("terminal", &error))
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
    smbeam_server::account_name(rustix::process::getuid().as_raw())
}

/// Reads the first line of a file. `-` is standard input.
fn read_password(path: &Path) -> Outcome<String> {
    let failed = |error: io::Error| Failure::local(&shown(path), &error);
    let file = match path.as_os_str() == "-" {
        // The rest of standard input can be the data of an upload, so it must not be buffered.
        true => input::open(),
        false => File::open(path),
    };
    file.and_then(|file| input::line(file, MAX_PASSWORD_BYTES))
        .map_err(failed)
}

fn default_file() -> Option<PathBuf> {
    let config = env::var_os("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| env::var_os("HOME").map(|home| PathBuf::from(home).join(".config")))?;
    Some(config.join("smbeam/credentials.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        text.parse().expect("a URL")
    }

    fn arguments(user: Option<&str>) -> LoginArguments {
        LoginArguments {
            user: user.map(str::to_owned),
            ..LoginArguments::default()
        }
    }

    fn named(user: Option<&str>, text: &str) -> (Option<String>, Option<String>) {
        arguments(user).named(&url(text))
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
    fn a_password_is_the_first_line_of_its_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("p");
        std::fs::write(&path, "se cret \nmore\n").expect("a file");
        assert_eq!(read_password(&path).expect("a password"), "se cret ");
        let missing = read_password(&directory.path().join("q")).expect_err("no file");
        assert_eq!(missing.exit, crate::exit::Exit::NotFound);
    }
}
