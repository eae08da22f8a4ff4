//! An SMB 3.1.1 server and client for Linux in user space.
#![forbid(unsafe_code)]

mod config;
mod serve;
mod stop;
mod user;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// An SMB 3.1.1 file server for Linux in user space.
#[derive(Debug, Parser)]
#[command(name = "smbeam", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Share folders.
    Serve(serve::Arguments),
    /// Manage the file of users.
    #[command(subcommand)]
    User(user::Command),
    /// Look at a configuration.
    #[command(subcommand)]
    Config(config::Command),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Serve(arguments) => serve::run(&arguments),
        Command::User(command) => user::run(&command),
        Command::Config(command) => config::run(&command),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("smbeam: {error:#}");
            ExitCode::FAILURE
        }
    }
}
