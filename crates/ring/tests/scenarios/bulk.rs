//! Large transfers keep every byte and its order.

use std::net::Shutdown;
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileExt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use smbeam_ring::{Chunk, FileRange, Handle, Part, Region, Signal, Stream, Views};

use crate::{Random, pair};

const TOTAL: usize = 8 << 20;

async fn send_in_segments(stream: Stream, handle: Handle, bytes: Vec<u8>, mut random: Random) {
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let size = random.size(200_000).min(rest.len());
        let (segment, tail) = rest.split_at(size);
        rest = tail;
        let middle = random.size(size) - 1;
        let mut buffer = handle.pool().take_or_wait(size).await;
        buffer[..size - middle].copy_from_slice(&segment[middle..]);
        let range = 0..size - middle;
        let parts = vec![
            Part::Bytes(segment[..middle].to_vec()),
            Part::Buffer(buffer, range),
        ];
        let (result, parts) = stream.send(parts).await;
        result.expect("send");
        assert_eq!(parts.len(), 2, "the parts come back");
    }
}

pub(crate) async fn segments_of_any_size_arrive_whole(handle: Handle) {
    let (client, server) = pair(&handle).await;
    let bytes = Random(1).bytes(TOTAL);
    handle.spawn(send_in_segments(
        client,
        handle.clone(),
        bytes.clone(),
        Random(2),
    ));
    let mut received = Vec::new();
    loop {
        let chunk = server.recv().await.expect("recv");
        if chunk.is_empty() {
            break;
        }
        received.extend_from_slice(&chunk);
    }
    assert!(received == bytes, "every byte arrives in its place");
}

pub(crate) async fn chunks_and_buffers_interleave(handle: Handle) {
    let (client, server) = pair(&handle).await;
    let bytes = Random(3).bytes(TOTAL);
    handle.spawn(send_in_segments(
        client,
        handle.clone(),
        bytes.clone(),
        Random(4),
    ));
    let (mut received, mut random) = (Vec::new(), Random(5));
    while received.len() < TOTAL {
        if random.next() % 40 == 0 {
            // Enough for the stream to use the multishot receive again.
            for _ in 0..random.size(30) {
                received.extend_from_slice(&server.recv().await.expect("recv"));
            }
        }
        if random.next() % 2 == 0 {
            received.extend_from_slice(&server.recv().await.expect("recv"));
            continue;
        }
        let length = random.size(100_000).min(TOTAL - received.len());
        if length > 0 {
            let buffer = handle.pool().take_or_wait(length + 7).await;
            let (result, buffer) = server.recv_into(buffer, 7..7 + length).await;
            result.expect("recv_into");
            received.extend_from_slice(&buffer[7..7 + length]);
        }
    }
    assert!(received == bytes, "every byte arrives in its place");
}

/// The caller takes the buffer back from a silent peer, and later bytes arrive after the earlier
/// ones.
pub(crate) async fn an_interrupted_receive_loses_no_byte(handle: Handle) {
    const SENT: usize = 100_000;
    let (client, server) = pair(&handle).await;
    let bytes = Random(9).bytes(2 * SENT);
    let send = async |range: std::ops::Range<usize>| {
        let (result, _) = client.send(vec![Part::Bytes(bytes[range].to_vec())]).await;
        result.expect("send");
    };
    send(0..SENT).await;
    let interrupt = Rc::new(Signal::default());
    let mut buffer = handle.pool().take_or_wait(8 << 20).await;
    let (mut filled, mut result) = (0, Ok(1));
    let raise = Rc::clone(&interrupt);
    let sleeper = handle.clone();
    handle.spawn(async move {
        sleeper.sleep(Duration::from_millis(50)).await;
        raise.raise();
    });
    while !matches!(result, Ok(0)) {
        (result, buffer) = server
            .recv_part_into(buffer, filled..8 << 20, &interrupt)
            .await;
        filled += result.as_ref().copied().expect("recv_part_into");
    }
    let mut received = buffer[..filled].to_vec();
    drop(buffer);
    send(SENT..2 * SENT).await;
    client.shutdown(Shutdown::Write).expect("shutdown");
    while received.len() < 2 * SENT {
        let chunk = server.recv().await.expect("recv");
        assert!(!chunk.is_empty(), "{} bytes arrive", received.len());
        received.extend_from_slice(&chunk);
    }
    assert!(received == bytes, "every byte arrives in its place");
    assert!(client.acknowledged() > 0, "the kernel counts them");
    interrupt.lower();
    let buffer = handle.pool().take_or_wait(100).await;
    let (result, _buffer) = server.recv_part_into(buffer, 0..100, &interrupt).await;
    let error = result.expect_err("the stream has ended");
    assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
}

