//! System calls of the emulation: message sockets, and access to the memory of another process.

use std::ffi::CString;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use ring::View;

use crate::emulated::message::HEADER_BYTES;
use crate::operand::Piece;
use crate::slots::Slot;

/// Number of messages that one system call receives or sends.
pub(crate) const BATCH: usize = 16;
/// Number of memory ranges in one call. readv(2).
const RANGES_MAX: usize = 1024;
/// Number of connection requests that wait to be accepted.
const BACKLOG: libc::c_int = 1024;

/// A range of local memory: address and length. Only valid within a call.
type Range = libc::iovec;

/// A range of the memory of another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Far {
    pub(crate) address: u64,
    pub(crate) bytes: usize,
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

fn check_size(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// A non-blocking message socket for local processes.
pub(crate) fn socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: takes no memory.
    let fd = check(unsafe { libc::socket(libc::AF_UNIX, kind, 0) })?;
    // SAFETY: the kernel has just created the descriptor, so nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn address(path: &Path) -> io::Result<(libc::sockaddr_un, libc::socklen_t)> {
    let bytes = path.as_os_str().as_bytes();
    let too_long = || io::Error::new(io::ErrorKind::InvalidFilename, "a path of a socket");
    let name = CString::new(bytes).map_err(|_| too_long())?;
    // SAFETY: a socket address is plain integers, for which zeros are valid.
    let mut address: libc::sockaddr_un = unsafe { mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let name = name.as_bytes_with_nul();
    let target = address
        .sun_path
        .get_mut(..name.len())
        .ok_or_else(too_long)?;
    for (to, from) in target.iter_mut().zip(name) {
        *to = *from as libc::c_char;
    }
    Ok((address, size_of::<libc::sockaddr_un>() as libc::socklen_t))
}

/// Start of the name of a socket that stands for a client's port. It is not a file: names that
/// start with a zero byte are abstract. unix(7)
const PORT_NAME: &[u8] = b"\0smbeam-rdma-";

/// Gives a port number to a socket before it connects. `AddrInUse` if another socket has the port.
pub(crate) fn bind_port(fd: BorrowedFd<'_>, port: u16) -> io::Result<()> {
    let mut name = PORT_NAME.to_vec();
    name.extend_from_slice(port.to_string().as_bytes());
    // SAFETY: a socket address is plain integers, for which zeros are valid.
    let mut address: libc::sockaddr_un = unsafe { mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    for (to, from) in address.sun_path.iter_mut().zip(&name) {
        *to = *from as libc::c_char;
    }
    let length = mem::offset_of!(libc::sockaddr_un, sun_path) + name.len();
    let address = (&raw const address).cast();
    // SAFETY: pointer and length describe a live local.
    check(unsafe { libc::bind(fd.as_raw_fd(), address, length as libc::socklen_t) }).map(drop)
}

/// The port number that [`bind_port`] has given to the peer's socket.
pub(crate) fn peer_port(fd: BorrowedFd<'_>) -> Option<u16> {
    // SAFETY: a socket address is plain integers, for which zeros are valid.
    let mut address: libc::sockaddr_un = unsafe { mem::zeroed() };
    let mut length = size_of::<libc::sockaddr_un>() as libc::socklen_t;
    let into = (&raw mut address).cast();
    // SAFETY: the pointers describe live locals of the right size.
    check(unsafe { libc::getpeername(fd.as_raw_fd(), into, &raw mut length) }).ok()?;
    let length =
        length as usize - mem::offset_of!(libc::sockaddr_un, sun_path).min(length as usize);
    let name: Vec<u8> = address.sun_path.iter().map(|byte| *byte as u8).collect();
    let number = name.get(..length)?.strip_prefix(PORT_NAME)?;
    str::from_utf8(number).ok()?.parse().ok()
}

/// bind(2), then listen(2).
pub(crate) fn listen(fd: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
    let (address, length) = address(path)?;
    let address = (&raw const address).cast();
    // SAFETY: pointer and length describe a live local.
    check(unsafe { libc::bind(fd.as_raw_fd(), address, length) })?;
    // SAFETY: takes no memory.
    check(unsafe { libc::listen(fd.as_raw_fd(), BACKLOG) }).map(drop)
}

/// connect(2). A local socket connects or fails at once.
pub(crate) fn connect(fd: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
    let (address, length) = address(path)?;
    let address = (&raw const address).cast();
    // SAFETY: pointer and length describe a live local.
    check(unsafe { libc::connect(fd.as_raw_fd(), address, length) }).map(drop)
}

/// accept4(2).
pub(crate) fn accept(fd: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    let (address, length) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: null pointers request no address.
    let fd = check(unsafe { libc::accept4(fd.as_raw_fd(), address, length, flags) })?;
    // SAFETY: the kernel has just created the descriptor, so nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The process id of the peer, from the kernel. unix(7), SO_PEERCRED
pub(crate) fn peer_process(fd: BorrowedFd<'_>) -> io::Result<libc::pid_t> {
    let mut credentials = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    let (level, name) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
    let into = (&raw mut credentials).cast();
    // SAFETY: the pointers describe live locals of the right size.
    check(unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, into, &raw mut length) })?;
    Ok(credentials.pid)
}

/// Sets the send buffer, as far as the system allows.
pub(crate) fn set_send_buffer(fd: BorrowedFd<'_>, bytes: libc::c_int) {
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    let value = (&raw const bytes).cast();
    let (fd, level) = (fd.as_raw_fd(), libc::SOL_SOCKET);
    // SAFETY: pointer and length describe a live local.
    let result = unsafe { libc::setsockopt(fd, level, libc::SO_SNDBUFFORCE, value, length) };
    if result < 0 {
        // SAFETY: as above. A refusal costs batches only.
        unsafe { libc::setsockopt(fd, level, libc::SO_SNDBUF, value, length) };
    }
}

/// Shuts down the sending direction. The peer sees the end after the messages sent before.
pub(crate) fn end_sending(fd: BorrowedFd<'_>) {
    // SAFETY: takes no memory. A peer that has disappeared needs no end.
    unsafe { libc::shutdown(fd.as_raw_fd(), libc::SHUT_WR) };
}

/// Whether the peer has shut down its direction or disappeared.
pub(crate) fn is_peer_gone(fd: BorrowedFd<'_>) -> bool {
    let mut poll = libc::pollfd {
        fd: fd.as_raw_fd(),
        events: libc::POLLRDHUP,
        revents: 0,
    };
    // SAFETY: the pointer describes one live local.
    let count = unsafe { libc::poll(&raw mut poll, 1, 0) };
    count > 0 && poll.revents & (libc::POLLRDHUP | libc::POLLHUP | libc::POLLERR) != 0
}

/// Waits until the peer has shut down its direction, and drops all messages until then.
pub(crate) fn wait_for_end(fd: BorrowedFd<'_>) {
    loop {
        let mut poll = libc::pollfd {
            fd: fd.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: the pointer describes one live local.
        unsafe { libc::poll(&raw mut poll, 1, -1) };
        let mut header = [0_u8; HEADER_BYTES];
        let into = header.as_mut_ptr().cast();
        // SAFETY: pointer and length describe a live local.
        let result = unsafe { libc::recv(fd.as_raw_fd(), into, HEADER_BYTES, 0) };
        match check_size(result) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if is_transient(&error) => {}
            Err(error) if error.raw_os_error() == Some(libc::ECONNRESET) => {}
            Err(_) => return,
        }
    }
}

/// Whether the same call may succeed later.
pub(crate) fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

/// A received message.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrived {
    pub(crate) header: [u8; HEADER_BYTES],
    /// Bytes of the message, including its header, that fitted the memory.
    pub(crate) bytes: usize,
    /// The message was longer.
    pub(crate) is_truncated: bool,
}

