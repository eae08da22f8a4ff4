//! `smbeam bench ai checkpoint`.

use std::time::Duration;

use anyhow::Result;

use super::checkpoint::{self, Interrupted, Phase, Setting};
use super::model::Model;
use super::options::CheckpointArguments;
use super::publish::{empty_result, failed, publish, usage};
use super::result::{CheckpointPhase, CheckpointResult, Distribution};
use super::store::Store;
use crate::failure::{Failure, Outcome};
use crate::interrupt::Interrupt;

/// Writes and reads checkpoints, and reports the throughput.
pub(super) fn run(arguments: &CheckpointArguments) -> Outcome {
    let mut setting = usage(setting(arguments))?;
    setting.interrupt =
        Interrupt::catch().map_err(|error| Failure::local("signal handlers", &error))?;
    let store = Store::open(&arguments.location, &arguments.connect)?;
    let measured = measure(arguments, &setting, &store);
    let measured = measured.map_err(|error| match error.is::<Interrupted>() {
        true => Failure::interrupted(&arguments.location),
        false => failed(&arguments.location, &error),
    })?;
    let mut result = empty_result(&arguments.output, &arguments.location, &store);
    result.checkpoint = Some(measured);
    publish(&arguments.output, result)
}

fn setting(arguments: &CheckpointArguments) -> Result<Setting, String> {
    let full = Model::of(arguments.model).scaled(arguments.scale);
    let model = Model {
        layers: arguments.layers.unwrap_or(full.layers),
        hidden: arguments.hidden.unwrap_or(full.hidden),
        ffn: arguments.ffn.unwrap_or(full.ffn),
        ..full
    };
    let all = model.ranks();
    let ranks = match arguments.ranks {
        None => all,
        Some(ranks) if ranks.of.is_some_and(|of| of != all) => {
            return Err(format!("{} has {all} ranks", arguments.model.name()));
        }
        Some(ranks) if ranks.taking_part > all => {
            return Err(format!("{} has only {all} ranks", arguments.model.name()));
        }
        Some(ranks) => ranks.taking_part,
    };
    if model.layers < model.pipeline {
        return Err(format!(
            "the model needs at least {} layers",
            model.pipeline
        ));
    }
    if arguments.writes == 0 && arguments.reads == 0 {
        return Err("nothing to do: --writes 0 and --reads 0".to_owned());
    }
    Ok(Setting {
        model,
        ranks,
        writes: arguments.writes,
        reads: arguments.reads,
        sync: !arguments.no_fsync,
        direct: arguments.direct,
        pause: Duration::from_secs_f64(arguments.pause),
        drops_caches: arguments.drop_caches,
        directory: format!("checkpoints/{}", arguments.model.name()),
        interrupt: Interrupt::default(),
    })
}

fn measure(
    arguments: &CheckpointArguments,
    setting: &Setting,
    store: &Store,
) -> Result<CheckpointResult> {
    let phases = phases(setting, store);
    if setting.writes > 0 && !arguments.keep {
        let removed = checkpoint::remove(store, setting);
        if phases.is_ok() {
            removed?;
        }
    }
    let (write, read) = phases?;
    let files: Vec<_> = checkpoint::files(setting).into_iter().flatten().collect();
    Ok(CheckpointResult {
        model: arguments.model,
        dimensions: setting.model,
        scale: arguments.scale,
        ranks: setting.ranks,
        ranks_of_model: setting.model.ranks(),
        files: files.len() as u64,
        bytes: files.iter().map(|file| file.bytes).sum(),
        fsync: setting.sync,
        direct: setting.direct,
        write: write.map(summarize),
        read: read.map(summarize),
    })
}

/// Writes and reads the checkpoints.
fn phases(setting: &Setting, store: &Store) -> Result<(Option<Phase>, Option<Phase>)> {
    let write = match setting.writes {
        0 => None,
        _ => Some(checkpoint::write(store, setting)?),
    };
    let read = match setting.reads {
        0 => None,
        _ => Some(checkpoint::read(store, setting)?),
    };
    Ok((write, read))
}

fn summarize(phase: Phase) -> CheckpointPhase {
    let rates = phase
        .transfers
        .iter()
        .map(|transfer| transfer.gb_per_second);
    CheckpointPhase {
        gb_per_second: rates.sum::<f64>() / phase.transfers.len().max(1) as f64,
        checkpoints: phase.transfers,
        file_time: Distribution::of(&phase.files),
        cpu: phase.cpu,
    }
}
