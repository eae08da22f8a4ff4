//! Properties of each transport that the core depends on.

use proto::carrier::{Carrier, RdmaLimits};

use crate::endpoint::Transport;
use crate::smbdirect;
use crate::stream::Stream;

impl Transport {
    /// Returns the properties of the transport that the SMB2 protocol code depends on, such as the
    /// largest message. For SMB Direct, the result has no limits of RDMA, because the peers
    /// negotiate these for each connection.
    pub const fn carrier(self) -> Carrier {
        match self {
            Self::Tcp | Self::SmbDirect => Carrier::TCP,
            Self::Nbt => Carrier::NBT,
            Self::Quic => Carrier::QUIC,
        }
    }
}

/// Most buffer descriptors of one READ or WRITE. A client needs more for 8 MiB of scattered pages,
/// and sends several requests then.
const MAX_DESCRIPTORS: usize = 64;

impl smbdirect::Stream {
    /// Returns the properties of this connection that the SMB2 protocol code depends on: the
    /// lengths of messages and RDMA transfers that both peers negotiated.
    #[must_use]
    pub fn carrier(&self) -> Carrier {
        let negotiated = self.negotiated();
        Carrier::smb_direct(RdmaLimits {
            max_read_write: negotiated.max_read_write_size,
            max_descriptors: MAX_DESCRIPTORS,
            max_send: negotiated.max_fragmented_send_size,
            max_receive: negotiated.max_fragmented_receive_size,
        })
    }
}

impl Stream {
    /// Returns the properties of this connection that the SMB2 protocol code depends on, such as
    /// the largest message. `transport` is the transport of the connection: a socket stream can be
    /// direct TCP or NetBIOS.
    #[must_use]
    pub fn carrier(&self, transport: Transport) -> Carrier {
        match self {
            Self::SmbDirect(stream) => stream.carrier(),
            Self::Quic(stream) => Carrier {
                write_hint: stream.write_hint(),
                ..transport.carrier()
            },
            Self::Socket(_) => transport.carrier(),
        }
    }
}
