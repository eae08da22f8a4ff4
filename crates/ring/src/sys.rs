//! System calls that std does not offer, as safe functions over borrowed descriptors and slices.

use std::io;
use std::mem::{self, MaybeUninit};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

/// Largest number of iovecs in one call. Linux: UIO_MAXIOV.
pub(crate) const IOV_MAX: usize = 1024;

/// Turns -1 into the error in errno.
pub(crate) fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

fn check_size(result: libc::ssize_t) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

fn own(fd: libc::c_int) -> OwnedFd {
    assert!(fd >= 0, "a new descriptor is not negative");
    // SAFETY: the callers pass a descriptor that a system call has just created for them, so
    // nothing else owns it.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// Takes ownership of a descriptor that the kernel created for a completion.
pub(crate) fn own_from_completion(fd: i32) -> OwnedFd {
    own(fd)
}

/// A non-blocking eventfd with count 0.
pub(crate) fn eventfd() -> io::Result<OwnedFd> {
    // SAFETY: takes no memory.
    let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    check(fd).map(own)
}

/// Adds 1 to an eventfd. If the counter is full, the eventfd is readable anyway.
pub(crate) fn eventfd_signal(fd: BorrowedFd<'_>) {
    let one = 1_u64.to_ne_bytes();
    // SAFETY: `one` is alive during the call and the call passes its length.
    let _ = unsafe { libc::write(fd.as_raw_fd(), one.as_ptr().cast(), one.len()) };
}

/// Sets an eventfd to 0.
pub(crate) fn eventfd_clear(fd: BorrowedFd<'_>) {
    // The read fails if the value is 0 already.
    let _ = read(fd, &mut [0; 8]);
}

/// Creates a pipe. Returns the read end and the write end.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [-1; 2];
    // SAFETY: the kernel writes two descriptors to the array, which is an exclusive local.
    check(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
    Ok((own(ends[0]), own(ends[1])))
}

/// Requests a capacity in bytes for a pipe.
pub(crate) fn set_pipe_bytes(fd: BorrowedFd<'_>, bytes: usize) -> io::Result<()> {
    let bytes = libc::c_int::try_from(bytes).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: takes no memory.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETPIPE_SZ, bytes) }).map(drop)
}

/// splice(2): moves at most `len` bytes between two descriptors, one of which is a pipe. `offset`
/// is the position in `from`, if that is a file.
pub(crate) fn splice(
    from: BorrowedFd<'_>,
    offset: Option<u64>,
    to: BorrowedFd<'_>,
    len: usize,
) -> io::Result<usize> {
    let too_far = |_| io::Error::from_raw_os_error(libc::EINVAL);
    let mut offset = offset.map(i64::try_from).transpose().map_err(too_far)?;
    let at = offset.as_mut().map_or(ptr::null_mut(), ptr::from_mut);
    let (from, to) = (from.as_raw_fd(), to.as_raw_fd());
    // SAFETY: the offset is null or a live local; no other memory is passed.
    check_size(unsafe { libc::splice(from, at, to, ptr::null_mut(), len, 0) })
}

/// read(2) into `into`.
pub(crate) fn read(fd: BorrowedFd<'_>, into: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the slice is exclusively borrowed for the call, which writes at most its length.
    check_size(unsafe { libc::read(fd.as_raw_fd(), into.as_mut_ptr().cast(), into.len()) })
}

/// Waits until one of the descriptors is readable, or a signal arrives.
pub(crate) fn wait_readable(fds: [BorrowedFd<'_>; 2]) {
    let mut polled = fds.map(|fd| libc::pollfd {
        fd: fd.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    });
    // SAFETY: the array is a live local with as many entries as the call passes.
    unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, -1) };
}

/// Whether one of `events` of poll(2) holds now, or the descriptor is broken.
pub(crate) fn is_ready(fd: BorrowedFd<'_>, events: libc::c_short) -> io::Result<bool> {
    let mut poll = libc::pollfd {
        fd: fd.as_raw_fd(),
        events,
        revents: 0,
    };
    // SAFETY: the pointer describes one live local.
    let result = check(unsafe { libc::poll(&raw mut poll, 1, 0) });
    match result {
        Ok(count) => Ok(count > 0),
        // A caller that finds nothing to do waits again.
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
        Err(error) => Err(error),
    }
}

