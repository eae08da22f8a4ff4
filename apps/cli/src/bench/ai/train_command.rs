//! `smbeam bench ai train`.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::dataset::Dataset;
use super::datasize::TIMES_MEMORY;
use super::host::memory_bytes;
use super::loader::prefetch_factor;
use super::options::{ACCELERATORS_MAX, Count, TrainArguments};
use super::order::Order;
use super::publish::{empty_result, failed, publish, remark, usage};
use super::result::{Distribution, TrainConfiguration, TrainResult, TrainRun};
use super::search;
use super::store::Store;
use super::train::{self, Measured, Setting};
use super::utilization::{fewest_steps, mib_per_second};
use super::workload::{Accelerator, Training};
use crate::failure::Outcome;

/// Trains, and reports the utilization.
pub(super) fn run(arguments: &TrainArguments) -> Outcome {
    let chosen = usage(arguments.workload.training_on(arguments.accelerator))?;
    let store = Store::open(&arguments.location, &arguments.connect)?;
    let trained = train(arguments, chosen, &store);
    let trained = trained.map_err(|error| failed(&arguments.location, &error))?;
    let mut result = empty_result(&arguments.output, &arguments.location, &store);
    result.train = Some(trained);
    publish(&arguments.output, result)
}

fn train(
    arguments: &TrainArguments,
    (accelerator, training): (Accelerator, Training),
    store: &Store,
) -> Result<TrainResult> {
    let dataset = Dataset::find(store, arguments.workload, arguments.scale)?;
    dataset.check_lengths()?;
    let configuration = configuration(arguments, accelerator, training, &dataset);
    if configuration.is_cacheable {
        remark("the data set is below five times the memory: caches can hold a part of it");
    }
    let mut runs = Vec::new();
    let mut one = |accelerators: u64| {
        let setting = setting(&configuration, arguments.steps, accelerators);
        let run = run_one(store, &dataset, &configuration, &setting)?;
        let has_passed = run.has_passed;
        runs.push(run);
        Ok(has_passed)
    };
    let mut search_limit = None;
    match arguments.accelerators {
        Count::Exactly(accelerators) => drop(one(accelerators)?),
        Count::Max => {
            let most = largest_possible(&configuration, arguments.steps);
            ensure!(most > 0, "{}", too_few(&configuration, arguments.steps, 1));
            let found = search::largest(most, &mut one)?;
            search_limit = (found == most).then(|| match most {
                ACCELERATORS_MAX => format!("{ACCELERATORS_MAX} accelerators are the limit"),
                _ => format!(
                    "the data set has too few files for {} accelerators",
                    most + 1
                ),
            });
        }
    }
    Ok(TrainResult {
        configuration,
        runs,
        is_search: arguments.accelerators == Count::Max,
        search_limit,
    })
}

fn configuration(
    arguments: &TrainArguments,
    accelerator: Accelerator,
    training: Training,
    dataset: &Dataset,
) -> TrainConfiguration {
    let workers = arguments.workers.unwrap_or(training.workers);
    let epochs = match arguments.accelerators {
        Count::Max => 1,
        Count::Exactly(_) => training.epochs,
    };
    let computation = arguments.computation_time;
    TrainConfiguration {
        workload: arguments.workload,
        accelerator,
        round: arguments.round.unwrap_or(training.round),
        scale: dataset.scale,
        record_bytes: dataset.data.record_bytes,
        samples_per_file: dataset.data.samples_per_file,
        files: dataset.files(),
        dataset_bytes: dataset.bytes(),
        batch: training.batch,
        computation_s: computation.unwrap_or(training.computation_s * dataset.scale),
        workers,
        prefetch_factor: prefetch_factor(arguments.prefetch, workers),
        epochs: arguments.epochs.unwrap_or(epochs),
        seed: arguments.seed,
        decodes: !arguments.direct && !arguments.no_decode,
        direct: arguments.direct,
        au_target_percent: 100.0 * training.au_target,
        is_cacheable: dataset.bytes() < TIMES_MEMORY * memory_bytes(),
    }
}

fn order(configuration: &TrainConfiguration, steps: Option<u64>, accelerators: u64) -> Order {
    Order {
        files: configuration.files,
        samples_per_file: configuration.samples_per_file,
        batch: configuration.batch,
        accelerators,
        steps_max: steps.unwrap_or(u64::MAX),
        seed: configuration.seed,
    }
}

