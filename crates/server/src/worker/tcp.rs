//! Accepts TCP connections, and chooses the worker that serves each.

use std::net::{SocketAddr, TcpStream};
use std::rc::Rc;

use net::Transport;
use ring::Listener;
use tracing::{debug, warn};

use super::Worker;
use crate::client_address::ClientAddress;
use crate::codes::{EndedConnection, Reason as _};
use crate::message::{AcceptedSocket, Message};

/// Memory of a connection without a login in bytes, apart from its frames: state and a chunk.
const STATE_BYTES: usize = 16 << 10;

impl Worker {
    pub(super) async fn accept_tcp(self: Rc<Self>, transport: Transport, listener: Listener) {
        loop {
            match listener.accept_socket().await {
                Ok(socket) => self.place_tcp(transport, socket),
                Err(error) => warn!(%error, %transport, "cannot accept a connection"),
            }
        }
    }

    /// Checks the limits, and passes the connection to its worker.
    fn place_tcp(self: &Rc<Self>, transport: Transport, socket: TcpStream) {
        // It fails if the peer has disconnected already.
        let Ok(peer) = socket.peer_addr() else { return };
        // A socket of both families shows IPv4 clients as mapped addresses of IPv6.
        let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
        let client = ClientAddress::from(peer);
        let shared = self.shared();
        let permit = match shared.gate.enter(client, STATE_BYTES) {
            Ok(permit) => permit,
            Err(limit) => return self.log_refused(client, limit),
        };
        let near = shared.placement.near(&socket);
        let slot = (shared.placement).take(client.ip(), self.context.index, near);
        let worker = slot.worker;
        let accepted = AcceptedSocket {
            transport,
            socket,
            peer,
            permit,
            slot,
        };
        if worker == self.context.index {
            self.serve_tcp(accepted);
        } else {
            shared.send(worker, Message::Accepted(accepted));
        }
    }

    /// Serves a TCP connection on this worker.
    pub(super) fn serve_tcp(self: &Rc<Self>, accepted: AcceptedSocket) {
        let AcceptedSocket {
            transport,
            socket,
            peer,
            permit,
            slot,
        } = accepted;
        // It also fails if the peer has disconnected. Then the first receive ends the connection.
        let options = self.context.live().tcp.clone();
        if let Err(error) = options.apply(&socket) {
            debug!(%error, %peer, "cannot set the TCP options of a connection");
        }
        let stream = match ring::Stream::new(self.handle(), socket) {
            Ok(stream) => net::Stream::from(stream),
            Err(error) => {
                let code = EndedConnection::NoIo.code();
                return warn!(%error, %peer, code, "disconnecting: cannot start I/O");
            }
        };
        self.serve(transport, stream, peer, (permit, slot), None);
    }
}
