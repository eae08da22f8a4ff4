//! The clients: smbclient beside the commands of smbeam, in turns, against the lab's smbd on files
//! of a tmpfs.
//!
//! A run takes from the start of the client's program to its end, logging in included. What it
//! takes to enter the lab does not count ([`gate`]).

mod client_bench;
mod environment;
mod gate;

pub(crate) use client_bench::ClientBench;
pub(crate) use environment::Environment;

/// Files of the directory of small ones.
const SMALL_FILES: u32 = 1000;
/// Bytes of each.
const SMALL_FILE_BYTES: u64 = 150_000;
/// Entries of the directory that is listed.
const ENTRIES: u32 = 100_000;
