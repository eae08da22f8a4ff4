//! `smbeam man`: the manual pages, one per command, generated from the help, and one of the
//! configuration file.

mod configuration;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Command};
use clap_mangen::Man;

use crate::exit::Exit;

/// Arguments of `smbeam man`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The directory for the pages. It is created if it does not exist.
    directory: PathBuf,
}

/// Runs `smbeam man`.
pub(crate) fn run(arguments: &Arguments, command: Command) -> anyhow::Result<()> {
    let directory = &arguments.directory;
    fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    // Each page has the exit codes in their own section.
    let command = command.after_long_help(None::<&str>);
    let mut command = command.disable_help_subcommand(true);
    command.build();
    write(directory, &command, "smbeam")?;
    let path = directory.join("smbeam.toml.5");
    fs::write(&path, configuration::page()).with_context(|| path.display().to_string())
}

fn write(directory: &Path, command: &Command, name: &str) -> anyhow::Result<()> {
    for subcommand in command
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
    {
        write(
            directory,
            subcommand,
            &format!("{name}-{}", subcommand.get_name()),
        )?;
    }
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    page.extend_from_slice(Exit::manual().as_bytes());
    let path = directory.join(format!("{name}.1"));
    fs::write(&path, page).with_context(|| path.display().to_string())
}
