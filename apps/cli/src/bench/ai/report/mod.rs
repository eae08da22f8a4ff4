//! Results for people: tables of text, and a page with charts.

mod charts;
mod columns;
mod html;

use std::fmt::Write as _;

use anyhow::Result;

use super::result::{BenchResult, CheckpointResult, TrainResult};
use crate::format::{measured_time, size};
use columns::Columns;

/// Results side by side, one column for each label.
pub(crate) fn table(results: &[BenchResult]) -> String {
    let columns = Columns::of(results);
    let rows = columns.rows();
    let mut table = vec![[vec![String::new()], columns.labels()].concat()];
    for (name, cells) in rows {
        table.push([vec![name], cells].concat());
    }
    let widths: Vec<usize> = (0..table[0].len())
        .map(|column| table.iter().map(|row| row[column].len()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in &table {
        let cells = row.iter().zip(&widths);
        let cells = cells.map(|(cell, &width)| format!("{cell:<width$}"));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    text
}

/// A result with its details.
pub(crate) fn details(result: &BenchResult) -> String {
    let mut text = String::new();
    let mut row = |name: &str, value: &str| {
        let _ = writeln!(text, "{name:<14}{value}");
    };
    row("storage", &storage_line(result));
    if let Some(train) = &result.train {
        train_rows(train, &mut row);
    }
    if let Some(checkpoint) = &result.checkpoint {
        checkpoint_rows(checkpoint, &mut row);
    }
    text
}

/// A page with charts, which needs no other file.
///
/// # Errors
/// A chart cannot be drawn.
pub(crate) fn page(results: &[BenchResult]) -> Result<String> {
    html::page(results)
}

/// The location, and how this machine reaches it.
fn storage_line(result: &BenchResult) -> String {
    let storage = &result.storage;
    let how = match (&storage.session, &storage.mount) {
        (Some(session), _) => session.clone(),
        (None, Some(mount)) => format!("{} {} on {}", mount.kind, mount.source, mount.directory),
        (None, None) => "unknown file system".to_owned(),
    };
    format!("{} ({how})", storage.location)
}

fn train_rows(train: &TrainResult, row: &mut dyn FnMut(&str, &str)) {
    let it = &train.configuration;
    row(
        "workload",
        &format!(
            "{} on {}, {} files with {} (scale {})",
            it.workload.name(),
            it.accelerator.name(),
            it.files,
            size(it.dataset_bytes),
            it.scale
        ),
    );
    row(
        "loop",
        &format!(
            "batch {}, {} per step, {} workers, {} batches ahead each, {} epochs",
            it.batch,
            measured_time(it.computation_s),
            it.workers,
            it.prefetch_factor,
            it.epochs
        ),
    );
    for run in &train.runs {
        row("result", &columns::train_cell(run));
        row(
            "throughput",
            &format!(
                "{:.2} samples/s, {:.1} MiB/s by the mean sample, {:.2} GBps from files",
                run.samples_per_second, run.mib_per_second, run.gb_per_second
            ),
        );
        let times = |p50: f64, p99: f64| {
            format!(
                "p50 {}  p99 {}",
                measured_time(p50 / 1e6),
                measured_time(p99 / 1e6)
            )
        };
        let (read, wait) = (run.batch_read.percentiles_us, run.batch_wait.percentiles_us);
        row("batch read", &times(read.p50, read.p99));
        row("batch wait", &times(wait.p50, wait.p99));
        row("CPU", &columns::cpu_line(&run.cpu, run.bytes));
        if let Some(reason) = &run.au_refused {
            row("no AU", reason);
        }
    }
    if train.is_search {
        row("largest", &columns::best_cell(train));
    }
    if let Some(limit) = &train.search_limit {
        row("search ended", limit);
    }
}

fn checkpoint_rows(it: &CheckpointResult, row: &mut dyn FnMut(&str, &str)) {
    row(
        "checkpoint",
        &format!(
            "{}, {} of {} ranks, {} in {} files{}",
            it.model.name(),
            it.ranks,
            it.ranks_of_model,
            size(it.bytes),
            it.files,
            if it.fsync { ", fsync" } else { "" }
        ),
    );
    row("result", &columns::checkpoint_cell(it));
    for (name, phase) in [("write", &it.write), ("read", &it.read)] {
        let Some(phase) = phase else { continue };
        let rates = phase.checkpoints.iter();
        let rates = rates.map(|one| format!("{:.2}", one.gb_per_second));
        row(
            name,
            &format!("{} GBps", rates.collect::<Vec<_>>().join(" ")),
        );
        let bytes = it.bytes * phase.checkpoints.len() as u64;
        row("CPU", &columns::cpu_line(&phase.cpu, bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::super::result::examples;
    use super::*;

    #[test]
    fn results_with_one_label_are_one_column() {
        let other = BenchResult {
            label: "nfs4".into(),
            ..examples::train()
        };
        let table = table(&[examples::train(), examples::checkpoint(), other]);
        let lines: Vec<&str> = table.lines().collect();
        let labels: Vec<&str> = lines[0].split_whitespace().collect();
        assert_eq!(labels, ["tcp", "nfs4"], "{table}");
        assert!(lines[1].starts_with("unet3d h100"), "{table}");
        assert!(
            lines[1].contains("2@93%") && table.contains("46%@2"),
            "{table}"
        );
        assert!(table.contains("1.5 GBps / R 2.5 GBps  -"), "{table}");
    }

    #[test]
    fn details_name_storage_workload_and_results() {
        let text = details(&examples::train());
        assert!(
            text.contains("smb://nas/tcp (SMB 3.1.1, over tcp)"),
            "{text}"
        );
        assert!(
            text.contains("unet3d on h100, 3500 files with 478 GiB (scale 1)"),
            "{text}"
        );
        assert!(text.contains("largest       2@93%"), "{text}");
        let text = details(&examples::checkpoint());
        assert!(text.contains("llama3-8b, 2 of 8 ranks"), "{text}");
        assert!(text.contains("W 1.5 GBps / R 2.5 GBps"), "{text}");
    }
}
