use std::io::Read as _;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use ring::Runtime;
use wire::security::Sid;

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
    with_connection(async |connection, _client| {
        let handle = connection.handle().clone();
        let serving = handle.spawn(Rc::clone(&connection).serve());
        happen(&connection);
        handle.timeout(TIME_LIMIT, serving).await.is_ok()
    })
}

/// Runs a test with a connection that no task serves, and with its client.
fn with_connection<T>(test: impl AsyncFnOnce(Rc<Connection>, TcpStream) -> T) -> T {
    let config = Config::default();
    let users = Accounts::from_config(&config).expect("no users");
    let sids = users
        .sids_with(&config, Sid::NULL)
        .expect("no mapping file");
    let sids = Arc::new(sids);
    let known: Arc<dyn vfs::accounts::Accounts> = sids.clone();
    let shares = Shares::open(&[], &known).expect("no shares");
    let shared = Arc::new(shared(&config, shares, users, sids, Default::default()));
    let runtime = Runtime::new(&ring::Config::default()).expect("a runtime");
    let handle = runtime.handle();
    runtime.block_on(async {
        let worker = WorkerContext::new(handle.clone(), 0, shared);
        let (connection, client) = connect(&worker);
        test(connection, client).await
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

/// Bytes of responses with which a connection pauses.
const TOO_MUCH: usize = 20 << 20;

/// Queues bytes that the client does not receive.
fn queue(connection: &Connection, bytes: usize) {
    let mut output = connection.context.output.borrow_mut();
    output.outbox.push_raw(&vec![0; bytes]);
    drop(output);
    connection.count_answers();
    connection.to_send.raise();
}

fn cancel() -> Vec<u8> {
    let mut message = vec![0; 68];
    message[..4].copy_from_slice(b"\xFESMB");
    message[4] = 64;
    message[12] = 0x0C;
    message
}

#[test]
fn a_client_that_does_not_receive_pauses_its_connection_until_it_receives() {
    with_connection(async |connection, mut client| {
        let handle = connection.handle().clone();
        let sending = handle.spawn(Rc::clone(&connection).send());
        assert!(connection.may_handle());
        queue(&connection, TOO_MUCH);
        assert!(!connection.may_handle());
        let resumed = handle.timeout(Duration::from_millis(50), connection.resumed());
        assert!(resumed.await.is_err(), "the client has received nothing");
        let receiving = std::thread::spawn(move || client.read_exact(&mut vec![0; TOO_MUCH]));
        let resumed = handle.timeout(TIME_LIMIT, connection.resumed()).await;
        assert!(resumed.is_ok() && connection.may_handle());
        receiving
            .join()
            .expect("no panic")
            .expect("every byte arrives");
        connection.context.ended.raise();
        connection.to_send.raise();
        sending.await.expect("no panic");
    });
}

#[test]
fn a_paused_connection_admits_a_cancel_and_ends_with_its_client() {
    with_connection(async |connection, client| {
        let handle = connection.handle().clone();
        let sending = handle.spawn(Rc::clone(&connection).send());
        queue(&connection, TOO_MUCH);
        assert!(connection.admits(&cancel()));
        let mut echo = cancel();
        echo[12] = 0x0D;
        assert!(!connection.admits(&echo) && !connection.admits(&cancel()[..20]));
        drop(client);
        let resumed = handle.timeout(TIME_LIMIT, connection.resumed()).await;
        assert!(resumed.is_ok(), "the send fails and ends the connection");
        assert!(connection.context.ended.is_raised());
        sending.await.expect("no panic");
    });
}

#[test]
fn a_client_without_progress_is_stalled_with_the_memory_of_its_responses() {
    with_connection(async |connection, client| {
        let handle = connection.handle().clone();
        let sending = handle.spawn(Rc::clone(&connection).send());
        queue(&connection, TOO_MUCH);
        handle.yield_now().await;
        let now = std::time::Instant::now();
        assert_eq!(connection.stalled_bytes(now), None);
        let later = now + Duration::from_secs(60);
        assert_eq!(connection.stalled_bytes(later), Some(TOO_MUCH));
        connection.reclaim(TOO_MUCH);
        let sent = handle.timeout(TIME_LIMIT, sending).await;
        assert!(sent.is_ok(), "the shutdown ends the send");
        drop(client);
    });
}
