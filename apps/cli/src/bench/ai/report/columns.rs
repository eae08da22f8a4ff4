//! The cells of tables: `N@AU%`, `W GBps / R GBps`, `cpu%@cores`.

use super::super::result::{BenchResult, CheckpointResult, TrainResult, TrainRun};
use super::super::usage::CpuUse;
use crate::format::measured_time;

/// A cell without a value.
const NONE: &str = "-";

/// The results of one label: at most one for each workload.
#[derive(Debug)]
struct Column<'a> {
    label: String,
    results: Vec<&'a BenchResult>,
}

/// Results by label.
#[derive(Debug)]
pub(super) struct Columns<'a>(Vec<Column<'a>>);

impl<'a> Columns<'a> {
    /// Sorts the results into columns. A second result for the same workload and label gets its own
    /// column.
    pub(super) fn of(results: &'a [BenchResult]) -> Self {
        let mut columns: Vec<Column<'a>> = Vec::new();
        for result in results {
            let names = names(result);
            let same = |column: &&mut Column<'_>| column.label == result.label;
            let fits = |column: &&mut Column<'_>| {
                let mut taken = column.results.iter().flat_map(|result| self::names(result));
                !taken.any(|name| names.contains(&name))
            };
            match columns.iter_mut().filter(same).find(fits) {
                Some(column) => column.results.push(result),
                None => columns.push(Column {
                    label: result.label.clone(),
                    results: vec![result],
                }),
            }
        }
        Self(columns)
    }

    /// The labels; equal ones are numbered.
    pub(super) fn labels(&self) -> Vec<String> {
        let labels = self.0.iter().enumerate().map(|(index, column)| {
            let before = self.0[..index]
                .iter()
                .filter(|it| it.label == column.label)
                .count();
            match before {
                0 => column.label.clone(),
                before => format!("{} ({})", column.label, before + 1),
            }
        });
        labels.collect()
    }

    /// The rows: a name, and a cell for each column.
    pub(super) fn rows(&self) -> Vec<(String, Vec<String>)> {
        let all = self.0.iter().flat_map(|column| &column.results);
        let mut known: Vec<String> = Vec::new();
        for name in all.flat_map(|result| names(result)) {
            if !known.contains(&name) {
                known.push(name);
            }
        }
        let mut rows = Vec::new();
        for name in known {
            let found = |column: &Column<'a>| {
                let mut results = column.results.iter();
                results
                    .find(|result| names(result).contains(&name))
                    .copied()
            };
            let results: Vec<Option<&BenchResult>> = self.0.iter().map(found).collect();
            for (index, &(title, cell)) in CELLS.iter().enumerate() {
                let cells = results.iter().map(|result| result.and_then(cell));
                let cells: Vec<Option<String>> = cells.collect();
                if cells.iter().any(Option::is_some) {
                    let name = match index {
                        0 => name.clone(),
                        _ => format!("  {title}"),
                    };
                    let or_none = |cell: Option<String>| cell.unwrap_or_else(|| NONE.into());
                    rows.push((name, cells.into_iter().map(or_none).collect()));
                }
            }
        }
        rows
    }
}

/// Makes the cell of a result; `None` if the result has no such value.
type Cell = fn(&BenchResult) -> Option<String>;

/// The rows of each workload. The first one has the name of the workload.
const CELLS: [(&str, Cell); 6] = [
    ("result", main_cell),
    ("samples/s", |result| {
        best(result.train.as_ref()?).map(|run| format!("{:.1}", run.samples_per_second))
    }),
    ("read", |result| {
        best(result.train.as_ref()?).map(|run| format!("{:.2} GBps", run.gb_per_second))
    }),
    ("batch read p99", |result| {
        let run = best(result.train.as_ref()?)?;
        Some(measured_time(run.batch_read.percentiles_us.p99 / 1e6))
    }),
    ("cpu", |result| {
        let uses = cpu_of(result).into_iter();
        let cells: Vec<String> = uses.map(|(cpu, _)| cpu_cell(cpu)).collect();
        (!cells.is_empty()).then(|| cells.join(" / "))
    }),
    ("client cpu per GB", |result| {
        let uses = cpu_of(result).into_iter();
        let cells: Vec<String> = uses
            .map(|(cpu, bytes)| measured_time(cpu.per_gb(bytes).0))
            .collect();
        (!cells.is_empty()).then(|| cells.join(" / "))
    }),
];

/// The names of the workloads of a result.
fn names(result: &BenchResult) -> Vec<String> {
    let train = result.train.iter().map(|it| {
        let it = &it.configuration;
        let scale = scale_suffix(it.scale);
        format!("{} {}{scale}", it.workload.name(), it.accelerator.name())
    });
    let checkpoint = result.checkpoint.iter().map(|it| {
        let scale = scale_suffix(it.scale);
        format!(
            "{} {}/{}{scale}",
            it.model.name(),
            it.ranks,
            it.ranks_of_model
        )
    });
    train.chain(checkpoint).collect()
}

