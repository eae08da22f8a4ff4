//! What the protocol has to know of each transport.

use proto::carrier::Carrier;

use crate::endpoint::Transport;

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
