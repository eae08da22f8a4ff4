//! An SMB 3.1.1 server and client for Linux in user space.
#![forbid(unsafe_code)]
// `output::note` writes to standard error: whole lines, and no panic if the disk is full.
#![deny(clippy::print_stderr)]

mod acl;
mod archive;
mod bench;
mod cat;
mod check;
mod chmod;
mod chown;
mod client_failure;
mod completions;
mod config;
mod connect;
mod copying;
mod cp;
mod credentials;
mod describe;
mod descriptor;
mod df;
mod doctor;
mod du;
mod exit;
mod explain;
mod failure;
mod file_path;
mod filter;
mod find;
mod format;
mod get;
mod getfattr;
mod interrupt;
mod ln;
mod local_server;
mod location;
mod log;
mod ls;
mod man;
mod mkdir;
mod mount;
mod mutex;
mod mv;
mod names;
mod open;
mod output;
mod progress;
mod put;
mod readlink;
mod reload;
mod remotes;
mod report;
mod rm;
mod rmdir;
mod serve;
mod session;
mod setfattr;
mod share;
mod shares;
mod stat;
mod status;
mod sync;
mod table;
mod top;
mod touch;
mod transfer;
mod tree;
mod tune;
mod unix;
mod user;
mod watch;

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;

use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use exit::Exit;
use location::Url;
use report::Report;

/// The allocator of glibc keeps much of the memory of a peak. This one returns unused memory to the
/// system within ten seconds, on a separate thread.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The version, and what the static build cannot do: it loads no libraries.
#[cfg(target_env = "musl")]
const LONG_VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (static)\nMissing in the static build:\n\
     - SMB Direct over RDMA devices\n\
     - Unix accounts and groups from other sources than /etc/passwd and /etc/group (LDAP, SSSD)\n\
     - host names from other sources than /etc/hosts and DNS (mDNS)"
);
/// The version.
#[cfg(not(target_env = "musl"))]
const LONG_VERSION: &str = env!("CARGO_PKG_VERSION");

/// The introduction in the help. It is not a doc comment, because rustdoc would see links in it.
const NAMES: &str = "An SMB 3.1.1 file server and client for Linux in user space.\n\n\
    The URL of a file on a server is smb://[[domain;]user@]host[:port]/share/path. UNC names \
    such as //host/share/path work as well.";

/// An SMB 3.1.1 file server and client for Linux in user space.
#[derive(Debug, Parser)]
#[command(
    name = "smbeam",
    version,
    long_version = LONG_VERSION,
    about,
    long_about = NAMES,
    after_long_help = Exit::help()
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List directories.
    Ls(ls::Arguments),
    /// Show a directory tree.
    Tree(tree::Arguments),
    /// Show metadata of files: size, times and attributes.
    Stat(stat::Arguments),
    /// Write files to standard output.
    Cat(cat::Arguments),
    /// Download files from a server.
    Get(get::Arguments),
    /// Upload files to a server.
    Put(put::Arguments),
    /// Copy files from, to and between servers.
    Cp(cp::Arguments),
    /// Rename or move files within a share.
    Mv(mv::Arguments),
    /// Remove files and directories.
    Rm(rm::Arguments),
    /// Create directories.
    Mkdir(mkdir::Arguments),
    /// Remove empty directories.
    Rmdir(rmdir::Arguments),
    /// Create files, or set their times.
    Touch(touch::Arguments),
    /// Synchronize two directories.
    Sync(sync::Arguments),
    /// Compare two directories, and print the differences.
    Check(check::Arguments),
    /// Show disk usage of directories.
    Du(du::Arguments),
    /// Show free space of shares.
    Df(df::Arguments),
    /// Find files by name, kind, size and time.
    Find(find::Arguments),
    /// Create hard links and symbolic links.
    Ln(ln::Arguments),
    /// Print the targets of symbolic links.
    Readlink(readlink::Arguments),
    /// Change the permissions of files.
    Chmod(chmod::Arguments),
    /// Change the owner and the group of files.
    Chown(chown::Arguments),
    /// Show extended attributes.
    Getfattr(getfattr::Arguments),
    /// Set and remove extended attributes.
    Setfattr(setfattr::Arguments),
    /// Show and change owners, groups and access control lists (permissions).
    #[command(subcommand)]
    Acl(Box<acl::Command>),
    /// Watch a directory for changes.
    Watch(watch::Arguments),
    /// Mount a share or directory of a server.
    Mount(Box<mount::Arguments>),
    /// List the shares of a server.
    Shares(shares::Arguments),
    /// Measure the speed of a server.
    Bench(Box<bench::Bench>),
    /// Run a server that shares directories.
    Serve(serve::Arguments),
    /// Show connections, sessions and open files of a server on this machine.
    Status(status::Arguments),
    /// Show the rates of a server on this machine by client, share and command, live.
    Top(top::Arguments),
    /// List and end sessions of a server on this machine.
    #[command(subcommand)]
    Session(session::Command),
    /// List and close open files of a server on this machine.
    #[command(subcommand)]
    Open(open::Command),
    /// List, disable and enable shares of a server on this machine.
    #[command(subcommand)]
    Share(share::Command),
    /// Make a server on this machine read its configuration again, without dropping clients.
    Reload(reload::Arguments),
    /// Manage the users and passwords of a server.
    #[command(subcommand)]
    User(user::Command),
    /// Check a configuration file, and manage named remotes.
    #[command(subcommand)]
    Config(config::Command),
    /// Find the check that refuses a user, on this server or between this machine and a server.
    Doctor(Box<doctor::Arguments>),
    /// Find what limits the speed of a server or client, and what to change.
    Tune(Box<tune::Arguments>),
    /// Explain a reason code of the log of a server, such as login-wrong-password.
    Explain(explain::Arguments),
    /// Write a completion script for a shell.
    Completions(completions::Arguments),
    /// Write the manual pages.
    Man(man::Arguments),
}

