//! A pool that runs test programs in parallel and collects the verdict of each case.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::counts::Counts;

/// A program that runs longer hangs: it is killed and counts as failed.
const TIME_LIMIT: Duration = Duration::from_secs(15 * 60);
/// How often the pool checks whether a program has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// One process of the pool.
pub(crate) struct Job {
    /// A name for people and for the record of times.
    pub(crate) name: String,
    /// The command.
    pub(crate) command: Command,
    /// The cases that its output must mention; empty: those that it mentions.
    pub(crate) cases: Vec<String>,
    /// How long it took last time. The longest jobs run first.
    pub(crate) expected: Duration,
}

/// A job that has ended.
pub(crate) struct Ended {
    /// The name of the job.
    pub(crate) name: String,
    /// How long the process ran.
    pub(crate) time: Duration,
    /// What its closing lines count. A process that died or lost a case has a failure.
    pub(crate) counts: Counts,
    /// What it printed, both streams in order.
    pub(crate) output: String,
}

/// Runs the jobs, at most `width` at a time, the longest first. A line per job shows the progress;
/// the output of a failed job, or the reasons of the cases that it skipped, follow its line.
pub(crate) fn run(mut jobs: Vec<Job>, width: usize, directory: &Path) -> Result<Vec<Ended>> {
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot create {}", directory.display()))?;
    jobs.sort_by_key(|job| std::cmp::Reverse(job.expected));
    let total = jobs.len();
    let queue = Mutex::new(jobs.into_iter().enumerate().collect::<VecDeque<_>>());
    let ended = Mutex::new(Vec::with_capacity(total));
    thread::scope(|scope| {
        for _ in 0..width.max(1) {
            scope.spawn(|| {
                while let Some((number, job)) = next(&queue) {
                    let output = directory.join(format!("{number}.log"));
                    let job = run_one(job, &output);
                    let mut ended = lock(&ended);
                    print(&job, ended.len() + 1, total);
                    ended.push(job);
                }
            });
        }
    });
    Ok(ended.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// The next job. A function, because the guard of a lock in `while let` would live as long as the
/// body of the loop, and the jobs would run one after the other.
fn next(queue: &Mutex<VecDeque<(usize, Job)>>) -> Option<(usize, Job)> {
    lock(queue).pop_front()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn print(job: &Ended, number: usize, total: usize) {
    let verdict = verdict(job.counts);
    let seconds = job.time.as_secs_f64();
    println!(
        "{verdict:7} {seconds:6.1} s  {number}/{total}  {}",
        job.name
    );
    if job.counts.failed > 0 {
        println!("{}", job.output);
    } else {
        skipped_cases(&job.output).for_each(|line| println!("    {line}"));
    }
}

fn verdict(counts: Counts) -> &'static str {
    match counts {
        Counts { failed: 1.., .. } => "FAILED",
        Counts {
            passed: 0,
            skipped: 1..,
            ..
        } => "skipped",
        _ => "ok",
    }
}

/// The names and reasons of the cases that a job skipped.
fn skipped_cases(output: &str) -> impl Iterator<Item = &str> {
    let lines = output.lines().filter_map(|line| line.strip_prefix("test "));
    lines.filter(|line| line.contains(" ... skipped: "))
}

fn run_one(job: Job, output: &PathBuf) -> Ended {
    let Job {
        name,
        command,
        cases,
        expected: _,
    } = job;
    let start = Instant::now();
    let ending = execute(command, output);
    let time = start.elapsed();
    let bytes = fs::read(output).unwrap_or_default();
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    let _ = fs::remove_file(output);
    let mut counts = Counts::default();
    text.lines().for_each(|line| counts.add_line(line));
    let problem = match ending {
        Ok(Ending::Success) => missing_case(&cases, &text),
        Ok(Ending::Failure(_)) if counts.failed > 0 => None,
        Ok(Ending::Failure(status)) => Some(format!("the program ended with {status}")),
        Ok(Ending::TimedOut) => Some(format!("killed after {TIME_LIMIT:?}")),
        Err(error) => Some(format!("{error:#}")),
    };
    if let Some(problem) = problem {
        counts.failed += 1;
        text.push_str(&format!("{name}: {problem}\n"));
    }
    Ended {
        name,
        time,
        counts,
        output: text,
    }
}

/// A case that the program should have run and does not mention.
fn missing_case(cases: &[String], text: &str) -> Option<String> {
    let is_mentioned = |case: &&String| {
        let start = format!("test {case} ... ");
        text.lines().any(|line| line.starts_with(&start))
    };
    let missing = cases.iter().find(|case| !is_mentioned(case))?;
    Some(format!("no verdict on {missing}"))
}

enum Ending {
    Success,
    Failure(std::process::ExitStatus),
    TimedOut,
}

/// Runs a command in a process group of its own, so that its children end with it.
fn execute(mut command: Command, output: &PathBuf) -> Result<Ending> {
    let file = File::create(output).with_context(|| format!("cannot open {}", output.display()))?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(match status.success() {
                true => Ending::Success,
                false => Ending::Failure(status),
            });
        }
        if start.elapsed() > TIME_LIMIT {
            kill_group(&mut child)?;
            return Ok(Ending::TimedOut);
        }
        thread::sleep(POLL_INTERVAL);
    }
}

