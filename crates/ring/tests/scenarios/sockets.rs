//! Connections open, transfer data and close.

use std::net::{Shutdown, TcpStream};

use smbeam_ring::{Handle, Part, Stream};

use crate::{Random, listen, pair};

async fn echo(stream: Stream) {
    loop {
        let chunk = stream.recv().await.expect("recv");
        if chunk.is_empty() {
            return;
        }
        let (result, _) = stream.send(vec![Part::Bytes(chunk.to_vec())]).await;
        result.expect("send");
    }
}

async fn talk(stream: Stream, seed: u64) {
    let mut random = Random(seed);
    for _ in 0..20 {
        let length = random.size(3000);
        let message = random.bytes(length);
        let (result, _) = stream.send(vec![Part::Bytes(message.clone())]).await;
        result.expect("send");
        let mut echoed = Vec::new();
        while echoed.len() < message.len() {
            echoed.extend_from_slice(&stream.recv().await.expect("recv"));
        }
        assert_eq!(echoed, message, "seed {seed}");
    }
}

pub(crate) async fn echoes_many_connections(handle: Handle) {
    let (listener, address) = listen(&handle);
    let server = handle.clone();
    let accepting = handle.spawn(async move {
        loop {
            server.spawn(echo(listener.accept().await.expect("accept")));
        }
    });
    let mut clients = Vec::new();
    for seed in 0..100 {
        let client = handle.clone();
        clients.push(handle.spawn(async move {
            talk(
                Stream::connect(&client, address).await.expect("connect"),
                seed,
            )
            .await;
        }));
    }
    for client in clients {
        client.await.expect("a client ends well");
    }
    accepting.abort();
}

pub(crate) async fn accepts_a_storm(handle: Handle) {
    let (listener, address) = listen(&handle);
    let storm = std::thread::spawn(move || {
        (0..500)
            .map(|_| TcpStream::connect(address).expect("connect"))
            .collect::<Vec<_>>()
    });
    for _ in 0..500 {
        listener.accept().await.expect("accept");
    }
    drop(storm.join());
}

pub(crate) async fn refused_connect_is_an_error(handle: Handle) {
    let (listener, address) = listen(&handle);
    drop(listener);
    // The listener's socket closes when its operation has ended.
    while handle.pending_operations() > 0 {
        handle.yield_now().await;
    }
    assert!(Stream::connect(&handle, address).await.is_err());
}

pub(crate) async fn closes_while_operations_are_outstanding(handle: Handle) {
    for _ in 0..20 {
        let (client, server) = pair(&handle).await;
        let reading = server.clone();
        let reader = handle.spawn(async move { reading.recv().await.map(|chunk| chunk.len()) });
        handle.yield_now().await;
        reader.abort();
        drop(server);
        assert!(client.recv().await.map_or(true, |chunk| chunk.is_empty()));
    }
}

pub(crate) async fn end_of_stream_is_an_empty_chunk(handle: Handle) {
    let (client, server) = pair(&handle).await;
    client
        .send(vec![Part::Bytes(b"last".to_vec())])
        .await
        .0
        .expect("send");
    client.shutdown(Shutdown::Write).expect("shutdown");
    assert_eq!(&*server.recv().await.expect("recv"), b"last");
    assert!(server.recv().await.expect("recv").is_empty());
    assert!(server.recv().await.expect("recv again").is_empty());
    let (result, buffer) = server
        .recv_into(handle.pool().take(10).expect("space"), 0..10)
        .await;
    assert_eq!(
        result.expect_err("end").kind(),
        std::io::ErrorKind::UnexpectedEof
    );
    drop(buffer);
    assert_eq!(
        server.peer_addr().expect("peer"),
        client.local_addr().expect("local")
    );
}
