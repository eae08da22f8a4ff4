//! SMB Direct: frames as messages over RDMA, and RDMA access to memory of the peer. \[MS-SMBD\]
//!
//! `proto::smbd` decides about the posts of a queue pair; this module executes them. One task per
//! connection polls the queue pair and runs the timers; a sender posts at once. On the wire a
//! message has no prefix. [`Stream`] adds the prefix of direct TCP to received messages and removes
//! it from sent ones, so that the loops over frames work with every transport.
//!
//! Received data is copied once, out of the receive, which is posted again at once: a peer that can
//! always send is a peer that can always grant credits. Sent data is not copied.
//!
//! # Behavior of the kernel's implementations
//!
//! Observed with Linux 7.3, over siw (iWARP) and rxe (RoCE):
//!
//! - cifs.ko connects to port 5445 of any device with the address, then to 445. It requests RDMA
//!   WRITE and READ from 4 KiB on, of at most 1 MiB over siw and 2 MiB over rxe. Signed or
//!   encrypted sessions have all data in messages.
//! - cifs.ko accepts messages of 173,910 bytes. An encrypted READ of its default size does not fit:
//!   it gets the part that fits, and requests the rest in pieces of 4 KiB. With ksmbd, which does
//!   not return less, it hangs. `rsize=131072` avoids both.
//! - cifs.ko opens another channel for each further address that the server reports as capable of
//!   RDMA, and none for a second one on the same address unless it is capable of RSS.
//! - ksmbd logs an error about its receives (-103) at the end of a connection over siw. It has no
//!   consequences.
//! - When a device is removed, drivers that can disconnect from programs (rxe, those of cards)
//!   report it, and their connections end. siw cannot: its removal waits, without a report, until
//!   every program has closed it.

mod driver;
mod memory;
mod once;
mod receive;
mod send;
mod settings;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use proto::smbd::{self, Negotiated};
use rdma::{Provider, Request};
use ring::Handle;

use crate::smbdirect::driver::{Shared, State};

pub use memory::{Exposure, RdmaMemory};
pub use rdma::Exposed;
pub use settings::Settings;

/// Flag in the first byte of a prefix: a key of the peer follows the prefix, in four bytes, and
/// this message invalidates it. The flag never leaves this process.
pub(crate) const PREFIX_INVALIDATES: u8 = 1;
/// Length of that key in bytes.
pub(crate) const KEY_LEN: usize = 4;

/// An SMB Direct connection (SMB over RDMA) that sends and receives frames. Clones refer to the
/// same connection. Dropping the last clone ends the connection.
#[derive(Clone)]
pub struct Stream {
    owner: Rc<Owner>,
}

/// Ends the connection when the last stream is dropped.
struct Owner {
    shared: Rc<Shared>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.shared.disconnect();
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("peer", &self.peer_addr())
            .finish_non_exhaustive()
    }
}

impl Stream {
    /// Connects to an SMB Direct listener at `address` through the RDMA devices of `provider`, and
    /// negotiates the sizes of messages. `settings` has the time limits. Dropping the future ends
    /// the attempt.
    ///
    /// # Errors
    /// No listener at the address, or the peer does not support SMB Direct.
    pub async fn connect(
        handle: &Handle,
        provider: &dyn Provider,
        address: SocketAddr,
        settings: &Settings,
    ) -> io::Result<Self> {
        let core = settings.core(smbd::Role::Client);
        let pair = provider.connect(address, &settings.attributes(&core))?;
        let state = State::new(pair, &core);
        Self::negotiate(handle, state, settings).await
    }

    /// Accepts a connection request of a peer and negotiates the sizes of messages. `settings` has
    /// the time limits. Dropping the future ends the attempt.
    ///
    /// # Errors
    /// The peer does not support SMB Direct, or exceeds the time limit of the negotiation.
    pub async fn accept(
        handle: &Handle,
        request: Box<dyn Request>,
        settings: &Settings,
    ) -> io::Result<Self> {
        let state = State::accept(request, settings)?;
        Self::negotiate(handle, state, settings).await
    }

    async fn negotiate(handle: &Handle, state: State, settings: &Settings) -> io::Result<Self> {
        let shared = Shared::start(handle, state, settings.busy_poll)?;
        let stream = Self {
            owner: Rc::new(Owner { shared }),
        };
        stream.shared().ready().await?;
        Ok(stream)
    }

    pub(crate) fn shared(&self) -> &Rc<Shared> {
        &self.owner.shared
    }

    /// Returns the sizes of messages and of RDMA transfers that both peers negotiated.
    #[must_use]
    pub fn negotiated(&self) -> Negotiated {
        let negotiated = self.shared().state.borrow().negotiated;
        negotiated.expect("a stream is made of a connection that is ready")
    }

    /// Returns a handle for RDMA access to memory of the peer, and for the registration of local
    /// memory.
    #[must_use]
    pub fn rdma_memory(&self) -> RdmaMemory {
        RdmaMemory::new(self)
    }

    /// Raises the receive credits, the number of messages that the peer may send at a time, to the
    /// configured maximum. The caller calls this after the peer has logged in. Before that, the
    /// connection has memory for few messages.
    pub fn trust(&self) {
        self.shared().state.borrow_mut().trust();
        self.shared().changed();
    }

    /// Returns the length in bytes of the memory that the connection pins for the RDMA device: its
    /// receive buffers and the headers of its SENDs.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.shared().state.borrow().memory_bytes()
    }

    /// Ends the connection. Pending receives and sends fail.
    pub(crate) fn shutdown(&self) {
        self.shared().disconnect();
    }

    /// Returns the IP address and port of the peer.
    #[must_use]
    pub fn peer_addr(&self) -> SocketAddr {
        self.shared().peer
    }

    /// Returns the IP address and port of this end of the connection.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.shared().local
    }
}
