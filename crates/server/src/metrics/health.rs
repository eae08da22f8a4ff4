//! The phases of a server, and whether it is ready for clients.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

use super::share_state::{self, ShareState};
use crate::observer::Observer;

/// Longest wait for the directories of the shares. A file system of a network may not answer.
const CHECK_TIME: Duration = Duration::from_secs(2);
/// Time between two polls of a running check.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The phase of the server.
#[derive(Clone, Debug)]
pub(super) enum Phase {
    /// It does not serve clients yet.
    Starting,
    /// It serves clients.
    Running(Running),
    /// It stops.
    Stopping,
}

/// A running server.
#[derive(Clone, Debug)]
pub(super) struct Running {
    pub(super) observer: Observer,
    /// Path of its configuration file, for the status.
    pub(super) config: Option<PathBuf>,
}

/// The state that the HTTP server reports.
#[derive(Debug)]
pub(super) struct Health {
    phase: Mutex<Phase>,
    check: Arc<Mutex<ShareCheck>>,
}

/// The check of the directories of the shares. One runs at a time: if a file system does not
/// answer, further requests start no further threads.
#[derive(Debug, Default)]
struct ShareCheck {
    is_running: bool,
    /// The results of the running check, or of the last one.
    results: Vec<ShareState>,
}

/// The answer to `/readyz`.
#[derive(Debug, Serialize)]
pub(super) struct Readiness {
    pub(super) ready: bool,
    /// `starting`, `running` or `stopping`.
    pub(super) state: &'static str,
    /// The shares of files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) shares: Option<Vec<ShareState>>,
}

impl Health {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            phase: Mutex::new(Phase::Starting),
            check: Arc::default(),
        })
    }

    pub(super) fn set(&self, phase: Phase) {
        *lock(&self.phase) = phase;
    }

    /// The running server; `None` while it starts or stops.
    pub(super) fn running(&self) -> Option<Running> {
        match &*lock(&self.phase) {
            Phase::Running(running) => Some(running.clone()),
            Phase::Starting | Phase::Stopping => None,
        }
    }

    /// Whether the server is ready: it runs, and the directories of all shares can be opened.
    pub(super) async fn readiness(&self) -> Readiness {
        let phase = lock(&self.phase).clone();
        let not_running = |state| Readiness {
            ready: false,
            state,
            shares: Some(Vec::new()),
        };
        match phase {
            Phase::Starting => not_running("starting"),
            Phase::Stopping => not_running("stopping"),
            Phase::Running(Running { observer, .. }) => {
                let shares = self.shares(&observer).await;
                Readiness {
                    ready: shares.iter().all(|share| share.is_available),
                    state: "running",
                    shares: Some(shares),
                }
            }
        }
    }

    /// The states of the shares. Those that do not answer in time are not available.
    pub(super) async fn shares(&self, observer: &Observer) -> Vec<ShareState> {
        self.start_check(observer);
        let deadline = Instant::now() + CHECK_TIME;
        while lock(&self.check).is_running && Instant::now() < deadline {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        let check = lock(&self.check);
        let mut states = check.results.clone();
        if check.is_running {
            let names = share_state::names(observer).into_iter().skip(states.len());
            states.extend(names.enumerate().map(|(index, name)| ShareState {
                name,
                is_available: false,
                reason: Some(match index {
                    0 => "the file system does not answer".to_owned(),
                    _ => "not checked: the file system of another share does not answer".to_owned(),
                }),
            }));
        }
        states
    }

    /// Starts a check on a thread unless one is running.
    fn start_check(&self, observer: &Observer) {
        let mut check = lock(&self.check);
        if check.is_running {
            return;
        }
        *check = ShareCheck {
            is_running: true,
            results: Vec::new(),
        };
        let (observer, shared) = (observer.clone(), Arc::clone(&self.check));
        tokio::task::spawn_blocking(move || {
            let _running = CheckGuard(&shared);
            share_state::check(&observer, |state| lock(&shared).results.push(state));
        });
    }
}

/// Ends a check, also if it panics.
struct CheckGuard<'a>(&'a Mutex<ShareCheck>);

impl Drop for CheckGuard<'_> {
    fn drop(&mut self) {
        lock(self.0).is_running = false;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
