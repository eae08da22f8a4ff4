//! The status of a running server: the workers report their connections, the core the rest.
//!
//! Reading the status changes nothing. It costs a worker the time of one message.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime};

use proto::server::SnapshotLimits;

use crate::config::ShareSection;
use crate::counters::{CounterTotals, WorkerLoad};
use crate::message::Message;
use crate::shared::Shared;
use crate::status::{
    self, AuditStatus, ConnectionStatus, LeftOut, ListeningStatus, ServerStatus, ShareStatus,
    Status, TotalsStatus,
};

/// Most connections, and most sessions, in a status.
const ROWS: usize = 10_000;
/// Most open files in a status.
const FILES: usize = 50_000;
/// Most locks of one file in a status.
const LOCKS: usize = 64;
/// Longest time for the answers of all workers.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// A handle that reads the status of a running server from any thread. A clone refers to the same
/// server.
#[derive(Clone)]
pub struct Observer {
    shared: Arc<Shared>,
    since: SystemTime,
}

impl std::fmt::Debug for Observer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observer")
            .field("listening", &self.shared.listeners.listening())
            .finish_non_exhaustive()
    }
}

impl Observer {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            since: SystemTime::now(),
        }
    }

    /// Returns the status of the server now. Blocks the thread until all workers have answered, for
    /// two seconds at most; the status has no connections of workers without an answer. `config` is
    /// the path of the configuration file, which the function only copies into the status.
    pub fn status(&self, config: Option<PathBuf>) -> Status {
        let (mut connections, silent) = self.connections();
        let totals = self.totals();
        let connections_left_out = connections.len().saturating_sub(ROWS);
        connections.truncate(ROWS);
        let snapshot = self.shared.core.snapshot(SnapshotLimits {
            sessions: ROWS,
            opens: FILES,
            locks: LOCKS,
        });
        let (sessions, files) = status::of_snapshot(&snapshot);
        let now = self.shared.now().instant;
        let (disconnected, disconnected_counts) = status::disconnected(&snapshot, now);
        status::set_protection(&mut connections, &sessions);
        Status {
            version: status::VERSION,
            server: self.server(config, totals),
            connections,
            sessions,
            files,
            disconnected,
            disconnected_counts,
            left_out: LeftOut {
                connections: connections_left_out,
                sessions: snapshot.sessions_left_out,
                files: snapshot.opens_left_out,
                workers: silent,
            },
        }
    }

    fn server(&self, config: Option<PathBuf>, totals: TotalsStatus) -> ServerStatus {
        let listening = self.shared.listeners.listening().into_iter();
        let listening = listening.map(|listening| ListeningStatus {
            transport: listening.transport.to_string(),
            address: listening.address.to_string(),
        });
        ServerStatus {
            name: self.shared.core.config().name.clone(),
            release: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            config,
            since: seconds(self.since),
            configured: self.shared.configured.load(Ordering::Relaxed),
            listening: listening.collect(),
            workers: self.shared.mailboxes().len(),
            totals,
            shares: self.shares(),
            audit: self.audit(),
        }
    }

    /// The shares in the order of the configuration, then the disabled ones.
    fn shares(&self) -> Vec<ShareStatus> {
        let live = self.shared.live.latest();
        let status = |section: &ShareSection, is_enabled| ShareStatus {
            name: section.name.get_ref().clone(),
            path: section.path.get_ref().clone(),
            is_enabled,
        };
        let enabled = live.shares.sections().map(|section| status(section, true));
        let disabled = live.disabled.iter().map(|section| status(section, false));
        enabled.chain(disabled).collect()
    }

    fn audit(&self) -> Option<AuditStatus> {
        let audit = &self.shared.audit;
        let totals = audit.totals();
        audit.target().map(|target| AuditStatus {
            target,
            written: totals.written,
            lost: totals.lost,
        })
    }

    /// The totals of all connections since the start.
    pub(crate) fn totals(&self) -> TotalsStatus {
        let counters = self.counters();
        let (answered, errors) = counters.answered();
        TotalsStatus {
            connections: counters.accepted().iter().map(|(_, count)| count).sum(),
            logins: counters.sum(|worker| &worker.logins),
            received: counters.sum(|worker| &worker.received),
            sent: counters.sum(|worker| &worker.sent),
            answered,
            errors,
        }
    }

    /// Returns whether all workers answer. Blocks the thread for two seconds at most.
    pub fn all_workers_answer(&self) -> bool {
        self.load().1 == 0
    }

    /// The counters of all workers.
    pub(crate) fn counters(&self) -> CounterTotals<'_> {
        CounterTotals(&self.shared.counters)
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Start time of the server.
    pub(crate) fn since(&self) -> SystemTime {
        self.since
    }

    /// The load of all workers, and the number of workers that did not answer. Blocks the thread
    /// for two seconds at most.
    pub(crate) fn load(&self) -> (WorkerLoad, usize) {
        let (loads, silent) = self.ask(Message::Measure);
        let mut sum = WorkerLoad::default();
        loads.iter().for_each(|load| sum.add(load));
        (sum, silent)
    }

    /// The connections of all workers, and the number of workers that did not answer.
    pub(crate) fn connections(&self) -> (Vec<ConnectionStatus>, usize) {
        let (answers, silent) = self.ask(Message::Describe);
        let mut all: Vec<_> = answers.into_iter().flatten().collect();
        all.sort_by_key(|(id, _)| *id);
        let all = all.into_iter().map(|(_, status)| status);
        (all.collect(), silent)
    }

    /// Asks all workers. Returns their answers, and the number of workers that did not answer in
    /// time.
    fn ask<T>(&self, message: impl Fn(mpsc::Sender<T>) -> Message) -> (Vec<T>, usize) {
        let (answer, answers) = mpsc::channel();
        let mailboxes = self.shared.mailboxes();
        let asked = mailboxes.iter().filter(|mailbox| {
            // A stopped worker has no connections.
            mailbox.send(message(answer.clone())).is_ok()
        });
        let mut silent = asked.count();
        drop(answer);
        let deadline = Instant::now() + ANSWER_TIMEOUT;
        let mut all = Vec::new();
        while silent > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(answer) = answers.recv_timeout(left) else {
                break;
            };
            silent -= 1;
            all.push(answer);
        }
        (all, silent)
    }
}

/// Seconds from 1970 (UTC) to `time`.
pub(crate) fn seconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
