//! The listeners of a worker: it opens and closes them while the server runs.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use net::Transport;
use tracing::warn;

use super::Worker;
use super::accepting::{Accepting, QuicAccepting};
use crate::listeners::ListenerId;
use crate::message::{ListenRequest, ListenSocket};

impl Worker {
    /// Opens a listener, and answers.
    pub(super) fn listen(self: &Rc<Self>, request: ListenRequest) {
        let ListenRequest {
            id,
            transport,
            address,
            socket,
            uses,
            answer,
        } = request;
        // Requests run with the credentials of their users, which may not share the address.
        let own = vfs::identity::own();
        let own = own.map_err(|status| io::Error::other(format!("{status:?}")));
        let opened = match socket {
            ListenSocket::Tcp => own
                .and_then(|()| ring::Listener::bind(self.handle(), address, true))
                .map(|listener| self.accept_from(transport, listener)),
            ListenSocket::Inherited(socket) => ring::Listener::new(self.handle(), socket)
                .map(|listener| self.accept_from(transport, listener)),
            ListenSocket::Quic(server, socket) => self.listen_quic(id, &server, socket, uses),
            ListenSocket::SmbDirect(listener, provider) => {
                let accepting = Rc::clone(self).accept_smb_direct(listener, provider);
                Ok(Accepting {
                    task: self.handle().spawn(accepting),
                    quic: None,
                })
            }
        };
        let result = opened.map(|accepting| {
            self.listeners.borrow_mut().insert(id, accepting);
        });
        // The requester may have given up. Then it closes the listener.
        let _ = answer.send(result);
    }

    fn accept_from(self: &Rc<Self>, transport: Transport, listener: ring::Listener) -> Accepting {
        let accepting = Rc::clone(self).accept_tcp(transport, listener);
        Accepting {
            task: self.handle().spawn(accepting),
            quic: None,
        }
    }

    fn listen_quic(
        self: &Rc<Self>,
        id: ListenerId,
        server: &Arc<net::quic::Server>,
        socket: std::net::UdpSocket,
        uses: Arc<()>,
    ) -> io::Result<Accepting> {
        let number = |count: usize| u16::try_from(count).map_err(io::Error::other);
        let index = number(self.context.index)?;
        let workers = number(self.shared().mailboxes().len())?;
        let quic = QuicAccepting {
            listener: net::quic::Listener::new(self.handle(), socket, server, index, workers)?,
            accepts: Rc::new(Cell::new(true)),
            uses,
        };
        let accepting = Rc::clone(self).accept_quic(id, quic.clone());
        Ok(Accepting {
            task: self.handle().spawn(accepting),
            quic: Some(quic),
        })
    }

    /// Makes a QUIC listener accept or refuse clients.
    pub(super) fn accept_clients(&self, id: ListenerId, accepts: bool) {
        if let Some(quic) = self.quic_listener(id) {
            quic.accepts.set(accepts);
        }
    }

    pub(super) fn quic_listener(&self, id: ListenerId) -> Option<QuicAccepting> {
        self.listeners.borrow().get(&id)?.quic.clone()
    }

    /// Closes a listener. The connections of a QUIC listener end with it.
    pub(super) fn close_listener(&self, id: ListenerId) {
        let Some(accepting) = self.listeners.borrow_mut().remove(&id) else {
            return;
        };
        accepting.task.abort();
        if let Some(quic) = accepting.quic {
            self.handle()
                .spawn(async move { quic.listener.close().await });
        }
    }

    /// Accepts no more connections.
    pub(super) fn stop_accepting(&self) {
        for accepting in self.listeners.borrow().values() {
            accepting.task.abort();
        }
    }

    /// Closes the QUIC listeners, and waits until the closing packets are sent.
    pub(super) async fn close_quic_listeners(&self) {
        let listeners = std::mem::take(&mut *self.listeners.borrow_mut());
        for quic in listeners
            .into_values()
            .filter_map(|accepting| accepting.quic)
        {
            let grace = self.context.shutdown_grace();
            let closing = self.handle().timeout(grace, quic.listener.close());
            if closing.await.is_err() {
                warn!("cannot close all QUIC connections in time: clients will time out");
            }
        }
    }
}
