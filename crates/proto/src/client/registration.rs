//! Memory of the driver that is registered for the server to use by RDMA.

use alloc::vec::Vec;

use wire::dialect::Dialect;
use wire::read::Channel;
use wire::smbd::BufferDescriptorV1;

/// The registration of the memory of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Registration {
    pub(super) pieces: Vec<BufferDescriptorV1>,
    /// Whether the server has invalidated the first piece.
    pub(super) is_revoked: bool,
}

/// The path of the data of a waiting request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Placement {
    /// The core has not asked the driver for memory.
    #[default]
    Undecided,
    /// In messages.
    Inline,
    /// By RDMA through this memory.
    Registered(Registration),
}

impl Registration {
    /// The buffer descriptors in the form of a request.
    pub(super) fn info(&self) -> Vec<u8> {
        let mut info = Vec::with_capacity(self.pieces.len() * BufferDescriptorV1::LEN);
        self.pieces.iter().for_each(|piece| piece.encode(&mut info));
        info
    }
}

impl Placement {
    /// The registration, if the data move by RDMA.
    pub(super) fn into_memory(self) -> Option<Registration> {
        match self {
            Self::Registered(memory) => Some(memory),
            Self::Undecided | Self::Inline => None,
        }
    }
}

/// The RDMA channel of a request: if the dialect allows it, the server invalidates the registration
/// with its response, so that the client does not have to. \[MS-SMB2\] 2.2.19
pub(super) fn channel(dialect: Dialect) -> Channel {
    match dialect >= Dialect::SMB_3_0_2 {
        true => Channel::RDMA_V1_INVALIDATE,
        false => Channel::RDMA_V1,
    }
}