/// Receives up to [`batch`] messages. The payload of each goes into the slot of the same number.
/// Without a slot it receives one message, and only its header.
pub(crate) fn receive(
    fd: BorrowedFd<'_>,
    slots: &mut [Slot],
    arrived: &mut [Arrived; BATCH],
) -> io::Result<usize> {
    const EMPTY: Range = Range {
        iov_base: ptr::null_mut(),
        iov_len: 0,
    };
    let mut ranges = [[EMPTY; 2]; BATCH];
    // SAFETY: a message header is integers and pointers, for which zeros are valid.
    let mut messages: [libc::mmsghdr; BATCH] = unsafe { mem::zeroed() };
    for (index, message) in messages.iter_mut().enumerate() {
        let header = &mut arrived[index].header;
        ranges[index][0] = range_mut(header);
        let mut count = 1;
        if let Some(slot) = slots.get_mut(index) {
            ranges[index][1] = range_mut(slot);
            count = 2;
        }
        message.msg_hdr.msg_iov = ranges[index].as_mut_ptr();
        message.msg_hdr.msg_iovlen = count;
    }
    let (start, count) = (messages.as_mut_ptr(), batch(slots.len()) as libc::c_uint);
    let flags = libc::MSG_DONTWAIT as _;
    // SAFETY: the array describes headers and slots that are exclusively borrowed for the call.
    let result = unsafe { libc::recvmmsg(fd.as_raw_fd(), start, count, flags, ptr::null_mut()) };
    let count = check(result)? as usize;
    for (message, arrived) in messages[..count].iter().zip(arrived.iter_mut()) {
        arrived.bytes = message.msg_len as usize;
        arrived.is_truncated = message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0;
    }
    Ok(count)
}

