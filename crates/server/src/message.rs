//! Messages from other threads to a worker.

use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;

use net::{Transport, quic};
use proto::id::ConnectionId;
use proto::notice::Notice;

use crate::counters::WorkerLoad;
use crate::gate::Permit;
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
        /// Index of the QUIC listener that received the packet. It is the same on every worker.
        listener: usize,
        /// The packet.
        handover: quic::Handover,
    },
    /// The connect request of an SMB Direct client, received by the first worker.
    SmbDirectClient(SmbDirectClient),
    /// A request for the status of all connections of this worker.
    Describe(mpsc::Sender<Vec<(ConnectionId, ConnectionStatus)>>),
    /// A request for the load of this worker.
    Measure(mpsc::Sender<WorkerLoad>),
    /// The next time-out of the core's server may be earlier than before. Only for worker 0.
    ArmServerTimer,
    /// Accept no more connections, finish the running operations, and end.
    Stop,
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
    /// Index of the QUIC listener that received the packet. It is the same on every worker.
    pub(crate) listener: usize,
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
