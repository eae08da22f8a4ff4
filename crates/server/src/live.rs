//! The part of the configuration that changes while the server runs.
//!
//! Each change makes a new, immutable value. A worker keeps the value that it has seen last, and
//! compares a generation number when it accepts a connection. Requests read the value of the worker
//! without a lock. A request to a newer share than the value has makes the worker take the latest.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use net::TcpOptions;

use crate::config::{Config, ShareSection};
use crate::interfaces::Entry;
use crate::memory;
use crate::share::Shares;

/// The part of the configuration that changes while the server runs.
#[derive(Clone)]
pub(crate) struct Live {
    pub(crate) shares: Arc<Shares>,
    /// The shares of the configuration that an administrator has disabled.
    pub(crate) disabled: Arc<[ShareSection]>,
    pub(crate) times: Times,
    /// Limit of the memory of the process in bytes.
    pub(crate) memory_max: usize,
    /// Parameters of new SMB Direct connections.
    pub(crate) smb_direct: net::smbdirect::Settings,
    /// Socket options of new TCP connections.
    pub(crate) tcp: TcpOptions,
    pub(crate) interfaces: Interfaces,
}

/// Time limits of connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// Delay before a refused login is answered.
    pub(crate) failed_login_delay: Duration,
    /// Limit from the first to the last byte of a frame.
    pub(crate) frame_timeout: Duration,
    /// Limit for running operations when the server stops or a connection ends.
    pub(crate) shutdown_grace: Duration,
}

/// The configured interfaces, for the list that clients receive. \[MS-SMB2\] 3.3.5.15.11
#[derive(Clone, Debug)]
pub(crate) struct Interfaces {
    /// The `interfaces` of the configuration.
    pub(crate) entries: Vec<Entry>,
    /// The `listen` addresses of the configuration.
    pub(crate) listen: Vec<IpAddr>,
}

impl Live {
    /// The values of a configuration, with these shares. The administrator has disabled others.
    pub(crate) fn new(config: &Config, shares: Shares, disabled: Vec<ShareSection>) -> Self {
        Self {
            shares: Arc::new(shares),
            disabled: disabled.into(),
            times: Times {
                failed_login_delay: Duration::from_millis(config.security.failed_login_delay_ms),
                frame_timeout: Duration::from_millis(config.limits.frame_timeout_ms),
                shutdown_grace: Duration::from_millis(config.limits.shutdown_ms),
            },
            memory_max: memory::limit(config.limits.memory_max_mb),
            smb_direct: config.smb_direct(),
            tcp: config.tcp.options(),
            interfaces: Interfaces {
                entries: config.interfaces(),
                listen: config.listen_ips(),
            },
        }
    }
}

/// The latest [`Live`] value.
pub(crate) struct LiveCell {
    latest: Mutex<Arc<Live>>,
    generation: AtomicU64,
}

impl LiveCell {
    pub(crate) fn new(live: Live) -> Self {
        Self {
            latest: Mutex::new(Arc::new(live)),
            generation: AtomicU64::new(0),
        }
    }

    /// The latest value.
    pub(crate) fn latest(&self) -> Arc<Live> {
        Arc::clone(&self.lock())
    }

    /// The number of the latest value. It increases with each change.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Replaces the value.
    pub(crate) fn replace(&self, live: Live) {
        *self.lock() = Arc::new(live);
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Removes the file systems of shares that are not in use any more. Returns whether there were
    /// any.
    pub(crate) fn prune(&self) -> bool {
        let mut latest = self.lock();
        let Some(shares) = latest.shares.pruned() else {
            return false;
        };
        *latest = Arc::new(Live {
            shares: Arc::new(shares),
            ..(**latest).clone()
        });
        self.generation.fetch_add(1, Ordering::Release);
        true
    }

    fn lock(&self) -> MutexGuard<'_, Arc<Live>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
