//! The host of a benchmark, and the file system of a local directory.

use std::fs;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The host on which the benchmark runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Host {
    pub(crate) name: String,
    /// Release of the kernel.
    pub(crate) kernel: String,
    /// Machine type, such as x86_64.
    pub(crate) machine: String,
    /// Model of the processors.
    pub(crate) cpu: String,
    pub(crate) cores: u32,
    pub(crate) memory_bytes: u64,
}

impl Host {
    /// The host of this process.
    pub(crate) fn of_this_process() -> Self {
        let system = rustix::system::uname();
        let text = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            name: text(system.nodename()),
            kernel: text(system.release()),
            machine: text(system.machine()),
            cpu: field("/proc/cpuinfo", "model name").unwrap_or_default(),
            cores: cores as u32,
            memory_bytes: memory_bytes(),
        }
    }
}

/// Bytes of memory of this host.
pub(crate) fn memory_bytes() -> u64 {
    let total = field("/proc/meminfo", "MemTotal").unwrap_or_default();
    let kib = total
        .split_whitespace()
        .next()
        .and_then(|kib| kib.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

/// The value of the first line `name : value` of a file in /proc.
fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let mut fields = text.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = fields.find(|(key, _)| key.trim() == name)?;
    Some(value.trim().to_owned())
}

/// A mounted file system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Mount {
    /// The directory at which it is mounted.
    pub(crate) directory: String,
    /// The type, such as ext4, nfs4, cifs or fuse.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// The device or the export of the server.
    pub(crate) source: String,
    pub(crate) options: String,
}

impl Mount {
    /// The file system of a directory, or of its nearest parent that exists.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let path = path.ancestors().find_map(|path| {
            let path = match path.as_os_str().is_empty() {
                true => Path::new("."),
                false => path,
            };
            fs::canonicalize(path).ok()
        })?;
        Self::find(&path, &fs::read_to_string("/proc/self/mounts").ok()?)
    }

    /// The last mount of the longest directory. The fields are those of fstab(5).
    fn find(path: &Path, mounts: &str) -> Option<Self> {
        let mounts = mounts.lines().filter_map(|line| {
            let fields: Vec<&str> = line.split(' ').collect();
            let [source, directory, kind, options, ..] = fields[..] else {
                return None;
            };
            let unescaped = |text: &str| text.replace("\\040", " ").replace("\\134", "\\");
            Some(Self {
                directory: unescaped(directory),
                kind: kind.to_owned(),
                source: unescaped(source),
                options: options.to_owned(),
            })
        });
        let holding = mounts.filter(|mount| path.starts_with(&mount.directory));
        holding.max_by_key(|mount| mount.directory.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_mount_holds_a_path() {
        let mounts = "/dev/vda / ext4 rw 0 0\nnas:/x /mnt/a\\040b nfs4 rw,vers=4.2 0 0\n";
        let find = |path: &str| Mount::find(Path::new(path), mounts).expect("a mount");
        assert_eq!(find("/mnt/a b/c").kind, "nfs4");
        assert_eq!(find("/mnt/a b/c").source, "nas:/x");
        assert_eq!(find("/mnt/ab").kind, "ext4");
        assert_eq!(Mount::find(Path::new("/x"), ""), None);
    }

    #[test]
    fn this_host_has_properties() {
        let host = Host::of_this_process();
        assert!(
            host.cores > 0 && host.memory_bytes > 0 && !host.kernel.is_empty(),
            "{host:?}"
        );
        let missing = std::env::temp_dir().join("does/not/exist");
        assert!(Mount::of(&missing).is_some());
    }
}
