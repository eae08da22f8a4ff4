//! `smbeam user`: manages the file of users.

use std::io::{IsTerminal, Read};
use std::path::PathBuf;

use anyhow::bail;
use auth::UserFile;
use clap::{Args, Subcommand};

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
    },
}

/// The file of users.
#[derive(Debug, Args)]
pub(crate) struct FileArgument {
    /// The file of users and password hashes.
    #[arg(long, default_value = "users.toml")]
    file: PathBuf,
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
        }
        Command::Passwd {
            file,
            name,
            password,
        } => {
            let mut users = UserFile::load(&file.file)?;
            users.set_password(name, &password.read()?)?;
        }
        Command::Rm { file, name } => {
            UserFile::load(&file.file)?.remove(name)?;
        }
        Command::Ls { file } => list(&UserFile::load(&file.file)?),
    }
    Ok(())
}

fn list(users: &UserFile) {
    for user in users.list() {
        let unix = user
            .unix
            .as_deref()
            .map(|unix| format!(" (unix: {unix})"))
            .unwrap_or_default();
        let disabled = if user.is_disabled { " (disabled)" } else { "" };
        println!("{}{unix}{disabled}", user.name);
    }
}
