//! Programs on a mount of a stock Linux kernel outlive a cut of the network, and lose nothing.
//!
//! The cut lasts until the kernel has given the connection up, so that it has to log in and to open
//! the files again. The server still believes in the old connection then.
//!
//! The mounts are `hard`: with `soft`, the default, the kernel fails the requests of programs after
//! ten seconds, by design. They have `closetimeo=0`: Linux 7.2 repeats a delayed close of a `hard`
//! mount without a pause while the connection is lost, which stops a kernel with one processor.
//!
//! With `resilienthandles`, an open of Linux 7.2 is a CREATE and a request for resilience. If the
//! connection is lost between the two, the kernel repeats the second one alone on the new
//! connection, ignores the error, and keeps an open that the new connection does not have: all
//! requests with it fail with STATUS_FILE_CLOSED. So the random operations of that case open no
//! file until the cut has ended.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use smbeam_tests::files::{assert_same_file, write_random};
use smbeam_tests::mounts::{FAULTS, MountStage, script};
use smbeam_tests::scale;
use smbeam_tests::subject::Subject;
use smbeam_tests::tests;

tests!(
    random_io_continues,
    random_io_continues_with_resilient_handles,
    dd_continues,
    dd_continues_with_resilient_handles,
);

const OPTIONS: &str = "vers=3.1.1,echo_interval=1,hard,closetimeo=0";
/// The length of the file that dd copies, in bytes.
const LENGTH: u64 = 8 << 20;

fn random_io_continues() -> Result<()> {
    random_io(OPTIONS, "touch $started", "")
}

fn random_io_continues_with_resilient_handles() -> Result<()> {
    let options = format!("{OPTIONS},resilienthandles");
    random_io(&options, "", "one-open started=$started")
}

fn dd_continues() -> Result<()> {
    dd(OPTIONS)
}

fn dd_continues_with_resilient_handles() -> Result<()> {
    dd(&format!("{OPTIONS},resilienthandles"))
}

/// Reads, writes, truncates, synchronizes and compares one file before, during and after the cut.
/// `first` is a command before the program, `arguments` are further ones of the program.
fn random_io(options: &str, first: &str, arguments: &str) -> Result<()> {
    let stage = MountStage::new(Subject::chosen(), "cut")?;
    let program = stage.program(env!("CARGO_BIN_EXE_random_io"))?;
    let command = format!(
        "{first}\n{} /mnt/a/file 1 50 {arguments} until=$end",
        program.display()
    );
    outlives_a_cut(&stage, options, &command)
}

/// Copies a file to the share again and again.
fn dd(options: &str) -> Result<()> {
    let stage = MountStage::new(Subject::chosen(), "cut")?;
    let source = stage.scratch.path().join("source");
    write_random(&source, LENGTH, 1)?;
    let command = format!(
        r#"cp {source} /dev/shm/source
touch $started
for round in $(seq 1000); do
    last=; test ! -e $end || last=yes
    dd if=/dev/shm/source of=/mnt/a/copy$round bs=256k conv=fsync status=none
    cmp /dev/shm/source /mnt/a/copy$round
    test -z "$last" || break
done"#,
        source = source.display(),
    );
    outlives_a_cut(&stage, options, &command)?;
    for copy in fs::read_dir(&stage.share)? {
        assert_same_file(&source, &copy?.path())?;
    }
    Ok(())
}

/// Runs `command` on a mount at /mnt/a, cuts the network under it, and lets it finish. The command
/// creates the file `$started` before the cut, and runs until the file `$end` exists.
fn outlives_a_cut(stage: &MountStage, options: &str, command: &str) -> Result<()> {
    let file = |name: &str| stage.scratch.path().join(name);
    let [started, lost, end] = ["started", "lost", "end"].map(file);
    let commands = format!(
        r#"started={started}
end={end}
(
    until grep -q 'TCP status: [^1]' /proc/fs/cifs/DebugData; do sleep 0.1; done
    touch {lost}
) &
{command}
echo "reconnects $(awk '/share reconnects/ {{ print $1 }}' /proc/fs/cifs/Stats)"
"#,
        started = started.display(),
        end = end.display(),
        lost = lost.display(),
    );
    let mut running = stage.start(&script(&[("a", options)], &commands, FAULTS))?;
    running.wait_for_file(&started)?;
    let cut = stage.namespace.cut()?;
    let start = Instant::now();
    running.wait_for_file(&lost)?;
    let duration = scale::choose(Duration::ZERO, Duration::from_secs(20));
    thread::sleep(duration.saturating_sub(start.elapsed()));
    cut.end()?;
    fs::write(&end, "")?;
    let report = stage.finish(running)?;
    let reconnects: Vec<_> = report.lines("reconnects").collect();
    let has_reconnected = matches!(reconnects.as_slice(), [count] if *count != "0");
    ensure!(has_reconnected, "{}", report.console);
    Ok(())
}
