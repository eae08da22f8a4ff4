//! Memory of the process: its use, its limit, and the order in which requests are refused or wait
//! when the limit is near.

use std::fs;
use std::path::Path;
use std::time::Duration;

use proto::server::ledger::Shortage;

/// Time between two measurements.
pub(crate) const INTERVAL: Duration = Duration::from_secs(1);
/// Least limit in bytes: a server with one worker and its smallest pool.
const LIMIT_MIN: usize = 64 << 20;
/// Least bytes for the buffers of a worker: one buffer of each size.
const POOL_MIN: usize = 16 << 20;

/// Returns the limit for the memory of the process in bytes. A configured limit of 0 stands for
/// three quarters of the memory that the system gives the process.
pub(crate) fn limit(configured_mb: usize) -> usize {
    match configured_mb {
        0 => (available() / 4 * 3).max(LIMIT_MIN),
        configured_mb => configured_mb << 20,
    }
}

/// Returns the number of bytes for the buffers of each worker: the configured number, and at most
/// half of the limit for all workers.
pub(crate) fn pool_bytes(configured: usize, limit: usize, workers: usize) -> usize {
    configured.min((limit / 2 / workers.max(1)).max(POOL_MIN))
}

/// Returns the number of bytes of the process that the system cannot drop, such as heap, stacks and
/// buffers; `None` if it is unknown. Pages of files do not count.
pub(crate) fn used() -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    Some(kibibytes(&status, "RssAnon:")? + kibibytes(&status, "RssShmem:")?)
}

/// Returns the shortage of a process that uses this number of bytes.
pub(crate) fn shortage(used: usize, limit: usize) -> Shortage {
    match used {
        used if used >= limit => Shortage::NewObjects,
        used if used >= limit / 10 * 9 => Shortage::Responses,
        used if used >= limit / 10 * 8 => Shortage::NewConnections,
        _ => Shortage::None,
    }
}

/// Returns the memory of the machine in bytes, or the limit of the control group of the process if
/// it is less.
fn available() -> usize {
    let info = rustix::system::sysinfo();
    let memory = usize::try_from(info.totalram).ok();
    let memory = memory.and_then(|count| count.checked_mul(info.mem_unit as usize));
    let group = fs::read_to_string("/proc/self/cgroup").ok();
    let group = group.and_then(|text| group_limit(Path::new("/sys/fs/cgroup"), &text));
    let limit = memory.into_iter().chain(group).min();
    limit.unwrap_or(1 << 30)
}

/// Returns the least `memory.max` of a control group (version 2) and its parents.
fn group_limit(root: &Path, group: &str) -> Option<usize> {
    let path = group.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let parents = Path::new(path).ancestors();
    let limits = parents.filter_map(|parent| {
        let limit = fs::read_to_string(root.join(parent).join("memory.max")).ok()?;
        limit.trim().parse().ok()
    });
    limits.min()
}

/// Returns the value of a line such as `RssAnon: 16 kB`, in bytes.
fn kibibytes(text: &str, key: &str) -> Option<usize> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    let number: usize = line.split_whitespace().next()?.parse().ok()?;
    number.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_the_process_is_known_and_grows_with_its_use() {
        let before = used().expect("the kernel reports it");
        let block = vec![1_u8; 64 << 20];
        assert!(used().expect("as before") >= before + (60 << 20));
        assert!(block.iter().all(|byte| *byte == 1));
        assert!(available() > before);
    }

    #[test]
    fn new_connections_are_refused_first_and_new_objects_last() {
        let levels = [0, 79, 80, 90, 99, 100, 500].map(|used| shortage(used, 100));
        use Shortage::{NewConnections, NewObjects, None, Responses};
        let expected = [
            None,
            None,
            NewConnections,
            Responses,
            Responses,
            NewObjects,
            NewObjects,
        ];
        assert_eq!(levels, expected);
    }

    #[test]
    fn the_pools_of_all_workers_have_half_of_the_limit_at_most() {
        assert_eq!(pool_bytes(256 << 20, 8 << 30, 4), 256 << 20);
        assert_eq!(pool_bytes(256 << 20, 1 << 30, 4), 128 << 20);
        assert_eq!(pool_bytes(256 << 20, 1 << 20, 4), POOL_MIN);
    }

    #[test]
    fn the_least_limit_of_a_control_group_and_its_parents_counts() {
        let root = tempfile::tempdir().expect("a directory");
        let child = root.path().join("system.slice/smbeam.service");
        fs::create_dir_all(&child).expect("its directories");
        fs::write(child.join("memory.max"), "max\n").expect("a file");
        let text = "0::/system.slice/smbeam.service\n";
        assert_eq!(group_limit(root.path(), text), None);
        let parent = root.path().join("system.slice/memory.max");
        fs::write(parent, "1048576\n").expect("a file");
        assert_eq!(group_limit(root.path(), text), Some(1 << 20));
        fs::write(child.join("memory.max"), "4096\n").expect("a file");
        assert_eq!(group_limit(root.path(), text), Some(4096));
        assert_eq!(group_limit(root.path(), "12:memory:/other\n"), None);
    }
}
