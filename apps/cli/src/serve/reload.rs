//! Reading the configuration again while the server runs.

use smbeam_server::config::{Config, needing_restart};
use smbeam_server::log::Log;
use smbeam_server::{Server, log_findings};
use tracing::{error, info, warn};

/// Applies the changes of the configuration that a running server can take, and logs the keys of
/// the others. `started` is the configuration of the start. Users and certificates are read again
/// in any case.
pub(super) fn reload(server: &Server, log: &Log, started: &Config, keeps_level: bool) {
    server.reload();
    let Some(file) = started.file() else {
        return info!("users and certificates read again");
    };
    let shown = file.display();
    match Config::load(file) {
        Ok(changed) => {
            if !keeps_level && let Err(error) = log.set_levels(&changed.log) {
                error!(%error, "cannot change the level of the log");
            }
            log_findings(&changed);
            let keys = needing_restart(started, &changed);
            if !keys.is_empty() {
                let keys = keys.join(", ");
                warn!(file = %shown, "restart needed for {keys}");
            }
            info!(file = %shown, "configuration, users and certificates read again");
        }
        Err(error) => error!(%error, "cannot read the configuration again: the old one stays"),
    }
}
