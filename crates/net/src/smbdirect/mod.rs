//! SMB Direct: frames as messages over RDMA, and memory that one side names and the other reaches.
//! \[MS-SMBD\]
//!
//! `proto::smbd` decides what is said on a queue pair; this does it. A task of each connection
//! polls the queue pair and runs the timers; whoever sends posts at once. On the wire a message
//! has no prefix: [`Stream`] puts that of direct TCP in front of what it receives and takes it off
//! what it sends, so that the loops over frames serve every transport.
//!
//! What comes in is copied once, out of the receive, which is posted again at once: a peer that
//! can always send is a peer that can always grant. What goes out is sent from where it lies.
//!
//! # What the kernel's peers do
//!
//! Seen with Linux 7.3, over siw (iWARP) and rxe (RoCE):
//!
//! - cifs.ko connects to port 5445 of whatever device has the address, then to 445. It asks for
//!   RDMA WRITE and READ from 4 KiB on, of 1 MiB at most over siw and 2 MiB over rxe. Signed
//!   sessions (`sign`) and sealed ones (`seal`) have all data in messages.
//! - cifs.ko takes messages of 173,910 bytes. A sealed READ of its default size does not fit: it
//!   gets what fits, and asks for the rest in pieces of 4 KiB. With ksmbd, which does not give
//!   less, it hangs. `rsize=131072` is what it wants.
//! - cifs.ko opens a further channel for each further address that the server names as capable of
//!   RDMA, none for a second one on the same address unless it is capable of RSS.
//! - ksmbd ends a connection of siw with a complaint about its receives (-103); nothing is wrong.
//! - When a device is removed, drivers that can part from programs (rxe, those of cards) report
//!   it, and their connections end. siw cannot: its removal waits, without a word to anybody,
//!   until every program has closed it.

mod driver;
mod once;
mod receive;
mod remote;
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

pub use rdma::Exposed;
pub use remote::{Exposure, Remote};
pub use settings::Settings;

/// The flag in the first byte of a prefix that says: the key of a region of the peer follows the
/// prefix, in four bytes, which this message is to invalidate. It never leaves this process.
pub(crate) const PREFIX_INVALIDATES: u8 = 1;
/// Bytes of that key.
pub(crate) const KEY_LEN: usize = 4;

/// A connection on which frames can be sent. Clones refer to the same connection; it ends with
/// the last one.
#[derive(Clone)]
pub struct Stream {
    owner: Rc<Owner>,
}

/// Ends the connection when nobody uses it any more.
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
    /// Connects and negotiates. Dropping the future ends what was begun.
    ///
    /// # Errors
    /// Nobody listens there, or does not speak SMB Direct.
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

    /// Lets a peer in and negotiates. Dropping the future ends what was begun.
    ///
    /// # Errors
    /// The peer does not speak SMB Direct, or says nothing for too long.
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

    /// What was negotiated.
    #[must_use]
    pub fn negotiated(&self) -> Negotiated {
        let negotiated = self.shared().state.borrow().negotiated;
        negotiated.expect("a stream is made of a connection that is ready")
    }

    /// The memory of the peer, and ours for the peer.
    #[must_use]
    pub fn remote(&self) -> Remote {
        Remote::new(self)
    }

    /// Lets the peer, which has logged in, send as much at once as there can be receives for: until
    /// then it has memory for a few.
    pub fn trust(&self) {
        self.shared().state.borrow_mut().trust();
        self.shared().changed();
    }

    /// Bytes of the memory that the connection has for itself: that of receives, and of what stands
    /// in front of what is sent. A device locks it.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.shared().state.borrow().memory_bytes()
    }

    /// Ends the connection. Receives and sends under way see it.
    pub(crate) fn shutdown(&self) {
        self.shared().disconnect();
    }

    /// The address of the peer.
    #[must_use]
    pub fn peer_addr(&self) -> SocketAddr {
        self.shared().peer
    }

    /// The address of this side.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.shared().local
    }
}
