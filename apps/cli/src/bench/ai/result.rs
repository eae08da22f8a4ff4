//! The result of a benchmark as JSON. `smbeam bench ai schema` prints the schema.

use std::time::SystemTime;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::checkpoint::Transfer;
use super::host::{Host, Mount};
use super::model::{Model, ModelName};
use super::usage::CpuUse;
use super::utilization::EpochResult;
use super::workload::{Accelerator, Round, Workload};
use crate::bench::record::Record;
use crate::bench::report::Latency;
use crate::format::utc_time;

/// Version of the JSON. It changes when a field is renamed, removed or gets another meaning.
pub(crate) const VERSION: u32 = 1;
/// Points of a distribution.
const POINTS: u32 = 100;

/// The result of one invocation of `smbeam bench ai train` or `checkpoint`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Result of smbeam bench ai")]
pub(crate) struct BenchResult {
    pub(crate) version: u32,
    /// Version of smbeam.
    pub(crate) smbeam: String,
    /// Start of the benchmark in UTC. RFC 3339
    pub(crate) started: String,
    /// Name of the measured storage in reports.
    pub(crate) label: String,
    pub(crate) host: Host,
    pub(crate) storage: Storage,
    /// The result of `train`.
    pub(crate) train: Option<TrainResult>,
    /// The result of `checkpoint`.
    pub(crate) checkpoint: Option<CheckpointResult>,
}

impl BenchResult {
    /// A result without measurements.
    pub(crate) fn new(label: String, storage: Storage) -> Self {
        Self {
            version: VERSION,
            smbeam: env!("CARGO_PKG_VERSION").to_owned(),
            started: utc_time(SystemTime::now()),
            label,
            host: Host::of_this_process(),
            storage,
            train: None,
            checkpoint: None,
        }
    }
}

/// The measured storage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Storage {
    /// The path or URL.
    pub(crate) location: String,
    /// Dialect, protection and transports of the sessions, for a URL.
    pub(crate) session: Option<String>,
    /// The file system, for a path.
    pub(crate) mount: Option<Mount>,
}

impl Storage {
    /// A name for reports: the type of the file system, or `smb`.
    pub(crate) fn default_label(&self) -> String {
        match &self.mount {
            Some(mount) => mount.kind.clone(),
            None => "smb".to_owned(),
        }
    }
}

/// Training with emulated accelerators.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct TrainResult {
    pub(crate) configuration: TrainConfiguration,
    /// One run for each number of accelerators, in the order in which they ran.
    pub(crate) runs: Vec<TrainRun>,
    /// Whether the runs searched the largest number of accelerators that reach the target.
    pub(crate) is_search: bool,
    /// The reason why the search did not try more accelerators, if they all reached the target.
    pub(crate) search_limit: Option<String>,
}

/// The parameters of a training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct TrainConfiguration {
    pub(crate) workload: Workload,
    pub(crate) accelerator: Accelerator,
    /// The round of MLPerf Storage that defines the formula of the throughput.
    pub(crate) round: Round,
    /// Length of the samples relative to that of the workload.
    pub(crate) scale: f64,
    /// Mean length of a sample in bytes.
    pub(crate) record_bytes: f64,
    pub(crate) samples_per_file: u64,
    /// Files of the data set, and their bytes.
    pub(crate) files: u64,
    pub(crate) dataset_bytes: u64,
    /// Samples of a step.
    pub(crate) batch: u64,
    /// Computation of a step in seconds, as configured.
    pub(crate) computation_s: f64,
    /// Reading threads of each accelerator.
    pub(crate) workers: u32,
    /// Batches that each worker reads ahead.
    pub(crate) prefetch_factor: u32,
    pub(crate) epochs: u32,
    pub(crate) seed: u64,
    /// Whether the checksums of the samples were verified.
    pub(crate) decodes: bool,
    /// Whether O_DIRECT was used.
    pub(crate) direct: bool,
    /// Utilization that a result must reach, in percent.
    pub(crate) au_target_percent: f64,
    /// Whether the data set is smaller than five times the memory of this host, so that caches can
    /// hold much of it.
    pub(crate) is_cacheable: bool,
}

/// A run with one number of accelerators.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct TrainRun {
    pub(crate) accelerators: u64,
    /// Mean utilization over all epochs in percent; `null` if the steps are too few.
    pub(crate) au_percent: Option<f64>,
    /// The reason why there is no utilization.
    pub(crate) au_refused: Option<String>,
    /// Whether the utilization reaches the target.
    pub(crate) has_passed: bool,
    /// Mean of the epochs, by the formula of the configured round.
    pub(crate) samples_per_second: f64,
    /// The same times the mean length of a sample, in 2^20 bytes per second. DLIO prints it as
    /// MB/second.
    pub(crate) mib_per_second: f64,
    /// 10^9 bytes per second that were read from files during the whole run.
    pub(crate) gb_per_second: f64,
    /// Bytes that were read from files.
    pub(crate) bytes: u64,
    pub(crate) epochs: Vec<EpochResult>,
    /// Time for which a worker reads a batch.
    pub(crate) batch_read: Distribution,
    /// Time for which an accelerator waits for a batch.
    pub(crate) batch_wait: Distribution,
    pub(crate) cpu: CpuUse,
}

