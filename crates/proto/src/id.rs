//! Identifiers that the core and its drivers exchange.

/// Number of an operation that the protocol core requests from the I/O driver by an effect. The
/// driver reports the completion with it. Unique within the connection, or within the server, that
/// allocated it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(pub u64);

/// Number of a transport connection of the server, unique within the process. The I/O driver
/// assigns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);
