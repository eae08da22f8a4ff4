//! `smbeam config`: works with configuration files.

use std::path::PathBuf;

use anyhow::Context;
use clap::Subcommand;
use smbeam_server::config::Config;

/// Subcommands of `smbeam config`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Check a configuration file: report whether a server could start with it, and all errors if
    /// not.
    Check {
        /// The configuration file.
        #[arg(default_value = "smbeam.toml")]
        file: PathBuf,
    },
}

/// Runs `smbeam config`.
pub(crate) fn run(command: &Command) -> anyhow::Result<()> {
    let Command::Check { file } = command;
    let config = Config::load(file)?;
    // A valid configuration can still cause warnings, so the log must be running.
    smbeam_server::log::start(&config.log).map_err(anyhow::Error::msg)?;
    smbeam_server::check(&config).with_context(|| file.display().to_string())?;
    let endpoints = config
        .endpoints()
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>();
    println!("{}: good", file.display());
    println!("  transports: {}", endpoints.join(", "));
    for share in &config.shares {
        println!(
            "  share {}: {}",
            share.name.get_ref(),
            share.path.get_ref().display()
        );
    }
    Ok(())
}
