//! Frames over TCP, with or without NetBIOS.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use anyhow::Result;
use socket2::{Domain, Socket, Type};

use super::kinds::kinds;
use super::{Line, Shared, link};

/// Relays to a port of loopback, from the port that it returns.
pub(super) fn relay(server: u16, shared: Arc<Shared>) -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    thread::spawn(move || {
        for client in listener.incoming().map_while(io::Result::ok) {
            // A server that is not there is one that hangs up.
            let _ = meet(client, server, &shared);
        }
    });
    Ok(port)
}

fn meet(client: TcpStream, server: u16, shared: &Arc<Shared>) -> io::Result<()> {
    let Some(source) = shared.route() else {
        return Ok(());
    };
    let own = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    own.bind(&SocketAddrV4::new(source, 0).into())?;
    own.connect(&SocketAddrV4::new(Ipv4Addr::LOCALHOST, server).into())?;
    let server = TcpStream::from(own);
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    link([client.into(), server.into()], pass, shared)
}

fn pass(mut from: &Socket, mut to: &Socket, line: Line, shared: &Shared) -> io::Result<()> {
    let mut passed = 0;
    let mut frame = Vec::new();
    loop {
        let mut head = [0; 4];
        from.read_exact(&mut head)?;
        let length = u32::from_be_bytes([0, head[1], head[2], head[3]]) as usize;
        frame.clear();
        frame.extend_from_slice(&head);
        frame.resize(4 + length, 0);
        from.read_exact(&mut frame[4..])?;
        if let Some(part) = shared.passes(line, passed, frame.len(), kinds(&frame[4..])) {
            return to.write_all(&frame[..part]);
        }
        to.write_all(&frame)?;
        passed += frame.len() as u64;
    }
}
