//! The settings that the runs of a plot vary.

use smbeam_client::Channels;

/// The settings of one run.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    /// Bytes per operation.
    pub(crate) io_size: u32,
    /// Operations in flight per session.
    pub(crate) depth: usize,
    /// Channels per session.
    pub(crate) channels: Channels,
}
