//! `smbeam completions`: the completion script for a shell.

use std::io;

use clap::{Args, Command};
use clap_complete::Shell;

/// Arguments of `smbeam completions`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The shell for which to write the script.
    shell: Shell,
}

/// Runs `smbeam completions`.
pub(crate) fn run(arguments: &Arguments, mut command: Command) {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "smbeam", &mut script);
    crate::output::check(io::Write::write_all(&mut io::stdout(), &script));
}
