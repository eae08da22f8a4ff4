//! Programs that use many features of a file system, as scripts of a shell of the lab.

use std::fs;
use std::path::Path;

use anyhow::Result;

/// A script. It gets the directory for its files, a local directory, and the amount of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    name: &'static str,
    text: &'static str,
}

/// Names a script of the directory `scripts`.
macro_rules! workload {
    ($constant:ident, $name:literal, $doc:literal) => {
        #[doc = $doc]
        pub const $constant: Workload = Workload {
            name: $name,
            text: include_str!(concat!("scripts/", $name)),
        };
    };
}

workload!(DBENCH, "dbench.sh", "dbench for a number of seconds.");
workload!(
    FIO,
    "fio.sh",
    "fio with a number of MiB per job: random writes that it verifies, with O_DIRECT too."
);
workload!(
    GIT,
    "git.sh",
    "git clone, status, commit, gc and fsck of a repository with a number of files."
);
workload!(
    RSYNC,
    "rsync.sh",
    "A tree goes to the directory and back by rsync."
);
workload!(
    SQLITE,
    "sqlite.py",
    "SQLite with a number of rows: transactions, indices, rollback, VACUUM, integrity_check."
);
workload!(
    STRESS_NG,
    "stress-ng.sh",
    "The stressors of stress-ng for file systems, each for a number of seconds."
);

impl Workload {
    /// Copies the script to `scratch`, and returns the command of a shell that runs it in
    /// `directory`.
    pub fn prepare(&self, scratch: &Path, directory: &str, amount: u32) -> Result<String> {
        let path = scratch.join(self.name);
        fs::write(&path, self.text)?;
        let interpreter = match self.name.ends_with(".py") {
            true => "python3",
            false => "sh",
        };
        let (path, local) = (path.display(), scratch.display());
        Ok(format!(
            "{interpreter} {path} {directory} {local} {amount} 2>&1\n"
        ))
    }
}
