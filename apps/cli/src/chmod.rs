//! `smbeam chmod`: changes the permissions of files.

use std::collections::BTreeMap;
use std::sync::Mutex;

use clap::Args;

use crate::acl::walk;
use crate::connect::ConnectArguments;
use crate::format;
use crate::location::Url;
use crate::mutex::lock;
use crate::report::Report;
use crate::unix::{ModeChange, Way, change_mode};

/// Arguments of `smbeam chmod`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The mode: octal such as 0640, or changes such as u+x,go-w.
    #[arg(value_name = "MODE", allow_hyphen_values = true)]
    mode: ModeChange,
    /// Files or directories.
    #[arg(required = true, value_name = "URL", value_parser = crate::location::url)]
    urls: Vec<Url>,
    /// Change everything in directories as well.
    #[arg(short = 'R', long)]
    recursive: bool,
    #[command(flatten)]
    connect: ConnectArguments,
}

/// Runs `smbeam chmod`.
pub(crate) fn run(arguments: &Arguments, report: &Report) {
    let ways = Ways::default();
    let Arguments { urls, connect, .. } = arguments;
    walk::trees(urls, connect, arguments.recursive, report, &|path, info| {
        let (_, way) = change_mode(path, info, &arguments.mode)?;
        ways.add(way);
        Ok(())
    });
    ways.report(report, "mode");
}

/// The ways in which files were changed.
#[derive(Default)]
pub(crate) struct Ways(Mutex<BTreeMap<&'static str, u64>>);

impl Ways {
    /// Counts a change.
    pub(crate) fn add(&self, way: Way) {
        if let Some(remark) = way.remark() {
            *lock(&self.0).entry(remark).or_default() += 1;
        }
    }

    /// Says what was done on a server without the SMB3 POSIX extensions.
    pub(crate) fn report(&self, report: &Report, what: &str) {
        for (remark, count) in &*lock(&self.0) {
            let files = format::count(*count, "file");
            report.note(&format!("{what} of {files} set {remark}"));
        }
    }
}
