//! Security descriptors of files, without input and output: access check, inheritance, changes, and
//! the forms in which they are stored.
//!
//! - `access` decides which rights a descriptor grants to a user.
//! - `inherit` makes the descriptor of a new file from that of its directory.
//! - `change` replaces parts of a descriptor, as SET_INFO does.
//! - `posix_acl` has the access control lists of Linux, `unix` converts them and the mode into
//!   descriptors and back.
//! - `ntacl` is the extended attribute in which Samba stores descriptors, `fingerprint` the hash by
//!   which both servers notice that a local program has changed the permissions since.

mod access;
mod change;
mod fingerprint;
mod inherit;
mod ntacl;
mod owners;
mod posix_acl;
mod unix;

pub(crate) use access::{first_denial, granted};
pub(crate) use change::{apply, change_of_inherited, change_of_new};
pub(crate) use fingerprint::{Permissions, fingerprint};
pub(crate) use inherit::{Creator, inherited, with_default_list};
pub(crate) use ntacl::{MAX_LEN as NTACL_MAX, NtAcl};
pub(crate) use owners::Owners;
#[cfg(test)]
pub(crate) use posix_acl::Entry as PosixEntry;
pub(crate) use posix_acl::{
    ACCESS as ACCESS_LIST, DEFAULT as DEFAULT_LIST, PosixAcl, Tag as PosixTag,
};
pub(crate) use unix::{approximate, approximate_default, describe, mode_of};
