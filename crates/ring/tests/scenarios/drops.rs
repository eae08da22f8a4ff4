//! Any future may be dropped at any time.

use std::sync::Arc;
use std::time::Duration;

use smbeam_ring::{Handle, Part, Region, Source, lend_mut};

use crate::{listen, pair};

const SHORT: Duration = Duration::from_millis(1);

pub(crate) async fn a_dropped_recv_loses_nothing(handle: Handle) {
    let (client, server) = pair(&handle).await;
    let mut received = Vec::new();
    for round in 0..50_u8 {
        assert!(handle.timeout(Duration::ZERO, server.recv()).await.is_err());
        client
            .send(vec![Part::Bytes(vec![round; 100])])
            .await
            .0
            .expect("send");
        while received.len() < 100 * (usize::from(round) + 1) {
            if let Ok(chunk) = handle.timeout(SHORT, server.recv()).await {
                received.extend_from_slice(&chunk.expect("recv"));
            }
        }
    }
    let expected: Vec<u8> = (0..50).flat_map(|round| [round; 100]).collect();
    assert_eq!(received, expected);
}

pub(crate) async fn a_dropped_recv_into_tears_the_stream(handle: Handle) {
    let (client, server) = pair(&handle).await;
    client
        .send(vec![Part::Bytes(vec![1; 10])])
        .await
        .0
        .expect("send");
    let buffer = handle.pool().take(1 << 20).expect("space");
    assert!(
        handle
            .timeout(SHORT, server.recv_into(buffer, 0..1 << 20))
            .await
            .is_err()
    );
    client
        .send(vec![Part::Bytes(vec![2; 10])])
        .await
        .0
        .expect("send");
    let error = server.recv().await.expect_err("torn");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionAborted);
    while handle.pool().buffers_out() > 0 {
        handle.sleep(SHORT).await;
    }
}

pub(crate) async fn a_dropped_send_breaks_the_stream(handle: Handle) {
    let (client, _server) = pair(&handle).await;
    let mut buffer = handle.pool().take(8 << 20).expect("space");
    buffer.fill(7);
    let length = buffer.len();
    let parts = vec![
        Part::Bytes(vec![0; 8 << 20]),
        Part::Buffer(buffer, 0..length),
    ];
    assert!(handle.timeout(SHORT, client.send(parts)).await.is_err());
    assert!(client.send(vec![Part::Bytes(vec![1])]).await.0.is_err());
    while handle.pool().buffers_out() > 0 {
        handle.sleep(SHORT).await;
    }
}

pub(crate) async fn memory_of_others_outlives_a_dropped_receive(handle: Handle) {
    let (client, server) = pair(&handle).await;
    let (sender, receiver) = std::sync::mpsc::channel::<Region>();
    let lender = std::thread::spawn(move || {
        let mut bytes = vec![0; 1 << 20];
        lend_mut(&mut bytes, |region| sender.send(region).expect("received"));
        // The kernel does not write any more: these bytes stay.
        bytes.fill(9);
        std::thread::yield_now();
        bytes.iter().all(|byte| *byte == 9)
    });
    let region = receiver.recv().expect("sent");
    let receive = server.recv_into_region(region, 0..1 << 20);
    assert!(handle.timeout(SHORT, receive).await.is_err());
    client
        .send(vec![Part::Bytes(vec![2; 10])])
        .await
        .0
        .expect("send");
    // The kernel has released the memory when the lender continues.
    while !lender.is_finished() {
        handle.sleep(SHORT).await;
    }
    assert!(lender.join().expect("no panic"), "written to after its end");
}

pub(crate) async fn memory_of_others_outlives_a_dropped_send(handle: Handle) {
    let (client, server) = pair(&handle).await;
    let shared: Arc<[u8]> = Arc::from(vec![5; 8 << 20]);
    let parts = (0..2).map(|_| Part::Source(Source::from(Arc::clone(&shared))));
    assert!(
        handle
            .timeout(SHORT, client.send(parts.collect()))
            .await
            .is_err()
    );
    while Arc::strong_count(&shared) > 1 {
        handle.sleep(SHORT).await;
    }
    let chunk = server.recv().await.expect("the sent bytes");
    assert!(chunk.iter().all(|byte| *byte == 5));
}

pub(crate) async fn a_dropped_accept_is_harmless(handle: Handle) {
    let (listener, address) = listen(&handle);
    assert!(handle.timeout(SHORT, listener.accept()).await.is_err());
    let client = std::net::TcpStream::connect(address).expect("connect");
    handle.sleep(SHORT).await;
    let accepted = listener.accept().await.expect("accept");
    assert_eq!(accepted.peer_addr().ok(), client.local_addr().ok());
    // The listener's end closes one more connection, which no task has accepted.
    let _left = std::net::TcpStream::connect(address).expect("connect");
    handle.sleep(SHORT).await;
}
