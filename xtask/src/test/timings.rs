//! How long each job took in earlier runs, kept in cargo's target directory.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use super::pool::Ended;
use crate::workspace::target;

/// Expected time of a job without a record: it runs before the ones known to be short.
const UNKNOWN: Duration = Duration::from_secs(5);

/// Seconds by the name of the job.
#[derive(Debug, Default)]
pub(crate) struct Timings {
    seconds: BTreeMap<String, f64>,
}

/// The directory for records and outputs of the runner.
pub(crate) fn directory() -> PathBuf {
    target().join("xtask")
}

fn path() -> PathBuf {
    directory().join("timings.tsv")
}

impl Timings {
    /// The record of earlier runs; empty where there is none.
    pub(crate) fn load() -> Timings {
        let text = fs::read_to_string(path()).unwrap_or_default();
        let row = |line: &str| {
            let (name, seconds) = line.split_once('\t')?;
            Some((name.to_owned(), seconds.parse().ok()?))
        };
        Timings {
            seconds: text.lines().filter_map(row).collect(),
        }
    }

    /// How long a job will take.
    pub(crate) fn expected(&self, name: &str) -> Duration {
        let seconds = self.seconds.get(name);
        seconds.map_or(UNKNOWN, |seconds| Duration::from_secs_f64(seconds.max(0.0)))
    }

    /// Adds the times of a run and writes the record. A record that cannot be written costs the
    /// next run some order, nothing else.
    pub(crate) fn store(mut self, ended: &[Ended]) {
        for job in ended {
            self.seconds
                .insert(job.name.clone(), job.time.as_secs_f64());
        }
        let rows = self.seconds.iter();
        let text: String = rows
            .map(|(name, seconds)| format!("{name}\t{seconds:.2}\n"))
            .collect();
        let _ = fs::create_dir_all(directory()).and_then(|()| fs::write(path(), text));
    }
}
