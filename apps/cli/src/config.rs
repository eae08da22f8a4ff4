//! `smbeam config`: look at a configuration.

use std::path::PathBuf;

use anyhow::Context;
use clap::Subcommand;
use smbeam_server::config::Config;

/// What to do with a configuration.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Say whether a server would start with it, and what is wrong if not.
    Check {
        /// The file.
        #[arg(default_value = "smbeam.toml")]
        file: PathBuf,
    },
}

/// Runs `smbeam config`.
pub(crate) fn run(command: &Command) -> anyhow::Result<()> {
    let Command::Check { file } = command;
    let config = Config::load(file)?;
    // What is good enough to start may yet be worth a warning.
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
