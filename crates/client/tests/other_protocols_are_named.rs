//! A peer that is no SMB server gets a name for that, over every transport with a stream.

mod rig;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use net::{Endpoint, Transport};
use rig::{connect, options};
use smbeam_client::{Error, ErrorKind, Transports};

/// Serves one connection on a free port.
fn served(serve: impl FnOnce(TcpStream) + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || serve(listener.accept().expect("a client").0));
    port
}

/// The description of a peer that is no SMB server.
fn refused(transport: Transport, port: u16) -> String {
    let endpoint = Endpoint { transport, port };
    let options = options().transports(Transports::from(endpoint));
    let error = connect(port, options).expect_err("no session");
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    let text = error.to_string();
    let said = format!("127.0.0.1:{port} does not speak SMB: ");
    assert!(text.starts_with(&said), "{text}");
    match error {
        Error::NotSmb(_, why) => why,
        other => panic!("{other:?}"),
    }
}

/// Reads the first bytes of the client, so that closing sends no reset.
fn receive(stream: &mut TcpStream) {
    let count = stream.read(&mut [0; 4096]).expect("a request");
    assert!(count > 4);
}

#[test]
fn an_http_server_does_not_speak_smb() {
    for transport in [Transport::Tcp, Transport::Nbt] {
        let port = served(|mut stream| {
            receive(&mut stream);
            let answer = b"HTTP/1.1 400 Bad Request\r\n\r\n";
            stream.write_all(answer).expect("sent");
        });
        let why = refused(transport, port);
        match transport {
            Transport::Tcp => assert_eq!(why, "frame of unknown type 0x48"),
            _ => assert_eq!(why, "its answer is no NetBIOS session response"),
        }
    }
}

#[test]
fn a_server_that_closes_at_once_does_not_speak_smb() {
    for transport in [Transport::Tcp, Transport::Nbt] {
        refused(transport, served(drop));
        let port = served(|mut stream| receive(&mut stream));
        refused(transport, port);
    }
}

#[test]
fn a_server_of_smb_1_is_too_old() {
    let port = served(|mut stream| {
        receive(&mut stream);
        let mut answer = vec![0, 0, 0, 35];
        answer.extend(*b"\xFFSMBr");
        answer.resize(39, 0);
        stream.write_all(&answer).expect("sent");
        // The client closes the connection.
        let _ = stream.read(&mut [0; 1]);
    });
    assert_eq!(
        refused(Transport::Tcp, port),
        "it answers in SMB 1, which is too old"
    );
}
