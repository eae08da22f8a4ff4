//! `smbeam tune`: what limits the speed of a server or client, and what to change.

mod apply;
mod arguments;
mod configuration;
mod local;
mod print;
mod remote;
mod watch;

pub(crate) use self::arguments::Arguments;
use crate::failure::Outcome;
use crate::report::Report;

/// Runs `smbeam tune`.
pub(crate) fn run(arguments: &Arguments, report: &Report) {
    report.take(tune(arguments));
}

fn tune(arguments: &Arguments) -> Outcome {
    match &arguments.url {
        Some(url) => remote::measure(arguments, url),
        None if arguments.watch => watch::watch(arguments),
        None if arguments.undo => apply::undo(&arguments.files, arguments.dry_run),
        None => local::examine(arguments),
    }
}
