//! Frames over TCP, with or without NetBIOS.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use socket2::{Domain, Socket, Type};

use super::kinds::kinds;
use super::{Line, Pass, Shared, link};

/// Length in bytes of a frame with data.
const LARGE_FRAME: usize = 1 << 16;
/// Pause before each frame with data of a connection while the cut of a later connection is to
/// come. The first connection alone then needs seconds for a large file, and the later one carries
/// data on a busy machine too.
const PAUSE: Duration = Duration::from_millis(20);

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
    let pass: Pass = match shared.delay().is_zero() {
        true => pass,
        false => pass_later,
    };
    link([client.into(), server.into()], pass, shared)
}

/// Passes each frame after the delay. The number of frames in flight has no limit.
fn pass_later(from: &Socket, mut to: &Socket, _line: Line, shared: &Shared) -> io::Result<()> {
    let delay = shared.delay();
    let (sender, receiver) = mpsc::channel::<(Instant, Vec<u8>)>();
    thread::scope(|scope| {
        scope.spawn(move || {
            for (due, frame) in receiver {
                thread::sleep(due.saturating_duration_since(Instant::now()));
                if to.write_all(&frame).is_err() {
                    return;
                }
            }
        });
        loop {
            let mut frame = Vec::new();
            read_frame(from, &mut frame)?;
            let due = Instant::now() + delay;
            sender.send((due, frame)).map_err(io::Error::other)?;
        }
    })
}

/// Reads a frame with its prefix.
fn read_frame(mut from: &Socket, frame: &mut Vec<u8>) -> io::Result<()> {
    let mut head = [0; 4];
    from.read_exact(&mut head)?;
    let length = u32::from_be_bytes([0, head[1], head[2], head[3]]) as usize;
    frame.clear();
    frame.extend_from_slice(&head);
    frame.resize(4 + length, 0);
    from.read_exact(&mut frame[4..])
}

fn pass(from: &Socket, mut to: &Socket, line: Line, shared: &Shared) -> io::Result<()> {
    let mut passed = 0;
    let mut frame = Vec::new();
    loop {
        read_frame(from, &mut frame)?;
        if frame.len() > LARGE_FRAME && shared.cuts_later_than(line) {
            thread::sleep(PAUSE);
        }
        if let Some(part) = shared.passes(line, passed, frame.len(), kinds(&frame[4..])) {
            return to.write_all(&frame[..part]);
        }
        to.write_all(&frame)?;
        passed += frame.len() as u64;
    }
}
