//! Sending datagrams: inline, or with the ring while the socket is full.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};

use io_uring::{opcode, types};

use super::control::Control;
use super::socket::Udp;
use super::sys;
use crate::config::count;
use crate::epoll::Direction;
use crate::op::{Hold, Pinned};
use crate::sys::RawAddress;

/// Destination and form of a batch of datagrams to send.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing {
    /// Length in bytes of each datagram except the last one, which may be shorter. `None` if the
    /// batch is one datagram.
    pub segment: Option<usize>,
    /// Destination address and port of all datagrams.
    pub peer: SocketAddr,
    /// Source IP address of the datagrams; `None` lets the kernel choose one of the socket's
    /// addresses.
    pub local: Option<IpAddr>,
    /// The two bits of explicit congestion notification in the IP header (0 to 3). RFC 3168 5
    pub ecn: u8,
}

/// The memory that a send in the ring refers to. It has a fixed address in its box.
struct Batch {
    bytes: Vec<u8>,
    address: RawAddress,
    control: Control,
    iovec: libc::iovec,
    message: libc::msghdr,
}

impl Pinned for Batch {}

impl Udp {
    /// Sends a batch of datagrams without waiting. `bytes` are their contents, one after the other;
    /// `outgoing` has their destination and the length of each. Datagrams that the network refuses
    /// are lost without an error, as UDP allows.
    ///
    /// # Errors
    /// `WouldBlock` if the buffer of the socket is full.
    pub fn try_send(&self, bytes: &[u8], outgoing: &Outgoing) -> io::Result<()> {
        match self.try_batch(bytes, outgoing) {
            Err(error) if outgoing.segment.is_some() && is_no_offload(&error) => {
                if self.shared.segments.replace(1) > 1 {
                    tracing::info!(%error, "cannot send batches of datagrams, sending single ones");
                }
                let segment = outgoing.segment.unwrap_or(bytes.len());
                let single = Outgoing {
                    segment: None,
                    ..*outgoing
                };
                // If the socket is full before the last datagram, the rest is lost: the next call
                // does not send batches any more.
                let mut datagrams = bytes.chunks(segment.max(1));
                datagrams.try_for_each(|datagram| self.try_batch(datagram, &single))
            }
            result => result,
        }
    }

    fn try_batch(&self, bytes: &[u8], outgoing: &Outgoing) -> io::Result<()> {
        let shared = &*self.shared;
        let address = RawAddress::new(&outgoing.peer);
        let control = self.control(outgoing);
        loop {
            count(&shared.handle.inner().stats, |stats| {
                stats.inline_calls += 1;
            });
            match sys::send_message(shared.socket.as_fd(), bytes, &address, &control) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(error),
                Err(error) if is_no_offload(&error) && outgoing.segment.is_some() => {
                    return Err(error);
                }
                Err(error) => {
                    tracing::trace!(%error, peer = %outgoing.peer, "cannot send datagrams");
                    return Ok(());
                }
                Ok(_) => return Ok(()),
            }
        }
    }

    /// Sends a batch of datagrams and returns its memory for reuse. `bytes` are their contents, one
    /// after the other; `outgoing` has their destination and the length of each. Waits while the
    /// buffer of the socket is full. Datagrams that the network refuses are lost without an error,
    /// as UDP allows.
    pub async fn send(&self, bytes: Vec<u8>, outgoing: Outgoing) -> Vec<u8> {
        let shared = &*self.shared;
        if let Some(token) = shared.source {
            let epoll = shared.handle.inner().epoll().expect("a token is epoll's");
            while self.try_send(&bytes, &outgoing).is_err() {
                epoll.clear_ready(token, Direction::Write);
                shared.handle.ready(token, Direction::Write).await;
            }
            return bytes;
        }
        if self.try_send(&bytes, &outgoing).is_ok() {
            return bytes;
        }
        let batch = self.batch(bytes, &outgoing);
        let fd = types::Fd(shared.socket.as_raw_fd());
        let entry = opcode::SendMsg::new(fd, &raw const batch.message).build();
        let hold = Hold::Send(shared.socket.clone(), batch);
        // SAFETY: the entry points at the header in the box, and the header at the address, the
        // iovec and the control messages in the same box; the iovec points at the bytes of the
        // vector. None of it moves with the hold. The hold owns all of it, and nothing accesses it
        // until the hold returns.
        match unsafe { shared.handle.operate(entry, hold) }.await {
            (_, Hold::Send(_, batch)) => batch.downcast::<Batch>().bytes,
            _ => unreachable!("an operation returns its hold"),
        }
    }

    fn control(&self, outgoing: &Outgoing) -> Control {
        let segment = outgoing.segment.and_then(|bytes| u16::try_from(bytes).ok());
        let is_ipv4 = self.shared.local.is_ipv4();
        Control::new(is_ipv4, segment, outgoing.local, outgoing.ecn)
    }

    fn batch(&self, bytes: Vec<u8>, outgoing: &Outgoing) -> Box<Batch> {
        let mut batch = Box::new(Batch {
            address: RawAddress::new(&outgoing.peer),
            control: self.control(outgoing),
            iovec: sys::iovec(&bytes),
            message: crate::sys::message(&[]),
            bytes,
        });
        batch.message = sys::message_to(&batch.iovec, &batch.address, &batch.control);
        batch
    }
}

/// Whether the kernel or the network card cannot cut batches. Linux: EIO, or EINVAL from old
/// drivers.
fn is_no_offload(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EIO | libc::EINVAL))
}
