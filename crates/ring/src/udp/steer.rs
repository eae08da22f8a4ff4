//! Which of several sockets on one port gets a datagram of QUIC.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd;

use super::sys;

/// Has the kernel choose among the `count` sockets that share the address of `socket`
/// (SO_REUSEPORT), in the order in which they were bound: the first two bytes of the
/// connection's identifier, modulo their number. RFC 8999 5.1 and 5.2 fix where it is for every
/// version: behind the length that follows the version in a long header, at once in a short one.
///
/// # Errors
/// The kernel has no such programs, or the socket is no member of a group.
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
