//! Shares that an administrator disables for a time, and the change of all shares.

use std::fmt;
use std::io;
use std::sync::Arc;

use proto::file::LocalEvent;
use wire::upcase::is_same_name;

use crate::config::{Config, ShareSection};
use crate::core_config::core_config;
use crate::error::StartError;
use crate::live::Live;
use crate::message::Message;
use crate::share::{Changed, Shares};
use crate::shared::Shared;

/// Reason why a share was neither disabled nor enabled.
#[derive(Debug)]
pub enum ShareStateError {
    /// The configuration has no share of this name.
    NoShare(String),
    /// The share cannot be served, for example because its directory is missing.
    Unusable(StartError),
}

impl fmt::Display for ShareStateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoShare(name) => write!(f, "the configuration has no share `{name}`"),
            Self::Unusable(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ShareStateError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NoShare(_) => None,
            Self::Unusable(error) => Some(error),
        }
    }
}

/// Disables a share or enables it again. Returns whether its state has changed.
///
/// # Errors
/// As those of [`Reloader::set_share_enabled`](super::Reloader::set_share_enabled).
pub(super) fn set_enabled(
    shared: &Arc<Shared>,
    config: &Config,
    name: &str,
    is_enabled: bool,
) -> Result<bool, ShareStateError> {
    let Some(section) = find(&config.shares, name) else {
        return Err(ShareStateError::NoShare(name.to_owned()));
    };
    let name = section.name.get_ref();
    let mut disabled = shared.live.latest().disabled.to_vec();
    if find(&disabled, name).is_none() == is_enabled {
        return Ok(false);
    }
    if is_enabled {
        disabled.retain(|other| !is_same_name(other.name.get_ref(), name));
        check_directory(section).map_err(ShareStateError::Unusable)?;
    } else {
        disabled.push(section.clone());
    }
    let changed = ChangedShares::new(shared, config, disabled);
    let changed = changed.map_err(ShareStateError::Unusable)?;
    changed.apply(shared, config);
    Ok(true)
}

/// The checked shares of a changed configuration, of which some may be disabled.
pub(super) struct ChangedShares {
    changed: Changed,
    disabled: Vec<ShareSection>,
}

impl ChangedShares {
    /// Opens the file systems of the shares that are not disabled.
    pub(super) fn new(
        shared: &Shared,
        config: &Config,
        disabled: Vec<ShareSection>,
    ) -> Result<Self, StartError> {
        let known: Arc<dyn vfs::accounts::Accounts> = shared.sids.clone();
        let enabled = config.shares.iter();
        let enabled = enabled.filter(|share| find(&disabled, share.name.get_ref()).is_none());
        let enabled: Vec<ShareSection> = enabled.cloned().collect();
        let shares: Arc<Shares> = Arc::clone(&shared.live.latest().shares);
        let changed = shares.changed(&enabled, &known)?;
        for (section, share) in enabled.iter().zip(&changed.known[1..]) {
            if changed.opened.contains(&share.id) {
                check_directory(section)?;
            }
        }
        Ok(Self { changed, disabled })
    }

    /// Serves these shares from now on, with all other values of the configuration that the core
    /// and the workers have. Ends the connections to shares that are gone.
    pub(super) fn apply(self, shared: &Arc<Shared>, config: &Config) {
        let Changed {
            shares,
            known,
            opened,
            unleased,
        } = self.changed;
        shares.select_audit(config);
        // The file systems come before the shares of the core.
        let live = Live::new(config, shares, self.disabled);
        shared.live.replace(live);
        shared.watch_shares(&opened);
        let core = &shared.core;
        let fixed = core.config();
        let mut notices = core.reconfigure(core_config(config, known, fixed));
        for share in unleased {
            let lost = [LocalEvent::Lost(None)];
            notices.extend(core.local_events(shared.now(), share, &lost));
        }
        shared.notify_all(notices);
        shared.send_all(|| Message::Reconfigured);
    }
}

/// The disabled shares that a configuration still has, with their new sections.
pub(super) fn still_disabled(shared: &Shared, config: &Config) -> Vec<ShareSection> {
    let live = shared.live.latest();
    let disabled = live.disabled.iter();
    let still = disabled.filter_map(|share| find(&config.shares, share.name.get_ref()));
    still.cloned().collect()
}

fn find<'a>(shares: &'a [ShareSection], name: &str) -> Option<&'a ShareSection> {
    let mut shares = shares.iter();
    shares.find(|share| is_same_name(share.name.get_ref(), name))
}

/// A share that is new must have its directory. The directory of an unchanged one may be missing,
/// as at the start of a server.
fn check_directory(section: &ShareSection) -> Result<(), StartError> {
    let path = section.path.get_ref();
    let is_directory = std::fs::metadata(path).and_then(|found| match found.is_dir() {
        true => Ok(()),
        false => Err(io::ErrorKind::NotADirectory.into()),
    });
    is_directory.map_err(|error| StartError::share(section.name.get_ref(), path, error))
}
