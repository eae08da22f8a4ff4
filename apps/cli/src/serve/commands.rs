//! The requests that the control socket of a running server serves.

use std::path::PathBuf;

use smbeam_server::activity::Activity;
use smbeam_server::control::{Commands, ReloadReport};
use smbeam_server::status::Status;
use smbeam_server::{Administrator, Observer, ShareStateError};

use super::reload::Reload;

/// The handles of a running server that the requests use.
pub(super) struct ControlCommands {
    pub(super) observer: Observer,
    pub(super) administrator: Administrator,
    pub(super) reload: Reload,
    /// Path of the configuration file for the status.
    pub(super) file: Option<PathBuf>,
}

impl Commands for ControlCommands {
    fn status(&self) -> Status {
        self.observer.status(self.file.clone())
    }

    fn reload(&self) -> Result<ReloadReport, String> {
        self.reload.run()
    }

    fn activity(&self) -> Activity {
        self.observer.activity()
    }

    fn end_session(&self, id: u64) -> bool {
        self.administrator.end_session(id)
    }

    fn close_open(&self, id: u64) -> bool {
        self.administrator.close_open(id)
    }

    fn set_share_enabled(&self, share: &str, is_enabled: bool) -> Result<bool, ShareStateError> {
        self.administrator.set_share_enabled(share, is_enabled)
    }
}
