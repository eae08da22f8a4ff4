//! `cargo xtask bench-ai`: the workloads of MLPerf Storage over SMB, over NFS and on a local file
//! system, on one machine.
//!
//! There are two tables. All servers run on this machine, with files in its memory. The readers of
//! the table `host` run on it too: our client, our mount by FUSE, and clients in Python. Those of
//! the table `guest` run in a guest of user-mode Linux, which has the clients of the kernel for SMB
//! and NFS.
//!
//! This program runs itself again to measure ([`launch`], [`measure`]).

mod cpu;
mod ganesha;
mod guest;
mod launch;
mod measure;
mod options;
mod python;
mod reader;
mod record;
mod running;
mod service;
mod tables;
mod workload;

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};
use smbeam_tests::lab::Part;

use self::options::{MEASURE, Options, Table};
use self::record::Record;
use crate::process::quiet;
use crate::{lab, workspace};

/// The page with charts, in the directory of results.
const PAGE: &str = "report.html";

/// Measures the chosen tables, and prints all tables with results in the directory.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    if let [MEASURE, ..] = arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        measure::run(&Options::parse(&arguments[1..])?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let options = Options::parse(arguments)?;
    let directory = &options.directory;
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot create {}", directory.display()))?;
    let program = workspace::server()?;
    if !options.only_shows {
        for table in &options.tables {
            measure_table(*table, &options, &program)?;
        }
    }
    show(directory, &program)?;
    Ok(ExitCode::SUCCESS)
}

fn measure_table(table: Table, options: &Options, program: &OsString) -> Result<()> {
    println!("bench-ai: table {}", table.name());
    lab::build()?;
    if table == Table::Guest {
        lab::build_part(Part::Nfs)?;
    }
    launch::run(table, options, program)
}

/// Prints the tables, and writes the page with charts of all results.
fn show(directory: &Path, program: &OsString) -> Result<()> {
    let records = Record::read_all(directory)?;
    print!("{}", tables::render(&records));
    for table in [Table::Host, Table::Guest] {
        let results = records.iter().filter(|record| record.table == table);
        let results: Vec<_> = results
            .map(|record| record.result_in(directory))
            .filter(|path| path.exists())
            .collect();
        if results.is_empty() {
            continue;
        }
        let page = directory.join(format!("{}-{PAGE}", table.name()));
        let mut report = Command::new(program);
        report.args(["bench", "ai", "report"]).args(results);
        quiet(report.arg("--html").arg(&page))?;
        println!("charts: {}", page.display());
    }
    Ok(())
}
