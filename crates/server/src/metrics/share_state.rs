//! Whether the directories of the shares can be used now.

use serde::Serialize;

use crate::observer::Observer;

/// Whether clients can use a share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct ShareState {
    /// Name of the share.
    pub(super) name: String,
    /// Whether the server can open the directory of the share.
    pub(super) is_available: bool,
    /// Why it cannot; `None` if it can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
}

/// The names of the shares, in the order of [`check`].
pub(super) fn names(observer: &Observer) -> Vec<String> {
    let live = observer.shared().live.latest();
    live.shares
        .current()
        .map(|(name, _)| name.to_owned())
        .collect()
}

/// Opens the directory of each share, and calls `note` with each result. Blocks the thread, for a
/// long time if a network file system does not answer.
pub(super) fn check(observer: &Observer, mut note: impl FnMut(ShareState)) {
    let live = observer.shared().live.latest();
    for (name, file_system) in live.shares.current() {
        let checked = file_system.check_root();
        note(ShareState {
            name: name.to_owned(),
            is_available: checked.is_ok(),
            reason: checked.err().map(|error| error.to_string()),
        });
    }
}
