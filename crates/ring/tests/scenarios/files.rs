//! Files keep written data and report errors.

use std::fs;
use std::future::poll_fn;
use std::os::fd::OwnedFd;
use std::task::Poll;

use smbeam_ring::{Driver, File, Handle};

use crate::Random;

fn scratch() -> fs::File {
    tempfile::tempfile().expect("a scratch file")
}

pub(crate) async fn written_data_is_read_back(handle: Handle) {
    let file = File::from(scratch());
    let bytes = Random(11).bytes(3 << 20);
    let mut offset = 0;
    for piece in bytes.chunks(700_001) {
        let mut buffer = handle.pool().take_or_wait(piece.len() + 80).await;
        buffer[80..80 + piece.len()].copy_from_slice(piece);
        let range = 80..80 + piece.len();
        let (result, _buffer) = handle.write_at(&file, buffer, range, offset, None).await;
        assert_eq!(result.expect("write"), piece.len());
        offset += piece.len() as u64;
    }
    handle.fsync(&file, true).await.expect("fdatasync");
    handle.fsync(&file, false).await.expect("fsync");
    let buffer = handle.pool().take_or_wait(3 << 20).await;
    let (result, buffer) = handle
        .read_at(&file, buffer, 5..5 + bytes.len(), 0, None)
        .await;
    assert_eq!(result.expect("read"), bytes.len());
    assert!(buffer[5..5 + bytes.len()] == bytes[..]);
}

pub(crate) async fn reads_end_at_end_of_file(handle: Handle) {
    let scratch = scratch();
    scratch.set_len(1000).expect("truncate");
    let file = File::from(scratch);
    for (offset, expected) in [(0, 1000), (400, 600), (999, 1), (1000, 0), (1 << 40, 0)] {
        let buffer = handle.pool().take_or_wait(4096).await;
        let (result, _buffer) = handle.read_at(&file, buffer, 0..4096, offset, None).await;
        assert_eq!(result.expect("read"), expected);
    }
    let buffer = handle.pool().take_or_wait(4096).await;
    let (result, _buffer) = handle.read_at(&file, buffer, 7..7, 0, None).await;
    assert_eq!(result.expect("an empty read"), 0);
}

pub(crate) async fn errors_come_back_with_the_buffer(handle: Handle) {
    let read_only = File::from(fs::File::open("/dev/null").expect("open"));
    let buffer = handle.pool().take_or_wait(4096).await;
    let (result, buffer) = handle.write_at(&read_only, buffer, 0..10, 0, None).await;
    assert_eq!(
        result.expect_err("not open for writing").raw_os_error(),
        Some(libc::EBADF)
    );
    let directory = tempfile::tempdir().expect("a directory");
    let directory = OwnedFd::from(fs::File::open(directory.path()).expect("open"));
    let (result, buffer) = handle
        .read_at(&File::from(directory), buffer, 0..10, 0, None)
        .await;
    assert_eq!(
        result.expect_err("a directory").raw_os_error(),
        Some(libc::EISDIR)
    );
    assert!(buffer.len() >= 4096);
}

pub(crate) async fn a_full_file_system_is_an_error(handle: Handle) {
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .expect("open");
    let buffer = handle.pool().take_or_wait(4096).await;
    let (result, _buffer) = handle
        .write_at(&File::from(full), buffer, 0..10, 0, None)
        .await;
    assert_eq!(result.expect_err("full").raw_os_error(), Some(libc::ENOSPC));
}

pub(crate) async fn large_files_use_offsets(handle: Handle) {
    let file = File::from(scratch());
    let identity = handle.register_personality();
    assert_eq!(identity.is_ok(), handle.io().driver == Driver::Uring);
    let identity = identity.ok();
    let mut buffer = handle.pool().take_or_wait(100).await;
    buffer[..4].copy_from_slice(b"here");
    let far = 5 << 32;
    let personality = identity.clone();
    let (result, buffer) = handle.write_at(&file, buffer, 0..4, far, personality).await;
    assert_eq!(result.expect("write"), 4);
    let (result, buffer) = handle
        .read_at(&file, buffer, 50..60, far - 1, identity)
        .await;
    assert_eq!(result.expect("read"), 5);
    assert_eq!(&buffer[50..55], b"\0here");
}

/// Dropping credentials affects later operations only.
pub(crate) async fn credentials_last_until_the_last_operation(handle: Handle) {
    let file = File::from(scratch());
    let pool = handle.pool();
    let Ok(identity) = handle.register_personality() else {
        return assert_eq!(handle.io().driver, Driver::Epoll);
    };
    let mut writes = Vec::new();
    for place in 0..3 {
        let buffer = pool.take_or_wait(4096).await;
        let (writer, file, personality) = (handle.clone(), file.clone(), Some(identity.clone()));
        let mut write = Box::pin(async move {
            let written = writer.write_at(&file, buffer, 0..4096, place << 12, personality);
            written.await.0
        });
        // The operation is queued, but not submitted yet.
        poll_fn(|context| {
            assert!(write.as_mut().poll(context).is_pending());
            Poll::Ready(())
        })
        .await;
        writes.push(write);
    }
    drop(identity);
    for write in writes {
        assert_eq!(write.await.expect("under its own credentials"), 4096);
    }
}
