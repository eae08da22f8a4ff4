//! The properties of a transport that the protocol depends on.

/// The properties of a transport that the SMB2 protocol depends on. The driver passes them to each
/// new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carrier {
    /// Whether a frame can be longer than 64 KiB. False for the NetBIOS session service: its
    /// length field is too short.
    pub large_frames: bool,
    /// Whether the transport encrypts the bytes and authenticates the server by a certificate. True
    /// for QUIC. \[MS-SMB2\] 2.2.3.1.5
    pub secure: bool,
    /// The limits of RDMA; `None` for a transport other than SMB Direct. With RDMA, the server
    /// reads and writes memory of the client directly.
    pub rdma: Option<RdmaLimits>,
    /// Largest length of a WRITE in bytes that the server announces in NEGOTIATE, for clients with
    /// a transport that is slow for larger ones. The server accepts larger ones nevertheless.
    /// `None` announces the configured maximum.
    pub write_hint: Option<u32>,
}

/// The negotiated limits of an SMB Direct connection. \[MS-SMBD\] 3.1.1.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RdmaLimits {
    /// Maximum length in bytes of the memory of one READ or WRITE: Connection.MaxReadWriteSize.
    pub max_read_write: u32,
    /// Maximum number of memory segments of one READ or WRITE. The server posts a work request for
    /// each segment.
    pub max_descriptors: usize,
    /// Maximum length in bytes of a message to the peer: the MaxFragmentedSize that the peer
    /// announced.
    pub max_send: u32,
    /// Maximum length in bytes of a message from the peer: the MaxFragmentedSize that this end
    /// announced.
    pub max_receive: u32,
}

/// Space in bytes for the parts of a message other than its payload: transform header, header and
/// body. An upper bound: the smallest limit of a message, 128 KiB (\[MS-SMBD\] 3.1.5.6), still
/// leaves more than 64 KiB for the payload.
const MESSAGE_OVERHEAD: u32 = 4096;

impl Carrier {
    /// The properties of direct TCP.
    pub const TCP: Self = Self {
        large_frames: true,
        secure: false,
        rdma: None,
        write_hint: None,
    };

    /// The properties of the NetBIOS session service over TCP.
    pub const NBT: Self = Self {
        large_frames: false,
        ..Self::TCP
    };

    /// The properties of QUIC, without a hint for the length of WRITEs.
    pub const QUIC: Self = Self {
        secure: true,
        ..Self::TCP
    };

    /// Returns the properties of an SMB Direct connection with these limits.
    pub const fn smb_direct(limits: RdmaLimits) -> Self {
        Self {
            rdma: Some(limits),
            ..Self::TCP
        }
    }

    /// Returns the maximum length in bytes of the payload of a sent message.
    pub(crate) fn max_payload_out(&self) -> u32 {
        self.rdma.map_or(u32::MAX, |rdma| payload(rdma.max_send))
    }

    /// Returns the maximum length in bytes of the payload of a received message.
    pub(crate) fn max_payload_in(&self) -> u32 {
        self.rdma.map_or(u32::MAX, |rdma| payload(rdma.max_receive))
    }

    /// Returns the maximum length in bytes of a READ or WRITE, with data in messages or by RDMA.
    pub(crate) fn max_transfer(&self) -> u32 {
        self.rdma.map_or(u32::MAX, |rdma| rdma.max_read_write)
    }
}

fn payload(message: u32) -> u32 {
    message.saturating_sub(MESSAGE_OVERHEAD)
}
