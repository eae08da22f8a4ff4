//! `cargo xtask soak`: what the tests do, for hours: many seeds of the simulator, each fuzz target
//! in turn, and cases with large files. A row in the repository records each run.

mod files;
mod fuzz;
mod record;
mod seeds;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::host;
use crate::test::build;
use record::Row;

/// Hours of a run where the command line names none.
const DEFAULT_HOURS: f64 = 1.0;
/// Parts of the time, in percent; the rest is for large files.
const SEEDS_PERCENT: u32 = 40;
const FUZZ_PERCENT: u32 = 40;

/// Runs for the time that the command line names, and appends a row to the record.
///
/// # Errors
/// Something does not build, or the record cannot be written.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    let hours = hours(arguments)?;
    let time = Duration::from_secs_f64(hours * 3600.0);
    host::ensure(host::BUILD_TOOLS)?;
    let built = build::run()?;
    let targets = fuzz::build()?;
    let start = Instant::now();
    let seeds = seeds::run(&built, time * SEEDS_PERCENT / 100)?;
    let targets = fuzz::run(&targets, time * FUZZ_PERCENT / 100)?;
    let files = files::run(&built, time.saturating_sub(start.elapsed()))?;
    let row = Row {
        commit: record::commit()?,
        date: record::date()?,
        hours: start.elapsed().as_secs_f64() / 3600.0,
        seeds,
        targets,
        files,
    };
    println!("\n{}", row.table());
    record::append(&row)?;
    Ok(ExitCode::from(u8::from(row.failed() > 0)))
}

/// The value of `--hours`.
fn hours(arguments: &[String]) -> Result<f64> {
    let hours = match arguments {
        [] => DEFAULT_HOURS,
        [flag, hours] if flag == "--hours" => hours.parse().context("--hours wants a number")?,
        _ => bail!("usage: cargo xtask soak [--hours N]"),
    };
    if !(hours > 0.0 && hours <= 1000.0) {
        bail!("--hours wants a number above 0 and up to 1000");
    }
    Ok(hours)
}

#[cfg(test)]
mod tests {
    use super::hours;

    #[test]
    fn hours_are_a_positive_number() {
        let of = |arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
            hours(&arguments).ok()
        };
        assert_eq!(of(&[]), Some(1.0));
        assert_eq!(of(&["--hours", "0.2"]), Some(0.2));
        for wrong in [
            &["--hours"][..],
            &["--hours", "0"],
            &["--hours", "NaN"],
            &["8"],
        ] {
            assert_eq!(of(wrong), None, "{wrong:?}");
        }
    }
}
