//! The activity of a running server: counters by command, share and client since its start.
//!
//! A reader computes rates from the difference of two values. The JSON form is a stable interface,
//! described in docs/cli.md. A new version may add fields.

use std::collections::{BTreeMap, HashMap};
use std::time::SystemTime;

use proto::server::ledger::Resource;
use proto::server::{Counts, SnapshotLimits};
use serde::{Deserialize, Serialize};

use crate::counters::{CounterTotals, Direction, HistogramTotal, StoreOperation, Wait};
use crate::observer::Observer;
use crate::status::{
    ConnectionStatus, FileStatus, SessionStatus, TotalsStatus, of_snapshot, set_protection,
};

/// Most connections in an activity: those with the most answered requests.
const CLIENTS_MAX: usize = 1000;
/// Most open files in an activity.
const FILES_MAX: usize = 200;
/// Most sessions with named users.
const SESSIONS_MAX: usize = 10_000;

/// The activity of a server since its start, which serializes to JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Activity {
    /// Name of the server that clients receive.
    pub name: String,
    /// Time of the counters in milliseconds since 1970 (UTC).
    pub at_ms: u64,
    /// Start time of the server in seconds since 1970 (UTC).
    pub since: u64,
    /// Totals of all connections, also of closed ones.
    pub totals: TotalsStatus,
    /// Numbers of objects that exist now.
    pub now: ActivityCounts,
    /// The commands with requests, by their numbers.
    pub commands: Vec<CommandActivity>,
    /// The shares with requests.
    pub shares: Vec<ShareActivity>,
    /// Most bytes of I/O buffers of each worker.
    #[serde(default)]
    pub buffer_bytes_max: u64,
    /// File operations that waited for a disk, by `read`, `write` and `metadata`.
    #[serde(default)]
    pub disk: Vec<TimeActivity>,
    /// Ended waits by their reason: `buffer`, `response_memory`, `send` and `client`.
    #[serde(default)]
    pub waits: Vec<TimeActivity>,
    /// Signing and encryption by direction: `received` and `sent`.
    #[serde(default)]
    pub crypto: Vec<CryptoActivity>,
    /// The open connections, at most 1000: those with the most answered requests.
    pub clients: Vec<ClientActivity>,
    /// Number of connections that the list omits.
    pub clients_left_out: usize,
    /// Open files, directories and pipes, at most 200.
    pub files: Vec<FileStatus>,
    /// Number of refused logins.
    pub refused_logins: u64,
    /// Number of refused connections of sessions to shares.
    pub refused_shares: u64,
}

/// Numbers of objects that exist now, in the [`Activity`] of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActivityCounts {
    /// Number of sessions.
    pub sessions: usize,
    /// Number of open files and directories, including those without a session.
    pub opens: usize,
    /// Number of byte-range locks.
    pub locks: usize,
    /// Number of leases.
    pub leases: usize,
    /// Number of requests without a final response.
    pub requests: u64,
}

/// The requests of one command, in the [`Activity`] of a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CommandActivity {
    /// Name of the command, such as `READ`; `other` for unknown commands.
    pub command: String,
    /// Number of answered requests.
    pub answered: u64,
    /// Number of answered requests with an error status.
    pub errors: u64,
    /// Sum of the times from the start of a request to its result, in seconds.
    pub seconds: f64,
}

/// The requests to one share, in the [`Activity`] of a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ShareActivity {
    /// Name of the share; `other` for all shares that have no own counters.
    pub share: String,
    /// Number of answered requests.
    pub answered: u64,
    /// Number of bytes that READ requests returned.
    pub read: u64,
    /// Number of bytes that WRITE requests wrote.
    pub written: u64,
    /// Sum of the times from the start of a request to its result, in seconds.
    pub seconds: f64,
}

/// Operations or waits of one kind, in the [`Activity`] of a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimeActivity {
    /// Name of the kind.
    pub kind: String,
    /// Number of operations or waits that have ended.
    pub count: u64,
    /// Sum of their times in seconds.
    pub seconds: f64,
}

/// Signing and encryption in one direction, in messages of 4 KiB and more, in the [`Activity`] of a
/// server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CryptoActivity {
    /// `received` or `sent`.
    pub direction: String,
    /// Time of the workers in seconds.
    pub seconds: f64,
    /// Number of bytes.
    pub bytes: u64,
}

/// A connection of a client, in the [`Activity`] of a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientActivity {
    /// Identifier of the connection: [`ConnectionStatus::id`].
    pub id: String,
    /// Address and port of the client.
    pub peer: String,
    /// Names of the users with sessions on the connection, each once.
    pub users: Vec<String>,
    /// Transport: `tcp`, `nbt`, `quic` or `smbdirect`.
    pub transport: String,
    /// Negotiated dialect, for example `3.1.1`; `None` before the negotiation.
    pub dialect: Option<String>,
    /// Protection that the server requires: `encrypted`, `tls`, `signed` or `none`. `None` without
    /// a session.
    pub protection: Option<crate::status::Protection>,
    /// Number of bytes received from the client.
    pub received: u64,
    /// Number of bytes sent to the client.
    pub sent: u64,
    /// Number of answered requests.
    pub answered: u64,
    /// Number of answered requests with an error status.
    pub errors: u64,
    /// Number of requests without a final response.
    pub requests: usize,
}