/// fanotify_init(2). The flags of event descriptors do not matter, because events with handles have
/// none.
pub(crate) fn fanotify_init(flags: libc::c_uint) -> io::Result<OwnedFd> {
    // SAFETY: takes no memory.
    check(unsafe { libc::fanotify_init(flags, libc::O_RDONLY as libc::c_uint) }).map(own)
}

/// fanotify_mark(2) of an open directory, also one opened with O_PATH.
pub(crate) fn fanotify_mark(
    queue: BorrowedFd<'_>,
    flags: libc::c_uint,
    mask: u64,
    directory: BorrowedFd<'_>,
) -> io::Result<()> {
    let (queue, directory) = (queue.as_raw_fd(), directory.as_raw_fd());
    // SAFETY: the path is a string constant that ends with a zero byte.
    let result = unsafe { libc::fanotify_mark(queue, flags, mask, directory, c".".as_ptr()) };
    check(result).map(drop)
}

/// Memory for the largest handle, aligned as the kernel's `struct file_handle`.
#[repr(C)]
struct HandleBuffer {
    head: libc::file_handle,
    bytes: [u8; libc::MAX_HANDLE_SZ as usize],
}

/// name_to_handle_at(2) of an open file. Returns four bytes of type, then the bytes of the handle.
pub(crate) fn file_handle(fd: BorrowedFd<'_>) -> io::Result<Vec<u8>> {
    // The handle is only an identity and does not have to be openable. Kernels before 6.5 know
    // openable handles only.
    let wanted = libc::AT_EMPTY_PATH | libc::AT_HANDLE_FID;
    match handle_with(fd, wanted) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            handle_with(fd, libc::AT_EMPTY_PATH)
        }
        result => result,
    }
}

/// name_to_handle_at(2) of an open file, for [`open_by_handle`]: four bytes of type, then the bytes
/// of the handle. Fails with EOPNOTSUPP if the file system has no handles.
pub(crate) fn openable_handle(fd: BorrowedFd<'_>) -> io::Result<Vec<u8>> {
    handle_with(fd, libc::AT_EMPTY_PATH)
}

/// open_by_handle_at(2) with O_PATH. `mount` is any file of the file system. Requires
/// CAP_DAC_READ_SEARCH.
pub(crate) fn open_by_handle(mount: BorrowedFd<'_>, handle: &[u8]) -> io::Result<OwnedFd> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    let (kind, bytes) = handle.split_first_chunk::<4>().ok_or_else(invalid)?;
    let mut buffer = HandleBuffer {
        head: libc::file_handle {
            handle_bytes: bytes.len() as libc::c_uint,
            handle_type: libc::c_int::from_ne_bytes(*kind),
            f_handle: [],
        },
        bytes: [0; libc::MAX_HANDLE_SZ as usize],
    };
    let target = buffer.bytes.get_mut(..bytes.len()).ok_or_else(invalid)?;
    target.copy_from_slice(bytes);
    let flags = libc::O_PATH | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    // SAFETY: the kernel reads the head and `handle_bytes` bytes behind it, which lie within the
    // array: the slice above has that length. `buffer` is repr(C) and lives during the call.
    let fd = unsafe {
        libc::open_by_handle_at(
            mount.as_raw_fd(),
            (&raw mut buffer).cast::<libc::file_handle>(),
            flags,
        )
    };
    check(fd).map(own)
}

fn handle_with(fd: BorrowedFd<'_>, flags: libc::c_int) -> io::Result<Vec<u8>> {
    let mut buffer = HandleBuffer {
        head: libc::file_handle {
            handle_bytes: libc::MAX_HANDLE_SZ as libc::c_uint,
            handle_type: 0,
            f_handle: [],
        },
        bytes: [0; libc::MAX_HANDLE_SZ as usize],
    };
    let mut mount = 0;
    // SAFETY: the kernel writes the header and at most `handle_bytes` bytes behind it, which is the
    // array of that length: `buffer` is repr(C) and an exclusive local, and `f_handle` has size 0.
    let result = unsafe {
        libc::name_to_handle_at(
            fd.as_raw_fd(),
            c"".as_ptr(),
            (&raw mut buffer).cast::<libc::file_handle>(),
            &raw mut mount,
            flags,
        )
    };
    check(result)?;
    let mut handle = buffer.head.handle_type.to_ne_bytes().to_vec();
    let length = buffer.head.handle_bytes as usize;
    handle.extend_from_slice(&buffer.bytes[..length.min(buffer.bytes.len())]);
    Ok(handle)
}