/// Number of messages to receive at once with this number of slots: each message may need one.
pub(crate) fn batch(slots: usize) -> usize {
    slots.clamp(1, BATCH)
}

/// Sends messages, each with a header and the bytes of its pieces. Returns the number of sent
/// messages.
pub(crate) fn send<'a>(
    fd: BorrowedFd<'_>,
    outgoing: impl Iterator<Item = (&'a [u8; HEADER_BYTES], &'a [Piece])>,
) -> io::Result<usize> {
    let mut ranges: Vec<Range> = Vec::with_capacity(BATCH * 3);
    let mut ends = [0; BATCH];
    let mut count = 0;
    for (end, (header, pieces)) in ends.iter_mut().zip(outgoing) {
        ranges.push(range(header));
        ranges.extend(pieces.iter().map(|piece| range(piece.bytes())));
        *end = ranges.len();
        count += 1;
    }
    // SAFETY: a message header is integers and pointers, for which zeros are valid.
    let mut messages: [libc::mmsghdr; BATCH] = unsafe { mem::zeroed() };
    let mut start = 0;
    for (message, end) in messages.iter_mut().zip(&ends[..count]) {
        message.msg_hdr.msg_iov = ranges[start..*end].as_mut_ptr();
        message.msg_hdr.msg_iovlen = (*end - start) as _;
        start = *end;
    }
    let flags = (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as _;
    let start = messages.as_mut_ptr();
    // SAFETY: the array describes headers and pieces that are borrowed for the call, which only
    // reads them.
    let result = unsafe { libc::sendmmsg(fd.as_raw_fd(), start, count as libc::c_uint, flags) };
    check(result).map(|count| count as usize)
}

fn range(bytes: &[u8]) -> Range {
    Range {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    }
}

fn range_mut(bytes: &mut [u8]) -> Range {
    Range {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    }
}

fn far(far: &[Far]) -> Vec<Range> {
    let range = |far: &Far| Range {
        iov_base: ptr::without_provenance_mut(far.address as usize),
        iov_len: far.bytes,
    };
    far.iter().map(range).collect()
}

/// The source of a write into the memory of another process.
#[derive(Clone, Copy)]
pub(crate) enum Near<'a> {
    /// The bytes of all pieces.
    Pieces(&'a [Piece]),
    /// A mapped range of a file.
    View(&'a View),
}

/// Writes into the memory of another process, or of this one. Returns the number of written bytes,
/// which is smaller if a range does not exist. process_vm_writev(2)
pub(crate) fn write_far(
    process: libc::pid_t,
    near: Near<'_>,
    far_ranges: &[Far],
) -> io::Result<usize> {
    let near = match near {
        Near::Pieces(pieces) => pieces.iter().map(|piece| range(piece.bytes())).collect(),
        Near::View(view) => vec![view.range()],
    };
    let mut written = 0;
    each_batch(near, far(far_ranges), |near, far| {
        let (near_count, far_count) = (near.len() as _, far.len() as _);
        // SAFETY: the near ranges are borrowed for the call, which only reads them; the kernel
        // tolerates that other processes change or truncate the file of a view. The far ranges are
        // memory that its owner has exposed for writing and does not read meanwhile: the owner gets
        // it back after this side has confirmed the end of its access (see `queue_pair`), or is
        // another process, which is responsible for its own announcements.
        let result = unsafe {
            libc::process_vm_writev(
                process,
                near.as_ptr(),
                near_count,
                far.as_ptr(),
                far_count,
                0,
            )
        };
        let count = check_size(result)?;
        written += count;
        Ok(count)
    })?;
    Ok(written)
}

/// Reads from the memory of another process, or of this one. As [`write_far`]. process_vm_readv(2)
pub(crate) fn read_far(
    process: libc::pid_t,
    into: &mut [u8],
    far_ranges: &[Far],
) -> io::Result<usize> {
    let mut read = 0;
    each_batch(vec![range_mut(into)], far(far_ranges), |near, far| {
        let (near_count, far_count) = (near.len() as _, far.len() as _);
        // SAFETY: the near range is exclusively borrowed for the call. The far ones are only read;
        // their owner does not write them while they are exposed.
        let result = unsafe {
            libc::process_vm_readv(
                process,
                near.as_ptr(),
                near_count,
                far.as_ptr(),
                far_count,
                0,
            )
        };
        let count = check_size(result)?;
        read += count;
        Ok(count)
    })?;
    Ok(read)
}

/// Calls `transfer` until all ranges are done or it stops short. Both sides have the same number of
/// bytes.
fn each_batch(
    mut near: Vec<Range>,
    mut far: Vec<Range>,
    mut transfer: impl FnMut(&[Range], &[Range]) -> io::Result<usize>,
) -> io::Result<()> {
    if near.len() <= RANGES_MAX && far.len() <= RANGES_MAX {
        return transfer(&near, &far).map(drop);
    }
    let (mut near, mut far) = (&mut near[..], &mut far[..]);
    while !near.is_empty() && !far.is_empty() {
        let head = &near[..near.len().min(RANGES_MAX)];
        let tail = &far[..far.len().min(RANGES_MAX)];
        let wanted = total(head).min(total(tail));
        let count = transfer(head, tail)?;
        if count < wanted {
            return Ok(());
        }
        near = skip(near, count);
        far = skip(far, count);
    }
    Ok(())
}

fn total(ranges: &[Range]) -> usize {
    ranges.iter().map(|range| range.iov_len).sum()
}

fn skip(ranges: &mut [Range], mut count: usize) -> &mut [Range] {
    let mut whole = 0;
    while let Some(first) = ranges.get(whole).filter(|first| first.iov_len <= count) {
        count -= first.iov_len;
        whole += 1;
    }
    let rest = &mut ranges[whole..];
    if let Some(first) = rest.first_mut() {
        first.iov_base = first.iov_base.wrapping_byte_add(count);
        first.iov_len -= count;
    }
    rest
}

/// Allows any process of this user to access this one, on systems that require it for processes
/// that are no ancestors. prctl(2), PR_SET_PTRACER
pub(crate) fn allow_access() {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    if scope.is_ok_and(|scope| scope.trim() != "0") {
        let any = libc::PR_SET_PTRACER_ANY;
        // SAFETY: takes no memory.
        unsafe { libc::prctl(libc::PR_SET_PTRACER, any, 0, 0, 0) };
    }
}
