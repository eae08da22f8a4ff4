//! `smbeam config remote`: shows, adds and removes named remotes.

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};
use serde::Serialize;
use smbeam_client::Url;
use smbeam_profile::{Remote, RemotesFile, is_name};

use crate::connect::ConnectArguments;
use crate::describe::json;
use crate::exit::Exit;
use crate::location;
use crate::output::{self, Lines};

/// Subcommands of `smbeam config remote`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the remotes.
    Ls {
        /// Print one object of JSON per remote.
        #[arg(long)]
        json: bool,
    },
    /// Add a remote. `NAME:path` then stands for the path below the URL.
    Add(Box<Add>),
    /// Remove a remote.
    Rm {
        /// The name.
        name: String,
    },
}

/// Arguments of `smbeam config remote add`.
#[derive(Debug, Args)]
pub(crate) struct Add {
    /// The name: a-z, A-Z, 0-9, `_`, `-` and `.`.
    name: String,
    /// The URL of a server, share or directory, such as smb://alice@nas/data/photos.
    #[arg(value_parser = location::plain_url)]
    url: Url,
    /// User name, if the URL has none.
    #[arg(short = 'U', long)]
    user: Option<String>,
    /// Domain of the user, if the URL has none.
    #[arg(long)]
    domain: Option<String>,
    /// Read the password from the first line of this file.
    #[arg(long, value_name = "FILE", conflicts_with = "password_command")]
    password_file: Option<PathBuf>,
    /// Read the password from the first line that this shell command prints, such as
    /// `pass show nas`.
    #[arg(long, value_name = "COMMAND")]
    password_command: Option<String>,
    /// Connection option for all commands that use the remote, such as `--option=--encrypt`.
    #[arg(long = "option", value_name = "OPTION", allow_hyphen_values = true)]
    options: Vec<String>,
    /// Replace a remote with this name.
    #[arg(long)]
    replace: bool,
}

/// A remote in JSON.
#[derive(Serialize)]
struct Line<'a> {
    name: &'a str,
    #[serde(flatten)]
    remote: &'a Remote,
}

/// The options that a remote can have.
#[derive(Debug, Parser)]
#[command(name = "options")]
struct Options {
    #[command(flatten)]
    _connect: ConnectArguments,
}

/// Runs `smbeam config remote`.
pub(super) fn run(command: &Command) -> Exit {
    let Some(path) = RemotesFile::path() else {
        output::note(&"smbeam: config: no home directory: set HOME or XDG_CONFIG_HOME");
        return Exit::Usage;
    };
    let done = match command {
        Command::Ls { json } => list(&path, *json),
        Command::Add(add) => add.run(&path),
        Command::Rm { name } => remove(&path, name),
    };
    match done {
        Ok(()) => Exit::Success,
        Err((exit, reason)) => {
            output::note(&format_args!("smbeam: config: {reason}"));
            exit
        }
    }
}

/// The result of a command: the exit code and the reason of a failure.
type Done = Result<(), (Exit, String)>;

fn wrong(reason: String) -> (Exit, String) {
    (Exit::Usage, reason)
}

fn list(path: &Path, is_json: bool) -> Done {
    let file = RemotesFile::load(path).map_err(|error| wrong(error.to_string()))?;
    let mut lines = Lines::new();
    for (name, remote) in file.all() {
        match is_json {
            true => lines.line(&json(&Line { name, remote })),
            false => lines.line(&format_args!("{name}: {}", shown(remote))),
        }
    }
    Ok(())
}

/// A remote for people: its URL and what else it has.
fn shown(remote: &Remote) -> String {
    let mut shown = remote.url.clone();
    let file = remote
        .password_file
        .as_ref()
        .map(|path| path.display().to_string());
    for (key, text) in [
        ("user", remote.user.as_ref()),
        ("domain", remote.domain.as_ref()),
        ("password file", file.as_ref()),
        ("password command", remote.password_command.as_ref()),
    ] {
        if let Some(text) = text {
            shown.push_str(&format!(", {key} {text}"));
        }
    }
    for option in &remote.options {
        shown.push_str(&format!(", {option}"));
    }
    shown
}

impl Add {
    fn run(&self, path: &Path) -> Done {
        let name = &self.name;
        if !is_name(name) {
            let reason =
                format!("{name}: a name has only the characters a-z, A-Z, 0-9, `_`, `-` and `.`");
            return Err((Exit::BadName, reason));
        }
        let remote = self.remote().map_err(wrong)?;
        let file = RemotesFile::load(path).map_err(|error| wrong(error.to_string()))?;
        if file.get(name).is_some() && !self.replace {
            let reason = format!("{name}: the remote exists already: give --replace");
            return Err((Exit::Exists, reason));
        }
        RemotesFile::set(path, name, &remote).map_err(|error| (Exit::Failed, error.to_string()))
    }

    fn remote(&self) -> Result<Remote, String> {
        check_options(&self.options)?;
        let file = self.password_file.as_ref();
        let absolute = file.map(std::path::absolute).transpose();
        Ok(Remote {
            url: self.url.to_string(),
            user: self.user.clone(),
            domain: self.domain.clone(),
            password_file: absolute.map_err(|error| format!("--password-file: {error}"))?,
            password_command: self.password_command.clone(),
            options: self.options.clone(),
        })
    }
}

fn check_options(options: &[String]) -> Result<(), String> {
    let line = ["options"]
        .into_iter()
        .chain(options.iter().map(String::as_str));
    match Options::try_parse_from(line) {
        Ok(_) => Ok(()),
        Err(error) => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            Err(format!("--option: {}", first.trim_start_matches("error: ")))
        }
    }
}

fn remove(path: &Path, name: &str) -> Done {
    match RemotesFile::remove(path, name) {
        Ok(true) => Ok(()),
        Ok(false) => Err((Exit::NotFound, format!("{name}: no remote has this name"))),
        Err(error) => Err((Exit::Failed, error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_checked_before_they_are_stored() {
        let check = |options: &[&str]| {
            let options: Vec<_> = options.iter().map(|text| (*text).to_owned()).collect();
            check_options(&options)
        };
        assert_eq!(check(&[]), Ok(()));
        assert_eq!(check(&["--encrypt", "--channels=4"]), Ok(()));
        let reason = check(&["--jobs=3"]).expect_err("no connection option");
        assert!(reason.contains("--jobs"), "{reason}");
        assert!(check(&["file"]).is_err());
    }
}
