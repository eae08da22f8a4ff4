//! QUIC: the frames of direct TCP on the stream of a QUIC connection. \[MS-SMB2\] 2.1
//!
//! quinn-proto implements the protocol without sockets, clocks and tasks. This module drives it on
//! the runtime of `ring`. An `endpoint` is one UDP socket with its connections, all on one thread.
//! It passes received datagrams to the connections and sends their packets in the same turn, from
//! one buffer, in batches as large as the kernel allows.
//!
//! Each SMB connection is a QUIC connection with one bidirectional stream, which the client opens.
//! The announced limits forbid more streams, and a peer that violates them loses its connection.
//! Other features of QUIC are off:
//!
//! - 0-RTT: an attacker must not replay a NEGOTIATE or a login.
//! - Migration: limits and placement count addresses, and the rights of a client may depend on its
//!   address. A client with a new address connects again, and its session continues.
//! - Unreliable datagrams and unidirectional streams: SMB does not use them.

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
pub use listen::{Handover, Incoming, Listener, ListenerEvent, Server};
pub use settings::{Congestion, Settings, SettingsError, kib_to_bytes};
pub(crate) use stream::Stream;
