//! The counters of one worker.

use std::array;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use net::Transport;
use proto::effect::AnsweredRequest;
use proto::file::ShareId;
use wire::Command;

use super::counter::{Counter, Histogram, HistogramTotal};
use super::reasons::{RefusedConnection, RefusedLogin, RefusedShare};
use super::statuses;
use crate::codes::Reason;

/// Number of known commands. Their numbers start at 0. \[MS-SMB2\] 2.2.1.2
const KNOWN_COMMANDS: usize = Command::OPLOCK_BREAK.0 as usize + 1;
/// Number of counters for commands: one more for unknown commands.
pub(crate) const COMMANDS: usize = KNOWN_COMMANDS + 1;
/// Most shares with their own counters, IPC$ included. Further shares have one counter together,
/// which bounds the number of labels.
const SHARES: usize = 128;
/// Slot of requests without a share.
const NO_SHARE: usize = SHARES;
/// Slot of all further shares.
const OTHER_SHARES: usize = SHARES + 1;
/// Number of slots for shares.
const SHARE_SLOTS: usize = SHARES + 2;

/// A kind of file operation that waits for a disk, on a thread or on the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreOperation {
    /// A read of data.
    Read,
    /// A write of data.
    Write,
    /// Any other operation, such as to open or rename a file.
    Metadata,
}

impl StoreOperation {
    pub(crate) const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Metadata];

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Metadata => "metadata",
        }
    }
}

/// A state in which requests or connections wait, apart from operations of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// A request or a frame waits for a buffer of the pool.
    Buffer,
    /// A READ or a connection waits until responses are sent, because they hold too much memory.
    ResponseMemory,
    /// A send of responses waits for the socket.
    Send,
    /// A connection without a request in progress waits for the next one, less than a second.
    Client,
}

impl Wait {
    pub(crate) const ALL: [Self; 4] =
        [Self::Buffer, Self::ResponseMemory, Self::Send, Self::Client];

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Buffer => "buffer",
            Self::ResponseMemory => "response_memory",
            Self::Send => "send",
            Self::Client => "client",
        }
    }
}

/// The direction of a message that the worker signs, verifies, encrypts or decrypts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From a client.
    Received,
    /// To a client.
    Sent,
}

impl Direction {
    pub(crate) const ALL: [Self; 2] = [Self::Received, Self::Sent];

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Received => "received",
            Self::Sent => "sent",
        }
    }
}

/// Time and bytes of signing and encryption in one direction.
#[derive(Debug, Default)]
struct CryptoCounters {
    nanoseconds: Counter,
    bytes: Counter,
}

/// The counters of a worker, which alone changes them. The alignment keeps them off the cache lines
/// (and the pairs of lines that processors fetch together) of all other data.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct WorkerCounters {
    /// Answered requests by command and status.
    requests: [[Counter; statuses::SLOTS]; COMMANDS],
    /// Made by the first request on each share.
    shares: [OnceLock<Box<ShareCounters>>; SHARE_SLOTS],
    store: [Histogram; StoreOperation::ALL.len()],
    waits: [Histogram; Wait::ALL.len()],
    crypto: [CryptoCounters; Direction::ALL.len()],
    /// Accepted connections by transport.
    accepted: [Counter; Transport::ALL.len()],
    refused_connections: [Counter; RefusedConnection::CODES.len()],
    refused_logins: [Counter; RefusedLogin::CODES.len()],
    refused_shares: [Counter; RefusedShare::CODES.len()],
    /// Logins that succeeded.
    pub(crate) logins: Counter,
    /// Requests that the file system refused with ACCESS_DENIED.
    pub(crate) access_denied: Counter,
    /// Bytes from clients, with the prefixes of frames.
    pub(crate) received: Counter,
    /// Bytes to clients, with the prefixes of frames.
    pub(crate) sent: Counter,
}

/// The counters of a worker for one share.
#[derive(Debug, Default)]
struct ShareCounters {
    durations: [Histogram; COMMANDS],
    read: Counter,
    written: Counter,
}