/// The peer sends no more before it has an answer. A receive would wait forever if it waited for
/// more than its length, or if an old low-water mark stayed set.
pub(crate) async fn a_large_receive_waits_for_no_more_than_it_wants(handle: Handle) {
    const SIZES: [usize; 7] = [
        (128 << 10) - 1,
        128 << 10,
        (512 << 10) - 1,
        (512 << 10) + 1,
        700_000,
        1 << 20,
        3_000_000,
    ];
    let (client, server) = pair(&handle).await;
    let clock = handle.clone();
    handle.spawn(async move {
        for size in SIZES.into_iter().flat_map(|size| [size, 5]) {
            for slice in Random(11).bytes(size).chunks(size / 3 + 1) {
                let parts = vec![Part::Bytes(slice.to_vec())];
                client.send(parts).await.0.expect("send");
                clock.sleep(Duration::from_millis(2)).await;
            }
            assert_eq!(&*client.recv().await.expect("recv"), b"go on");
        }
    });
    for size in SIZES {
        let region = Region::from(vec![0; size]);
        let (result, region) = server.recv_into_region(region, 0..size).await;
        result.expect("recv_into_region");
        assert!(region[..] == Random(11).bytes(size)[..]);
        let answer = || vec![Part::Bytes(b"go on".to_vec())];
        server.send(answer()).await.0.expect("send");
        let mut small = Vec::new();
        while small.len() < 5 {
            small.extend_from_slice(&server.recv().await.expect("recv"));
        }
        server.send(answer()).await.0.expect("send");
    }
}

pub(crate) async fn a_large_receive_sees_the_end(handle: Handle) {
    let (client, server) = pair(&handle).await;
    handle.spawn(async move {
        let (result, _) = client.send(vec![Part::Bytes(vec![1; 100_000])]).await;
        result.expect("send");
        client.shutdown(Shutdown::Write).expect("shutdown");
    });
    let (result, _) = server
        .recv_into_region(Region::from(vec![0; 1 << 20]), 0..1 << 20)
        .await;
    let error = result.expect_err("most of it is missing");
    assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
}

pub(crate) async fn many_parts_are_sent_in_order(handle: Handle) {
    let (client, server) = pair(&handle).await;
    let mut random = Random(6);
    let parts: Vec<Vec<u8>> = (0..5000_u64)
        .map(|index| {
            if index % 7 == 0 {
                Vec::new()
            } else {
                random.bytes(index as usize % 999)
            }
        })
        .collect();
    let expected = parts.concat();
    let sending = handle.spawn(async move {
        let (result, parts) = client
            .send(parts.into_iter().map(Part::Bytes).collect())
            .await;
        result.expect("send");
        parts.len()
    });
    let mut received = Vec::new();
    while received.len() < expected.len() {
        received.extend_from_slice(&server.recv().await.expect("recv"));
    }
    assert!(received == expected);
    assert_eq!(sending.await, Ok(5000));
}

