//! The life of a connection, from its first frame to its end.

use std::net::Shutdown;
use std::pin::pin;
use std::rc::Rc;

use net::Timer;
use proto::effect::{Effect, Effects, Outcome, WriteData, WritePlan};
use ring::{Either, either};
use tracing::debug;
use wire::Status;

use super::{Connection, State, receive};
use crate::codes::{EndedConnection, Reason as _};
use crate::datapath::Frame;
use crate::half_open::Revocation;

impl Connection {
    /// Serves the connection until it ends, then closes its sessions and opens.
    pub(crate) async fn serve(self: Rc<Self>) {
        let (peer, transport) = (self.peer(), self.context.transport);
        debug!(%peer, %transport, "connected");
        let sender = self.handle().spawn(Rc::clone(&self).send());
        Timer::arm(&self);
        self.receive().await;
        self.context.input_ended.raise();
        // No operation starts any more. The pending ones complete and are answered.
        self.all_completed().await;
        self.context.ended.raise();
        self.to_send.raise();
        let grace = self.context.worker.shutdown_grace();
        let _ = self.handle().timeout(grace, sender).await;
        self.close().await;
        if self.sent.get() >= ring::VIEW_BYTES_MIN as u64 {
            self.context.worker.unmap_idle();
        }
        debug!(%peer, %transport, "disconnected");
    }

    /// Closes a connection after its task has panicked. Its opens would stay open otherwise.
    pub(crate) async fn abandon(self: Rc<Self>) {
        self.context.input_ended.raise();
        self.context.ended.raise();
        self.to_send.raise();
        self.close().await;
    }

    /// Receives frames until the peer closes, the connection ends or the server stops.
    async fn receive(self: &Rc<Self>) {
        let mut receiving = pin!(receive::frames(self));
        let (ended, stopping) = (
            pin!(self.context.ended.raised()),
            pin!(self.context.worker.stopping.raised()),
        );
        let revocation = self.state.borrow().permit.revocation();
        let stop = pin!(either(ended, stopping));
        let revoked = pin!(self.revoked(&revocation));
        let stop = pin!(either(stop, revoked));
        match either(receiving.as_mut(), stop).await {
            Either::First(Ok(())) | Either::Second(_) => {}
            Either::First(Err(error)) => debug!(peer = %self.peer(), %error, "connection lost"),
        }
    }

    /// Waits until another connection needs the place of this one, and ends it. This happens only
    /// before the login.
    async fn revoked(&self, revocation: &Revocation) {
        revocation.revoked().await;
        let (peer, code) = (self.peer(), EndedConnection::Replaced.code());
        debug!(%peer, code, "disconnecting: another connection needs the place");
        self.context.ended.raise();
    }

    /// Waits until no operation is pending.
    async fn all_completed(&self) {
        while self.pending.get() > 0 {
            self.completed.lower();
            self.completed.raised().await;
        }
    }

    /// Closes the socket, and the sessions and opens of the connection.
    async fn close(self: &Rc<Self>) {
        // It fails if the peer has closed the connection before.
        let _ = self.context.stream.shutdown(Shutdown::Both);
        drop_frame_effects(&mut self.state.borrow_mut());
        self.with_core(&mut Frame::None, |core, now, _, effects| {
            core.closed(now, effects);
        });
        self.all_completed().await;
        self.fail_unfinished().await;
    }

    /// Fails the operations that a bug left incomplete: they would hold their opens forever.
    async fn fail_unfinished(self: &Rc<Self>) {
        loop {
            let unfinished = self.state.borrow().core.unfinished();
            let Some(op) = unfinished else { return };
            self.complete(op, Outcome::Failed(Status::INTERNAL_ERROR));
            self.all_completed().await;
        }
    }
}

/// Drops the effects that a panic left and that need the frame of the panicked call.
fn drop_frame_effects(state: &mut State) {
    let mut left = std::mem::replace(&mut state.effects, Effects::new());
    while let Some(effect) = left.pop() {
        let needs_frame = matches!(
            &effect,
            Effect::Write(WritePlan {
                data: WriteData::Inbound(_),
                ..
            })
        );
        if !needs_frame {
            state.effects.push(effect);
        }
    }
}
