//! `smbeam completions`: what a shell needs to complete commands and options.

use std::io;

use clap::{Args, Command};
use clap_complete::Shell;

/// For which shell.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The shell.
    shell: Shell,
}

/// Runs `smbeam completions`.
pub(crate) fn run(arguments: &Arguments, mut command: Command) {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "smbeam", &mut script);
    crate::output::check(io::Write::write_all(&mut io::stdout(), &script));
}
