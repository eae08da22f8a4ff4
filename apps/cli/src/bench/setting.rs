//! The settings that the runs of a plot vary.

use smbeam_client::Channels;

/// What the runs of a plot differ in.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    /// Bytes of one operation.
    pub(super) io_size: u32,
    /// Operations in flight for each session.
    pub(super) depth: usize,
    /// Channels of each session.
    pub(super) channels: Channels,
}
