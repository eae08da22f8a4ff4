//! `smbeam user`: manages the file of users.

use std::io::{IsTerminal, Read};
use std::path::PathBuf;

use anyhow::{Context, bail};
use auth::UserFile;
use clap::{Args, Subcommand};
use serde_json::json;

use crate::output::{Lines, note};

/// Maximum length of a password on standard input, in bytes.
const MAX_PASSWORD: u64 = 4096;

/// Subcommands of `smbeam user`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Add a user.
    Add {
        #[command(flatten)]
        file: FileArgument,
        /// Name for the login.
        name: String,
        /// Unix account that determines the permissions of the user. Default: the account with the
        /// same name.
        #[arg(long)]
        unix: Option<String>,
        #[command(flatten)]
        password: PasswordArgument,
    },
    /// Change the password of a user.
    Passwd {
        #[command(flatten)]
        file: FileArgument,
        /// The user.
        name: String,
        #[command(flatten)]
        password: PasswordArgument,
    },
    /// Remove a user.
    Rm {
        #[command(flatten)]
        file: FileArgument,
        /// The user.
        name: String,
    },
    /// List the users.
    Ls {
        #[command(flatten)]
        file: FileArgument,
        /// Print one JSON object for each user.
        #[arg(long)]
        json: bool,
    },
}

/// The file of users.
#[derive(Debug, Args)]
pub(crate) struct FileArgument {
    /// The file of users and password hashes.
    #[arg(long, default_value = "users.toml")]
    file: PathBuf,
}

impl FileArgument {
    /// Reads a file that must exist.
    fn load(&self) -> anyhow::Result<UserFile> {
        let path = &self.file;
        std::fs::metadata(path).with_context(|| path.display().to_string())?;
        Ok(UserFile::load(path)?)
    }
}

/// The source of the password. It is never an argument, which other users can see.
#[derive(Debug, Args)]
pub(crate) struct PasswordArgument {
    /// Read the password from standard input instead of the terminal.
    #[arg(long)]
    password_stdin: bool,
}

impl PasswordArgument {
    fn read(&self) -> anyhow::Result<String> {
        if self.password_stdin {
            let mut text = String::new();
            std::io::stdin()
                .take(MAX_PASSWORD)
                .read_to_string(&mut text)?;
            return Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned());
        }
        if !std::io::stdin().is_terminal() {
            bail!("no terminal to ask for the password: use --password-stdin");
        }
        let first = rpassword::prompt_password("Password: ")?;
        if first != rpassword::prompt_password("Repeat password: ")? {
            bail!("the passwords do not match");
        }
        Ok(first)
    }
}

/// Runs `smbeam user`.
pub(crate) fn run(command: &Command) -> anyhow::Result<()> {
    match command {
        Command::Add {
            file,
            name,
            unix,
            password,
        } => {
            let mut users = UserFile::load(&file.file)?;
            users.add(name, &password.read()?, unix.as_deref())?;
            if let Some(warning) = smbeam_server::unix_account_warning(name, unix.as_deref()) {
                note(&format_args!("smbeam: user: warning: {warning}"));
            }
        }
        Command::Passwd {
            file,
            name,
            password,
        } => {
            let mut users = file.load()?;
            users.set_password(name, &password.read()?)?;
        }
        Command::Rm { file, name } => {
            file.load()?.remove(name)?;
        }
        Command::Ls { file, json } => list(&file.load()?, *json),
    }
    Ok(())
}

fn list(users: &UserFile, json: bool) {
    let mut lines = Lines::new();
    for user in users.list() {
        if json {
            lines.line(&json!({
                "name": user.name,
                "unix": user.unix,
                "is_disabled": user.is_disabled,
            }));
            continue;
        }
        let unix = user
            .unix
            .as_deref()
            .map(|unix| format!(" (unix: {unix})"))
            .unwrap_or_default();
        let disabled = if user.is_disabled { " (disabled)" } else { "" };
        lines.line(&format_args!("{}{unix}{disabled}", user.name));
    }
}
