//! Checks that two mounts of one share show the same files.
//!
//! usage: `coherence A B SEED OPERATIONS [lists-files] [shared-writes]`. A and B are one directory
//! of the share, on the two mounts. Two processes, one on each mount, perform random operations in
//! turn: each one starts after the previous one has ended, on either mount. Each answer is compared
//! with the expected files.
//!
//! Data must be current, on open files and after each open. Names and sizes may be as old as
//! cifs.ko keeps attributes where it holds no lease. Each write is followed by fdatasync.
//!
//! Linux 7.2 has faults that smbd meets as well. So a process only writes to the files that it has
//! created, until the other one opens them or it closes them, and makes no file longer that the
//! other one has looked up: with `cache=strict` the kernel holds back writes for which it has no
//! lease, and reads zeros behind the end that it knew of a file. Names are not reused: the kernel
//! mixes up a file with the former file of its name. The options add operations:
//!
//! - `lists-files`: list the directories with files. With `handlecache` the kernel keeps the
//!   entries of a directory, and at each listing gives the files the sizes in them, which can be
//!   old.
//! - `shared-writes`: both processes write to all files, which works with `cache=none`. Sizes are
//!   not compared.
#![forbid(unsafe_code)]

mod checker;
mod model;
mod operation;
mod worker;

use std::env;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};
use checker::Options;

const USAGE: &str = "usage: coherence A B SEED OPERATIONS [lists-files] [shared-writes]";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("coherence: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["worker", directory] => worker::run(Path::new(directory)),
        [a, b, seed, operations, options @ ..] => {
            let mut chosen = Options::default();
            for option in options {
                match *option {
                    "lists-files" => chosen.lists_files = true,
                    "shared-writes" => chosen.shares_writes = true,
                    _ => bail!(USAGE),
                }
            }
            let directories = [Path::new(a), Path::new(b)];
            checker::run(directories, seed.parse()?, operations.parse()?, chosen)
        }
        _ => bail!(USAGE),
    }
}
