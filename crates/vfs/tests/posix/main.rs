//! What a share of a folder promises beyond what every file system does.

extern crate smbeam_vfs as vfs;

mod case_index;
mod changes;
mod changes_told;
mod effort;
mod escapes;
mod identities;
mod samba;
#[path = "../behaviour/share.rs"]
mod share;
