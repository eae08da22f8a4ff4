//! Accepts SMB Direct connections, and chooses the worker that serves each.
//!
//! The first worker has all listeners: connections are rare compared with requests. The queue pair
//! is made on the thread of the worker that serves it.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use net::Transport;
use net::smbdirect::Stream;
use rdma::{Provider, Request};
use ring::{Interest, Readiness};
use tracing::{debug, info, warn};

use super::Worker;
use crate::client_address::ClientAddress;
use crate::codes::{EndedConnection, Reason as _};
use crate::message::{Message, SmbDirectClient};

/// Memory of a connection without a login in bytes, apart from its frames: the receives that are
/// posted before a login, and state.
const STATE_BYTES: usize = 128 << 10;
/// Time between two attempts to listen on a removed device, and to accept without resources.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

impl Worker {
    /// Accepts the connect requests of a listener. If its device is removed, the listener is closed
    /// to release the device. It is opened again when a device with its address appears.
    pub(super) async fn accept_smb_direct(
        self: Rc<Self>,
        mut listener: Box<dyn rdma::Listener>,
        provider: Arc<dyn Provider>,
    ) {
        let transport = Transport::SmbDirect;
        loop {
            let address = listener.local_addr();
            let Err(error) = self.accept_until_lost(&*listener).await else {
                return;
            };
            warn!(%address, %transport, %error, "listener lost: waiting for its device");
            drop(listener);
            listener = loop {
                self.handle().sleep(RETRY_INTERVAL).await;
                if let Ok(listener) = provider.listen(address) {
                    break listener;
                }
            };
            info!(%address, %transport, "listening again");
        }
    }

    /// Returns an error if the listener is lost, `Ok` if the worker has ended.
    async fn accept_until_lost(self: &Rc<Self>, listener: &dyn rdma::Listener) -> io::Result<()> {
        let readiness = Readiness::new(self.handle(), listener.descriptor())?;
        while readiness.ready(Interest::Readable).await.is_ok() {
            match listener.accept() {
                Ok(request) => request
                    .into_iter()
                    .for_each(|request| self.place_smb_direct(request)),
                Err(error) if ring::is_shortage(&error) => {
                    warn!(%error, "cannot accept a connection: trying again");
                    self.handle().sleep(RETRY_INTERVAL).await;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Checks the limits, and passes the connect request to its worker.
    fn place_smb_direct(self: &Rc<Self>, request: Box<dyn Request>) {
        let client = ClientAddress::from(request.peer_addr());
        let shared = self.shared();
        let permit = match shared.gate.enter(client, STATE_BYTES) {
            Ok(permit) => permit,
            Err(limit) => return self.log_refused(client, limit),
        };
        let slot = (shared.placement).take(client.ip(), self.context.index, None);
        let worker = slot.worker;
        let client = SmbDirectClient {
            request,
            permit,
            slot,
        };
        if worker == self.context.index {
            self.serve_smb_direct(client);
        } else {
            shared.send(worker, Message::SmbDirectClient(client));
        }
    }

    /// Negotiates SMB Direct, then serves the connection.
    pub(super) fn serve_smb_direct(self: &Rc<Self>, client: SmbDirectClient) {
        let SmbDirectClient {
            request,
            permit,
            slot,
        } = client;
        let peer = request.peer_addr();
        let worker = Rc::clone(self);
        self.handle().spawn(async move {
            let settings = worker.context.live().smb_direct;
            let accepting = Stream::accept(worker.handle(), request, &settings);
            let Some(accepted) = permit.unless_revoked(peer, accepting).await else {
                return;
            };
            match accepted {
                Ok(_) if worker.context.stopping.is_raised() => {}
                Ok(stream) => {
                    let transport = Transport::SmbDirect;
                    worker.serve(transport, stream.into(), peer, (permit, slot), None);
                }
                Err(error) => {
                    let code = EndedConnection::RdmaNegotiation.code();
                    debug!(%peer, %error, code, "cannot negotiate SMB Direct");
                }
            }
        });
    }
}
