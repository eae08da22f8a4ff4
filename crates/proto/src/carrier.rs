//! The properties of a transport that the protocol depends on.

/// The properties of a transport (TCP, QUIC, SMB Direct) that the SMB2 protocol depends on. The
/// driver, which owns the sockets, passes them to each new connection of the protocol core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carrier {
    /// Whether a frame can be longer than 64 KiB. False for the NetBIOS session service: its
    /// length field is too short.
    pub large_frames: bool,
    /// Whether the transport encrypts the bytes and authenticates the server by a certificate. True
    /// for QUIC. \[MS-SMB2\] 2.2.3.1.5
    pub secure: bool,
    /// The limits of memory access by RDMA (the server reads and writes memory of the client
    /// directly). `None` for a transport other than SMB Direct.
    pub rdma: Option<RdmaLimits>,
    /// Maximum length of a WRITE in bytes that the server announces in NEGOTIATE (MaxWriteSize) on
    /// a transport that is slow for larger ones. The server accepts larger ones nevertheless.
    /// `None` announces the maximum of the configuration.
    pub write_hint: Option<u32>,
}

/// The limits that both peers of an SMB Direct connection negotiated, as the SMB2 protocol needs
/// them. \[MS-SMBD\] 3.1.1.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RdmaLimits {
    /// Maximum length in bytes of the client's memory that one READ or WRITE transfers by RDMA:
    /// Connection.MaxReadWriteSize.
    pub max_read_write: u32,
    /// Maximum number of memory segments (buffer descriptors) in one READ or WRITE by RDMA. The
    /// server posts an RDMA work request for each segment.
    pub max_descriptors: usize,
    /// Maximum length in bytes of an SMB2 message to the peer: the MaxFragmentedSize that the peer
    /// announced in the SMB Direct negotiation.
    pub max_send: u32,
    /// Maximum length in bytes of an SMB2 message from the peer: the MaxFragmentedSize that this
    /// end announced in the SMB Direct negotiation.
    pub max_receive: u32,
}

/// Space in bytes for the parts of a message other than its payload: transform header, header and
/// body. An upper bound: the smallest limit of a message, 128 KiB (\[MS-SMBD\] 3.1.5.6), still
/// leaves more than 64 KiB for the payload.
const MESSAGE_OVERHEAD: u32 = 4096;

impl Carrier {
    /// The properties of direct TCP (port 445): frames longer than 64 KiB, no encryption by the
    /// transport, no RDMA, no hint for the length of WRITEs.
    pub const TCP: Self = Self {
        large_frames: true,
        secure: false,
        rdma: None,
        write_hint: None,
    };

    /// The properties of the NetBIOS session service over TCP (port 139): as direct TCP, but
    /// without frames longer than 64 KiB.
    pub const NBT: Self = Self {
        large_frames: false,
        ..Self::TCP
    };

    /// The properties of QUIC: as direct TCP, but the transport encrypts the bytes and
    /// authenticates the server.
    pub const QUIC: Self = Self {
        secure: true,
        ..Self::TCP
    };

    /// Returns the properties of an SMB Direct connection. `limits` are the results of its
    /// negotiation.
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
