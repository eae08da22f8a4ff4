//! Changes the configuration of a running server.
//!
//! Everything that can fail comes first: a change either takes effect as a whole, or not at all.

mod shares;

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use auth::UserFileError;
use net::{Transport, tls};

use crate::accounts::ChangedAccounts;
use crate::audit;
use crate::certificate;
use crate::config::{Changes, Config};
use crate::core_config::{gate_limits, lockout};
use crate::error::StartError;
use crate::reserve::{Present, Reservation, Reserved, Sockets, reserve};
use crate::shared::{RdmaDevices, Shared};

pub use self::shares::ShareStateError;
use self::shares::{ChangedShares, still_disabled};

/// A handle that changes the configuration of a running server from any thread. A clone refers to
/// the same server.
#[derive(Clone)]
pub struct Reloader {
    shared: Arc<Shared>,
    state: Arc<Mutex<State>>,
}

struct State {
    /// The configuration of the start.
    started: Config,
    /// The configuration in effect.
    applied: Config,
    quic: Option<Arc<net::quic::Server>>,
}

/// The result of a change of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// Keys with a new value that is in effect, such as `limits.opens_per_user`, and shares, such
    /// as `share "data" (added)`.
    pub applied: Vec<String>,
    /// Keys with a value that differs from that of the start, and that needs a restart.
    pub restart: Vec<String>,
}

/// Reason why the configuration of a running server stays as it was. Its `Display` form names the
/// file and the line, if a single line causes it, and the key.
#[derive(Debug)]
pub struct ReloadError {
    place: Option<String>,
    error: StartError,
}

impl ReloadError {
    fn new(config: &Config, error: StartError) -> Self {
        Self {
            place: config.place_of_start_error(&error),
            error,
        }
    }

    /// Returns the reason without file and line.
    pub fn reason(&self) -> &StartError {
        &self.error
    }
}

impl fmt::Display for ReloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        self.error.fmt(f)
    }
}

impl std::error::Error for ReloadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl fmt::Debug for Reloader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloader").finish_non_exhaustive()
    }
}

impl Reloader {
    pub(crate) fn new(shared: Arc<Shared>, config: &Config) -> Self {
        Self {
            shared,
            state: Arc::new(Mutex::new(State {
                started: config.clone(),
                applied: config.clone(),
                quic: None,
            })),
        }
    }

    /// Applies a checked configuration to the running server: shares, accounts, limits, security,
    /// certificates and addresses. Connections stay, except tree connects to removed shares and
    /// sessions of removed or changed accounts. Also looks up the groups of users again, and reads
    /// the files of users and certificates again. The log is not the concern of this function. May
    /// block on look-ups. Calls from several threads take effect one after the other.
    ///
    /// # Errors
    /// The configuration cannot take effect: the directory of a share is missing, an address is in
    /// use, or the file of users or a certificate cannot be used, for example. Then nothing has
    /// changed.
    pub fn reload(&self, config: &Config) -> Result<Reloaded, ReloadError> {
        let mut state = self.lock();
        let changes = Changes::new(&state.applied, config);
        self.change(&mut state, config, &changes)
            .map_err(|error| ReloadError::new(config, error))?;
        let restart = Changes::new(&state.started, config).needing_restart();
        state.applied = config.clone();
        self.shared.note_configured();
        drop(state);
        self.shared.refresh_groups();
        self.shared.refresh_interfaces();
        Ok(Reloaded {
            applied: changes.live(),
            restart,
        })
    }

    /// Reads the files of users and certificates again if they have changed, and looks up the
    /// groups of the users with sessions. Errors are logged, and the server continues with the old
    /// contents. The sessions of users that were removed or disabled or have another password end.
    /// May block on look-ups.
    pub fn reload_files(&self) {
        self.shared.refresh_groups();
        self.shared.audit.reopen();
        if let Some(tls) = self.shared.certificates.current() {
            tls.reload();
        }
    }

