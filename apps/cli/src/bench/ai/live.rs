//! The line on the terminal that shows the progress of a benchmark.

use std::io::IsTerminal as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Scope;
use std::time::{Duration, Instant};

use crate::format::measured_rate;
use crate::mutex::lock;
use crate::output::note_text;

/// Interval between updates.
const INTERVAL: Duration = Duration::from_millis(500);
/// Interval of the check whether the benchmark has ended.
const TICK: Duration = Duration::from_millis(25);
/// Columns of the line.
const COLUMNS: usize = 78;

/// Counters of a benchmark that runs.
#[derive(Debug)]
pub(crate) struct Live {
    total: u64,
    unit: &'static str,
    done: AtomicU64,
    bytes: AtomicU64,
    title: Mutex<String>,
    is_over: AtomicBool,
}

impl Live {
    /// Counters of a benchmark with `total` units of work; 0 if the number is unknown.
    pub(crate) fn new(total: u64, unit: &'static str) -> Self {
        Self {
            total,
            unit,
            done: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            title: Mutex::default(),
            is_over: AtomicBool::new(false),
        }
    }

    /// Sets the text before the counters, such as the number of the epoch.
    pub(crate) fn title(&self, title: String) {
        *lock(&self.title) = title;
    }

    /// Adds finished work.
    pub(crate) fn add(&self, done: u64, bytes: u64) {
        self.done.fetch_add(done, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Finished work and its bytes.
    pub(crate) fn so_far(&self) -> (u64, u64) {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (read(&self.done), read(&self.bytes))
    }

    /// Shows the line until the returned value is dropped, if standard error is a terminal.
    pub(crate) fn show<'scope, 'a>(&'a self, scope: &'scope Scope<'scope, 'a>) -> Shown<'a> {
        self.is_over.store(false, Ordering::Relaxed);
        if std::io::stderr().is_terminal() {
            scope.spawn(|| self.update());
        }
        Shown(self)
    }

    fn update(&self) {
        let mut last = (Instant::now(), self.so_far().1);
        while !self.is_over.load(Ordering::Relaxed) {
            std::thread::sleep(TICK);
            let elapsed = last.0.elapsed();
            if elapsed >= INTERVAL {
                let bytes = self.so_far().1;
                let rate = (bytes - last.1) as f64 / elapsed.as_secs_f64();
                note_text(&format!("\r{:COLUMNS$}", self.line(rate)));
                last = (Instant::now(), bytes);
            }
        }
        note_text(&format!("\r{:COLUMNS$}\r", ""));
    }

    fn line(&self, bytes_per_second: f64) -> String {
        let (done, _) = self.so_far();
        let rate = measured_rate(bytes_per_second);
        let (title, unit) = (lock(&self.title), self.unit);
        match self.total {
            0 => format!("{title}{done} {unit}  {rate}"),
            total => format!("{title}{done}/{total} {unit}  {rate}"),
        }
    }
}

/// Shows the line of a benchmark while it lives.
pub(crate) struct Shown<'a>(&'a Live);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_title_progress_and_rate() {
        let live = Live::new(10, "steps");
        live.title("epoch 1/5  ".into());
        live.add(3, 1000);
        assert_eq!(live.line(2048.0), "epoch 1/5  3/10 steps  2.00 KiB/s");
        assert_eq!(live.so_far(), (3, 1000));
        assert_eq!(Live::new(0, "files").line(0.0), "0 files  0.00 B/s");
    }
}
