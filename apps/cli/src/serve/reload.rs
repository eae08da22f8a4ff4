//! Reading the configuration again while the server runs: at SIGHUP, and for `smbeam reload`.

use std::sync::Arc;

use smbeam_server::config::{Config, ConfigError};
use smbeam_server::control::ReloadReport;
use smbeam_server::log::LogSettings;
use smbeam_server::{Reason as _, RefusedConfig, ReloadError, Reloader, findings};
use tracing::{error, info, warn};

/// Reads the configuration from all its sources.
pub(super) type Load = dyn Fn() -> Result<Config, ConfigError> + Send + Sync;

/// Reads the configuration of a running server again. A clone concerns the same server.
#[derive(Clone)]
pub(super) struct Reload {
    pub(super) reloader: Reloader,
    pub(super) log: LogSettings,
    /// `None` for a server without a configuration: only its users and certificates can change.
    pub(super) load: Option<Arc<Load>>,
}

impl Reload {
    /// Applies the configuration, and logs the result.
    ///
    /// # Errors
    /// The reason why the configuration stays as it was.
    pub(super) fn run(&self) -> Result<ReloadReport, String> {
        let result = self.apply();
        match &result {
            Ok(report) => log(report),
            Err(Refused { error, code }) => {
                error!(%error, code, "configuration not applied: the old one stays");
            }
        }
        result.map_err(|refused| refused.error)
    }

    fn apply(&self) -> Result<ReloadReport, Refused> {
        let Some(load) = &self.load else {
            self.reloader.reload_files();
            return Ok(ReloadReport::default());
        };
        let config = load().map_err(|error| Refused::invalid(error.to_string()))?;
        let reloaded = self.reloader.reload(&config).map_err(Refused::from)?;
        // The level has been checked with the file.
        self.log.change(&config.log).map_err(Refused::invalid)?;
        let warnings = findings(&config).unwrap_or_default();
        Ok(ReloadReport {
            applied: reloaded.applied,
            restart: reloaded.restart,
            warnings: warnings.iter().map(ToString::to_string).collect(),
        })
    }
}

/// The reason why the configuration stays as it was.
struct Refused {
    error: String,
    code: &'static str,
}

impl Refused {
    fn invalid(error: String) -> Self {
        let code = RefusedConfig::Invalid.code();
        Self { error, code }
    }
}

impl From<ReloadError> for Refused {
    fn from(error: ReloadError) -> Self {
        Self {
            code: error.reason().code(),
            error: error.to_string(),
        }
    }
}

fn log(report: &ReloadReport) {
    let ReloadReport {
        applied,
        restart,
        warnings,
    } = report;
    for warning in warnings {
        warn!("configuration: {warning}");
    }
    if !restart.is_empty() {
        let keys = restart.join(", ");
        warn!("restart needed for {keys}");
    }
    let applied = applied.join(", ");
    info!(%applied, "configuration, users and certificates read again");
}
