//! The processor quota of the control group of a process, versions 1 and 2.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::files::{number, text};

/// Directories in which version 2 is mounted, alone or beside version 1.
const ROOTS_V2: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
/// Directories in which the controller `cpu` of version 1 is mounted.
const ROOTS_V1: [&str; 2] = ["/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpu"];

/// Periods of the quota since the group was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Periods {
    pub(super) all: u64,
    /// Periods in which the kernel stopped the group because its quota was used up.
    pub(super) throttled: u64,
}

/// Returns the processors that a process may use; `None` without a limit.
pub(super) fn cpu_quota(pid: u32) -> Option<f64> {
    group(pid).map(|(quota, _)| quota)
}

/// The periods of the group with the least quota.
pub(super) fn periods(pid: u32) -> Option<Periods> {
    let (_, directory) = group(pid)?;
    parse_periods(&text(directory.join("cpu.stat"))?)
}

/// The least quota of the groups of a process and their parents, and the directory of that group.
fn group(pid: u32) -> Option<(f64, PathBuf)> {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let directories = groups.lines().flat_map(directories);
    let quotas = directories.filter_map(|directory| Some((quota(&directory)?, directory)));
    quotas.min_by(|one, other| one.0.total_cmp(&other.0))
}

/// The directories of a line such as `4:cpu,cpuacct:/a/b` or `0::/a/b`, with those of all parents.
fn directories(line: &str) -> Vec<PathBuf> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
        return Vec::new();
    };
    let roots = match controllers {
        "" => ROOTS_V2,
        _ if controllers.split(',').any(|it| it == "cpu") => ROOTS_V1,
        _ => return Vec::new(),
    };
    let above = Path::new(path.trim_start_matches('/')).ancestors();
    let in_root = |above: &Path| roots.map(|root| Path::new(root).join(above));
    above.flat_map(in_root).collect()
}

/// The quota of one group in processors.
fn quota(directory: &Path) -> Option<f64> {
    if let Some(text) = text(directory.join("cpu.max")) {
        return parse_max(&text);
    }
    let quota: i64 = number(directory.join("cpu.cfs_quota_us"))?;
    let period: i64 = number(directory.join("cpu.cfs_period_us"))?;
    (quota > 0 && period > 0).then(|| quota as f64 / period as f64)
}

/// Parses `cpu.max`: `QUOTA PERIOD`, or `max PERIOD` without a limit.
fn parse_max(text: &str) -> Option<f64> {
    let (quota, period) = text.split_once(' ')?;
    Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
}

fn parse_periods(text: &str) -> Option<Periods> {
    let value = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim().parse().ok()
    };
    Some(Periods {
        all: value("nr_periods ")?,
        throttled: value("nr_throttled ")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_both_versions_are_found() {
        let paths = directories("0::/system.slice/smbeam.service");
        assert!(paths.contains(&"/sys/fs/cgroup/system.slice".into()));
        let paths = directories("4:cpu,cpuacct:/lab");
        assert_eq!(paths[0], Path::new("/sys/fs/cgroup/cpu,cpuacct/lab"));
        assert!(directories("5:memory:/lab").is_empty());
        assert!(directories("").is_empty());
    }

    #[test]
    fn files_of_groups_are_read() {
        assert_eq!(parse_max("50000 100000"), Some(0.5));
        assert_eq!(parse_max("max 100000"), None);
        let text = "nr_periods 10\nnr_throttled 4\nthrottled_time 3\n";
        let expected = Periods {
            all: 10,
            throttled: 4,
        };
        assert_eq!(parse_periods(text), Some(expected));
    }
}