/// The id of a file's file system from fstatfs(2).
pub(crate) fn file_system_id(fd: BorrowedFd<'_>) -> io::Result<[u8; 8]> {
    let mut stat = MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the kernel fills the struct behind the pointer, which is an exclusive local.
    check(unsafe { libc::fstatfs(fd.as_raw_fd(), stat.as_mut_ptr()) })?;
    // SAFETY: fstatfs succeeded, so it has filled the struct.
    let stat = unsafe { stat.assume_init() };
    // SAFETY: fsid_t is two C ints without padding; its fields are private to libc.
    Ok(unsafe { mem::transmute::<libc::fsid_t, [u8; 8]>(stat.f_fsid) })
}

/// A close-on-exec epoll instance.
pub(crate) fn epoll_create() -> io::Result<OwnedFd> {
    // SAFETY: takes no memory.
    let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
    check(fd).map(own)
}

/// Adds `fd` for all events, edge-triggered.
pub(crate) fn epoll_add(epoll: BorrowedFd<'_>, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
    let interest = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET;
    let mut event = libc::epoll_event {
        events: interest as u32,
        u64: token,
    };
    let (epoll, fd) = (epoll.as_raw_fd(), fd.as_raw_fd());
    // SAFETY: `event` is a live local that the kernel only reads during the call.
    check(unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &raw mut event) }).map(drop)
}

/// Removes `fd`.
pub(crate) fn epoll_delete(epoll: BorrowedFd<'_>, fd: BorrowedFd<'_>) -> io::Result<()> {
    let (epoll, fd) = (epoll.as_raw_fd(), fd.as_raw_fd());
    // SAFETY: EPOLL_CTL_DEL ignores the event pointer (Linux 2.6.9 and later).
    check(unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_DEL, fd, ptr::null_mut()) }).map(drop)
}

/// Waits for events. Returns how many entries of `events` are filled. A timeout of -1 ms waits
/// forever.
pub(crate) fn epoll_wait(
    epoll: BorrowedFd<'_>,
    events: &mut [libc::epoll_event],
    timeout_ms: i32,
) -> io::Result<usize> {
    let capacity = i32::try_from(events.len()).expect("an event list is small");
    // SAFETY: the kernel writes at most `capacity` entries into the exclusively borrowed slice.
    let count =
        unsafe { libc::epoll_wait(epoll.as_raw_fd(), events.as_mut_ptr(), capacity, timeout_ms) };
    check(count).map(|count| count as usize)
}

/// recv(2) into `into`. `flags` as in recv(2).
pub(crate) fn recv(fd: BorrowedFd<'_>, into: &mut [u8], flags: i32) -> io::Result<usize> {
    // SAFETY: the slice is exclusively borrowed for the call, which writes at most its length.
    let count = unsafe { libc::recv(fd.as_raw_fd(), into.as_mut_ptr().cast(), into.len(), flags) };
    check_size(count)
}

/// A message header for sendmsg(2) that points at `iovecs`.
pub(crate) fn message(iovecs: &[libc::iovec]) -> libc::msghdr {
    // SAFETY: all-zero is a valid msghdr: null pointers with zero lengths.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = iovecs.as_ptr().cast_mut();
    message.msg_iovlen = iovecs.len() as _;
    message
}

/// sendmsg(2). `flags` as in send(2).
///
/// # Safety
/// Until this returns, the described memory stays allocated or mapped, and nothing writes it,
/// except to pages of files.
pub(crate) unsafe fn send_ranges(
    fd: BorrowedFd<'_>,
    ranges: &[libc::iovec],
    flags: i32,
) -> io::Result<usize> {
    let message = message(ranges);
    // SAFETY: `message` points at `ranges`. The caller guarantees their memory; the kernel only
    // reads it, and only during the call.
    check_size(unsafe { libc::sendmsg(fd.as_raw_fd(), &raw const message, flags) })
}

/// fstat(2)
pub(crate) fn status(file: BorrowedFd<'_>) -> io::Result<libc::stat> {
    // SAFETY: the structure is plain integers, for which zeros are valid.
    let mut status: libc::stat = unsafe { mem::zeroed() };
    // SAFETY: the pointer describes a live local.
    check(unsafe { libc::fstat(file.as_raw_fd(), &raw mut status) })?;
    Ok(status)
}

