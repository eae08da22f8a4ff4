//! Somebody between client and server who sees each frame, and says what goes on in its place.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};

use wire::{Command, Flags, Header, Status};

/// Bytes in front of a frame. \[MS-SMB2\] 2.1
const PREFIX_LEN: usize = 4;

/// What goes on in the place of a frame: the frames to send, one behind the other.
type Change = dyn FnMut(Vec<u8>) -> Vec<Vec<u8>> + Send;

/// Relays one connection to a server on `target`; the port to connect to.
pub(crate) fn meddler(target: u16, to_server: Box<Change>, to_client: Box<Change>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        let (client, _) = listener.accept().expect("a client");
        let server = TcpStream::connect(("127.0.0.1", target)).expect("the server");
        relay(&client, &server, to_server);
        relay(&server, &client, to_client);
    });
    port
}

fn relay(from: &TcpStream, to: &TcpStream, mut change: Box<Change>) {
    let mut from = from.try_clone().expect("a clone");
    let mut to = to.try_clone().expect("a clone");
    std::thread::spawn(move || {
        while let Ok(frame) = frame(&mut from) {
            if to.write_all(&with_prefixes(change(frame))).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
        let _ = from.shutdown(Shutdown::Both);
    });
}

fn frame(from: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut prefix = [0; PREFIX_LEN];
    from.read_exact(&mut prefix)?;
    let mut frame = vec![0; u32::from_be_bytes(prefix) as usize];
    from.read_exact(&mut frame)?;
    Ok(frame)
}

fn with_prefixes(frames: Vec<Vec<u8>>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for frame in frames {
        let len = u32::try_from(frame.len()).expect("a frame is short");
        bytes.extend_from_slice(&len.to_be_bytes());
        bytes.extend_from_slice(&frame);
    }
    bytes
}

/// Another answer in the place of this one: without a signature, and with what `body` adds.
pub(crate) fn answer(frame: &[u8], status: Status, body: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let header = Header::decode(frame).expect("an answer");
    let header = Header {
        status,
        next_command: 0,
        flags: Flags::SERVER_TO_REDIR,
        signature: [0; 16],
        ..header
    };
    let mut bytes = Vec::new();
    header.encode(&mut bytes);
    body(&mut bytes);
    bytes
}

/// The command of a frame, if it is not encrypted.
pub(crate) fn command(frame: &[u8]) -> Option<Command> {
    Header::decode(frame).ok().map(|header| header.command)
}
