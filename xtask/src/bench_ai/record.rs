//! The figures of a row: a file beside the result of `smbeam bench ai`, from which tables are made.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::options::Table;
use super::reader::Reader;
use super::service::Service;
use super::workload::Workload;

/// The end of the names of the files.
const SUFFIX: &str = ".row.json";

/// The figures of a reader of a server under a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) table: Table,
    pub(crate) workload: Workload,
    /// Number of the row in its table.
    pub(crate) row: usize,
    pub(crate) reader: String,
    pub(crate) server: String,
    /// Workers or threads of the server.
    pub(crate) workers: Option<u32>,
    pub(crate) is_quick: bool,
    /// None: the measurement failed.
    pub(crate) figures: Option<Figures>,
    /// The reason why it failed.
    pub(crate) failure: Option<String>,
}

/// The measured figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// The largest number of accelerators that reach the target, or else the smallest one.
    pub(crate) accelerators: Option<u64>,
    /// Their utilization in percent.
    pub(crate) au_percent: Option<f64>,
    pub(crate) has_passed: bool,
    /// Whether there were no files for more accelerators.
    pub(crate) is_limited_by_files: bool,
    /// 10^9 bytes per second: the fastest run of a training, or reads of checkpoints.
    pub(crate) read_gb: f64,
    /// 10^9 bytes per second of written checkpoints.
    pub(crate) write_gb: Option<f64>,
    /// Samples per second of the fastest run.
    pub(crate) samples: Option<f64>,
    /// Bytes of all runs, in 10^9.
    pub(crate) gb: f64,
    /// CPU time of the server in all runs, in seconds.
    pub(crate) server_s: f64,
    /// Busy time of all processors without that of the server, in seconds.
    pub(crate) others_s: f64,
}

impl Record {
    /// A row without figures.
    pub(crate) fn new(
        table: Table,
        workload: Workload,
        row: usize,
        (service, reader): (Service, Reader),
    ) -> Record {
        Record {
            table,
            workload,
            row,
            reader: reader.name().into(),
            server: service.name().into(),
            workers: service.workers(),
            is_quick: false,
            figures: None,
            failure: None,
        }
    }

    /// The server with its number of workers.
    pub(crate) fn server_with_workers(&self) -> String {
        match self.workers {
            Some(workers) => format!("{} {workers}", self.server),
            None => self.server.clone(),
        }
    }

    /// The name of the column in reports.
    pub(crate) fn label(&self) -> String {
        format!("{}: {}", self.server_with_workers(), self.reader)
    }

    /// The file with the result of `smbeam bench ai` in `directory`.
    pub(crate) fn result_in(&self, directory: &Path) -> PathBuf {
        directory.join(format!("{}.json", self.stem()))
    }

    fn stem(&self) -> String {
        let server = self.server_with_workers().replace(' ', "");
        let (table, workload) = (self.table.name(), self.workload.name());
        format!("{table}-{workload}-{server}-{}", self.reader)
    }

