//! Identifiers that the core and its drivers exchange.

/// Identifies an operation that the core has requested with an effect and that the driver
/// completes. The number is unique within the connection, or within the server, that allocated it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(pub u64);

/// Identifies a transport connection. Unique within the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);
