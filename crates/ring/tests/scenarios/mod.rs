//! The scenarios by subject.

pub(crate) mod bulk;
pub(crate) mod datagrams;
pub(crate) mod drops;
pub(crate) mod executor;
pub(crate) mod files;
pub(crate) mod memory;
pub(crate) mod messages;
pub(crate) mod readiness;
pub(crate) mod sockets;
