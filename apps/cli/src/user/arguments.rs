//! Arguments that several commands of `smbeam user` share.

use std::io::{IsTerminal, Read};
use std::path::PathBuf;

use anyhow::{Context, bail};
use auth::UserFile;
use clap::Args;

/// Maximum length of a password on standard input, in bytes.
const MAX_PASSWORD: u64 = 4096;

/// The file of users.
#[derive(Debug, Args)]
pub(crate) struct FileArgument {
    /// The file of users and password hashes.
    #[arg(long, default_value = "users.toml")]
    pub(super) file: PathBuf,
}

impl FileArgument {
    /// Reads a file that must exist.
    pub(super) fn load(&self) -> anyhow::Result<UserFile> {
        let path = &self.file;
        std::fs::metadata(path).with_context(|| path.display().to_string())?;
        Ok(UserFile::load(path)?)
    }
}

/// A user in the file of users.
#[derive(Debug, Args)]
pub(crate) struct UserArguments {
    #[command(flatten)]
    pub(super) file: FileArgument,
    /// The user.
    pub(super) name: String,
}

/// The source of the password. It is never an argument, which other users can see.
#[derive(Debug, Args)]
pub(crate) struct PasswordArgument {
    /// Read the password from standard input instead of the terminal.
    #[arg(long)]
    password_stdin: bool,
}

impl PasswordArgument {
    pub(super) fn read(&self) -> anyhow::Result<String> {
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
