//! How many bytes one request may move, by the negotiated limits and by its credits.
//! \[MS-SMB2\] 3.3.1.7, 3.3.5.2.5

use crate::carrier::Carrier;
use crate::server::config::Config;

/// Bytes that one credit pays for, and the largest payload in bytes of a connection without
/// multi-credit requests. \[MS-SMB2\] 3.3.5.2.5
pub(crate) const BYTES_PER_CREDIT: u32 = 65_536;

/// Bytes of the largest READ, WRITE and transaction of a connection. \[MS-SMB2\] 3.3.1.7
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Connection.MaxReadSize.
    pub(crate) read: u32,
    /// Connection.MaxWriteSize.
    pub(crate) write: u32,
    /// Connection.MaxTransactSize.
    pub(crate) transact: u32,
    /// Of a READ with the data in the response.
    pub(crate) inline_read: u32,
}

impl Sizes {
    pub(crate) fn new(config: &Config, carrier: &Carrier, has_large_mtu: bool) -> Self {
        let bounded = |size: u32| match has_large_mtu {
            true => size,
            false => size.min(BYTES_PER_CREDIT),
        };
        let (sent, received) = (carrier.max_payload_out(), carrier.max_payload_in());
        let by_rdma = carrier.max_transfer();
        let read = bounded(config.max_read).min(sent.max(by_rdma));
        Self {
            read,
            write: bounded(config.max_write).min(received.max(by_rdma)),
            transact: bounded(config.max_transact).min(sent).min(received),
            inline_read: read.min(sent),
        }
    }
}
