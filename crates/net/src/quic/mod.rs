//! QUIC: the frames of direct TCP on one stream of a connection of its own. \[MS-SMB2\] 2.1
//!
//! The protocol is quinn-proto's, which has no socket, clock or task; this module drives it on a
//! runtime of ours. An `endpoint` is one UDP socket with its connections, all on one thread. What
//! arrives is handed to the connections and what they want to send goes out in the same turn, from
//! one buffer, in batches as large as a packet's length allows.
//!
//! Each SMB connection is a QUIC connection with one bidirectional stream, which the client opens;
//! more are refused by the limits that each side announces, and who does not keep to them loses
//! that connection. What QUIC could do beyond is off:
//!
//! - 0-RTT: a NEGOTIATE or a login that somebody replays must not be taken for a new one.
//! - Migration: gates and placement count addresses, and what a client did from one address is not
//!   what another one may do. A client that moves connects again, and its session goes on.
//! - Unreliable datagrams and unidirectional streams: SMB has no use for them.

mod congestion;
mod connect;
mod endpoint;
mod identity;
mod link;
mod listen;
mod samba;
mod settings;
mod stream;

pub use connect::connect;
pub use link::Path;
pub use listen::{Arrival, Handover, Knock, Listener, Server};
pub use settings::{Congestion, Settings, SettingsError, kib_to_bytes};
pub(crate) use stream::Stream;
