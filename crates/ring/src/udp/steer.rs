//! Distribution of QUIC datagrams over several sockets on one port.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd;

use super::sys;

/// Makes the kernel choose the receiving socket of each UDP datagram among the `count` sockets that
/// share the address of `socket` (SO_REUSEPORT). One call with any socket of the group sets the
/// rule for the whole group. Bind all sockets first: the kernel numbers them from 0 in the order of
/// their bind.
///
/// The number of the receiving socket is N modulo `count`. N is the unsigned number in the first
/// two bytes of the QUIC destination connection ID, in network byte order (big-endian). The ID
/// follows the version and a length byte in a long header, and the first byte in a short header:
/// RFC 8999 5.1 and 5.2. A datagram that ends before these two bytes goes to socket 0. A `count` of
/// 0 means 1.
///
/// # Errors
/// The kernel does not support BPF programs for this, or the socket is not in a group.
pub fn steer(socket: &UdpSocket, count: u32) -> io::Result<()> {
    let load_byte = (libc::BPF_LD | libc::BPF_B | libc::BPF_ABS) as u16;
    let load_two = (libc::BPF_LD | libc::BPF_H | libc::BPF_ABS) as u16;
    let jump_if_set = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
    let jump = (libc::BPF_JMP | libc::BPF_JA) as u16;
    let modulo = (libc::BPF_ALU | libc::BPF_MOD | libc::BPF_K) as u16;
    let result = (libc::BPF_RET | libc::BPF_A) as u16;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let program = [
        step(load_byte, 0, 0, 0),
        step(jump_if_set, 0, 2, 0x80),
        step(load_two, 0, 0, 6),
        step(jump, 0, 0, 1),
        step(load_two, 0, 0, 1),
        step(modulo, 0, 0, count.max(1)),
        step(result, 0, 0, 0),
    ];
    sys::attach_to_group(socket.as_fd(), &program)
}
