//! Accepts QUIC connections, and chooses the worker that serves each.

use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use net::Transport;
use net::quic::{Handover, Incoming, ListenerEvent};
use tracing::{debug, warn};

use super::Worker;
use super::accepting::QuicAccepting;
use crate::client_address::ClientAddress;
use crate::codes::{EndedConnection, Reason as _};
use crate::gate::Permit;
use crate::listeners::ListenerId;
use crate::message::{Message, QuicClient};
use crate::placement::Slot;
use crate::shared::EVENTS_PER_LOG_LINE;

/// Longest time from the first packet until the client has opened its stream. Clients wait as long.
/// A slow handshake counts for the limits of the client's address only.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Number of failed handshakes with a log line each. Of later ones only some have a line.
const FAILURES_LOGGED: u64 = 100;
/// Bytes that a client can send ahead before its login: a login needs much less.
const WINDOW: u32 = 256 << 10;
/// The same when the memory of connections without a login is short.
const SHORT_WINDOW: u32 = 64 << 10;
/// Memory of a connection without a login in bytes, apart from received data: its keys, buffers of
/// the handshake, and state.
const STATE_BYTES: usize = 64 << 10;

impl Worker {
    /// Decides about all clients that connect to a socket.
    pub(super) async fn accept_quic(self: Rc<Self>, id: ListenerId, quic: QuicAccepting) {
        loop {
            match quic.listener.next_event().await {
                ListenerEvent::Incoming(incoming) if !quic.accepts.get() => incoming.refuse(),
                ListenerEvent::Incoming(incoming) => self.place_quic(id, &quic, incoming),
                ListenerEvent::Retransmission(worker, handover) => {
                    let listener = id;
                    let message = Message::QuicRetransmission { listener, handover };
                    self.shared().send(worker, message);
                }
            }
        }
    }

    /// Checks the limits, and passes the client to its worker.
    fn place_quic(self: &Rc<Self>, listener: ListenerId, quic: &QuicAccepting, incoming: Incoming) {
        let peer = incoming.peer();
        let client = ClientAddress::from(peer);
        let (gate, placement) = (&self.shared().gate, &self.shared().placement);
        // Source addresses are easy to forge: if many clients connect, each must prove its address.
        if incoming.may_be_validated() && gate.is_crowded(client) {
            return incoming.request_validation();
        }
        let window = match gate.is_memory_short() {
            true => SHORT_WINDOW,
            false => WINDOW,
        };
        let permit = match gate.enter(client, STATE_BYTES + window as usize) {
            Ok(permit) => permit,
            Err(limit) => {
                incoming.refuse();
                return self.log_refused(client, limit);
            }
        };
        let slot = placement.take(client.ip(), self.context.index, None);
        let worker = slot.worker;
        if worker == self.context.index {
            return self.serve_quic(incoming, window, (permit, slot), &quic.uses);
        }
        match incoming.hand_over(worker) {
            Ok(handover) => {
                let client = QuicClient {
                    listener,
                    handover,
                    window,
                    permit,
                    slot,
                };
                let message = Message::QuicClient(Box::new(client));
                self.shared().send(worker, message);
            }
            Err(incoming) => self.serve_quic(incoming, window, (permit, slot), &quic.uses),
        }
    }

    /// Serves a client after another worker received its first packet.
    pub(super) fn accept_forwarded_quic(self: &Rc<Self>, client: QuicClient) {
        let QuicClient {
            listener,
            handover,
            window,
            permit,
            slot,
        } = client;
        // It fails if the listener has closed meanwhile.
        let Some(quic) = self.quic_listener(listener) else {
            return;
        };
        if let Some(incoming) = quic.listener.take_over(handover) {
            self.serve_quic(incoming, window, (permit, slot), &quic.uses);
        }
    }

    /// Gives a retransmitted first packet to the connection that it belongs to.
    pub(super) fn drop_retransmission(&self, listener: ListenerId, handover: Handover) {
        // If there is no such connection, it was refused or has ended.
        if let Some(quic) = self.quic_listener(listener) {
            drop(quic.listener.take_over(handover));
        }
    }

    /// Runs the handshake, then serves the connection. The client can send `window` bytes ahead
    /// before its login.
    fn serve_quic(
        self: &Rc<Self>,
        incoming: Incoming,
        window: u32,
        (permit, slot): (Permit, Slot),
        uses: &Arc<()>,
    ) {
        let (worker, uses) = (Rc::clone(self), Arc::clone(uses));
        self.handle().spawn(async move {
            let peer = incoming.peer();
            let failed = |error: &io::Error| worker.log_failed_handshake(peer, error);
            let accepting = incoming.accept_or(window, failed);
            let accepting = worker.handle().timeout(HANDSHAKE_TIMEOUT, accepting);
            let Some(accepted) = permit.unless_revoked(peer, accepting).await else {
                return;
            };
            match accepted {
                Ok(Ok(_)) if worker.context.stopping.is_raised() => {}
                Ok(Ok(stream)) => {
                    let transport = Transport::Quic;
                    worker.serve(transport, stream, peer, (permit, slot), Some(uses));
                }
                // Logged by the closure.
                Ok(Err(_)) => {}
                Err(_) => worker.log_failed_handshake(peer, &"it took too long"),
            }
        });
    }

    /// Logs why a handshake failed. Only some failures have a log line at level warn, because
    /// clients with forged addresses cost an attacker nothing.
    fn log_failed_handshake(&self, peer: SocketAddr, reason: &dyn Display) {
        let failed = self.handshakes_failed.get();
        self.handshakes_failed.set(failed + 1);
        let code = EndedConnection::QuicHandshake.code();
        if failed < FAILURES_LOGGED || failed.is_multiple_of(EVENTS_PER_LOG_LINE) {
            warn!(%peer, %reason, failed = failed + 1, code, "QUIC handshakes failed");
        } else {
            debug!(%peer, %reason, code, "a QUIC handshake failed");
        }
    }
}
