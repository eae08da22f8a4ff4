//! Messages from other threads to a worker.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, mpsc};

use net::{Transport, quic};
use proto::id::ConnectionId;
use proto::notice::Notice;

use crate::counters::WorkerLoad;
use crate::gate::Permit;
use crate::listeners::ListenerId;
use crate::placement::Slot;
use crate::status::ConnectionStatus;

/// A message from another thread to a worker.
#[derive(Debug)]
pub(crate) enum Message {
    /// A notice for a connection of this worker.
    Notice(ConnectionId, Notice),
    /// A TCP connection that another worker accepted for this one.
    Accepted(AcceptedSocket),
    /// The first packet of a QUIC client, received by the socket of another worker.
    QuicClient(Box<QuicClient>),
    /// A retransmission of such a packet.
    QuicRetransmission {
        /// The QUIC listener that received the packet.
        listener: ListenerId,
        /// The packet.
        handover: quic::Handover,
    },
    /// The connect request of an SMB Direct client, received by the first worker.
    SmbDirectClient(SmbDirectClient),
    /// A listener to open.
    Listen(Box<ListenRequest>),
    /// Whether a QUIC listener accepts clients or refuses them.
    AcceptClients {
        /// The listener.
        listener: ListenerId,
        /// Whether it accepts clients.
        accepts: bool,
    },
    /// A listener to close. Its TCP and SMB Direct connections stay.
    CloseListener(ListenerId),
    /// The configuration has changed.
    Reconfigured,
    /// A request for the status of all connections of this worker.
    Describe(mpsc::Sender<Vec<(ConnectionId, ConnectionStatus)>>),
    /// A request for the load of this worker.
    Measure(mpsc::Sender<WorkerLoad>),
    /// The next time-out of the core's server may be earlier than before. Only for worker 0.
    ArmServerTimer,
    /// Accept no more connections, finish the running operations, and end.
    Stop,
}

/// A listener that a worker opens.
#[derive(Debug)]
pub(crate) struct ListenRequest {
    pub(crate) id: ListenerId,
    pub(crate) transport: Transport,
    /// The bound address.
    pub(crate) address: SocketAddr,
    pub(crate) socket: ListenSocket,
    /// Counts the users of the listener.
    pub(crate) uses: Arc<()>,
    /// Receives the result. Dropping it without a result means success.
    pub(crate) answer: mpsc::Sender<io::Result<()>>,
}

/// The socket of a listener of one worker.
#[derive(Debug)]
pub(crate) enum ListenSocket {
    /// The worker binds the address, which is reserved for this process.
    Tcp,
    /// A listening socket of the service manager.
    Inherited(TcpListener),
    /// A bound socket.
    Quic(Arc<quic::Server>, UdpSocket),
    /// An RDMA listener.
    SmbDirect(Box<dyn rdma::Listener>, Arc<dyn rdma::Provider>),
}

/// A TCP connection for the worker in its slot.
#[derive(Debug)]
pub(crate) struct AcceptedSocket {
    pub(crate) transport: Transport,
    pub(crate) socket: TcpStream,
    pub(crate) peer: SocketAddr,
    pub(crate) permit: Permit,
    pub(crate) slot: Slot,
}

/// A connecting QUIC client for the worker in its slot.
#[derive(Debug)]
pub(crate) struct QuicClient {
    /// The QUIC listener that received the packet.
    pub(crate) listener: ListenerId,
    pub(crate) handover: quic::Handover,
    /// Bytes that the client can send ahead before its login.
    pub(crate) window: u32,
    pub(crate) permit: Permit,
    pub(crate) slot: Slot,
}

/// A connecting SMB Direct client for the worker in its slot.
#[derive(Debug)]
pub(crate) struct SmbDirectClient {
    pub(crate) request: Box<dyn rdma::Request>,
    pub(crate) permit: Permit,
    pub(crate) slot: Slot,
}