fn setting(configuration: &TrainConfiguration, steps: Option<u64>, accelerators: u64) -> Setting {
    Setting {
        order: order(configuration, steps, accelerators),
        workers: configuration.workers,
        prefetch_factor: configuration.prefetch_factor,
        computation: Duration::from_secs_f64(configuration.computation_s),
        epochs: configuration.epochs,
        decodes: configuration.decodes,
        direct: configuration.direct,
    }
}

/// Fewest steps per epoch with which a utilization means something.
fn needed_steps(configuration: &TrainConfiguration) -> u64 {
    fewest_steps(configuration.workers, configuration.prefetch_factor)
}

/// The largest number of accelerators for which the data set has enough steps.
fn largest_possible(configuration: &TrainConfiguration, steps: Option<u64>) -> u64 {
    let one = order(configuration, steps, 1);
    match one.steps() < needed_steps(configuration) {
        true => 0,
        false => {
            let samples = one.files * one.samples_per_file;
            (samples / one.batch / needed_steps(configuration)).min(ACCELERATORS_MAX)
        }
    }
}

/// Why the steps are too few for a utilization.
fn too_few(configuration: &TrainConfiguration, steps: Option<u64>, accelerators: u64) -> String {
    let needed = needed_steps(configuration);
    format!(
        "{} steps per epoch are too few for a utilization, because batches that were read ahead \
         in the excluded first step hide the speed of the storage: at least {needed} steps \
         ({} samples) are needed, or fewer workers",
        order(configuration, steps, accelerators).steps(),
        needed * configuration.batch * accelerators
    )
}

fn run_one(
    store: &Store,
    dataset: &Dataset,
    configuration: &TrainConfiguration,
    setting: &Setting,
) -> Result<TrainRun> {
    let steps = setting.order.steps();
    let accelerators = setting.order.accelerators;
    ensure!(
        steps > 0,
        "{} files are too few for one step of {accelerators} accelerators",
        configuration.files
    );
    let measured = train::train(store, dataset, setting)?;
    let is_refused = steps < needed_steps(configuration);
    let refusal = is_refused.then(|| too_few(configuration, Some(steps), accelerators));
    Ok(summarize(configuration, accelerators, &measured, refusal))
}

fn summarize(
    configuration: &TrainConfiguration,
    accelerators: u64,
    measured: &Measured,
    au_refused: Option<String>,
) -> TrainRun {
    let epochs = &measured.epochs;
    let count = epochs.len().max(1) as f64;
    let au = epochs.iter().map(|epoch| epoch.au_percent).sum::<f64>() / count;
    let au_percent = au_refused.is_none().then_some(au);
    let samples = epochs
        .iter()
        .map(|epoch| epoch.samples_per_second(configuration.round));
    let samples_per_second = samples.sum::<f64>() / count;
    TrainRun {
        accelerators,
        au_percent,
        au_refused,
        has_passed: au_percent.is_some_and(|au| au >= configuration.au_target_percent),
        samples_per_second,
        mib_per_second: mib_per_second(samples_per_second, configuration.record_bytes),
        gb_per_second: measured.read.bytes as f64 / 1e9 / measured.cpu.seconds.max(1e-9),
        bytes: measured.read.bytes,
        epochs: epochs.clone(),
        batch_read: Distribution::of(&measured.read),
        batch_wait: Distribution::of(&measured.load),
        cpu: measured.cpu,
    }
}

#[cfg(test)]
mod tests {
    use super::super::result::examples;
    use super::*;

    #[test]
    fn a_search_is_bounded_by_the_steps() {
        let train = examples::train().train.expect("a training");
        let mut configuration = train.configuration;
        assert_eq!(needed_steps(&configuration), 50);
        assert_eq!(largest_possible(&configuration, None), 10);
        assert_eq!(largest_possible(&configuration, Some(49)), 0);
        configuration.files = 349;
        assert_eq!(largest_possible(&configuration, None), 0);
        let reason = too_few(&configuration, None, 1);
        assert!(
            reason.contains("49 steps") && reason.contains("350 samples"),
            "{reason}"
        );
    }
}
