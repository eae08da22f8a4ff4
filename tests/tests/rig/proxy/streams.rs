//! Frames over TCP, with or without NetBIOS.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use anyhow::Result;

use super::kinds::kinds;
use super::{Line, Shared, Way};

/// Relays to a port of loopback, from the port that it tells.
pub(super) fn relay(server: u16, shared: Arc<Shared>) -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    thread::spawn(move || {
        for client in listener.incoming().map_while(io::Result::ok) {
            // A server that is not there is one that hangs up.
            let _ = link(client, server, &shared);
        }
    });
    Ok(port)
}

fn link(client: TcpStream, server: u16, shared: &Arc<Shared>) -> io::Result<()> {
    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, server))?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let ends = [client.try_clone()?, server.try_clone()?];
    let connection = shared.add(Box::new(move || hang_up(&ends)));
    for (from, to, way) in [
        (client.try_clone()?, server.try_clone()?, Way::There),
        (server, client, Way::Back),
    ] {
        let shared = Arc::clone(shared);
        thread::spawn(move || {
            let _ = pass(&from, &to, (connection, way), &shared);
            hang_up(&[from, to]);
        });
    }
    Ok(())
}

fn pass(mut from: &TcpStream, mut to: &TcpStream, line: Line, shared: &Shared) -> io::Result<()> {
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

fn hang_up(ends: &[TcpStream; 2]) {
    for stream in ends {
        let _ = stream.shutdown(Shutdown::Both);
    }
}
