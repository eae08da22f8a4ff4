//! Results for tests.

use super::*;

fn empty(label: &str) -> BenchResult {
    let storage = Storage {
        location: format!("smb://nas/{label}"),
        session: Some("SMB 3.1.1, over tcp".into()),
        mount: None,
    };
    BenchResult::new(label.to_owned(), storage)
}

fn distribution(us: f64) -> Distribution {
    Distribution {
        count: 100,
        mean_us: us,
        percentiles_us: Latency {
            p50: us,
            p90: 2.0 * us,
            p99: 3.0 * us,
            p99_9: 4.0 * us,
            max: 5.0 * us,
        },
        by_percent_us: (1..=100)
            .map(|percent| us * f64::from(percent) / 50.0)
            .collect(),
    }
}

fn cpu() -> CpuUse {
    CpuUse {
        seconds: 10.0,
        client_s: 5.0,
        server_s: Some(4.0),
        host_percent: 46.2,
        cores: 2,
    }
}

/// A run with `accelerators` accelerators and this utilization.
pub(crate) fn run(accelerators: u64, au_percent: Option<f64>) -> TrainRun {
    TrainRun {
        accelerators,
        au_percent,
        au_refused: au_percent.is_none().then(|| "too few steps".into()),
        has_passed: au_percent.is_some_and(|au| au >= 90.0),
        samples_per_second: 20.0 * accelerators as f64,
        mib_per_second: 2796.0 * accelerators as f64,
        gb_per_second: 2.9 * accelerators as f64,
        bytes: 29_000_000_000,
        epochs: Vec::new(),
        batch_read: distribution(300_000.0),
        batch_wait: distribution(200.0),
        cpu: cpu(),
    }
}

/// A training with one, two and three accelerators, of which two reach the target.
pub(crate) fn train() -> BenchResult {
    let configuration = TrainConfiguration {
        workload: Workload::Unet3d,
        accelerator: Accelerator::H100,
        round: Round::V2,
        scale: 1.0,
        record_bytes: 146_600_628.0,
        samples_per_file: 1,
        files: 3500,
        dataset_bytes: 513_000_000_000,
        batch: 7,
        computation_s: 0.323,
        workers: 4,
        prefetch_factor: 1,
        epochs: 5,
        seed: 1,
        decodes: true,
        direct: false,
        au_target_percent: 90.0,
        is_cacheable: false,
    };
    let runs = [(1, 99.2), (2, 93.4), (3, 71.0)];
    let runs = runs.map(|(accelerators, au)| run(accelerators, Some(au)));
    BenchResult {
        train: Some(TrainResult {
            configuration,
            runs: runs.to_vec(),
            is_search: true,
            search_limit: None,
        }),
        ..empty("tcp")
    }
}

/// A checkpoint, written with 1.5 and read with 2.5 GB/s.
pub(crate) fn checkpoint() -> BenchResult {
    let phase = |gb_per_second: f64| CheckpointPhase {
        gb_per_second,
        checkpoints: vec![Transfer {
            seconds: 2.0,
            seconds_of_rank_0: 1.9,
            gb_per_second,
        }],
        file_time: distribution(500_000.0),
        cpu: cpu(),
    };
    BenchResult {
        checkpoint: Some(CheckpointResult {
            model: ModelName::Llama8b,
            dimensions: Model::of(ModelName::Llama8b),
            scale: 1.0,
            ranks: 2,
            ranks_of_model: 8,
            files: 4,
            bytes: 28_000_000_000,
            fsync: true,
            direct: false,
            write: Some(phase(1.5)),
            read: Some(phase(2.5)),
        }),
        ..empty("tcp")
    }
}
