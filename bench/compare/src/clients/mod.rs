//! The clients: smbclient beside the commands of smbeam, in turns, against the lab's smbd on files
//! of a tmpfs.
//!
//! A run takes from the start of the client's program to its end, logging in included. What it
//! takes to enter the lab does not count ([`gate`]).

mod errand;
mod gate;
mod place;

pub(crate) use errand::Errand;
pub(crate) use place::Place;

/// Files of the folder of small ones.
const SMALL_FILES: u32 = 1000;
/// Bytes of each.
const SMALL_FILE_BYTES: u64 = 150_000;
/// Entries of the folder that is listed.
const ENTRIES: u32 = 100_000;