pub(crate) async fn held_chunks_stop_the_stream_until_one_returns(handle: Handle) {
    let (client, server) = pair(&handle).await;
    let bytes = Random(7).bytes(1 << 20);
    handle.spawn(send_in_segments(
        client,
        handle.clone(),
        bytes.clone(),
        Random(8),
    ));
    let (mut held, mut received) = (Vec::<Chunk>::new(), Vec::new());
    while received.len() < bytes.len() {
        if handle.chunks_out() == 64 && held.len() > 60 {
            held.clear();
        }
        let wait = Duration::from_millis(20);
        match handle.timeout(wait, server.recv()).await {
            Ok(chunk) => {
                let mut chunk = chunk.expect("recv");
                received.extend_from_slice(&chunk);
                chunk.fill(0);
                held.push(chunk);
            }
            Err(_) => held.clear(),
        }
    }
    assert!(received == bytes);
}

pub(crate) async fn a_silent_reader_leaves_chunks_to_others(handle: Handle) {
    let (flooding, silent) = pair(&handle).await;
    // The first receive arms the stream; then no task reads, and the peer floods it.
    let armed = Duration::from_millis(1);
    assert!(handle.timeout(armed, silent.recv()).await.is_err());
    let flood = Random(9).bytes(4 << 20);
    let flooder = handle.clone();
    handle.spawn(send_in_segments(
        flooding,
        flooder,
        flood.clone(),
        Random(10),
    ));
    handle.sleep(Duration::from_millis(20)).await;
    let (client, server) = pair(&handle).await;
    client
        .send(vec![Part::Bytes(b"still here".to_vec())])
        .await
        .0
        .expect("send");
    assert_eq!(&*server.recv().await.expect("recv"), b"still here");
    let mut received = Vec::new();
    while received.len() < flood.len() {
        received.extend_from_slice(&silent.recv().await.expect("recv"));
    }
    assert!(received == flood, "nothing of the flood is lost");
}

fn file_of(bytes: &[u8]) -> Arc<std::fs::File> {
    let file = tempfile::tempfile().expect("a file");
    file.write_all_at(bytes, 0).expect("written");
    Arc::new(file)
}

/// Headers in memory followed by ranges of a file, of any size.
pub(crate) async fn files_are_sent_like_memory(handle: Handle) {
    const HEAD: usize = 11;
    let (client, server) = pair(&handle).await;
    let bytes = Random(6).bytes(TOTAL);
    let source = file_of(&bytes);
    let mut random = Random(7);
    let mut expected = Vec::new();
    let mut pieces = Vec::new();
    let mut offset = 0;
    while offset < TOTAL {
        let len = random.size(3_000_000).min(TOTAL - offset);
        expected.extend_from_slice(&[7; HEAD]);
        expected.extend_from_slice(&bytes[offset..offset + len]);
        pieces.push((offset, len));
        offset += len;
    }
    let sender = handle.spawn(async move {
        for (offset, len) in pieces {
            let range = FileRange::new(Arc::clone(&source), offset as u64, len);
            let parts = vec![Part::Bytes(vec![7; HEAD]), Part::File(range)];
            let (result, parts) = client.send(parts).await;
            result.expect("send");
            let Some(Part::File(range)) = parts.last() else {
                panic!("the parts come back");
            };
            assert!(range.error.is_none(), "{range:?}");
        }
    });
    let received = rest(&server).await;
    sender.await.expect("no panic");
    assert!(received == expected, "every byte arrives in its place");
}

/// Sending a file to a peer that does not read does not block other tasks.
pub(crate) async fn a_file_for_a_silent_peer_blocks_no_other_task(handle: Handle) {
    let (client, server) = pair(&handle).await;
    let bytes = Random(9).bytes(TOTAL);
    let range = FileRange::new(file_of(&bytes), 0, TOTAL);
    let sender = handle.spawn(async move {
        let (result, _) = server.send(vec![Part::File(range)]).await;
        result.expect("send");
    });
    for _ in 0..3 {
        handle.sleep(Duration::from_millis(1)).await;
    }
    assert!(!sender.is_finished(), "more than the sockets hold");
    let received = rest(&client).await;
    sender.await.expect("no panic");
    assert!(received == bytes, "every byte arrives");
}

