//! Two ends of one connection on one thread, polled in turn.
#![allow(dead_code, unused_imports, reason = "each test file needs a part")]

mod bytes;

use std::net::{Ipv4Addr, SocketAddr};

use smbeam_rdma::emulated::{Emulated, Faults};
use smbeam_rdma::{Attributes, Event, Failure, Listener, Provider, QueuePair, Slots, Wait, WorkId};
use tempfile::TempDir;

pub(crate) use bytes::{pattern, piece};

/// Number of polls after which a missing event counts as lost.
const POLLS_MAX: usize = 100_000;

pub(crate) struct Location {
    pub(crate) directory: TempDir,
    pub(crate) provider: Emulated,
    pub(crate) listener: Box<dyn Listener>,
}

impl Location {
    pub(crate) fn new(faults: Faults) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let provider = Emulated::new(directory.path(), faults).expect("a provider");
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = provider.listen(any).expect("a free port");
        Self {
            directory,
            provider,
            listener,
        }
    }

    /// Both ends, each with `receives` posted receives of `bytes` bytes.
    pub(crate) fn pair(&self, receives: u32, bytes: usize) -> (End, End) {
        let attributes = Attributes {
            receives,
            ..Attributes::default()
        };
        let address = self.listener.local_addr();
        let client = self.provider.connect(address, &attributes);
        let mut client = End::new(client.expect("a listener"), receives, bytes);
        for _ in 0..receives {
            client.post_receive();
        }
        client.pair.flush();
        let slots = Slots::new(receives as usize, bytes).expect("memory");
        let posted = std::iter::from_fn(|| slots.take()).collect();
        let request = self.listener.accept().expect("it listens");
        let server = request.expect("a request");
        let server = server.accept(&attributes, posted).expect("accepted");
        let mut server = End {
            pair: server,
            slots,
            events: Vec::new(),
        };
        assert!(matches!(client.next(), Event::Connected));
        assert!(matches!(server.next(), Event::Connected));
        (client, server)
    }
}

pub(crate) struct End {
    pub(crate) pair: Box<dyn QueuePair>,
    pub(crate) slots: Slots,
    pub(crate) events: Vec<Event>,
}

impl End {
    pub(crate) fn new(pair: Box<dyn QueuePair>, receives: u32, bytes: usize) -> Self {
        Self {
            pair,
            slots: Slots::new(receives as usize, bytes).expect("memory"),
            events: Vec::new(),
        }
    }

    pub(crate) fn post_receive(&mut self) {
        let slot = self.slots.take().expect("a slot");
        self.pair.post_receive(slot);
    }

    /// The next event, if any.
    pub(crate) fn poll(&mut self) -> Option<Event> {
        if self.events.is_empty() {
            self.pair.poll(&mut self.events);
        }
        (!self.events.is_empty()).then(|| self.events.remove(0))
    }

    /// The next event.
    pub(crate) fn next(&mut self) -> Event {
        for _ in 0..POLLS_MAX {
            if let Some(event) = self.poll() {
                return event;
            }
            assert!(self.pair.arm() != Wait::No, "all events are polled");
            std::thread::yield_now();
        }
        panic!("nothing has happened");
    }

    /// All events until the end of the connection, and the reason for the end.
    pub(crate) fn end(&mut self) -> (Vec<Event>, Failure) {
        let mut events = Vec::new();
        loop {
            match self.next() {
                Event::Disconnected(failure) => {
                    assert!(self.poll().is_none(), "nothing comes after the end");
                    return (events, failure);
                }
                event => events.push(event),
            }
        }
    }

    pub(crate) fn send(&mut self, id: u64, bytes: &[u8]) {
        self.pair.post_send(WorkId(id), vec![piece(bytes)], None);
    }

    #[track_caller]
    pub(crate) fn expect_received(&mut self) -> Vec<u8> {
        match self.next() {
            Event::Received(slot, bytes) => slot[..bytes].to_vec(),
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn expect_sent(&mut self, expected: u64) {
        match self.next() {
            Event::Sent(WorkId(id), _, Ok(())) => assert_eq!(id, expected),
            other => panic!("{other:?}"),
        }
    }
}