    /// Writes the row to `directory`.
    pub(crate) fn write(&self, directory: &Path) -> Result<()> {
        let path = directory.join(format!("{}{SUFFIX}", self.stem()));
        fs::write(&path, serde_json::to_string_pretty(self)?)
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// All rows in `directory`, in the order of the tables.
    pub(crate) fn read_all(directory: &Path) -> Result<Vec<Record>> {
        let mut records = Vec::new();
        let entries = fs::read_dir(directory)
            .with_context(|| format!("cannot list {}", directory.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.to_string_lossy().ends_with(SUFFIX) {
                let text = fs::read_to_string(&path)?;
                let record: Record = serde_json::from_str(&text)
                    .with_context(|| format!("{} is no row", path.display()))?;
                records.push(record);
            }
        }
        records.sort_by_key(|record| (record.table.name(), record.row, record.workload.name()));
        Ok(records)
    }
}

impl Figures {
    /// The figures in a result of `smbeam bench ai`.
    ///
    /// # Errors
    /// A field is missing.
    pub(crate) fn of(result: &Value) -> Result<Figures> {
        let figures = match result["train"].is_null() {
            true => Self::of_checkpoints(&result["checkpoint"]),
            false => Self::of_training(&result["train"]),
        };
        figures.context("the result lacks a field")
    }

    fn of_training(train: &Value) -> Option<Figures> {
        let runs = train["runs"].as_array()?;
        let passed = runs.iter().filter(|run| run["has_passed"] == true);
        let best = passed.max_by_key(|run| run["accelerators"].as_u64());
        let shown = best.or_else(|| runs.iter().min_by_key(|run| run["accelerators"].as_u64()))?;
        let largest = |field: &str| {
            let values = runs.iter().filter_map(|run| run[field].as_f64());
            values.reduce(f64::max)
        };
        let bytes: u64 = runs.iter().filter_map(|run| run["bytes"].as_u64()).sum();
        Some(Figures {
            accelerators: shown["accelerators"].as_u64(),
            au_percent: shown["au_percent"].as_f64(),
            has_passed: best.is_some(),
            is_limited_by_files: train["is_search"] == true && !train["search_limit"].is_null(),
            read_gb: largest("gb_per_second")?,
            write_gb: None,
            samples: largest("samples_per_second"),
            gb: bytes as f64 / 1e9,
            ..Figures::default()
        })
    }

    fn of_checkpoints(checkpoint: &Value) -> Option<Figures> {
        let bytes = checkpoint["bytes"].as_u64()? as f64;
        let count = |phase: &str| {
            checkpoint[phase]["checkpoints"]
                .as_array()
                .map_or(0, Vec::len)
        };
        Some(Figures {
            read_gb: checkpoint["read"]["gb_per_second"].as_f64()?,
            write_gb: Some(checkpoint["write"]["gb_per_second"].as_f64()?),
            gb: bytes * (count("write") + count("read")) as f64 / 1e9,
            ..Figures::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Figures, Reader, Record, Service, Table, Workload};

    #[test]
    fn the_largest_number_of_accelerators_that_reach_the_target_is_shown() {
        let run = |accelerators: u64, au: f64, passed: bool| {
            json!({
                "accelerators": accelerators, "au_percent": au, "has_passed": passed,
                "gb_per_second": accelerators as f64, "samples_per_second": 10.0 * au,
                "bytes": 1_000_000_000_u64,
            })
        };
        let mut result = json!({"train": {"is_search": true, "search_limit": null,
            "runs": [run(1, 99.0, true), run(2, 91.0, true), run(4, 50.0, false)]}});
        let figures = Figures::of(&result).expect("all fields");
        assert_eq!(figures.accelerators, Some(2));
        assert_eq!(figures.au_percent, Some(91.0));
        assert_eq!((figures.read_gb, figures.gb), (4.0, 3.0));
        assert!(figures.has_passed && !figures.is_limited_by_files);
        result["train"]["runs"] = json!([run(1, 40.0, false), run(2, 20.0, false)]);
        let figures = Figures::of(&result).expect("all fields");
        assert_eq!((figures.accelerators, figures.has_passed), (Some(1), false));
    }

    #[test]
    fn checkpoints_count_in_both_directions() {
        let phase = |speed: f64| json!({"gb_per_second": speed, "checkpoints": [{}, {}]});
        let result = json!({"checkpoint":
            {"bytes": 500_000_000_u64, "write": phase(1.5), "read": phase(2.5)}});
        let figures = Figures::of(&result).expect("all fields");
        assert_eq!((figures.write_gb, figures.read_gb), (Some(1.5), 2.5));
        assert_eq!(figures.gb, 2.0);
        assert!(Figures::of(&json!({"checkpoint": {}})).is_err());
    }

    #[test]
    fn rows_have_names_of_their_own() {
        let row = |service| Record::new(Table::Guest, Workload::Unet3d, 3, (service, Reader::Cifs));
        let two = row(Service::Smbeam(2));
        assert_eq!(two.label(), "smbeam 2: cifs.ko");
        assert_ne!(two.stem(), row(Service::Smbeam(4)).stem());
        assert_eq!(two.stem(), "guest-unet3d-smbeam2-cifs.ko");
    }
}
