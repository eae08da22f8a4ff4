//! Waiting for the readiness of any descriptor.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::pin::pin;
use std::time::Duration;

use smbeam_ring::{Either, Handle, Interest, Readiness, either};

const SHORT: Duration = Duration::from_millis(1);

fn pair() -> (UnixStream, UnixStream) {
    let (near, far) = UnixStream::pair().expect("a pair of sockets");
    near.set_nonblocking(true).expect("an option of sockets");
    (near, far)
}

fn fill(socket: &mut UnixStream) -> usize {
    let mut sent = 0;
    loop {
        match socket.write(&[7; 4096]) {
            Ok(count) => sent += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return sent,
            Err(error) => panic!("{error}"),
        }
    }
}

pub(crate) async fn a_descriptor_is_ready_until_it_is_read(handle: Handle) {
    let (mut near, mut far) = pair();
    let readiness = Readiness::new(&handle, near.as_fd()).expect("a socket");
    for round in 0..20 {
        let waits = handle.timeout(SHORT, readiness.ready(Interest::Readable));
        assert!(waits.await.is_err(), "round {round}: not ready");
        far.write_all(&[1, 2]).expect("space");
        for byte in [1, 2] {
            readiness.ready(Interest::Readable).await.expect("it runs");
            let mut read = [0];
            near.read_exact(&mut read).expect("a byte");
            assert_eq!(read, [byte]);
        }
    }
}

pub(crate) async fn a_full_descriptor_becomes_writable(handle: Handle) {
    let (mut near, mut far) = pair();
    let readiness = Readiness::new(&handle, near.as_fd()).expect("a socket");
    let both = Interest::ReadableOrWritable;
    readiness.ready(both).await.expect("it is empty");
    let sent = fill(&mut near);
    assert!(handle.timeout(SHORT, readiness.ready(both)).await.is_err());
    let reader = std::thread::spawn(move || {
        let mut bytes = vec![0; sent];
        far.read_exact(&mut bytes).expect("all was sent");
        far
    });
    readiness.ready(both).await.expect("it runs");
    near.write_all(&[9]).expect("space");
    let mut far = reader.join().expect("no panic");
    let sent = fill(&mut near);
    assert!(sent > 0);
    far.write_all(&[1]).expect("space");
    readiness.ready(both).await.expect("it can be read");
}

pub(crate) async fn a_closed_peer_is_ready(handle: Handle) {
    let (mut near, far) = pair();
    let readiness = Readiness::new(&handle, near.as_fd()).expect("a socket");
    let mut ready = pin!(readiness.ready(Interest::Readable));
    match either(ready.as_mut(), pin!(handle.sleep(SHORT))).await {
        Either::First(_) => panic!("not ready"),
        Either::Second(()) => drop(far),
    }
    ready.await.expect("it runs");
    assert_eq!(near.read(&mut [0]).expect("the end"), 0);
}

pub(crate) async fn a_dropped_wait_is_harmless(handle: Handle) {
    let (_near, mut far) = pair();
    for _ in 0..10 {
        let readiness = Readiness::new(&handle, far.as_fd()).expect("a socket");
        let waits = handle.timeout(Duration::ZERO, readiness.ready(Interest::Readable));
        assert!(waits.await.is_err());
        let waits = handle.timeout(SHORT, readiness.ready(Interest::Readable));
        assert!(waits.await.is_err());
    }
    far.write_all(&[1]).expect("still open");
}

pub(crate) async fn a_descriptor_may_be_closed_while_it_is_waited_for(handle: Handle) {
    let (near, mut far) = pair();
    let readiness = Readiness::new(&handle, near.as_fd()).expect("a socket");
    let mut ready = pin!(readiness.ready(Interest::Readable));
    match either(ready.as_mut(), pin!(handle.sleep(SHORT))).await {
        Either::First(_) => panic!("not ready"),
        Either::Second(()) => drop(near),
    }
    far.write_all(&[1]).expect("the duplicate is open");
    ready.await.expect("it runs");
}
