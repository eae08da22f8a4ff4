//! A row in the guest: a script mounts a server of the host, and runs `smbeam bench ai`.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use smbeam_tests::guest::Guest;
use smbeam_tests::lab::Lab;
use smbeam_tests::namespace::Namespace;
use smbeam_tests::rdma::quoted;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::subject::ALICE;

use super::running::{Cpu, Running};

/// Memory of a guest that reads from a server: the batches that are read ahead, and the programs.
const MEMORY_MIB: u32 = 1536;
/// Time limit for a guest.
const TIME_LIMIT: Duration = Duration::from_secs(300);
/// Files by which a script reports its progress, and the result.
const BEGIN: &str = "begin";
const END: &str = "end";
const RESULT: &str = "result.json";

/// The steps of a script.
pub(crate) struct Steps<'a> {
    /// Commands before the measurement.
    pub(crate) prepare: String,
    /// The program, which the guest sees, and its arguments without the file of the result.
    pub(crate) program: &'a Path,
    pub(crate) arguments: Vec<String>,
    /// Memory for files of the guest, in bytes.
    pub(crate) file_bytes: u64,
}

/// Boots a guest, runs the steps, and writes the result to `output`. Returns the CPU time of the
/// measurement: the guest is a process of this machine.
pub(crate) fn run(
    (lab, namespace): (&Lab, &Namespace),
    steps: &Steps<'_>,
    server: &Running,
    output: &Path,
) -> Result<Cpu> {
    let scratch = Scratch::new("bench-ai-guest")?;
    let shared = scratch.path();
    let memory = u64::from(MEMORY_MIB) + (steps.file_bytes >> 20);
    let guest = Guest::new(lab, namespace)
        .with_memory_mib(u32::try_from(memory)?)
        .within(TIME_LIMIT);
    let mut running = guest.start(&script(shared, steps))?;
    running.wait_for_file(&shared.join(BEGIN))?;
    let before = Cpu::now(server)?;
    running.wait_for_file(&shared.join(END))?;
    let used = Cpu::now(server)?.since(&before);
    running.wait()?.succeeded()?;
    fs::copy(shared.join(RESULT), output)
        .with_context(|| format!("cannot write {}", output.display()))?;
    Ok(used)
}

fn script(shared: &Path, steps: &Steps<'_>) -> String {
    let shared = shared.display();
    let arguments: Vec<String> = steps.arguments.iter().map(|word| quoted(word)).collect();
    format!(
        "set -e\n\
         {}\n\
         export SMBEAM_PASSWORD={}\n\
         touch {shared}/{BEGIN}\n\
         {} {} --json {shared}/{RESULT} || {{ code=$?; dmesg | tail -20; exit $code; }}\n\
         touch {shared}/{END}\n",
        steps.prepare,
        quoted(ALICE.password),
        steps.program.display(),
        arguments.join(" "),
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Steps, script};

    #[test]
    fn the_host_sees_begin_and_end_of_the_measurement() {
        let steps = Steps {
            prepare: "mount something".into(),
            program: Path::new("/tmp/smbeam"),
            arguments: vec!["--label".into(), "two words".into()],
            file_bytes: 0,
        };
        let text = script(Path::new("/tmp/x"), &steps);
        let at = |part: &str| text.find(part).expect("in the script");
        assert!(at("mount something") < at("touch /tmp/x/begin"));
        assert!(at("/tmp/smbeam '--label' 'two words' --json") < at("touch /tmp/x/end"));
    }
}