fn main() -> ExitCode {
    let (cli, matches) = match parse() {
        Ok(parsed) => parsed,
        Err(error) => return reported(&error),
    };
    if let Some((name, command)) = matches.subcommand()
        && name != "serve"
    {
        // The options of `acl get` are those of `get`.
        let mut innermost = command;
        while let Some((_, command)) = innermost.subcommand() {
            innermost = command;
        }
        log::start(innermost);
    }
    let result = match cli.command {
        Command::Ls(arguments) => return client("ls", |report| ls::run(&arguments, report)),
        Command::Tree(arguments) => return client("tree", |report| tree::run(&arguments, report)),
        Command::Stat(arguments) => return client("stat", |report| stat::run(&arguments, report)),
        Command::Cat(arguments) => return client("cat", |report| cat::run(&arguments, report)),
        Command::Get(arguments) => return client("get", |report| get::run(&arguments, report)),
        Command::Put(arguments) => return client("put", |report| put::run(&arguments, report)),
        Command::Cp(arguments) => return client("cp", |report| cp::run(&arguments, report)),
        Command::Mv(arguments) => return client("mv", |report| mv::run(&arguments, report)),
        Command::Rm(arguments) => return client("rm", |report| rm::run(&arguments, report)),
        Command::Mkdir(arguments) => {
            return client("mkdir", |report| mkdir::run(&arguments, report));
        }
        Command::Rmdir(arguments) => {
            return client("rmdir", |report| rmdir::run(&arguments, report));
        }
        Command::Touch(arguments) => {
            return client("touch", |report| touch::run(&arguments, report));
        }
        Command::Sync(arguments) => return client("sync", |report| sync::run(&arguments, report)),
        Command::Check(arguments) => {
            return client("check", |report| check::run(&arguments, report));
        }
        Command::Du(arguments) => return client("du", |report| du::run(&arguments, report)),
        Command::Df(arguments) => return client("df", |report| df::run(&arguments, report)),
        Command::Find(arguments) => return client("find", |report| find::run(&arguments, report)),
        Command::Ln(arguments) => {
            return client("ln", |report| ln::run(&arguments, report));
        }
        Command::Readlink(arguments) => {
            return client("readlink", |report| readlink::run(&arguments, report));
        }
        Command::Chmod(arguments) => {
            return client("chmod", |report| chmod::run(&arguments, report));
        }
        Command::Chown(arguments) => {
            return client("chown", |report| chown::run(&arguments, report));
        }
        Command::Getfattr(arguments) => {
            return client("getfattr", |report| getfattr::run(&arguments, report));
        }
        Command::Setfattr(arguments) => {
            return client("setfattr", |report| setfattr::run(&arguments, report));
        }
        Command::Acl(command) => return client("acl", |report| acl::run(&command, report)),
        Command::Watch(arguments) => {
            return client("watch", |report| watch::run(&arguments, report));
        }
        Command::Mount(arguments) => {
            return client("mount", |report| mount::run(&arguments, report));
        }
        Command::Shares(arguments) => {
            return client("shares", |report| shares::run(&arguments, report));
        }
        Command::Bench(arguments) => {
            return client("bench", |report| bench::run(&arguments, report));
        }
        Command::Tune(arguments) => {
            return client("tune", |report| tune::run(&arguments, report));
        }
        Command::Status(arguments) => {
            return client("status", |report| status::run(&arguments, report));
        }
        Command::Top(arguments) => return client("top", |report| top::run(&arguments, report)),
        Command::Session(command) => {
            return client("session", |report| session::run(&command, report));
        }
        Command::Open(command) => {
            return client("open", |report| open::run(&command, report));
        }
        Command::Share(command) => {
            return client("share", |report| share::run(&command, report));
        }
        Command::Reload(arguments) => {
            return client("reload", |report| reload::run(&arguments, report));
        }
        Command::Serve(arguments) => return serve::run(&arguments).into(),
        Command::User(command) => user::run(&command),
        Command::Config(command) => return config::run(&command).into(),
        Command::Doctor(arguments) => {
            let exit = doctor::run(&arguments);
            connect::log_off();
            return exit.into();
        }
        Command::Explain(arguments) => return explain::run(&arguments).into(),
        Command::Completions(arguments) => {
            completions::run(&arguments, Cli::command());
            Ok(())
        }
        Command::Man(arguments) => man::run(&arguments, Cli::command()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::note(&format_args!("smbeam: {error:#}"));
            Exit::of_server(&error).into()
        }
    }
}

