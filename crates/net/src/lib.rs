//! How messages move: over TCP with the framings of direct TCP and of the NetBIOS session service,
//! over QUIC, and over RDMA by SMB Direct.
//!
//! A transport is three things: an [`Endpoint`] that a configuration names (`tcp:445`, `quic:443`),
//! a [`Stream`] that moves bytes, and a [`Framing`] that turns them into frames and back. The
//! framing is pure: the stream moves the bytes, the framing says what they are.
#![forbid(unsafe_code)]

mod carrier;
mod endpoint;
mod framing;
mod nbt;
pub mod netlink;
mod outbox;
pub mod quic;
mod receiver;
mod refusal;
pub mod smbdirect;
mod stream;
mod tcp;
mod tcp_options;
mod timer;
pub mod tls;

pub use endpoint::{ENDPOINTS_MAX, Endpoint, EndpointError, Endpoints, Transport};
pub use framing::{FrameError, Framing, Next, PREFIX_LEN};
pub use outbox::{Outbox, PayloadBytes, PayloadSource, Payloads};
pub use receiver::{FrameHandler, Partial, Received, Receiver};
pub use refusal::Refusal;
pub use stream::Stream;
pub use tcp_options::{KeepAlive, TcpOptions, TcpOptionsError};
pub use timer::{TimeoutHandler, Timer};