impl Default for WorkerCounters {
    fn default() -> Self {
        Self {
            requests: array::from_fn(|_| array::from_fn(|_| Counter::default())),
            shares: array::from_fn(|_| OnceLock::new()),
            store: Default::default(),
            waits: Default::default(),
            crypto: Default::default(),
            accepted: Default::default(),
            refused_connections: Default::default(),
            refused_logins: Default::default(),
            refused_shares: Default::default(),
            logins: Counter::default(),
            access_denied: Counter::default(),
            received: Counter::default(),
            sent: Counter::default(),
        }
    }
}

impl WorkerCounters {
    /// Counts a request with its final response.
    pub(crate) fn count_answer(&self, request: &AnsweredRequest) {
        let AnsweredRequest {
            command,
            status,
            share,
            bytes,
            duration,
        } = *request;
        let slot = command_slot(command);
        self.requests[slot][statuses::slot(status)].add(1);
        let share = self.shares[share_slot(share)].get_or_init(Box::default);
        share.durations[slot].observe(duration);
        match command {
            Command::READ => share.read.add(bytes.into()),
            Command::WRITE => share.written.add(bytes.into()),
            _ => {}
        }
    }

    /// Counts the time of a file operation that waited for a disk.
    pub(crate) fn count_store(&self, operation: StoreOperation, time: Duration) {
        self.store[operation as usize].observe(time);
    }

    /// Counts the time of a wait that has ended.
    pub(crate) fn count_wait(&self, wait: Wait, time: Duration) {
        self.waits[wait as usize].observe(time);
    }

    /// Counts the time of signing or encryption of a message of `bytes`.
    pub(crate) fn count_crypto(&self, direction: Direction, bytes: usize, time: Duration) {
        let counters = &self.crypto[direction as usize];
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        counters.nanoseconds.add(nanoseconds);
        counters.bytes.add(bytes as u64);
    }

    pub(crate) fn count_accepted(&self, transport: Transport) {
        self.accepted[transport_slot(transport)].add(1);
    }

    pub(crate) fn count_refused_connection(&self, reason: RefusedConnection) {
        self.refused_connections[reason.index()].add(1);
    }

    pub(crate) fn count_refused_login(&self, reason: RefusedLogin) {
        self.refused_logins[reason.index()].add(1);
    }

    pub(crate) fn count_refused_share(&self, reason: RefusedShare) {
        self.refused_shares[reason.index()].add(1);
    }
}

fn command_slot(command: Command) -> usize {
    usize::from(command.0).min(KNOWN_COMMANDS)
}

/// The label of the slot of a command.
pub(crate) fn command_label(slot: usize) -> &'static str {
    let known = u16::try_from(slot).ok().filter(|_| slot < KNOWN_COMMANDS);
    let name = known.and_then(|number| Command(number).name());
    name.unwrap_or("other")
}

fn share_slot(share: Option<ShareId>) -> usize {
    match share {
        None => NO_SHARE,
        Some(ShareId(index)) if (index as usize) < SHARES => index as usize,
        Some(_) => OTHER_SHARES,
    }
}

fn transport_slot(transport: Transport) -> usize {
    let mut all = Transport::ALL.iter();
    let slot = all.position(|listed| *listed == transport);
    slot.expect("the list has all transports")
}

/// The sums of the counters of all workers.
pub(crate) struct CounterTotals<'a>(pub(crate) &'a [Arc<WorkerCounters>]);

/// The counters of a share, over all workers.
#[derive(Debug)]
pub(crate) struct ShareTotals {
    /// The share; `None` for all shares together that have no own counters.
    pub(crate) share: Option<ShareId>,
    /// Bytes that READs returned.
    pub(crate) read: u64,
    /// Bytes that WRITEs took.
    pub(crate) written: u64,
    durations: [HistogramTotal; COMMANDS],
}

