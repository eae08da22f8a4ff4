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

/// The names of the shares of files, in the order of [`check`].
pub(super) fn names(observer: &Observer) -> impl Iterator<Item = String> {
    let shares = observer.shared().shares.of_files();
    shares.map(|(share, _)| share.name.clone())
}

/// Opens the directory of each share of files, and calls `note` with each result. Blocks the
/// thread, for a long time if a network file system does not answer.
pub(super) fn check(observer: &Observer, mut note: impl FnMut(ShareState)) {
    for (share, file_system) in observer.shared().shares.of_files() {
        note(match file_system.check_root() {
            Ok(()) => ShareState {
                name: share.name.clone(),
                is_available: true,
                reason: None,
            },
            Err(error) => ShareState {
                name: share.name.clone(),
                is_available: false,
                reason: Some(error.to_string()),
            },
        });
    }
}