impl Observer {
    /// Returns the activity of the server. Blocks the thread until all workers have answered, for
    /// two seconds at most.
    pub fn activity(&self) -> Activity {
        let core = &self.shared().core;
        let (mut connections, _) = self.connections();
        let snapshot = core.snapshot(SnapshotLimits {
            sessions: SESSIONS_MAX,
            opens: FILES_MAX,
            locks: 0,
        });
        let (sessions, files) = of_snapshot(&snapshot);
        set_protection(&mut connections, &sessions);
        connections.sort_by_key(|connection| std::cmp::Reverse(connection.answered));
        let clients_left_out = connections.len().saturating_sub(CLIENTS_MAX);
        connections.truncate(CLIENTS_MAX);
        let users = Users::new(&sessions);
        let requests = connections.iter().map(|it| it.requests as u64).sum();
        let clients = connections.into_iter();
        let counters = self.counters();
        let sum = |counts: Vec<(&str, u64)>| counts.iter().map(|(_, count)| count).sum();
        Activity {
            name: core.config().name,
            at_ms: milliseconds(SystemTime::now()),
            since: crate::observer::seconds(self.since()),
            totals: self.totals(),
            now: self.counts(requests),
            commands: self.commands(),
            shares: self.share_activity(),
            buffer_bytes_max: self.shared().pool_bytes as u64,
            disk: times(StoreOperation::ALL.map(|kind| (kind.label(), counters.store(kind)))),
            waits: times(Wait::ALL.map(|wait| (wait.label(), counters.wait(wait)))),
            crypto: Direction::ALL.map(|it| crypto(it, &counters)).to_vec(),
            clients: clients.map(|client| users.client(client)).collect(),
            clients_left_out,
            files,
            refused_logins: sum(counters.refused_logins()),
            refused_shares: sum(counters.refused_shares()),
        }
    }

    fn counts(&self, requests: u64) -> ActivityCounts {
        let core = &self.shared().core;
        let Counts {
            sessions, leases, ..
        } = core.counts();
        ActivityCounts {
            sessions,
            opens: core.ledger().used(Resource::Opens),
            locks: core.ledger().used(Resource::Locks),
            leases,
            requests,
        }
    }

    fn commands(&self) -> Vec<CommandActivity> {
        let counters = self.counters();
        let mut seconds: BTreeMap<&str, f64> = BTreeMap::new();
        let shares = counters.shares().into_iter();
        let times = shares.flat_map(|share| share.durations());
        for (command, time) in times.chain(counters.without_share()) {
            *seconds.entry(command).or_default() += time.seconds();
        }
        let commands = counters.commands().into_iter();
        let commands = commands.map(|(command, answered, errors)| CommandActivity {
            command: command.to_owned(),
            answered,
            errors,
            seconds: seconds.get(command).copied().unwrap_or_default(),
        });
        commands.collect()
    }

    fn share_activity(&self) -> Vec<ShareActivity> {
        let live = self.shared().live.latest();
        let totals = self.counters().shares().into_iter();
        // A share that was replaced by one of the same name has further counters.
        let mut by_name: BTreeMap<String, ShareActivity> = BTreeMap::new();
        for share in totals {
            let name = share.share.and_then(|id| match id.0 {
                0 => Some("IPC$"),
                _ => live.shares.find_name(id),
            });
            let name = name.unwrap_or("other");
            let sum = by_name.entry(name.to_owned()).or_default();
            sum.read += share.read;
            sum.written += share.written;
            for (_, time) in share.durations() {
                sum.answered += time.count();
                sum.seconds += time.seconds();
            }
        }
        let named = by_name.into_iter();
        let named = named.map(|(share, activity)| ShareActivity { share, ..activity });
        named.collect()
    }
}

fn times<const N: usize>(totals: [(&str, HistogramTotal); N]) -> Vec<TimeActivity> {
    let times = totals.into_iter().map(|(kind, total)| TimeActivity {
        kind: kind.to_owned(),
        count: total.count(),
        seconds: total.seconds(),
    });
    times.collect()
}

fn crypto(direction: Direction, counters: &CounterTotals<'_>) -> CryptoActivity {
    let (seconds, bytes) = counters.crypto(direction);
    CryptoActivity {
        direction: direction.label().to_owned(),
        seconds,
        bytes,
    }
}

/// The users of sessions.
struct Users<'a>(HashMap<&'a str, &'a str>);

impl<'a> Users<'a> {
    fn new(sessions: &'a [SessionStatus]) -> Self {
        let users = sessions.iter();
        Self(
            users
                .map(|session| (session.id.as_str(), session.user.as_str()))
                .collect(),
        )
    }

    /// A connection with the names of its users.
    fn client(&self, connection: ConnectionStatus) -> ClientActivity {
        let known = connection.sessions.iter();
        let known = known.filter_map(|session| self.0.get(session.as_str()));
        let mut users: Vec<String> = known.map(|user| (*user).to_owned()).collect();
        users.sort();
        users.dedup();
        ClientActivity {
            id: connection.id,
            peer: connection.peer,
            users,
            transport: connection.transport,
            dialect: connection.dialect,
            protection: connection.protection,
            received: connection.received,
            sent: connection.sent,
            answered: connection.answered,
            errors: connection.errors,
            requests: connection.requests,
        }
    }
}

fn milliseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}
