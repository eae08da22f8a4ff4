//! Further promises of a share of a directory on disk.

extern crate smbeam_vfs as vfs;

mod case_index;
mod changes;
mod denials;
mod effort;
mod escapes;
mod every_name_can_be_used;
mod extended_attributes;
mod holes;
mod identities;
mod large_streams;
mod many_streams;
mod mounts;
mod posix_opens;
mod samba;
#[path = "../behaviour/share.rs"]
mod share;
mod watched;
