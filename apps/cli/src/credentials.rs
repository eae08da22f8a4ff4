//! User name and password. The password comes from a file, the environment, the credentials file or
//! the terminal, never from an argument, which other users can see.

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

use clap::Args;
use smbeam_client::Credentials;
use smbeam_profile::{Error, Login, NeedsPassword, PASSWORD_VARIABLE, Resolved};

use crate::failure::{Failure, Outcome};
use crate::location::{Url, shown};
use crate::remotes;

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
    /// The login for the library.
    pub(crate) fn login(&self) -> Login {
        Login {
            user: self.user.clone(),
            domain: None,
            password: None,
            password_file: self.password_file.clone(),
            credentials_file: self.credentials.clone(),
            anonymous: self.anonymous,
            guest: self.guest,
        }
    }
}

/// Finds the credentials for the server or share of `url`. It asks for a password if none is given.
pub(crate) fn credentials_for(login: &Login, url: &Url) -> Outcome<Credentials> {
    let resolved = login.resolve(&remotes::location(url));
    match resolved.map_err(|error| failure(url, &error))? {
        Resolved::Credentials(credentials) => Ok(credentials),
        Resolved::NeedsPassword(wanted) => ask(url, &wanted),
    }
}

fn failure(url: &Url, error: &Error) -> Failure {
    match error {
        Error::NoUser { .. } => {
            let reason = "no user name given: use smb://user@host, --user or --anonymous";
            Failure::usage(url, reason)
        }
        Error::File { path, reason } => Failure::usage(shown(path), reason),
        Error::PasswordFile { path, error } => Failure::local(&shown(path), error),
        Error::Command { error, .. } => Failure::local("password_command", error),
        Error::CommandFailed { command, status } => {
            let reason = format!("the command fails ({status}): {command}");
            Failure::usage("password_command", reason)
        }
        other => Failure::usage(url, other),
    }
}

fn ask(url: &Url, wanted: &NeedsPassword) -> Outcome<Credentials> {
    let NeedsPassword { user, host, .. } = wanted;
    // With a pipe as standard input, the user can still answer on the terminal of standard error.
    if !io::stdin().is_terminal() && !io::stderr().is_terminal() {
        return Err(Failure::usage(
            url,
            format!(
                "no password for {user}, and no terminal to ask for it: use --password-file, \
                 {PASSWORD_VARIABLE} or a credentials file"
            ),
        ));
    }
    let prompt = format!("Password for {user} at {host}: ");
    let password = rpassword::prompt_password(prompt);
    let password = password.map_err(|error| Failure::local("terminal", &error))?;
    Ok(wanted.with_password(&password))
}
