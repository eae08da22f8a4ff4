//! The configuration of a running server, and its change.
//!
//! A connection keeps the configuration with which it began: its limits and its largest requests do
//! not change. A login takes the requirements on signing and encryption from the configuration of
//! that time, and TREE_CONNECT takes the share. READ and WRITE read nothing of this module.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use spin::Mutex;

use crate::server::config::{Config, Share};

/// The configuration of a running server.
#[derive(Debug)]
pub(crate) struct Live {
    /// The configuration without its shares: a connection that keeps it does not keep the shares.
    config: Mutex<Arc<Config>>,
    shares: Mutex<Arc<[Arc<Share>]>>,
    /// `Limits::oplock_break_timeout`, which every CLOSE needs.
    break_timeout_ns: AtomicU64,
}

impl Live {
    pub(crate) fn new(mut config: Config) -> Self {
        let shares = core::mem::take(&mut config.shares);
        Self {
            break_timeout_ns: AtomicU64::new(nanoseconds(config.limits.oplock_break_timeout)),
            config: Mutex::new(Arc::new(config)),
            shares: Mutex::new(Arc::from(shares)),
        }
    }

    /// Replaces the configuration. Other threads see either all of the old shares or all of the new
    /// ones.
    pub(crate) fn replace(&self, mut config: Config) {
        let shares = core::mem::take(&mut config.shares);
        let timeout = nanoseconds(config.limits.oplock_break_timeout);
        self.break_timeout_ns.store(timeout, Ordering::Relaxed);
        *self.config.lock() = Arc::new(config);
        *self.shares.lock() = Arc::from(shares);
    }

    /// The configuration without its shares.
    pub(crate) fn settings(&self) -> Arc<Config> {
        self.config.lock().clone()
    }

    /// The shares.
    pub(crate) fn shares(&self) -> Arc<[Arc<Share>]> {
        self.shares.lock().clone()
    }

    /// Maximum time that a client may take to acknowledge a break.
    pub(crate) fn break_timeout(&self) -> Duration {
        Duration::from_nanos(self.break_timeout_ns.load(Ordering::Relaxed))
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