/// The effective user id of this thread.
pub(crate) fn user() -> libc::uid_t {
    // SAFETY: takes no memory.
    unsafe { libc::geteuid() }
}

/// Whether this thread has permission to write a file. faccessat2(2)
pub(crate) fn may_write(file: BorrowedFd<'_>) -> bool {
    let flags = libc::AT_EMPTY_PATH | libc::AT_EACCESS;
    // SAFETY: the path is a string constant that ends with a zero byte.
    let result = unsafe { libc::faccessat(file.as_raw_fd(), c"".as_ptr(), libc::W_OK, flags) };
    result == 0
}

/// preadv2(2) with RWF_NOWAIT: reads without waiting. EAGAIN if the read would wait, EOPNOTSUPP if
/// the file system does not support it.
pub(crate) fn read_nowait(fd: BorrowedFd<'_>, into: &mut [u8], offset: u64) -> io::Result<usize> {
    let iovec = libc::iovec {
        iov_base: into.as_mut_ptr().cast(),
        iov_len: into.len(),
    };
    let offset = i64::try_from(offset).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    let (fd, flags) = (fd.as_raw_fd(), libc::RWF_NOWAIT);
    // SAFETY: the one iovec covers the exclusively borrowed slice, which is alive during the call.
    check_size(unsafe { libc::preadv2(fd, &raw const iovec, 1, offset, flags) })
}

/// Whether the file system of `fd` is memory (tmpfs, ramfs).
pub(crate) fn is_in_memory(fd: BorrowedFd<'_>) -> bool {
    file_system(fd).is_some_and(|kind| [TMPFS_MAGIC, RAMFS_MAGIC].contains(&kind))
}

/// Whether the file system of `fd` is overlayfs. A mapping of an unwritten file there shows the
/// lower layer, and keeps showing it after the first write has replaced the file by a copy.
pub(crate) fn is_layered(fd: BorrowedFd<'_>) -> bool {
    file_system(fd) == Some(OVERLAYFS_MAGIC)
}

/// The type of the file system of `fd`. statfs(2)
fn file_system(fd: BorrowedFd<'_>) -> Option<u64> {
    let mut stat = MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the kernel fills the struct behind the pointer, which is an exclusive local.
    if unsafe { libc::fstatfs(fd.as_raw_fd(), stat.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: fstatfs returned 0, so it has filled the struct.
    u64::try_from(unsafe { stat.assume_init() }.f_type).ok()
}

/// The f_type of file systems. linux/magic.h. The type of those in libc depends on the C library.
const TMPFS_MAGIC: u64 = 0x0102_1994;
const RAMFS_MAGIC: u64 = 0x8584_58f6;
const OVERLAYFS_MAGIC: u64 = 0x794c_7630;

/// A close-on-exec TCP socket of the family of `address`.
pub(crate) fn tcp_socket(address: &SocketAddr, flags: i32) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() {
        libc::AF_INET
    } else {
        libc::AF_INET6
    };
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | flags;
    // SAFETY: takes no memory.
    check(unsafe { libc::socket(family, kind, 0) }).map(own)
}

/// Whether the peer of a connection is on this machine.
pub(crate) fn has_peer_on_this_machine(socket: &TcpStream) -> bool {
    let (own, peer) = (socket.local_addr(), socket.peer_addr());
    matches!((own, peer), (Ok(own), Ok(peer)) if own.ip() == peer.ip())
}

/// Chooses the simplest congestion control. Inside one machine nothing is congested, and an
/// algorithm that paces packets (bbr) spends a timer on each of them. If the kernel refuses, the
/// default of the machine stays.
pub(crate) fn expect_no_congestion(fd: BorrowedFd<'_>) {
    let name = c"reno".to_bytes();
    let (level, option) = (libc::IPPROTO_TCP, libc::TCP_CONGESTION);
    // SAFETY: the pointer and the length describe a live slice, which the kernel only reads.
    let _ = check(unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            option,
            name.as_ptr().cast(),
            name.len() as libc::socklen_t,
        )
    });
}

/// Sets an integer option of the SOL_SOCKET level.
pub(crate) fn set_socket_option(fd: BorrowedFd<'_>, name: i32, value: i32) -> io::Result<()> {
    set_option(fd, libc::SOL_SOCKET, name, value)
}

