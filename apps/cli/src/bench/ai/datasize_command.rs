//! `smbeam bench ai datasize`.

use super::datasize::DataSize;
use super::host::memory_bytes;
use super::options::DatasizeArguments;
use super::publish::usage;
use crate::failure::Outcome;
use crate::format::{count, size};
use crate::output::line;

/// Prints the number of files that the rules require.
pub(super) fn run(arguments: &DatasizeArguments) -> Outcome {
    let workload = arguments.workload;
    let (_, training) = usage(workload.training_on(arguments.accelerator))?;
    let data = workload.data().scaled(arguments.scale);
    let memory = arguments.client_memory.unwrap_or_else(memory_bytes);
    let memory = memory.saturating_mul(u64::from(arguments.clients));
    let needed = DataSize::of(data, training, arguments.accelerators, memory);
    if arguments.json {
        line(&serde_json::json!(needed));
        return Ok(());
    }
    let rule = match needed.files_by_memory > needed.files_by_steps {
        true => format!("5 times {} of memory", size(memory)),
        false => format!(
            "500 steps with {}",
            count(arguments.accelerators, "accelerator")
        ),
    };
    line(&format_args!("files           {}", needed.files));
    line(&format_args!("subdirectories  {}", needed.subdirectories));
    line(&format_args!("size            {}", size(needed.bytes)));
    line(&format_args!("reason          {rule}"));
    line(&format_args!(
        "command         smbeam bench ai datagen LOCATION --workload {} --files {}{}",
        workload.name(),
        needed.files,
        match arguments.scale == 1.0 {
            true => String::new(),
            false => format!(" --scale {}", arguments.scale),
        }
    ));
    Ok(())
}
