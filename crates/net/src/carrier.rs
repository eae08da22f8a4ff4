//! What the protocol has to know of each transport.

use proto::carrier::{Carrier, RdmaLimits};

use crate::endpoint::Transport;
use crate::smbdirect;
use crate::stream::Stream;

impl Transport {
    /// What the protocol has to know of it. Of SMB Direct without the limits of RDMA: those are
    /// known once two ends have agreed on them.
    pub const fn carrier(self) -> Carrier {
        match self {
            Self::Tcp | Self::SmbDirect => Carrier::TCP,
            Self::Nbt => Carrier::NBT,
            Self::Quic => Carrier::QUIC,
        }
    }
}

/// Pieces of memory that one READ or WRITE may name: what a client needs for 8 MiB of pages that
/// lie apart is more, and it sends such in several requests.
const MAX_DESCRIPTORS: usize = 64;

impl smbdirect::Stream {
    /// What the protocol has to know of this connection.
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
    /// What the protocol has to know of this connection.
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
