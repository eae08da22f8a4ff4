//! Reports to a service manager, such as systemd: when the server is ready, reloads and stops, and
//! that its workers answer (watchdog). Without a manager nothing is sent. sd_notify(3)

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use sd_notify::NotifyState;
use smbeam_server::Observer;
use tracing::{debug, error};

/// The watchdog of a running server. Dropping it reports that the server stops.
pub(super) struct Service {
    watchdog: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Service {
    /// Reports that clients can connect, and starts the watchdog if the manager asks for it
    /// (`WATCHDOG_USEC`).
    pub(super) fn ready(observer: &Observer, status: &str) -> Self {
        notify(&[NotifyState::Ready, NotifyState::Status(status)]);
        let limit = sd_notify::watchdog_enabled();
        let watchdog = limit.and_then(|limit| watch(observer.clone(), limit / 2));
        Self { watchdog }
    }

    /// Runs a reload between the reports of its start and its end.
    pub(super) fn reload(&self, reload: impl FnOnce()) {
        let now = NotifyState::monotonic_usec_now();
        let states = [NotifyState::Reloading].into_iter().chain(now.ok());
        notify(&states.collect::<Vec<_>>());
        reload();
        notify(&[NotifyState::Ready]);
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        notify(&[NotifyState::Stopping]);
        if let Some((end, thread)) = self.watchdog.take() {
            drop(end);
            // It sends nothing that matters any more.
            let _ = thread.join();
        }
    }
}

/// Starts the thread of the watchdog.
fn watch(observer: Observer, interval: Duration) -> Option<(Sender<()>, JoinHandle<()>)> {
    let (end, ended) = mpsc::channel();
    let run = move || {
        while ended.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
            match observer.all_workers_answer() {
                true => notify(&[NotifyState::Watchdog]),
                false => error!("a worker does not answer: no report to the watchdog"),
            }
        }
    };
    let thread = thread::Builder::new().name("watchdog".to_owned());
    match thread.spawn(run) {
        Ok(thread) => Some((end, thread)),
        Err(error) => {
            error!(%error, "cannot start the watchdog");
            None
        }
    }
}

fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        debug!(%error, "cannot report to the service manager");
    }
}
