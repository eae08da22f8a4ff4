//! Mailboxes between threads.

use std::cell::RefCell;
use std::io::Write as _;
use std::net::TcpStream;
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use smbeam_ring::{Config, Handle, PoolConfig, Runtime, SendError, mailbox};

use crate::listen;

pub(crate) async fn many_threads_send(_handle: Handle) {
    let (sender, mut receiver) = mailbox::<u64>(None);
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let sender = sender.clone();
            thread::spawn(move || (1..=1000).for_each(|n| sender.send(n).expect("open")))
        })
        .collect();
    drop(sender);
    let mut sum = 0;
    while let Some(number) = receiver.recv().await {
        sum += number;
    }
    assert_eq!(sum, 8 * 500_500);
    threads
        .into_iter()
        .for_each(|thread| thread.join().expect("a sender ends"));
}

pub(crate) async fn a_full_mailbox_refuses(_handle: Handle) {
    let (sender, mut receiver) = mailbox(Some(2));
    assert_eq!(sender.send(1), Ok(()));
    assert_eq!(sender.send(2), Ok(()));
    assert_eq!(sender.send(3), Err(SendError::Full(3)));
    assert_eq!(receiver.try_recv(), Some(1));
    assert_eq!(sender.send(4), Ok(()));
    drop(receiver);
    assert_eq!(sender.send(5), Err(SendError::Closed(5)));
}

pub(crate) async fn senders_gone_ends_the_receiver(handle: Handle) {
    let (sender, mut receiver) = mailbox::<u8>(None);
    let last = sender.clone();
    drop(sender);
    let waiting = handle.spawn(async move { receiver.recv().await });
    handle.yield_now().await;
    thread::spawn(move || drop(last));
    assert_eq!(waiting.await, Ok(None));
}

pub(crate) async fn a_message_precedes_later_data(handle: Handle) {
    let (listener, address) = listen(&handle);
    let mut client = TcpStream::connect(address).expect("a listener");
    let server = listener.accept().await.expect("a client");
    let (sender, mut receiver) = mailbox(None);
    let order = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&order);
    let reading = handle.spawn(async move {
        server.recv().await.expect("data");
        seen.borrow_mut().push("data");
    });
    handle.sleep(Duration::from_millis(1)).await;
    // The runtime stands still until the message and after it the data were sent.
    let stop = handle.spawn(async move {
        let send = move || {
            sender.send(()).expect("open");
            client.write_all(&[1]).expect("space");
        };
        thread::spawn(send).join().expect("no panic");
    });
    receiver.recv().await.expect("a message");
    order.borrow_mut().push("message");
    reading.await.expect("a reader");
    stop.await.expect("no panic");
    assert_eq!(*order.borrow(), ["message", "data"]);
}

pub(crate) async fn runtimes_send_to_each_other(handle: Handle) {
    let (there, mut inbox) = mailbox::<u64>(None);
    let (back, mut replies) = mailbox::<u64>(None);
    let buffers = PoolConfig {
        total_bytes: 1 << 20,
        registered: false,
        chunks: 4,
        chunk_bytes: 4096,
    };
    let peer = thread::spawn(move || {
        let config = Config {
            buffers,
            ..Config::default()
        };
        let runtime = Runtime::new(&config).expect("a runtime");
        runtime.block_on(async move {
            while let Some(number) = inbox.recv().await {
                back.send(number + 1).expect("open");
            }
        });
    });
    for number in 0..2000 {
        there.send(number).expect("open");
        assert_eq!(replies.recv().await, Some(number + 1));
    }
    drop((there, handle));
    assert_eq!(replies.recv().await, None);
    peer.join().expect("the peer ends well");
}