impl CounterTotals<'_> {
    /// The sum of one counter.
    pub(crate) fn sum(&self, counter: impl Fn(&WorkerCounters) -> &Counter) -> u64 {
        let workers = self.0.iter();
        workers.map(|worker| counter(worker).get()).sum()
    }

    /// Number of answered requests by command and status, without those that never came. Both are
    /// labels.
    pub(crate) fn requests(&self) -> Vec<(&'static str, &'static str, u64)> {
        let slots = (0..COMMANDS).flat_map(|command| {
            let statuses = 0..statuses::SLOTS;
            statuses.map(move |status| (command, status))
        });
        let counted = slots.map(|(command, status)| {
            let count = self.sum(|worker| &worker.requests[command][status]);
            (command_label(command), statuses::label(status), count)
        });
        counted.filter(|(_, _, count)| *count > 0).collect()
    }

    /// Number of answered requests by the label of the command, and of those with an error, without
    /// commands that never came.
    pub(crate) fn commands(&self) -> Vec<(&'static str, u64, u64)> {
        let commands = (0..COMMANDS).map(|command| {
            let count = |status: usize| self.sum(|worker| &worker.requests[command][status]);
            let statuses = || 0..statuses::SLOTS;
            let errors = statuses().filter(|status| statuses::is_error(*status));
            (
                command_label(command),
                statuses().map(count).sum(),
                errors.map(count).sum(),
            )
        });
        commands.filter(|(_, answered, _)| *answered > 0).collect()
    }

    /// Number of answered requests, and of those with an error.
    pub(crate) fn answered(&self) -> (u64, u64) {
        let commands = self.commands().into_iter();
        commands.fold((0, 0), |(all, errors), (_, answered, failed)| {
            (all + answered, errors + failed)
        })
    }

    /// The requests without a share, by the label of the command.
    pub(crate) fn without_share(&self) -> Vec<(&'static str, HistogramTotal)> {
        let totals = self.share(NO_SHARE, None);
        totals.map_or_else(Vec::new, |totals| totals.durations())
    }

    /// The shares with requests.
    pub(crate) fn shares(&self) -> Vec<ShareTotals> {
        let share = |index: usize| u32::try_from(index).ok().map(ShareId);
        let own = (0..SHARES).filter_map(|index| self.share(index, share(index)));
        own.chain(self.share(OTHER_SHARES, None)).collect()
    }

    fn share(&self, slot: usize, share: Option<ShareId>) -> Option<ShareTotals> {
        let of_workers = self.0.iter().filter_map(|worker| worker.shares[slot].get());
        let mut totals = None;
        for counters in of_workers {
            let totals = totals.get_or_insert_with(|| ShareTotals {
                share,
                read: 0,
                written: 0,
                durations: Default::default(),
            });
            totals.read += counters.read.get();
            totals.written += counters.written.get();
            for (total, duration) in totals.durations.iter_mut().zip(&counters.durations) {
                total.add(duration);
            }
        }
        totals
    }

    /// The times of file operations that waited for a disk.
    pub(crate) fn store(&self, operation: StoreOperation) -> HistogramTotal {
        let mut total = HistogramTotal::default();
        for worker in self.0 {
            total.add(&worker.store[operation as usize]);
        }
        total
    }

    /// The times of waits that have ended.
    pub(crate) fn wait(&self, wait: Wait) -> HistogramTotal {
        let mut total = HistogramTotal::default();
        for worker in self.0 {
            total.add(&worker.waits[wait as usize]);
        }
        total
    }

    /// Seconds and bytes of signing and encryption in one direction.
    pub(crate) fn crypto(&self, direction: Direction) -> (f64, u64) {
        let slot = direction as usize;
        let nanoseconds = self.sum(|worker| &worker.crypto[slot].nanoseconds);
        let seconds = Duration::from_nanos(nanoseconds).as_secs_f64();
        (seconds, self.sum(|worker| &worker.crypto[slot].bytes))
    }

    /// Number of accepted connections by transport.
    pub(crate) fn accepted(&self) -> [(Transport, u64); Transport::ALL.len()] {
        Transport::ALL.map(|transport| {
            let slot = transport_slot(transport);
            (transport, self.sum(|worker| &worker.accepted[slot]))
        })
    }

    /// Number of refused connections by the code of the limit.
    pub(crate) fn refused_connections(&self) -> Vec<(&'static str, u64)> {
        self.by_reason::<RefusedConnection>(|worker| &worker.refused_connections)
    }

    /// Number of refused logins by reason.
    pub(crate) fn refused_logins(&self) -> Vec<(&'static str, u64)> {
        self.by_reason::<RefusedLogin>(|worker| &worker.refused_logins)
    }

    /// Number of refused connections to shares by reason.
    pub(crate) fn refused_shares(&self) -> Vec<(&'static str, u64)> {
        self.by_reason::<RefusedShare>(|worker| &worker.refused_shares)
    }

    fn by_reason<R: Reason>(
        &self,
        counters: impl Fn(&WorkerCounters) -> &[Counter],
    ) -> Vec<(&'static str, u64)> {
        let sum = |index: usize| self.sum(|worker| &counters(worker)[index]);
        let labels = R::CODES.iter().enumerate();
        labels.map(|(index, label)| (*label, sum(index))).collect()
    }
}