/// Writing and reading of checkpoints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct CheckpointResult {
    pub(crate) model: ModelName,
    /// The dimensions, which are smaller than those of the model if the run was scaled.
    pub(crate) dimensions: Model,
    pub(crate) scale: f64,
    /// Ranks that took part, of the ranks of the model.
    pub(crate) ranks: u64,
    pub(crate) ranks_of_model: u64,
    /// Files and bytes of one checkpoint.
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    /// Whether each file was flushed to stable storage.
    pub(crate) fsync: bool,
    /// Whether O_DIRECT was used.
    pub(crate) direct: bool,
    pub(crate) write: Option<CheckpointPhase>,
    pub(crate) read: Option<CheckpointPhase>,
}

/// The checkpoints of one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct CheckpointPhase {
    /// Mean of the checkpoints, by the slowest rank of each.
    pub(crate) gb_per_second: f64,
    pub(crate) checkpoints: Vec<Transfer>,
    /// Time of each file.
    pub(crate) file_time: Distribution,
    pub(crate) cpu: CpuUse,
}

/// A distribution of times in microseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Distribution {
    pub(crate) count: u64,
    pub(crate) mean_us: f64,
    pub(crate) percentiles_us: Latency,
    /// The times that 1, 2, ... 100 percent of the operations do not exceed.
    pub(crate) by_percent_us: Vec<f64>,
}

impl Distribution {
    pub(crate) fn of(record: &Record) -> Self {
        let by_percent = (1..=POINTS).map(|percent| record.percentile_us(f64::from(percent)));
        Self {
            count: record.ops,
            mean_us: record.latency.mean() / 1e3,
            percentiles_us: Latency::of(record),
            by_percent_us: by_percent.collect(),
        }
    }
}

/// The JSON schema of a result.
pub(crate) fn schema() -> serde_json::Value {
    schemars::schema_for!(BenchResult).to_value()
}

#[cfg(test)]
pub(crate) mod examples;

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// Follows a reference to a definition of the schema.
    fn resolved<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str() {
            Some(path) => root.pointer(&path[1..]).expect("a definition"),
            None => schema,
        }
    }

    /// Fails unless every property of `value` is in the schema, and every required one in `value`.
    fn check(root: &Value, schema: &Value, value: &Value, path: &str) {
        let schema = resolved(root, schema);
        if let Some(choices) = schema["anyOf"].as_array() {
            if !value.is_null() {
                check(root, &choices[0], value, path);
            }
            return;
        }
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let property = &schema["properties"][name];
                    assert!(!property.is_null(), "{path}/{name} is not in the schema");
                    check(root, property, value, &format!("{path}/{name}"));
                }
                for name in schema["required"].as_array().into_iter().flatten() {
                    let name = name.as_str().expect("a name");
                    assert!(fields.contains_key(name), "{path}/{name} is missing");
                }
            }
            Value::Array(items) => {
                for item in items {
                    check(root, &schema["items"], item, path);
                }
            }
            _ => {}
        }
    }

    #[test]
    fn results_match_their_schema() {
        let schema = schema();
        for result in [examples::train(), examples::checkpoint()] {
            let value = serde_json::to_value(&result).expect("a value");
            check(&schema, &schema, &value, "");
            let again: BenchResult = serde_json::from_value(value).expect("the same");
            assert_eq!(again, result);
        }
    }

    #[test]
    fn fields_of_the_schema_are_described() {
        let text = schema().to_string();
        for name in [
            "au_refused",
            "by_percent_us",
            "host_percent",
            "seconds_of_rank_0",
        ] {
            assert!(text.contains(name), "{name}");
        }
        assert!(text.contains("DLIO prints it as"), "{text}");
    }

    #[test]
    fn a_distribution_has_a_point_per_percent() {
        let mut record = Record::new().expect("bounds");
        for ms in 1..=100 {
            record.add(1, std::time::Duration::from_millis(ms));
        }
        let distribution = Distribution::of(&record);
        assert_eq!(
            (distribution.count, distribution.by_percent_us.len()),
            (100, 100)
        );
        let half = distribution.by_percent_us[49];
        assert!((half - 50_000.0).abs() < 100.0, "{half}");
        assert!((distribution.mean_us - 50_500.0).abs() < 100.0);
    }
}
