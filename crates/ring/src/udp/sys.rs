//! System calls of UDP, as safe functions over borrowed descriptors and slices.

use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use bytes::BytesMut;

use super::control::{CONTROL_BYTES, Control, Meta};
use super::datagrams::UdpBuffers;
use crate::sys::{RawAddress, check, message, set_option, set_socket_option};

/// Configures a socket: the kernel gathers datagrams, reports their destination address and
/// congestion marks, and never fragments sent datagrams.
pub(super) fn prepare(socket: &UdpSocket, is_ipv4: bool, buffers: UdpBuffers) -> io::Result<()> {
    let fd = socket.as_fd();
    let UdpBuffers {
        receive_bytes,
        send_bytes,
    } = buffers;
    let (rcv, snd) = (libc::SO_RCVBUF, libc::SO_SNDBUF);
    set_buffer(fd, libc::SO_RCVBUFFORCE, rcv, receive_bytes);
    set_buffer(fd, libc::SO_SNDBUFFORCE, snd, send_bytes);
    if let Err(error) = set_option(fd, libc::SOL_UDP, libc::UDP_GRO, 1) {
        tracing::debug!(%error, "cannot receive datagrams in batches");
    }
    if is_ipv4 {
        let ip = libc::IPPROTO_IP;
        set_option(fd, ip, libc::IP_PKTINFO, 1)?;
        set_option(fd, ip, libc::IP_RECVTOS, 1)?;
        set_option(fd, ip, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE)
    } else {
        let ip = libc::IPPROTO_IPV6;
        set_option(fd, ip, libc::IPV6_RECVPKTINFO, 1)?;
        set_option(fd, ip, libc::IPV6_RECVTCLASS, 1)?;
        set_option(fd, ip, libc::IPV6_DONTFRAG, 1)?;
        set_option(fd, ip, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE)
    }
}

/// Sets the size of a buffer. Root may exceed net.core.rmem_max and wmem_max; other users may not.
fn set_buffer(fd: BorrowedFd<'_>, forced: i32, name: i32, bytes: usize) {
    let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
    if set_socket_option(fd, forced, bytes).is_ok() {
        return;
    }
    if let Err(error) = set_socket_option(fd, name, bytes) {
        tracing::debug!(%error, "cannot set the size of a socket's buffer");
    }
}

/// A message received by recvmsg(2).
pub(super) struct Message {
    name: [u8; size_of::<libc::sockaddr_in6>()],
    name_length: usize,
    control: [u8; CONTROL_BYTES],
    control_length: usize,
    length: usize,
    is_truncated: bool,
}

impl Message {
    /// The metadata of the datagrams. `None` if they are truncated.
    pub(super) fn meta(&self) -> Option<Meta> {
        let name = &self.name[..self.name_length.min(self.name.len())];
        let control = &self.control[..self.control_length.min(self.control.len())];
        let meta = Meta::new(name, control, self.length)?;
        (!self.is_truncated).then_some(meta)
    }
}

/// recvmsg(2) into the spare capacity of `buffer`, without waiting. Appends to the buffer.
pub(super) fn recv_message(fd: BorrowedFd<'_>, buffer: &mut BytesMut) -> io::Result<Message> {
    let mut received = Message {
        name: [0; size_of::<libc::sockaddr_in6>()],
        name_length: 0,
        control: [0; CONTROL_BYTES],
        control_length: 0,
        length: 0,
        is_truncated: false,
    };
    let spare = buffer.spare_capacity_mut();
    let iovec = libc::iovec {
        iov_base: spare.as_mut_ptr().cast(),
        iov_len: spare.len(),
    };
    let mut header = message(std::slice::from_ref(&iovec));
    header.msg_name = received.name.as_mut_ptr().cast();
    header.msg_namelen = received.name.len() as libc::socklen_t;
    header.msg_control = received.control.as_mut_ptr().cast();
    header.msg_controllen = received.control.len() as _;
    // SAFETY: the header points at live locals and at the exclusively borrowed spare capacity, each
    // with its length; the kernel writes to them during the call only.
    let count = unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut header, libc::MSG_DONTWAIT) };
    let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
    let length = buffer.len() + count;
    // SAFETY: the kernel has written `count` bytes of the spare capacity.
    unsafe { buffer.set_len(length) };
    received.name_length = header.msg_namelen as usize;
    received.control_length = header.msg_controllen as usize;
    received.is_truncated = header.msg_flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0;
    received.length = count;
    Ok(received)
}

/// An iovec over bytes that the kernel only reads.
pub(super) fn iovec(bytes: &[u8]) -> libc::iovec {
    libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    }
}

/// A message header that refers to all arguments.
pub(super) fn message_to(
    iovec: &libc::iovec,
    address: &RawAddress,
    control: &Control,
) -> libc::msghdr {
    let mut header = message(std::slice::from_ref(iovec));
    header.msg_name = address.as_ptr().cast_mut().cast();
    header.msg_namelen = address.length();
    let control = control.bytes();
    if !control.is_empty() {
        header.msg_control = control.as_ptr().cast_mut().cast();
        header.msg_controllen = control.len() as _;
    }
    header
}

/// sendmsg(2) without waiting.
pub(super) fn send_message(
    fd: BorrowedFd<'_>,
    bytes: &[u8],
    address: &RawAddress,
    control: &Control,
) -> io::Result<usize> {
    let iovec = iovec(bytes);
    let header = message_to(&iovec, address, control);
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the header points at borrowed and local memory that the kernel only reads, and only
    // during the call.
    let count = unsafe { libc::sendmsg(fd.as_raw_fd(), &raw const header, flags) };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

/// Attaches a program that chooses among the sockets that share the address of `fd`.
pub(super) fn attach_to_group(fd: BorrowedFd<'_>, program: &[libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: u16::try_from(program.len()).expect("a program is short"),
        filter: program.as_ptr().cast_mut(),
    };
    let (level, name) = (libc::SOL_SOCKET, libc::SO_ATTACH_REUSEPORT_CBPF);
    let length = size_of::<libc::sock_fprog>() as libc::socklen_t;
    let value = (&raw const program).cast();
    // SAFETY: `value` points at a live local of that length, which points at the borrowed
    // program; the kernel copies both during the call.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, value, length) }).map(drop)
}
