//! UDP: many datagrams for one system call, both ways.
//!
//! The kernel gathers datagrams of one peer that arrive together (UDP_GRO). It also takes a batch
//! for one peer and cuts it into datagrams on output (UDP_SEGMENT). So a socket receives and sends
//! batches: up to 64 KiB of datagrams of one size, of which the last may be shorter.
//!
//! With io_uring, one multishot operation receives into memory that the caller then owns, without
//! a copy. With epoll, each batch costs a system call. A send is tried at once and goes to the ring
//! only while the socket is full, as in send.rs.

mod arrivals;
mod control;
mod datagrams;
mod outgoing;
mod socket;
mod steer;
mod sys;

pub(crate) use arrivals::{Arrivals, GROUP};
pub use datagrams::{Datagrams, UdpBuffers};
pub use outgoing::Outgoing;
pub use socket::{DATAGRAMS_BYTES_MAX, Udp};
pub use steer::steer;
