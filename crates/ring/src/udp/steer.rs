//! Distribution of QUIC datagrams over several sockets on one port.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd;

use super::sys;

/// Makes the kernel choose the receiving socket of each datagram among the `count` sockets that
/// share the address of `socket` (SO_REUSEPORT), in the order of their bind. The index of the
/// socket is the number in the first two bytes of the QUIC connection id, modulo `count`. RFC 8999
/// 5.1 and 5.2 define the position of the id for every version: in a long header after the version
/// and a length byte, in a short header at once.
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