    /// Disables a share or enables it again. To clients, a disabled share does not exist: the
    /// connections of sessions to it end, and its open files are closed. A share stays disabled
    /// until it is enabled, removed from the configuration, or the server starts again. Returns
    /// true if the state of the share has changed.
    ///
    /// # Errors
    /// The configuration has no share of this name, or the directory of a share to enable cannot be
    /// used. Then nothing has changed.
    pub fn set_share_enabled(&self, name: &str, is_enabled: bool) -> Result<bool, ShareStateError> {
        let state = self.lock();
        shares::set_enabled(&self.shared, &state.applied, name, is_enabled)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the first listeners.
    pub(crate) fn listen(
        &self,
        config: &Config,
        reservation: Reservation,
    ) -> Result<(), StartError> {
        let mut state = self.lock();
        let tls = certificate::open(config).map_err(StartError::Certificate)?;
        self.shared.certificates.replace(tls);
        let wanted = reservation.wanted.clone();
        let reserved = self.complete(&mut state, config, reservation)?;
        let opened = self.shared.open_listeners(reserved)?;
        self.shared.change_listeners(opened, &wanted);
        Ok(())
    }

    /// Changes the configuration as a whole, or fails without a change.
    fn change(
        &self,
        state: &mut State,
        config: &Config,
        changes: &Changes,
    ) -> Result<(), StartError> {
        let shared = &self.shared;
        let prepared = Prepared::new(shared, config, changes)?;
        let present = Present {
            listeners: shared.listeners.present(),
            provider: shared
                .rdma
                .get()
                .map(|devices| Arc::clone(&devices.provider)),
            inherited: Arc::clone(&shared.inherited),
        };
        let reservation = reserve(config, shared.mailboxes().len(), &present)?;
        let wanted = reservation.wanted.clone();
        // The new listeners need the new certificate.
        let certificate = shared.certificates.current();
        if let Some(tls) = &prepared.tls {
            shared.certificates.replace(Some(Arc::clone(tls)));
        }
        let reserved = self.complete(state, config, reservation);
        match reserved.and_then(|reserved| shared.open_listeners(reserved)) {
            Ok(opened) => shared.change_listeners(opened, &wanted),
            Err(error) => {
                shared.certificates.replace(certificate);
                return Err(error);
            }
        }
        prepared.apply(shared, config);
        Ok(())
    }

    /// Adds the server of QUIC to reserved addresses, and notes the provider of RDMA.
    fn complete(
        &self,
        state: &mut State,
        config: &Config,
        reservation: Reservation,
    ) -> Result<Vec<Reserved>, StartError> {
        let mut bound = reservation.reserved.iter();
        if state.quic.is_none() && bound.any(|bound| bound.wanted.transport == Transport::Quic) {
            let quic = self.shared.certificates.quic_server(config.quic.settings());
            state.quic = Some(quic.map_err(StartError::Quic)?);
        }
        let reserved = reservation.reserved.into_iter();
        let reserved = reserved.map(|bound| bound.with(state.quic.as_ref()));
        let reserved: Vec<Reserved> = reserved.collect();
        let provider = reserved
            .iter()
            .find_map(|reserved| match &reserved.sockets {
                Sockets::SmbDirect(_, provider) => Some(Arc::clone(provider)),
                Sockets::Tcp(_) | Sockets::Inherited(_) | Sockets::Quic(..) => None,
            });
        if let Some(provider) = provider {
            let known = Mutex::default();
            // The provider of an earlier listener is the same one.
            let _ = self.shared.rdma.set(RdmaDevices { provider, known });
        }
        Ok(reserved)
    }
}

/// The checked parts of a changed configuration.
struct Prepared {
    shares: ChangedShares,
    accounts: ChangedAccounts,
    /// The output of the audit log; `None` if it stays.
    audit: Option<Option<audit::Output>>,
    /// `None` if the certificate stays.
    tls: Option<Arc<tls::Server>>,
}

impl Prepared {
    /// Opens the files and directories of a changed configuration.
    fn new(shared: &Shared, config: &Config, changes: &Changes) -> Result<Self, StartError> {
        if let Some(file) = &config.server.users
            && !file.exists()
        {
            let missing = UserFileError::Io(file.clone(), io::ErrorKind::NotFound.into());
            return Err(StartError::Users(missing));
        }
        let shares = ChangedShares::new(shared, config, still_disabled(shared, config))?;
        let audit = match changes.has_section("audit") {
            true => {
                let opened = shared.audit.open(&config.audit);
                Some(opened.map_err(|error| StartError::audit(&config.audit, error))?)
            }
            false => None,
        };
        let accounts = shared.accounts.changed(config).map_err(StartError::Users)?;
        certificate::check(config).map_err(StartError::Certificate)?;
        let is_missing = shared.certificates.current().is_none();
        let tls = match changes.has_section("quic") || is_missing {
            true => certificate::open(config).map_err(StartError::Certificate)?,
            false => None,
        };
        Ok(Self {
            shares,
            accounts,
            audit,
            tls,
        })
    }

    fn apply(self, shared: &Arc<Shared>, config: &Config) {
        shared.gate.set_limits(gate_limits(config));
        shared.login_attempts.set_lockout(lockout(config));
        shared.accounts.change(self.accounts, |logins, revision| {
            shared.end_logins(logins, revision);
        });
        match self.audit {
            Some(output) => shared.audit.replace(output),
            None => shared.audit.reopen(),
        }
        self.shares.apply(shared, config);
    }
}
