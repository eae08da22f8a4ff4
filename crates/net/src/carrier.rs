//! Properties of each transport that the core depends on.

use proto::carrier::{Carrier, RdmaLimits};

use crate::endpoint::Transport;
use crate::smbdirect;
use crate::stream::Stream;

impl Transport {
    /// Returns the properties of the transport that the SMB2 core depends on, such as the largest
    /// message. Those of SMB Direct lack the limits of RDMA, which both peers negotiate for each
    /// connection.
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
    /// Returns the properties of this connection that the SMB2 core depends on: largest messages
    /// and READs, and RDMA limits, as both peers negotiated them.
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
    /// Returns the properties of this connection that the SMB2 core depends on: the largest
    /// message, and hints for the length of READs and WRITEs. `transport` is the transport of the
    /// connection: it distinguishes direct TCP and NetBIOS on a socket.
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
