//! Resources of the process, from /proc. proc_pid_stat(5), proc_pid_statm(5)

use std::fs;

/// Resources of the process; `None` for those that are not known.
#[derive(Debug, Default)]
pub(crate) struct Process {
    pub(crate) cpu_seconds: Option<f64>,
    pub(crate) resident_bytes: Option<u64>,
    pub(crate) open_descriptors: Option<u64>,
    pub(crate) descriptors_max: Option<u64>,
}

impl Process {
    pub(crate) fn measure() -> Self {
        let stat = fs::read_to_string("/proc/self/stat").ok();
        let statm = fs::read_to_string("/proc/self/statm").ok();
        let descriptors = fs::read_dir("/proc/self/fd").ok();
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        Self {
            cpu_seconds: stat.and_then(|stat| cpu_seconds(&stat)),
            resident_bytes: statm.and_then(|statm| resident_bytes(&statm)),
            // One of them is that of the directory.
            open_descriptors: descriptors.map(|all| (all.count() as u64).saturating_sub(1)),
            descriptors_max: limit.current,
        }
    }
}

/// User and system time: fields 14 and 15. The name of the program, field 2, is in parentheses and
/// may have spaces.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some((user + system) as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// The second field, in pages.
fn resident_bytes(statm: &str) -> Option<u64> {
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    pages.checked_mul(rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_and_parentheses_hides_no_field() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 0 0 0 0 0 150 50 0 0 20 0 1 0 5 0 0";
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        assert_eq!(cpu_seconds(stat), Some(200.0 / ticks));
        assert_eq!(cpu_seconds("7 (a"), None);
    }

    #[test]
    fn the_kernel_reports_all_resources() {
        let process = Process::measure();
        assert!(process.cpu_seconds.is_some());
        assert!(process.resident_bytes > Some(1 << 20));
        assert!(process.open_descriptors > Some(2));
        assert!(process.descriptors_max > process.open_descriptors);
    }
}
