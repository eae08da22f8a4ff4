//! Output of results and errors.

use std::path::Path;

use super::host::Mount;
use super::options::OutputArguments;
use super::report;
use super::result::{BenchResult, Storage};
use super::store::Store;
use crate::exit::{Exit, exit_of_io};
use crate::failure::{Failure, Outcome};
use crate::location::Location;
use crate::output::{line, note};

/// Prints a result, and writes its JSON and its page.
pub(super) fn publish(output: &OutputArguments, result: BenchResult) -> Outcome {
    let is_on_stdout = output.json.as_deref() == Some(Path::new("-"));
    if let Some(path) = &output.json {
        let text = serde_json::to_string_pretty(&result).expect("a result is a JSON value");
        match is_on_stdout {
            true => line(&text),
            false => std::fs::write(path, text + "\n")
                .map_err(|error| Failure::local(&path.display(), &error))?,
        }
    }
    if !is_on_stdout {
        line(&report::details(&result).trim_end());
    }
    match &output.html {
        Some(path) => write_html(path, &[result]),
        None => Ok(()),
    }
}

pub(super) fn write_html(path: &Path, results: &[BenchResult]) -> Outcome {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::new(
            Exit::Failed,
            path.display(),
            format!("cannot draw: {error:#}"),
        )
    };
    let page = report::page(results).map_err(|error| failed(&error))?;
    std::fs::write(path, page).map_err(|error| Failure::local(&path.display(), &error))
}

/// The storage behind a store, after its first session was opened.
fn storage(location: &Location, store: &Store) -> Storage {
    Storage {
        location: location.to_string(),
        session: store.session_line(),
        mount: store.directory().and_then(Mount::of),
    }
}

/// A result without measurements.
pub(super) fn empty_result(
    output: &OutputArguments,
    location: &Location,
    store: &Store,
) -> BenchResult {
    let storage = storage(location, store);
    let label = output.label.clone();
    BenchResult::new(label.unwrap_or_else(|| storage.default_label()), storage)
}

/// Converts an error of a benchmark into a failure for its location.
pub(super) fn failed(location: &Location, error: &anyhow::Error) -> Failure {
    if let Some(error) = error
        .chain()
        .find_map(|it| it.downcast_ref::<smbeam_client::Error>())
    {
        return crate::client_failure::failure_of(location, error);
    }
    let io = error
        .chain()
        .find_map(|it| it.downcast_ref::<std::io::Error>());
    let exit = io.map_or(Exit::Failed, exit_of_io);
    Failure::new(exit, location, format!("{error:#}"))
}

/// Prints a remark that is not part of the result.
pub(super) fn remark(text: &str) {
    note(&format_args!("smbeam: bench ai: {text}"));
}

/// The result of a step that has no location.
pub(super) fn usage<T>(result: Result<T, String>) -> Outcome<T> {
    result.map_err(|reason| Failure::usage("bench ai", reason))
}
