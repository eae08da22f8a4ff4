//! A client waits for a server that is not reachable yet, if the caller allows it.

mod rig;

use std::io;
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use rig::{Rig, SHARE, credentials, options};
use smbeam_client::{Client, Credentials, ErrorKind, Wait as _};

/// The tests end before; a test that hangs fails.
const LIMIT: Duration = Duration::from_secs(60);

/// Closes the first connections, and relays the next ones to a server.
fn late(target: u16, closed: usize) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for (number, client) in listener.incoming().enumerate() {
            if number >= closed {
                let server = TcpStream::connect(("127.0.0.1", target)).expect("the server");
                relay(client.expect("a client"), server);
            }
        }
    });
    port
}

fn relay(client: TcpStream, server: TcpStream) {
    let clones = (client.try_clone(), server.try_clone());
    let (mut from_client, mut from_server) = (client, server);
    let (mut to_client, mut to_server) = (clones.0.expect("one"), clones.1.expect("one"));
    thread::spawn(move || io::copy(&mut from_client, &mut to_server));
    thread::spawn(move || io::copy(&mut from_server, &mut to_client));
}

#[test]
fn a_server_that_is_not_reachable_is_tried_again() {
    let rig = Rig::new();
    let client = Client::new(options()).expect("a client");
    let port = Some(late(rig.port(), 3));
    let login = credentials();
    // Without a time the first attempt decides.
    for limit in [None, Some(Duration::ZERO)] {
        let session = match limit {
            None => client.connect("127.0.0.1", port, &login).wait(),
            Some(limit) => client
                .connect_within(limit, "127.0.0.1", port, &login)
                .wait(),
        };
        let error = session.expect_err("the connection was closed");
        assert_eq!(error.kind(), ErrorKind::Unreachable);
    }
    let session = client.connect_within(LIMIT, "127.0.0.1", port, &login);
    let session = session.wait().expect("the fourth connection is served");
    session.share(SHARE).wait().expect("a share");
}

#[test]
fn a_refused_login_is_final() {
    let rig = Rig::new();
    let client = Client::new(options()).expect("a client");
    let login = Credentials::new(None, rig::USER, "another password");
    // The test hangs until the limit of the test program if the client tries again.
    let limit = Duration::from_secs(3600);
    let session = client.connect_within(limit, "127.0.0.1", Some(rig.port()), &login);
    let error = session.wait().expect_err("no session");
    assert_eq!(error.kind(), ErrorKind::LoginFailed);
}
