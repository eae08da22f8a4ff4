//! CPU time and memory of a server with all its processes.
//!
//! smbd starts a process per connection, which ends with the connection. A cgroup of version 2
//! counts ended processes as well. Without cgroups, /proc counts running processes and ended
//! children of their parents.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;

use anyhow::{Context as _, Result};

/// Clock ticks per second in /proc. All supported Linux platforms use 100.
const TICKS_PER_SECOND: f64 = 100.0;
const PREFIX: &str = "smbeam-bench-";

/// Counts the resources of the processes of one server.
#[derive(Debug)]
pub(crate) struct Accounting {
    group: Option<Group>,
}

#[derive(Debug)]
struct Group {
    /// The cgroup of this program.
    home: PathBuf,
    path: PathBuf,
}

/// Memory of all processes of a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    /// Proportional set size (PSS) in KiB.
    pub(crate) pss_kib: u64,
    /// Page tables in KiB.
    pub(crate) page_table_kib: u64,
    /// Number of processes.
    pub(crate) processes: usize,
}

impl Accounting {
    /// Creates a cgroup if the machine allows it.
    pub(crate) fn new(name: &str) -> Accounting {
        Accounting {
            group: Group::new(name).ok(),
        }
    }

    /// The source of the CPU times, for the report.
    pub(crate) fn method(&self) -> &'static str {
        match self.group {
            Some(_) => "cgroup v2 cpu.stat",
            None => "/proc/PID/stat",
        }
    }

    /// Calls `start` so that the processes that it starts belong to the cgroup.
    pub(crate) fn around<T>(&self, start: impl FnOnce() -> Result<T>) -> Result<T> {
        let Some(group) = &self.group else {
            return start();
        };
        // A child belongs to the cgroup of its parent, so this program enters the group for a
        // moment.
        join(&group.path)?;
        let result = start();
        join(&group.home)?;
        result
    }

    /// CPU seconds so far, user and system. `server` is the process id of the server.
    pub(crate) fn cpu_seconds(&self, server: u32) -> Result<f64> {
        match &self.group {
            Some(group) => group.cpu_seconds(),
            None => Ok(tree(server).into_iter().filter_map(cpu_of).sum()),
        }
    }

    /// Current memory. `server` is the process id of the server.
    pub(crate) fn memory(&self, server: u32) -> Memory {
        let processes = tree(server);
        let sum = |file: &str, key: &str| {
            let values = processes
                .iter()
                .filter_map(|pid| value_of(&format!("/proc/{pid}/{file}"), key));
            values.sum()
        };
        Memory {
            pss_kib: sum("smaps_rollup", "Pss:"),
            page_table_kib: sum("status", "VmPTE:"),
            processes: processes.len(),
        }
    }
}

impl Group {
    fn new(name: &str) -> Result<Group> {
        let mounts = fs::read_to_string("/proc/self/mounts")?;
        let hierarchy = mounts
            .lines()
            .map(|line| line.split(' ').collect::<Vec<_>>())
            .find(|fields| fields.get(2) == Some(&"cgroup2"))
            .context("no cgroup2 is mounted")?;
        let own = fs::read_to_string("/proc/self/cgroup")?;
        let own = own.lines().find_map(|line| line.strip_prefix("0::/"));
        let home = Path::new(hierarchy[1]).join(own.context("not in a cgroup2")?);
        remove_left_over(&home);
        let path = home.join(format!("{PREFIX}{}-{name}", process::id()));
        fs::create_dir(&path)?;
        let group = Group { home, path };
        group.cpu_seconds()?;
        Ok(group)
    }

    fn cpu_seconds(&self) -> Result<f64> {
        let text = fs::read_to_string(self.path.join("cpu.stat"))?;
        let micros = text
            .lines()
            .find_map(|line| line.strip_prefix("usage_usec "))
            .context("cpu.stat has no usage_usec")?;
        Ok(micros.parse::<u64>()? as f64 / 1e6)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.path);
    }
}

fn join(group: &Path) -> Result<()> {
    fs::write(group.join("cgroup.procs"), "0")
        .with_context(|| format!("cannot enter the control group {}", group.display()))
}

/// Removes the cgroups of killed runs. The kernel keeps groups with processes.
fn remove_left_over(home: &Path) {
    for entry in fs::read_dir(home).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let rest = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let owner = rest.and_then(|rest| rest.split('-').next());
        if owner.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// `root` and all its descendants.
fn tree(root: u32) -> Vec<u32> {
    let mut processes = vec![root];
    let mut index = 0;
    while let Some(pid) = processes.get(index) {
        for task in fs::read_dir(format!("/proc/{pid}/task"))
            .into_iter()
            .flatten()
            .flatten()
        {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            processes.extend(
                children
                    .split_whitespace()
                    .filter_map(|pid| pid.parse::<u32>().ok()),
            );
        }
        index += 1;
    }
    processes
}

/// CPU seconds of a process and of its reaped children.
pub(crate) fn cpu_of(pid: u32) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    cpu_in_stat(&text)
}

/// Fields 14 to 17 are utime, stime, cutime and cstime. The process name before them can contain
/// any character.
fn cpu_in_stat(text: &str) -> Option<f64> {
    let (_, fields) = text.rsplit_once(')')?;
    let times = fields.split_whitespace().skip(11).take(4);
    let ticks = times.map(|field| field.parse::<u64>().ok());
    Some(ticks.sum::<Option<u64>>()? as f64 / TICKS_PER_SECOND)
}

/// The number after `key` in a file of lines such as "Pss:    12 kB".
fn value_of(path: &str, key: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::cpu_in_stat;

    #[test]
    fn a_name_with_spaces_and_brackets_does_not_move_the_fields() {
        let text = "7 (a) b) S 1 7 7 0 -1 4194560 1 2 3 4 100 50 20 30 20 0 1 0 5";
        assert_eq!(cpu_in_stat(text), Some(2.0));
    }
}