/// The length is promised to the peer: it gets zeros for the missing bytes, and the next frame
/// after them.
pub(crate) async fn a_truncated_file_reports_an_error(handle: Handle) {
    let (client, server) = pair(&handle).await;
    let sender = handle.spawn(async move {
        let range = FileRange::new(file_of(&[1; 5000]), 1000, 300_000);
        let (result, mut parts) = client.send(vec![Part::File(range)]).await;
        result.expect("send");
        let (result, _) = client.send(vec![Part::Bytes(b"next".to_vec())]).await;
        result.expect("send");
        parts.pop()
    });
    let received = rest(&server).await;
    assert_eq!(received[..4000], [1; 4000]);
    assert!(received[4000..300_000] == [0; 296_000]);
    assert_eq!(&received[300_000..], b"next");
    let Some(Part::File(range)) = sender.await.expect("no panic") else {
        panic!("the part comes back");
    };
    let error = range.error.expect("an error");
    assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
}

/// Ranges of a file that are sent from the page cache.
pub(crate) async fn views_are_sent_like_memory(handle: Handle) {
    let (client, server) = pair(&handle).await;
    let bytes = Random(8).bytes(TOTAL);
    let source = file_of(&bytes);
    let sender = handle.spawn(async move {
        let (mut views, mut random, mut offset) = (Views::new(8), Random(9), 0);
        while offset < TOTAL {
            let mut parts = Vec::new();
            for _ in 0..random.size(3) {
                let len = random.size(3_000_000).min(TOTAL - offset);
                let view = views.find(source.as_fd(), offset as u64, len);
                parts.push(Part::Bytes(vec![7; 11]));
                parts.extend(view.ok().map(Part::View));
                offset += len;
            }
            let (result, _) = client.send(parts).await;
            result.expect("send");
        }
    });
    let received = rest(&server).await;
    sender.await.expect("no panic");
    let mut random = Random(9);
    let (mut expected, mut offset) = (Vec::new(), 0);
    while offset < TOTAL {
        for _ in 0..random.size(3) {
            let len = random.size(3_000_000).min(TOTAL - offset);
            expected.extend_from_slice(&[7; 11]);
            expected.extend_from_slice(&bytes[offset..offset + len]);
            offset += len;
        }
    }
    assert!(received == expected, "every byte arrives in its place");
}

/// Truncated before the send, and while the socket is full.
pub(crate) async fn a_view_of_a_truncated_file_ends_in_zeros(handle: Handle) {
    for (len, left) in [(100_000, 0), (1_000_000, 300_001), (40 << 20, 30 << 20)] {
        let (client, server) = pair(&handle).await;
        let file = file_of(&vec![1; len + 999]);
        let mut views = Views::new(8);
        let view = views.find(file.as_fd(), 999, len).expect("it was written");
        let cut = move || file.set_len(999 + left as u64).expect("cut");
        let parts = [Part::View(view), Part::Bytes(b"next".to_vec())];
        if len < 2 << 20 {
            cut();
        }
        let sender = handle.spawn(async move { client.send(parts.into()).await.0 });
        if len > 2 << 20 {
            handle.sleep(Duration::from_millis(20)).await;
            cut();
        }
        let received = rest(&server).await;
        sender.await.expect("no panic").expect("send");
        assert!(received[..left].iter().all(|byte| *byte == 1));
        assert!(received[left..len].iter().all(|byte| *byte == 0));
        assert_eq!(&received[len..], b"next");
    }
}

/// Everything up to the end of the stream.
async fn rest(stream: &Stream) -> Vec<u8> {
    let mut received = Vec::new();
    loop {
        let chunk = stream.recv().await.expect("recv");
        if chunk.is_empty() {
            return received;
        }
        received.extend_from_slice(&chunk);
    }
}