fn parse() -> Result<(Cli, ArgMatches), clap::Error> {
    let line = mount::arguments(env::args_os());
    let parsed = parse_line(Cli::command(), line.clone())?;
    let options = remotes::used_options();
    if options.is_empty() {
        return Ok(parsed);
    }
    // Options of a remote precede those of the command line, which override them.
    let at = options_start(&line, &parsed.1);
    let options = options.into_iter().map(OsString::from);
    let (before, after) = line.split_at(at);
    let line = before
        .iter()
        .cloned()
        .chain(options)
        .chain(after.iter().cloned());
    parse_line(Cli::command().args_override_self(true), line.collect())
}

fn parse_line(
    mut command: clap::Command,
    line: Vec<OsString>,
) -> Result<(Cli, ArgMatches), clap::Error> {
    let matches = command.try_get_matches_from_mut(line)?;
    let cli = Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
    Ok((cli, matches))
}

/// The index of the first argument behind the names of the subcommands.
fn options_start(line: &[OsString], matches: &ArgMatches) -> usize {
    let (mut at, mut matches) = (1, matches);
    while let Some((name, inner)) = matches.subcommand() {
        let found = line.iter().skip(at).position(|argument| argument == name);
        at += found.map_or(0, |found| found + 1);
        matches = inner;
    }
    at
}

/// Prints an error of the command line, or the help. A message repeats a wrong URL, so the password
/// in it is replaced.
fn reported(error: &clap::Error) -> ExitCode {
    let mut text = error.render().to_string();
    let mut has_password = false;
    for argument in env::args_os() {
        let argument = argument.to_string_lossy();
        let shown = Url::without_password(&argument);
        if shown != argument {
            has_password = true;
            text = text.replace(&*argument, &shown);
        }
    }
    if has_password {
        output::note_text(&text);
    } else {
        // A closed pipe has no reader to report to.
        let _ = error.print();
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(Exit::Usage as u8))
}

/// Runs a client command, which reports its own failures.
fn client(name: &'static str, run: impl FnOnce(&Report)) -> ExitCode {
    let report = Report::new(name);
    run(&report);
    connect::log_off();
    report.exit().into()
}