fn kill_group(child: &mut Child) -> Result<()> {
    let group = format!("-{}", child.id());
    Command::new("kill")
        .args(["-s", "KILL", "--", &group])
        .status()?;
    child.wait()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::process::{self, Command};
    use std::time::Duration;

    use super::{Counts, Ended, Job, run, skipped_cases, verdict};

    fn job(name: &str, script: &str, cases: &[&str]) -> Job {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Job {
            name: name.into(),
            command,
            cases: cases.iter().map(ToString::to_string).collect(),
            expected: Duration::ZERO,
        }
    }

    #[test]
    fn a_job_that_only_skips_cases_has_not_passed() {
        let verdict = |passed, failed, skipped| {
            verdict(Counts {
                passed,
                failed,
                skipped,
            })
        };
        assert_eq!(verdict(1, 0, 1), "ok");
        assert_eq!(verdict(0, 0, 2), "skipped");
        assert_eq!(verdict(0, 1, 1), "FAILED");
        let output = "running 2 tests\ntest a ... ok (0.1 s)\ntest b ... skipped: no lab\n";
        let skipped: Vec<_> = skipped_cases(output).collect();
        assert_eq!(skipped, ["b ... skipped: no lab"]);
    }

    /// Each job waits until the other has started: one after the other they would never end.
    #[test]
    fn jobs_run_side_by_side() {
        let directory = env::temp_dir().join(format!("smbeam-pool-pair-{}", process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let script = |own: &str, other: &str| {
            let (own, other) = (directory.join(own), directory.join(other));
            format!(
                "touch {}; while ! test -e {}; do sleep 0.01; done",
                own.display(),
                other.display()
            )
        };
        let jobs = vec![
            job("one", &script("one", "two"), &[]),
            job("two", &script("two", "one"), &[]),
        ];
        let ended = run(jobs, 2, &directory.join("output")).expect("the jobs run");
        std::fs::remove_dir_all(&directory).expect("the directory exists");
        assert_eq!(ended.len(), 2);
        assert!(ended.iter().all(|job| job.counts.failed == 0));
    }

    #[test]
    fn a_program_that_dies_or_skips_a_case_has_failed() {
        let good = "echo 'test a ... ok'; echo 'test result: ok. 1 passed; 0 failed; 0 ignored'";
        let jobs = vec![
            job("good", good, &["a"]),
            job("silent", good, &["a", "b"]),
            job("dead", "echo 'test a ... '; kill -9 $$", &["a"]),
            job(
                "failed",
                "echo 'test result: FAILED. 0 passed; 2 failed; 0 ignored'; exit 1",
                &[],
            ),
        ];
        let directory = env::temp_dir().join(format!("smbeam-pool-{}", process::id()));
        let mut ended = run(jobs, 2, &directory).expect("the jobs run");
        std::fs::remove_dir_all(&directory).expect("the directory exists");
        ended.sort_by(|one, other| one.name.cmp(&other.name));
        let failed = |ended: &Ended| (ended.name.clone(), ended.counts.failed);
        let failed: Vec<_> = ended.iter().map(failed).collect();
        let expected = [("dead", 1), ("failed", 2), ("good", 0), ("silent", 1)];
        assert_eq!(
            failed,
            expected.map(|(name, count)| (name.to_owned(), count))
        );
    }
}
