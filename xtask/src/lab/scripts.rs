//! `cargo xtask lab field|attacks`: runs the scripts of the interop tests at full size, one by one.

use std::env;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, ensure};
use smbeam_tests::scale;
use smbeam_tests::script::{COLUMNS, Figures, Group, Report, Script};

use crate::{table, workspace};

/// The option that measures figures and prints them as a table.
const FIGURES: &str = "--figures";
/// The exit code of a script that this machine cannot run.
const SKIPPED: i32 = 77;

/// Runs the scripts of `group` that the arguments name, or all. A name can be a part of the name of
/// a script.
///
/// # Errors
/// No script has the name, the server does not build, or a script cannot be started.
pub(super) fn run(group: Group, arguments: &[&str]) -> Result<ExitCode> {
    let measures = arguments.contains(&FIGURES);
    let names: Vec<&str> = arguments
        .iter()
        .copied()
        .filter(|argument| *argument != FIGURES)
        .collect();
    let is_wanted =
        |script: &Script| names.is_empty() || names.iter().any(|name| script.name.contains(name));
    let scripts: Vec<Script> = group.scripts().filter(is_wanted).collect();
    ensure!(
        !scripts.is_empty(),
        "no script has a name with {names:?}; the scripts are {}",
        group.names.join(", ")
    );
    let program = workspace::server()?;
    let mut rows = Vec::new();
    let mut failed = Vec::new();
    for script in scripts {
        let report = run_one(script, Path::new(&program), measures)?;
        if !matches!(report.code, Some(0 | SKIPPED)) {
            failed.push(script.name);
        }
        rows.push(row(script, &report));
    }
    if measures {
        println!("\n{}", render(&rows));
    }
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    println!("failed: {}", failed.join(", "));
    Ok(ExitCode::FAILURE)
}

fn run_one(script: Script, program: &Path, measures: bool) -> Result<Report> {
    println!("\n{}", script.name);
    let start = Instant::now();
    let report = script.run(program, measures, is_full())?;
    print!("{}", report.text);
    let seconds = start.elapsed().as_secs_f64();
    println!("{}: {} ({seconds:.1} s)", script.name, verdict(&report));
    Ok(report)
}

/// The scripts run at full size unless `SMBEAM_TEST_SCALE` has another value.
fn is_full() -> bool {
    env::var_os(scale::VARIABLE).is_none() || scale::is_full()
}

fn verdict(report: &Report) -> &'static str {
    match report.code {
        Some(0) => "ok",
        Some(SKIPPED) => "skipped",
        Some(_) => "FAILED",
        None => "FAILED: it did not end",
    }
}

/// The cells of a script: name, outcome and figures.
fn row(script: Script, report: &Report) -> Vec<String> {
    let figure = |column: &&str| cell(&report.figures, column);
    let figures = COLUMNS.iter().map(figure);
    [script.name.to_owned(), verdict(report).to_owned()]
        .into_iter()
        .chain(figures)
        .collect()
}

fn cell(figures: &Figures, column: &str) -> String {
    figures.get(column).cloned().unwrap_or_default()
}

fn render(rows: &[Vec<String>]) -> String {
    let head: Vec<&str> = ["attack", "outcome"].into_iter().chain(COLUMNS).collect();
    table::render(&head, rows)
}