impl ShareTotals {
    /// The times of requests by the label of the command, without commands that never came.
    pub(crate) fn durations(&self) -> Vec<(&'static str, HistogramTotal)> {
        let all = self.durations.iter().enumerate();
        let counted = all.filter(|(_, total)| total.count() > 0);
        counted
            .map(|(slot, total)| (command_label(slot), *total))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use wire::Status;

    use super::*;

    fn request(command: Command, status: Status, share: Option<u32>) -> AnsweredRequest {
        AnsweredRequest {
            command,
            status,
            share: share.map(ShareId),
            bytes: 10,
            duration: Duration::from_millis(1),
        }
    }

    #[test]
    fn totals_have_the_requests_of_all_workers() {
        let workers = [0, 1].map(|_| Arc::new(WorkerCounters::default()));
        for worker in &workers {
            worker.count_answer(&request(Command::READ, Status::SUCCESS, Some(1)));
            worker.count_answer(&request(Command::WRITE, Status::SUCCESS, Some(100_000)));
            worker.count_answer(&request(Command::ECHO, Status::SUCCESS, None));
            worker.count_answer(&request(Command(77), Status::INVALID_PARAMETER, None));
        }
        let totals = CounterTotals(&workers);
        let expected = [
            ("READ", "SUCCESS", 2),
            ("WRITE", "SUCCESS", 2),
            ("ECHO", "SUCCESS", 2),
            ("other", "INVALID_PARAMETER", 2),
        ];
        assert_eq!(totals.requests(), expected);
        assert_eq!(totals.answered(), (8, 2));
        let shares = totals.shares();
        let bytes: Vec<_> = shares
            .iter()
            .map(|totals| (totals.share, totals.read, totals.written))
            .collect();
        assert_eq!(bytes, [(Some(ShareId(1)), 20, 0), (None, 0, 20)]);
        let durations = shares[0].durations();
        assert_eq!((durations[0].0, durations[0].1.count()), ("READ", 2));
        let commands: Vec<_> = (totals.without_share().iter().map(|(name, _)| *name)).collect();
        assert_eq!(commands, ["ECHO", "other"]);
    }

    #[test]
    fn waits_and_crypto_are_counted_by_kind() {
        let workers = [0, 1].map(|_| Arc::new(WorkerCounters::default()));
        for worker in &workers {
            worker.count_wait(Wait::Buffer, Duration::from_millis(500));
            worker.count_crypto(Direction::Sent, 1000, Duration::from_millis(250));
        }
        let totals = CounterTotals(&workers);
        let buffer = totals.wait(Wait::Buffer);
        assert_eq!((buffer.count(), buffer.seconds()), (2, 1.0));
        assert_eq!(totals.wait(Wait::Send).count(), 0);
        assert_eq!(totals.crypto(Direction::Sent), (0.5, 2000));
        assert_eq!(totals.crypto(Direction::Received), (0.0, 0));
    }

    #[test]
    fn refusals_are_counted_by_reason() {
        let worker = Arc::new(WorkerCounters::default());
        worker.count_refused_login(RefusedLogin::WrongPassword);
        worker.count_refused_login(RefusedLogin::WrongPassword);
        worker.count_refused_connection(RefusedConnection::HalfOpen);
        let workers = [worker];
        let totals = CounterTotals(&workers);
        let logins = totals.refused_logins();
        assert!(logins.contains(&("login-wrong-password", 2)));
        assert!(logins.contains(&("login-unknown-user", 0)));
        assert!(
            totals
                .refused_connections()
                .contains(&("limit-half-open", 1))
        );
    }
}
