//! The settings that the runs of a plot vary.

use smbeam_client::Channels;

/// The settings of one run.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    /// Bytes per operation.
    pub(super) io_size: u32,
    /// Operations in flight per session.
    pub(super) depth: usize,
    /// Channels per session.
    pub(super) channels: Channels,
}
