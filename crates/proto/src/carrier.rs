//! What carries the frames of a connection, as far as the protocol has to know.

/// What carries the frames of a connection. The driver says so when it makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carrier {
    /// Whether a frame has room for more than 64 KiB. Not with the NetBIOS session service.
    pub large_frames: bool,
    /// Whether the transport itself keeps what is said secret and whole, and the client knows by
    /// its certificate whom it speaks to: QUIC. \[MS-SMB2\] 2.2.3.1.5
    pub secure: bool,
    /// The limits of RDMA, where the transport is SMB Direct: each side can name memory that the
    /// server reads and writes.
    pub rdma: Option<RdmaLimits>,
    /// Bytes of the largest WRITE that a client is told of, where it is one that larger ones cost
    /// dearly; they are taken all the same.
    pub write_hint: Option<u32>,
}

/// What both ends of a connection of SMB Direct have agreed on. \[MS-SMBD\] 3.1.1.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RdmaLimits {
    /// Bytes of the memory that one READ or WRITE names, at most: Connection.MaxReadWriteSize.
    pub max_read_write: u32,
    /// Pieces of memory that one READ or WRITE names, at most. Each costs the server a work
    /// request.
    pub max_descriptors: usize,
    /// Bytes of the longest message that the peer takes: its MaxFragmentedSize.
    pub max_send: u32,
    /// Bytes of the longest message that this side takes.
    pub max_receive: u32,
}

/// Bytes of a message beside its payload: headers, also that of a seal, and what stands in front
/// of the data. Generous, and still far less than what \[MS-SMBD\] 3.1.5.6 has for a message at
/// least, 128 KiB, leaves of 64 KiB.
const MESSAGE_OVERHEAD: u32 = 4096;

impl Carrier {
    /// Direct TCP.
    pub const TCP: Self = Self {
        large_frames: true,
        secure: false,
        rdma: None,
        write_hint: None,
    };

    /// The NetBIOS session service.
    pub const NBT: Self = Self {
        large_frames: false,
        ..Self::TCP
    };

    /// QUIC.
    pub const QUIC: Self = Self {
        secure: true,
        ..Self::TCP
    };

    /// SMB Direct.
    pub const fn smb_direct(limits: RdmaLimits) -> Self {
        Self {
            rdma: Some(limits),
            ..Self::TCP
        }
    }

    /// Bytes of the longest payload that this side can put into a message.
    pub(crate) fn max_payload_out(&self) -> u32 {
        self.rdma.map_or(u32::MAX, |rdma| payload(rdma.max_send))
    }

    /// Bytes of the longest payload that can come in a message.
    pub(crate) fn max_payload_in(&self) -> u32 {
        self.rdma.map_or(u32::MAX, |rdma| payload(rdma.max_receive))
    }

    /// Bytes of the longest READ or WRITE, however its data go.
    pub(crate) fn max_transfer(&self) -> u32 {
        self.rdma.map_or(u32::MAX, |rdma| rdma.max_read_write)
    }
}

fn payload(message: u32) -> u32 {
    message.saturating_sub(MESSAGE_OVERHEAD)
}