/// Restricts an IPv6 socket to IPv6.
pub(crate) fn set_v6_only(fd: BorrowedFd<'_>) -> io::Result<()> {
    set_option(fd, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1)
}

/// Sets an integer option.
pub(crate) fn set_option(fd: BorrowedFd<'_>, level: i32, name: i32, value: i32) -> io::Result<()> {
    let length = size_of::<i32>() as libc::socklen_t;
    let value = (&raw const value).cast();
    // SAFETY: `value` points at a live i32 parameter and `length` is its size.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, value, length) }).map(drop)
}

/// Offset of `tcpi_bytes_acked` in struct tcp_info of linux/tcp.h. The struct of libc ends before
/// it.
const BYTES_ACKED: usize = 120;

/// Number of bytes that the peer of a TCP socket has acknowledged. 0 if the kernel does not report
/// it, or on another socket.
pub(crate) fn bytes_acked(fd: BorrowedFd<'_>) -> u64 {
    let mut info = [0_u8; BYTES_ACKED + size_of::<u64>()];
    let mut length = info.len() as libc::socklen_t;
    let (level, option) = (libc::IPPROTO_TCP, libc::TCP_INFO);
    let (value, size) = (info.as_mut_ptr().cast(), &raw mut length);
    // SAFETY: `value` points at a live array and `length` is its size; the kernel writes no more.
    let result = check(unsafe { libc::getsockopt(fd.as_raw_fd(), level, option, value, size) });
    let acked = info.last_chunk().expect("the array ends with the value");
    match result {
        Ok(_) => u64::from_ne_bytes(*acked),
        Err(_) => 0,
    }
}

/// A socket address in the kernel's form.
pub(crate) struct RawAddress {
    storage: libc::sockaddr_storage,
    length: libc::socklen_t,
}

impl RawAddress {
    /// Converts an address of either family.
    pub(crate) fn new(address: &SocketAddr) -> Self {
        match address {
            SocketAddr::V4(v4) => Self::of(libc::sockaddr_in {
                sin_family: libc::AF_INET as _,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr {
                    s_addr: u32::from_ne_bytes(v4.ip().octets()),
                },
                sin_zero: [0; 8],
            }),
            SocketAddr::V6(v6) => Self::of(libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as _,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: v6.flowinfo(),
                sin6_addr: libc::in6_addr {
                    s6_addr: v6.ip().octets(),
                },
                sin6_scope_id: v6.scope_id(),
            }),
        }
    }

    fn of<T: Copy>(address: T) -> Self {
        assert!(size_of::<T>() <= size_of::<libc::sockaddr_storage>());
        // SAFETY: all-zero is a valid sockaddr_storage.
        let mut storage: libc::sockaddr_storage = unsafe { mem::zeroed() };
        let target = (&raw mut storage).cast::<T>();
        // SAFETY: `storage` is a live local, at least as large as T (asserted), and its definition
        // aligns it for every kind of socket address.
        unsafe { target.write(address) };
        Self {
            storage,
            length: size_of::<T>() as libc::socklen_t,
        }
    }

    /// A pointer for the kernel. Valid while `self` does not move.
    pub(crate) fn as_ptr(&self) -> *const libc::sockaddr {
        (&raw const self.storage).cast()
    }

    /// Length in bytes.
    pub(crate) fn length(&self) -> libc::socklen_t {
        self.length
    }
}

/// bind(2).
pub(crate) fn bind(fd: BorrowedFd<'_>, address: &SocketAddr) -> io::Result<()> {
    let address = RawAddress::new(address);
    // SAFETY: the pointer and the length describe a live local.
    check(unsafe { libc::bind(fd.as_raw_fd(), address.as_ptr(), address.length()) }).map(drop)
}

/// listen(2).
pub(crate) fn listen(fd: BorrowedFd<'_>, backlog: i32) -> io::Result<()> {
    // SAFETY: takes no memory.
    check(unsafe { libc::listen(fd.as_raw_fd(), backlog) }).map(drop)
}

/// connect(2).
pub(crate) fn connect(fd: BorrowedFd<'_>, address: &SocketAddr) -> io::Result<()> {
    let address = RawAddress::new(address);
    // SAFETY: the pointer and the length describe a live local.
    check(unsafe { libc::connect(fd.as_raw_fd(), address.as_ptr(), address.length()) }).map(drop)
}
