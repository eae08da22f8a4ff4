//! The channels of a client use all cores.

use std::net::{IpAddr, TcpStream};
use std::thread;
use std::time::Duration;

use smbeam_server::config::{Config, IoChoice, ServerSection, unplaced};
use smbeam_server::{Accounts, Server};

/// Waits until a server has the expected number of connections, and returns those of each worker.
fn connections(server: &Server, expected: usize) -> Vec<usize> {
    loop {
        let connections = server.connections();
        if connections.iter().sum::<usize>() == expected {
            return connections;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

fn spread(io: IoChoice) {
    let config = Config {
        server: ServerSection {
            listen: Some(vec![IpAddr::from([127, 0, 0, 1]).into()]),
            transports: vec![unplaced("tcp:0".to_owned())],
            workers: unplaced(4),
            io,
            ..ServerSection::default()
        },
        ..Config::default()
    };
    let users = Accounts::from_config(&config).expect("no users");
    let server = Server::start(&config, users).expect("a server");
    let address = server.listening()[0].address;
    let connect = || TcpStream::connect(address).expect("a connection");
    let mut channels: Vec<TcpStream> = (0..4).map(|_| connect()).collect();
    let per_worker = connections(&server, 4);
    println!("four connections, each worker has {per_worker:?}");
    assert_eq!(per_worker, [1, 1, 1, 1]);
    channels.extend((0..4).map(|_| connect()));
    assert_eq!(connections(&server, 8), [2, 2, 2, 2]);
    // Closed connections free their slots, and new connections take them.
    channels.truncate(4);
    assert_eq!(connections(&server, 4), [1, 1, 1, 1]);
    drop(channels);
    assert_eq!(connections(&server, 0), [0, 0, 0, 0]);
    server.stop();
}

#[test]
fn on_the_ring() {
    spread(IoChoice::Auto);
}

#[test]
fn on_epoll() {
    spread(IoChoice::Epoll);
}
