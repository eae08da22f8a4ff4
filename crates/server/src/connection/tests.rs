use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use ring::Runtime;

use std::time::Duration;

use super::*;
use crate::accounts::Accounts;
use crate::config::Config;
use crate::share::Shares;
use crate::start::shared;

/// Longer than anything here takes, and all that a test that fails waits.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// A connection, and its client.
fn connect(worker: &Rc<WorkerContext>) -> (Rc<Connection>, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let address = listener.local_addr().expect("its address");
    let client = TcpStream::connect(address).expect("a connection");
    let (socket, peer) = listener.accept().expect("the same");
    let permit = worker
        .shared
        .gate
        .enter(peer.into(), 0)
        .expect("below the limit");
    let stream = ring::Stream::new(&worker.handle, socket).expect("a stream");
    let (id, transport) = (ConnectionId(1), Transport::Tcp);
    let connection = Connection::new(
        id,
        Rc::clone(worker),
        transport,
        Stream::from(stream),
        peer,
        permit,
    );
    (connection, client)
}

/// Whether the connection ends after this happened to it.
fn ends_after(happen: impl FnOnce(&Rc<Connection>)) -> bool {
    let config = Config::default();
    let users = Accounts::from_config(&config).expect("no users");
    let shares = Shares::open(&[]).expect("no shares");
    let shared = Arc::new(shared(&config, shares, users));
    let runtime = Runtime::new(&ring::Config::default()).expect("a runtime");
    let handle = runtime.handle();
    runtime.block_on(async {
        let worker = WorkerContext::new(handle.clone(), 0, shared);
        let (connection, _client) = connect(&worker);
        let serving = handle.spawn(Rc::clone(&connection).serve());
        happen(&connection);
        handle.timeout(TIME_LIMIT, serving).await.is_ok()
    })
}

#[test]
fn an_operation_that_panics_ends_the_connection() {
    assert!(ends_after(|connection| {
        connection.run(OpId(1), async { panic!("a bug") });
    }));
}

#[test]
fn a_task_that_serves_others_outlives_a_bug_of_one_connection() {
    assert!(ends_after(|connection| {
        connection.guarded(|| panic!("a bug"));
    }));
}
