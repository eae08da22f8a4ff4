//! Keep-alives of the NetBIOS session service: the client sends them, and skips those of a server.

mod rig;

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

use net::{Endpoint, Transport};
use rig::{Rig, SHARE, connect, options};
use smbeam_client::{Transports, Wait as _};
use wire::nbt::KEEP_ALIVE;

/// Time of one interval. The test waits for a keep-alive, however long that takes.
const ECHO_INTERVAL: Duration = Duration::from_secs(3);

/// Relays a NetBIOS session to a server of direct TCP. Before each frame to the client it sends a
/// keep-alive; those of the client go to `heard`.
fn relay(target: u16, heard: mpsc::Sender<()>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        let (mut client, _) = listener.accept().expect("a client");
        let (kind, _) = frame(&mut client).expect("a session request");
        assert_eq!(kind, 0x81);
        client.write_all(&KEEP_ALIVE).expect("sent");
        client.write_all(&[0x82, 0, 0, 0]).expect("sent");
        let mut server = TcpStream::connect(("127.0.0.1", target)).expect("the server");
        let mut to_client = client.try_clone().expect("a clone");
        let mut from_server = server.try_clone().expect("a clone");
        std::thread::spawn(move || {
            while let Ok((_, bytes)) = frame(&mut from_server) {
                let _ = to_client.write_all(&[&KEEP_ALIVE[..], &bytes].concat());
            }
        });
        while let Ok((kind, bytes)) = frame(&mut client) {
            match bytes == KEEP_ALIVE {
                true => heard.send(()).expect("the test waits"),
                false => {
                    assert_eq!(kind, 0);
                    let _ = server.write_all(&bytes);
                }
            }
        }
    });
    port
}

/// The type of a frame, and the frame with its prefix. The prefixes of messages of up to 128 KiB
/// are those of direct TCP.
fn frame(from: &mut TcpStream) -> io::Result<(u8, Vec<u8>)> {
    let mut bytes = vec![0; 4];
    from.read_exact(&mut bytes)?;
    let len = u32::from_be_bytes([0, bytes[1], bytes[2], bytes[3]]);
    bytes.resize(4 + len as usize, 0);
    from.read_exact(&mut bytes[4..])?;
    Ok((bytes[0], bytes))
}

#[test]
fn an_idle_session_sends_keep_alives_and_skips_those_of_the_server() {
    let rig = Rig::new();
    let (sender, heard) = mpsc::channel();
    let port = relay(rig.port(), sender);
    let endpoint = Endpoint {
        transport: Transport::Nbt,
        port,
    };
    let options = options()
        .transports(Transports::from(endpoint))
        .echo_interval(ECHO_INTERVAL);
    let session = connect(port, options).expect("a session");
    let share = session.share(SHARE).wait().expect("a share");
    std::fs::write(rig.path("file"), "content").expect("a file");
    for _ in 0..2 {
        heard.recv().expect("a keep-alive");
        let read = share.read("file").wait().expect("the content");
        assert_eq!(&read[..], b"content");
    }
}
