//! QUIC at the server: its sockets, and who is let in by which worker.

use std::fmt::Display;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::rc::Rc;
use std::time::Duration;

use net::Transport;
use net::quic::{Arrival, Handover, Knock, Listener};
use tracing::{debug, warn};

use crate::gate::Permit;
use crate::placement::Seat;
use crate::worker::{Message, REFUSALS_PER_LINE, Worker};

/// How long a handshake may take until the client has opened its stream: what clients wait
/// themselves. A slow one keeps nobody else out but those of its own address.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Failed handshakes that each have a line in the log; of more only some have.
const FAILURES_TOLD: u64 = 100;

/// Makes a socket for each worker on one address. They are there before any worker runs: the kernel
/// numbers them in this order, and one that nobody reads would swallow what it gets.
pub(crate) fn bind(
    address: SocketAddr,
    workers: usize,
) -> io::Result<(SocketAddr, Vec<UdpSocket>)> {
    // Alone first: with SO_REUSEPORT two servers would share the port unnoticed.
    let alone = bind_one(address, false)?;
    let bound = alone.local_addr()?;
    drop(alone);
    let sockets: io::Result<Vec<_>> = (0..workers).map(|_| bind_one(bound, true)).collect();
    let sockets = sockets?;
    if let [first, _, ..] = &sockets[..] {
        ring::steer(first, u32::try_from(workers).unwrap_or(u32::MAX))?;
    }
    Ok((bound, sockets))
}

fn bind_one(address: SocketAddr, reuse_port: bool) -> io::Result<UdpSocket> {
    use socket2::{Domain, Socket, Type};
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_port(reuse_port)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// A client on its way to the worker that serves it.
#[derive(Debug)]
pub(crate) struct Handed {
    handover: Handover,
    permit: Permit,
    seat: Seat,
}

impl Worker {
    /// Decides about all who knock at a socket. `door`: its number at every worker.
    pub(crate) async fn answer(self: Rc<Self>, door: usize, listener: Listener) {
        loop {
            match listener.arrival().await {
                Arrival::Knock(knock) => self.knocked(door, knock),
                Arrival::Again(worker, handover) => {
                    self.shared.tell(worker, Message::Again(door, handover));
                }
            }
        }
    }

    fn knocked(self: &Rc<Self>, door: usize, knock: Knock) {
        let peer = knock.peer();
        let address = peer.ip().to_canonical();
        // An address is easily made up: where there are many, each has to be shown to be real.
        if knock.may_be_asked() && self.gate().is_crowded(address) {
            return knock.ask();
        }
        let permit = match self.gate().enter(address) {
            Ok(permit) => permit,
            Err(limit) => {
                knock.refuse();
                return self.refuse(peer.ip(), limit);
            }
        };
        let seat = self.placement().take(address, self.index, None);
        let worker = seat.worker;
        if worker == self.index {
            return self.let_in(knock, permit, seat);
        }
        match knock.hand_over(worker) {
            Ok(handover) => {
                let handed = Handed {
                    handover,
                    permit,
                    seat,
                };
                self.shared
                    .tell(worker, Message::Handed(door, Box::new(handed)));
            }
            Err(knock) => self.let_in(knock, permit, seat),
        }
    }

    /// Another worker's socket got the first packet of a client of this one.
    pub(crate) fn handed(self: &Rc<Self>, door: usize, handed: Handed) {
        let Handed {
            handover,
            permit,
            seat,
        } = handed;
        let knock = self.door(door).and_then(|door| door.take_over(handover));
        if let Some(knock) = knock {
            self.let_in(knock, permit, seat);
        }
    }

    /// And a repetition of it.
    pub(crate) fn again(&self, door: usize, handover: Handover) {
        // What knocks anew was decided about before, and has ended since.
        let knock = self.door(door).and_then(|door| door.take_over(handover));
        drop(knock);
    }

    fn let_in(self: &Rc<Self>, knock: Knock, permit: Permit, seat: Seat) {
        let worker = Rc::clone(self);
        self.handle.spawn(async move {
            let peer = knock.peer();
            let told = |error: &io::Error| worker.handshake_failed(peer, error);
            let accepting = knock.accept_or(told);
            let accepting = worker.handle.timeout(HANDSHAKE_TIMEOUT, accepting);
            match accepting.await {
                Ok(Ok(_)) if worker.stopping.is_raised() => {}
                Ok(Ok(stream)) => worker.serve(Transport::Quic, stream, peer, permit, seat),
                // Told already.
                Ok(Err(_)) => {}
                Err(_) => worker.handshake_failed(peer, &"it took too long"),
            }
        });
    }

    /// Says who did not come in and why: seldom, for a stranger makes up addresses at no cost.
    fn handshake_failed(&self, peer: SocketAddr, reason: &dyn Display) {
        let failed = self.handshakes_failed.get();
        self.handshakes_failed.set(failed + 1);
        if failed < FAILURES_TOLD || failed.is_multiple_of(REFUSALS_PER_LINE) {
            warn!(%peer, %reason, failed = failed + 1, "QUIC handshakes failed");
        } else {
            debug!(%peer, %reason, "a QUIC handshake failed");
        }
    }

    /// Takes no more clients, and lets those that go hear the end.
    pub(crate) async fn close_doors(&self) {
        for door in self.doors() {
            let closing = self.handle.timeout(self.shutdown_grace(), door.close());
            if closing.await.is_err() {
                warn!("clients of QUIC did not hear the end in time");
            }
        }
    }
}
