//! A client's ledger: MessageIds, credits and unanswered requests.

use std::collections::{BTreeMap, BTreeSet};

use proto::time::Instant;
use wire::{AsyncId, Command, Header, MessageId, Status};

use crate::check::{Check, ensure};
use crate::choices::Choices;
use crate::client::call::Intent;

/// An unanswered request.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) command: Command,
    pub(crate) intent: Intent,
    /// Keys of the memory that the request names.
    pub(crate) memory: Vec<u32>,
    /// Tick of the world at which the client sent it.
    pub(crate) start: u64,
    /// Time at which the client sent it.
    pub(crate) sent: Instant,
    /// The holder of caching rights under which it changes the data of a file.
    pub(crate) changes: Option<u64>,
    /// Whether the response must be signed.
    pub(crate) is_signed: bool,
    /// Whether the response must be encrypted.
    pub(crate) is_encrypted: bool,
    /// Set by an interim response.
    pub(crate) async_id: Option<AsyncId>,
}

/// The ledger of one connection.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// Granted and unused MessageIds.
    free: BTreeSet<u64>,
    /// One more than the highest granted MessageId.
    high: u64,
    pending: BTreeMap<u64, Pending>,
    /// Maximum number of credits of a connection.
    limit: u16,
}

impl Ledger {
    pub(crate) fn new(limit: u16) -> Self {
        Self {
            free: BTreeSet::from([0]),
            high: 1,
            pending: BTreeMap::new(),
            limit,
        }
    }

    /// Returns the number of requests in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.pending.len()
    }

    /// Returns the start of a run of MessageIds for a request with this credit charge.
    pub(crate) fn has_run(&self, charge: u16) -> bool {
        self.run_from(0, charge).is_some()
    }

    /// Takes consecutive MessageIds: the lowest, or now and then others.
    pub(crate) fn take(&mut self, charge: u16, choices: &mut Choices) -> Option<MessageId> {
        let start = match choices.per_mille(100) {
            true => self.high.saturating_sub(choices.below(16)),
            false => 0,
        };
        let first = (self.run_from(start, charge)).or_else(|| self.run_from(0, charge))?;
        for id in first..first + u64::from(charge) {
            self.free.remove(&id);
        }
        Some(MessageId(first))
    }

    fn run_from(&self, start: u64, charge: u16) -> Option<u64> {
        let mut run = 0;
        let mut last = None;
        for id in self.free.range(start..) {
            let continues = last.is_some_and(|last: u64| last + 1 == *id);
            run = if continues { run + 1 } else { 1 };
            last = Some(*id);
            if run == u64::from(charge) {
                return Some(id + 1 - run);
            }
        }
        None
    }

    /// Returns a used MessageId, if one exists.
    pub(crate) fn used(&self) -> Option<MessageId> {
        let lowest = self.free.first().copied().unwrap_or(self.high);
        lowest.checked_sub(1).map(MessageId)
    }

    pub(crate) fn expect(&mut self, id: MessageId, pending: Pending) {
        let before = self.pending.insert(id.0, pending);
        assert!(before.is_none(), "an id is used once");
    }

    /// Returns a request that can be canceled: its MessageId, and its AsyncId if it has one.
    pub(crate) fn any(&self, choices: &mut Choices) -> Option<(MessageId, Option<AsyncId>)> {
        if self.pending.is_empty() {
            return None;
        }
        let index = choices.index(self.pending.len());
        let (id, pending) = self.pending.iter().nth(index)?;
        Some((MessageId(*id), pending.async_id))
    }

    /// Returns a request that waits for a lock: its MessageId, and its AsyncId if it has one.
    pub(crate) fn waiting_lock(&self) -> Option<(MessageId, Option<AsyncId>)> {
        let mut pending = self.pending.iter();
        let (id, pending) = pending.find(|(_, pending)| {
            let Intent::Lock { may_wait, .. } = pending.intent else {
                return false;
            };
            may_wait
        })?;
        Some((MessageId(*id), pending.async_id))
    }

    /// Returns whether an UNLOCK is in flight.
    pub(crate) fn is_unlocking(&self) -> bool {
        let mut pending = self.pending.values();
        pending.any(|pending| matches!(pending.intent, Intent::Unlock { .. }))
    }

    /// Returns a request that may wait forever: its MessageId, and its AsyncId if it has one.
    pub(crate) fn watch(&self) -> Option<(MessageId, Option<AsyncId>)> {
        let is_watch = |pending: &Pending| pending.command == Command::CHANGE_NOTIFY;
        let mut watches = self.pending.iter().filter(|(_, it)| is_watch(it));
        watches
            .next()
            .map(|(id, pending)| (MessageId(*id), pending.async_id))
    }

    /// Processes a response. Returns the request that it completes, or `None` for an interim
    /// response.
    pub(crate) fn answered(&mut self, header: &Header) -> Check<Option<Pending>> {
        let id = header.message_id;
        let unknown = || format!("a response to {id:?}, which is not in flight: {header:?}");
        self.grant(header.credits)?;
        let pending = self.pending.get_mut(&id.0).ok_or_else(unknown)?;
        let async_id = match header.target {
            wire::header::Target::Async(async_id) => Some(async_id),
            wire::header::Target::Sync { .. } => None,
        };
        let command = pending.command;
        ensure(header.command == command, || {
            format!("a response to {command:?}: {header:?}")
        })?;
        if header.status == Status::PENDING {
            ensure(pending.async_id.is_none() && async_id.is_some(), || {
                format!("a second interim response, or one without AsyncId: {header:?}")
            })?;
            pending.async_id = async_id;
            return Ok(None);
        }
        ensure(pending.async_id == async_id, || {
            format!(
                "the interim response had {:?}, not {header:?}",
                pending.async_id
            )
        })?;
        Ok(self.pending.remove(&id.0))
    }

    fn grant(&mut self, credits: u16) -> Check {
        let high = self.high + u64::from(credits);
        self.free.extend(self.high..high);
        self.high = high;
        let (held, limit) = (self.free.len(), usize::from(self.limit));
        ensure(held <= limit, || {
            format!("{held} credits exceed the limit of {limit}")
        })
    }

    /// Checks that the client can continue: with no request in flight it holds a credit.
    pub(crate) fn check_starvation(&self) -> Check {
        ensure(!self.pending.is_empty() || !self.free.is_empty(), || {
            "no request is in flight, and no credit is left".into()
        })
    }

    /// Describes the state for a failure report.
    pub(crate) fn describe(&self) -> String {
        let first: Vec<_> = self.free.iter().take(3).collect();
        let (held, high, pending) = (self.free.len(), self.high, &self.pending);
        format!("{held} credits from {first:?} below {high}, in flight: {pending:?}")
    }

    /// Removes and returns all requests that will not be answered.
    pub(crate) fn abandon(&mut self) -> Vec<Pending> {
        let pending = std::mem::take(&mut self.pending);
        pending.into_values().collect()
    }
}
