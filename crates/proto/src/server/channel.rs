//! The connections that carry a session, and the session's end over all of them.
//! \[MS-SMB2\] 3.3.1.14, 3.3.5.6, 3.3.7.1
//!
//! A session ends with its last channel. At its end, each connection completes its own requests,
//! and the last connection to do so closes the opens of the session. No request of any channel acts
//! on a closed open, and requests that wait for the end of the session continue when all its opens
//! are closed.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crypto::SigningKey;
use spin::Mutex;
use wire::Status;

use crate::id::ConnectionId;

/// A connection that carries a session. \[MS-SMB2\] 3.3.1.14
#[derive(Clone)]
pub(crate) struct Channel {
    /// Channel.SigningKey; none for guest and anonymous.
    pub(crate) signing: Option<Arc<SigningKey>>,
    /// The transport is lost: only running requests remain.
    is_lost: bool,
}

impl Channel {
    /// A connection that lives.
    pub(crate) fn new(signing: Option<Arc<SigningKey>>) -> Self {
        Self {
            signing,
            is_lost: false,
        }
    }
}

/// Session.ChannelList.
pub(crate) struct ChannelList {
    state: Mutex<State>,
}

struct State {
    channels: BTreeMap<ConnectionId, Channel>,
    stage: Stage,
    /// The connections to notify when all opens of the session are closed.
    waiting: Vec<ConnectionId>,
}

/// How far a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It lives.
    Alive,
    /// Nothing starts on it any more.
    Ending,
    /// The opens of the session are closed.
    Gone,
}

impl ChannelList {
    /// The list of a new session.
    pub(crate) fn new(first: ConnectionId, channel: Channel) -> Self {
        Self {
            state: Mutex::new(State {
                channels: BTreeMap::from([(first, channel)]),
                stage: Stage::Alive,
                waiting: Vec::new(),
            }),
        }
    }

    /// The signing key of a connection; none for guest and anonymous.
    pub(crate) fn signing_key(&self, connection: ConnectionId) -> Option<Arc<SigningKey>> {
        let state = self.state.lock();
        state.channels.get(&connection)?.signing.clone()
    }

    /// Adds a connection to a session that lives, up to a limit.
    pub(crate) fn bind(
        &self,
        connection: ConnectionId,
        channel: Channel,
        limit: usize,
    ) -> Result<(), Status> {
        let mut state = self.state.lock();
        if state.stage != Stage::Alive {
            return Err(Status::USER_SESSION_DELETED);
        }
        if state.channels.len() >= limit {
            return Err(Status::INSUFFICIENT_RESOURCES);
        }
        state.channels.insert(connection, channel);
        Ok(())
    }

    /// Whether the limit allows one more connection.
    pub(crate) fn has_room(&self, limit: usize) -> bool {
        self.state.lock().channels.len() < limit
    }

    /// A connection that lives: this one if it does, else another.
    pub(crate) fn living(&self, wanted: ConnectionId) -> Option<ConnectionId> {
        let state = self.state.lock();
        let mut living = state
            .channels
            .iter()
            .filter(|(_, channel)| !channel.is_lost);
        match state.channels.get(&wanted) {
            Some(channel) if !channel.is_lost => Some(wanted),
            _ => living.next().map(|(connection, _)| *connection),
        }
    }

    /// Whether a connection carries the session.
    pub(crate) fn has(&self, connection: ConnectionId) -> bool {
        self.state.lock().channels.contains_key(&connection)
    }

    /// The oldest connection that lives.
    pub(crate) fn oldest_living(&self) -> Option<ConnectionId> {
        let state = self.state.lock();
        let mut channels = state.channels.iter();
        let living = channels.find(|(_, channel)| !channel.is_lost)?;
        Some(*living.0)
    }

    /// The connections that live.
    pub(crate) fn alive(&self) -> Vec<ConnectionId> {
        let state = self.state.lock();
        let living = state
            .channels
            .iter()
            .filter(|(_, channel)| !channel.is_lost);
        living.map(|(connection, _)| *connection).collect()
    }

    /// Handles the loss of a transport. Returns whether the session ends: no other channel is live.
    pub(crate) fn lose(&self, connection: ConnectionId) -> bool {
        let mut state = self.state.lock();
        if let Some(channel) = state.channels.get_mut(&connection) {
            channel.is_lost = true;
        }
        let is_last = state.channels.values().all(|channel| channel.is_lost);
        if is_last && state.stage == Stage::Alive {
            state.stage = Stage::Ending;
        }
        is_last
    }

    /// Ends the session. Returns its connections, which the caller notifies; none if the session
    /// has ended before.
    pub(crate) fn end(&self) -> Vec<ConnectionId> {
        let mut state = self.state.lock();
        if state.stage != Stage::Alive {
            return Vec::new();
        }
        state.stage = Stage::Ending;
        state.channels.keys().copied().collect()
    }

    /// Registers a connection for the notice that all opens are closed. Returns false if they are
    /// already.
    pub(crate) fn await_end(&self, connection: ConnectionId) -> bool {
        let mut state = self.state.lock();
        if state.stage == Stage::Gone {
            return false;
        }
        state.waiting.push(connection);
        true
    }

    /// No request of a connection acts on the session any more. Whether it was the last of a
    /// session that ends: then it closes what the session has open.
    pub(crate) fn leave(&self, connection: ConnectionId) -> bool {
        let mut state = self.state.lock();
        let was_there = state.channels.remove(&connection).is_some();
        was_there && state.channels.is_empty()
    }

    /// All opens of the session are closed. Returns the connections to notify.
    pub(crate) fn gone(&self) -> Vec<ConnectionId> {
        let mut state = self.state.lock();
        state.stage = Stage::Gone;
        core::mem::take(&mut state.waiting)
    }
}