fn scale_suffix(scale: f64) -> String {
    match scale == 1.0 {
        true => String::new(),
        false => format!(" x{scale}"),
    }
}

fn main_cell(result: &BenchResult) -> Option<String> {
    let train = result.train.as_ref().map(best_cell);
    train.or_else(|| result.checkpoint.as_ref().map(checkpoint_cell))
}

/// CPU use of the best run, or of writing and reading, with the bytes.
pub(super) fn cpu_of(result: &BenchResult) -> Vec<(&CpuUse, u64)> {
    let train = result.train.as_ref().and_then(best);
    let train = train.map(|run| (&run.cpu, run.bytes));
    let checkpoint = result.checkpoint.iter().flat_map(|it| {
        let phases = [&it.write, &it.read].into_iter().flatten();
        phases.map(|phase| (&phase.cpu, it.bytes * phase.checkpoints.len() as u64))
    });
    train.into_iter().chain(checkpoint).collect()
}

/// The run with the most accelerators that reach the target, or else the one with the highest
/// utilization.
pub(super) fn best(train: &TrainResult) -> Option<&TrainRun> {
    let passed = train.runs.iter().filter(|run| run.has_passed);
    let passed = passed.max_by_key(|run| run.accelerators);
    passed.or_else(|| {
        let au = |run: &TrainRun| run.au_percent.unwrap_or(-1.0);
        train
            .runs
            .iter()
            .max_by(|one, other| au(one).total_cmp(&au(other)))
    })
}

/// `N@AU%` of the best run.
pub(super) fn best_cell(train: &TrainResult) -> String {
    best(train).map_or_else(|| NONE.into(), train_cell)
}

/// `N@AU%`. A run that misses the target has a mark.
pub(super) fn train_cell(run: &TrainRun) -> String {
    match run.au_percent {
        Some(au) if run.has_passed => format!("{}@{au:.0}%", run.accelerators),
        Some(au) => format!("{}@{au:.0}% (below target)", run.accelerators),
        None => format!("{}@-", run.accelerators),
    }
}

/// `W GBps / R GBps`.
pub(super) fn checkpoint_cell(it: &CheckpointResult) -> String {
    let rate = |name: &str, phase: &Option<super::super::result::CheckpointPhase>| match phase {
        Some(phase) => format!("{name} {:.1} GBps", phase.gb_per_second),
        None => format!("{name} {NONE}"),
    };
    format!("{} / {}", rate("W", &it.write), rate("R", &it.read))
}

/// `cpu%@cores` of the host.
pub(super) fn cpu_cell(cpu: &CpuUse) -> String {
    format!("{:.0}%@{}", cpu.host_percent, cpu.cores)
}

/// CPU of host, client and server.
pub(super) fn cpu_line(cpu: &CpuUse, bytes: u64) -> String {
    let (client, server) = cpu.per_gb(bytes);
    let server = match server {
        Some(server) => format!(", server {}/GB", measured_time(server)),
        None => String::new(),
    };
    format!(
        "{}, client {}/GB{server}",
        cpu_cell(cpu),
        measured_time(client)
    )
}

#[cfg(test)]
mod tests {
    use super::super::super::result::examples;
    use super::*;

    #[test]
    fn cells_have_the_usual_form() {
        assert_eq!(train_cell(&examples::run(15, Some(93.4))), "15@93%");
        assert_eq!(
            train_cell(&examples::run(3, Some(71.0))),
            "3@71% (below target)"
        );
        assert_eq!(train_cell(&examples::run(3, None)), "3@-");
        let mut checkpoint = examples::checkpoint().checkpoint.expect("a checkpoint");
        assert_eq!(checkpoint_cell(&checkpoint), "W 1.5 GBps / R 2.5 GBps");
        checkpoint.write = None;
        assert_eq!(checkpoint_cell(&checkpoint), "W - / R 2.5 GBps");
    }

    #[test]
    fn the_best_run_has_the_most_accelerators_at_the_target() {
        let mut train = examples::train().train.expect("a training");
        assert_eq!(best(&train).map(|run| run.accelerators), Some(2));
        train.runs.retain(|run| !run.has_passed);
        assert_eq!(best_cell(&train), "3@71% (below target)");
        train.runs.clear();
        assert_eq!(best_cell(&train), "-");
    }

    #[test]
    fn a_second_result_of_a_label_has_its_own_column() {
        let results = [examples::train(), examples::train()];
        assert_eq!(Columns::of(&results).labels(), ["tcp", "tcp (2)"]);
    }
}
