//! CPU time of this machine and of servers.

use std::fs;

use anyhow::{Context as _, Result};

/// Clock ticks per second in /proc. All supported platforms of Linux use 100.
const TICKS_PER_SECOND: f64 = 100.0;

/// Busy time of all processors since the start of the machine, in seconds.
pub(crate) fn busy_seconds() -> Result<f64> {
    let text = fs::read_to_string("/proc/stat").context("cannot read /proc/stat")?;
    busy(&text).context("/proc/stat has no line of all processors")
}

/// CPU time of a process with its descendants, in seconds.
pub(crate) fn tree_seconds(root: u32) -> f64 {
    let mut processes = vec![root];
    let mut index = 0;
    while let Some(pid) = processes.get(index) {
        processes.extend(children(*pid));
        index += 1;
    }
    processes.into_iter().filter_map(process_seconds).sum()
}

/// The children of all threads of a process.
fn children(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let lists = tasks
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| {
            let pids = list.split_whitespace().filter_map(|pid| pid.parse().ok());
            pids.collect::<Vec<u32>>()
        })
        .collect()
}

/// CPU time of a process and of its ended children.
fn process_seconds(pid: u32) -> Option<f64> {
    in_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, and times that
/// this machine did not have. proc_stat(5)
fn busy(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with("cpu "))?;
    let fields = line.split_whitespace().skip(1).take(7);
    let ticks: Vec<u64> = fields.map_while(|field| field.parse().ok()).collect();
    let [user, nice, system, _idle, _iowait, irq, softirq] = ticks[..] else {
        return None;
    };
    Some((user + nice + system + irq + softirq) as f64 / TICKS_PER_SECOND)
}

/// Fields 14 to 17 are utime, stime, cutime and cstime. The name before them can contain any
/// character. proc_pid_stat(5)
fn in_stat(text: &str) -> Option<f64> {
    let (_, fields) = text.rsplit_once(')')?;
    let times = fields.split_whitespace().skip(11).take(4);
    let ticks = times.map(|field| field.parse::<u64>().ok());
    Some(ticks.sum::<Option<u64>>()? as f64 / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::{busy, in_stat, tree_seconds};

    #[test]
    fn idle_time_and_waits_for_disks_are_not_busy() {
        let text = "cpu  100 10 200 3000 400 20 30 50 0 0\ncpu0 1 1 1 1 1 1 1\n";
        assert_eq!(busy(text), Some(3.6));
        assert_eq!(busy("intr 5\n"), None);
    }

    #[test]
    fn a_name_with_brackets_does_not_move_the_fields() {
        let text = "7 (a) b) S 1 7 7 0 -1 4194560 1 2 3 4 100 50 20 30 20 0 1 0 5";
        assert_eq!(in_stat(text), Some(2.0));
    }

    #[test]
    fn a_tree_has_at_least_its_root() {
        assert!(tree_seconds(std::process::id()) >= 0.0);
    }
}
