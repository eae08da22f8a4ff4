//! fsx: random reads, writes and maps of one file. It verifies every byte.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::lab::FSX;

/// Every operation that a Linux file system has. posix_fallocate is left out: servers need not
/// support it.
const CONFIGURATION: &str = "\
[weights]
close_open = 1
read = 10
write = 10
mapread = 10
mapwrite = 10
invalidate = 1
truncate = 10
fsync = 1
fdatasync = 1
sendfile = 5
posix_fadvise = 1
copy_file_range = 5
punch_hole = 5
";
/// The program and its configuration, in a directory that the lab shares.
const PROGRAM: &str = "fsx";
const SETTINGS: &str = "fsx.toml";

/// Copies the program to `scratch`, and returns the command of a shell that runs `operations` on a
/// new file in `directory`. The command fails with the last operations if a byte differs.
pub fn prepare(scratch: &Path, directory: &str, operations: u32, seed: u64) -> Result<String> {
    let program = scratch.join(PROGRAM);
    let built = FSX.program();
    fs::copy(&built, &program).with_context(|| format!("cannot copy {}", built.display()))?;
    let settings = scratch.join(SETTINGS);
    fs::write(&settings, CONFIGURATION)?;
    Ok(format!(
        "{} -f {} -N {operations} -S {seed} -P {} {directory}/fsx 2>&1\n",
        program.display(),
        settings.display(),
        scratch.display()
    ))
}
