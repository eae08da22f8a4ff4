//! Waiting with a limit.

use std::io;
use std::process::{Child, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

const PAUSE: Duration = Duration::from_millis(10);

/// A log line may appear well after its event.
const LOG_LIMIT: Duration = Duration::from_secs(30);

/// Waits until `child` ends by itself; kills it after `limit`. None: it was killed.
pub fn for_end(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(PAUSE);
    }
}

/// Waits until `condition` holds; fails naming `what` after `limit`.
pub fn until(what: &str, limit: Duration, mut condition: impl FnMut() -> bool) -> Result<()> {
    let start = Instant::now();
    while !condition() {
        if start.elapsed() > limit {
            bail!("waited {limit:?} in vain for {what}");
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// Waits until a line of `log` has all these words; returns it. Lines without their end are
/// ignored.
pub fn for_line(log: impl Fn() -> String, words: &[&str]) -> Result<String> {
    let mut found = None;
    let waited = until("a line of the log", LOG_LIMIT, || {
        let text = log();
        let whole = text
            .split_inclusive('\n')
            .filter_map(|line| line.strip_suffix('\n'));
        let mut lines = whole.filter(|line| words.iter().all(|word| line.contains(word)));
        found = lines.next().map(str::to_owned);
        found.is_some()
    });
    waited.with_context(|| format!("no line with {words:?} in\n{}", log()))?;
    found.context("no line")
}
