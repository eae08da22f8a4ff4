//! Memory of the driver that is registered for the server to use by RDMA.

use alloc::vec::Vec;

use wire::dialect::Dialect;
use wire::read::Channel;
use wire::smbd::BufferDescriptorV1;

/// Registration that was named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Registration {
    pub(super) pieces: Vec<BufferDescriptorV1>,
    /// Whether the server has taken the first key back.
    pub(super) is_revoked: bool,
}

/// Where the data of a request that waits are to go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Placement {
    /// Nobody was asked yet.
    #[default]
    Undecided,
    /// In messages: there is no memory that could be named.
    Inline,
    /// Through this memory.
    Registered(Registration),
}

impl Registration {
    /// What a request says of it.
    pub(super) fn info(&self) -> Vec<u8> {
        let mut info = Vec::with_capacity(self.pieces.len() * BufferDescriptorV1::LEN);
        self.pieces.iter().for_each(|piece| piece.encode(&mut info));
        info
    }
}

impl Placement {
    /// The memory, if there is any.
    pub(super) fn into_memory(self) -> Option<Registration> {
        match self {
            Self::Registered(memory) => Some(memory),
            Self::Undecided | Self::Inline => None,
        }
    }
}

/// How memory is named: as soon as the dialect allows it, the server is to take the key back with
/// its answer, which spares us to do it. \[MS-SMB2\] 2.2.19
pub(super) fn channel(dialect: Dialect) -> Channel {
    match dialect >= Dialect::SMB_3_0_2 {
        true => Channel::RDMA_V1_INVALIDATE,
        false => Channel::RDMA_V1,
    }
}
