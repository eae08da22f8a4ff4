//! Client benches: smbclient and the commands of smbeam in turn, against the smbd of the lab, on
//! files of a tmpfs.
//!
//! A run is measured from the start of the client program to its end, with its login. The time to
//! enter the lab is not included ([`gate`]).

mod client_bench;
mod environment;
mod gate;

pub(crate) use client_bench::ClientBench;
pub(crate) use environment::Environment;

/// Number of small files.
const SMALL_FILES: u32 = 1000;
/// Length of each small file in bytes.
const SMALL_FILE_BYTES: u64 = 150_000;
/// Number of entries of the listed directory.
const ENTRIES: u32 = 100_000;
