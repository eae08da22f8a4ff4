//! Transfers: between this machine and a server, or between servers.
//!
//! [`tree`] walks directories and queues files. [`mod@file`] transfers one file by the method for
//! its sides and size. The [`Policy`] holds the options of the command.

pub(crate) mod arguments;
mod backup;
mod check;
mod compare;
mod compare_arguments;
mod download;
mod extras;
mod file;
mod file_arguments;
mod hard_links;
mod holes;
mod item;
mod jobs;
mod linked_files;
mod local_part;
mod pace;
mod part;
mod part_key;
mod policy;
pub(crate) mod pool;
mod queued;
mod recover;
mod remote_copy;
mod remote_part;
mod remove;
mod same_file;
mod small_upload;
mod state;
mod stream;
mod target_entries;
mod tree;
mod upload;

pub(crate) use arguments::TransferArguments;
pub(crate) use check::{Difference, DifferenceKind};
pub(crate) use compare_arguments::{CompareArguments, relative};
pub(crate) use file_arguments::FileArguments;
pub(crate) use item::Item;
pub(crate) use policy::{Compare, Policy};
pub(crate) use remove::remove_trees;
pub(crate) use state::Transfer;
use state::{is_same_state, transfer_failure};
