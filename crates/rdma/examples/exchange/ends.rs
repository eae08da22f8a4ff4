//! Two ends of one connection. Each waits for its descriptor with the ring.

#[path = "../../tests/harness/bytes.rs"]
mod bytes;

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use smbeam_rdma::{
    Attributes, Event, Failure, Limits, Listener, Provider, QueuePair, Slots, Wait, WorkId,
};

use ring::{Config, Either, Interest, Readiness, Runtime, either};

pub(crate) use bytes::{pattern, piece};

/// Time limit for an event.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Bytes of a receive.
pub(crate) const RECEIVE_BYTES: usize = 8192;

/// Number of receives that each end has posted.
const RECEIVES: u32 = 32;

pub(crate) struct Location {
    pub(crate) provider: Box<dyn Provider>,
    pub(crate) listener: Box<dyn Listener>,
    listening: Readiness,
    pub(crate) runtime: Rc<Runtime>,
}

impl Location {
    pub(crate) fn new(provider: Box<dyn Provider>, address: SocketAddr) -> io::Result<Self> {
        let runtime = Rc::new(Runtime::new(&Config::default())?);
        let listener = provider.listen(address)?;
        let listening = Readiness::new(&runtime.handle(), listener.descriptor())?;
        Ok(Self {
            provider,
            listener,
            listening,
            runtime,
        })
    }

    pub(crate) fn attributes() -> Attributes {
        Attributes {
            receives: RECEIVES,
            sends: 64,
            // Devices without moderation ignore it.
            moderation: Some((4, Duration::from_micros(20))),
            ..Attributes::default()
        }
    }

    pub(crate) fn connect(&self, address: SocketAddr) -> End {
        let pair = self.provider.connect(address, &Self::attributes());
        End::new(&self.runtime, pair.expect("a listener"))
    }

    /// Waits for a connection request, and polls the client meanwhile.
    pub(crate) fn request(&self, client: &mut End) -> Box<dyn smbeam_rdma::Request> {
        loop {
            client.take_in();
            if let Some(request) = self.listener.accept().expect("it listens") {
                return request;
            }
            assert!(client.events.is_empty(), "{:?}", client.events);
            let one = (&self.listening, Interest::Readable);
            wait(&self.runtime, one, client.waiting());
        }
    }

    /// Both ends of a new connection: the client's and the server's.
    pub(crate) fn pair(&self) -> (End, End) {
        let mut client = self.connect(self.listener.local_addr());
        for _ in 0..RECEIVES {
            client.post_receive();
        }
        client.pair.flush();
        let request = self.request(&mut client);
        let slots = Slots::new(RECEIVES as usize, RECEIVE_BYTES).expect("memory");
        let receives = std::iter::from_fn(|| slots.take()).collect();
        let pair = request.accept(&Self::attributes(), receives);
        let mut server = End::new(&self.runtime, pair.expect("a queue pair"));
        server.slots = slots;
        while client.events.is_empty() || server.events.is_empty() {
            client.take_in();
            server.take_in();
            if client.events.is_empty() || server.events.is_empty() {
                wait(&self.runtime, client.waiting(), server.waiting());
            }
        }
        assert!(matches!(client.next(), Event::Connected));
        assert!(matches!(server.next(), Event::Connected));
        (client, server)
    }
}

/// Waits for one of two descriptors.
fn wait(runtime: &Runtime, one: (&Readiness, Interest), other: (&Readiness, Interest)) {
    let handle = runtime.handle();
    runtime.block_on(async {
        let one = std::pin::pin!(one.0.ready(one.1));
        let other = std::pin::pin!(other.0.ready(other.1));
        let ready = handle.timeout(TIMEOUT, either(one, other)).await;
        match ready.expect("something happens") {
            Either::First(result) | Either::Second(result) => result.expect("a descriptor"),
        }
    });
}

pub(crate) struct End {
    pub(crate) pair: Box<dyn QueuePair>,
    pub(crate) slots: Slots,
    pub(crate) events: Vec<Event>,
    readiness: Readiness,
    interest: Interest,
    runtime: Rc<Runtime>,
}

impl End {
    fn new(runtime: &Rc<Runtime>, pair: Box<dyn QueuePair>) -> Self {
        let readiness = Readiness::new(&runtime.handle(), pair.descriptor());
        Self {
            pair,
            slots: Slots::new(RECEIVES as usize, RECEIVE_BYTES).expect("memory"),
            events: Vec::new(),
            readiness: readiness.expect("a descriptor"),
            interest: Interest::Readable,
            runtime: Rc::clone(runtime),
        }
    }

    fn waiting(&self) -> (&Readiness, Interest) {
        (&self.readiness, self.interest)
    }

    pub(crate) fn limits(&self) -> Limits {
        self.pair.limits()
    }

    pub(crate) fn post_receive(&mut self) {
        let slot = self.slots.take().expect("a slot");
        self.pair.post_receive(slot);
    }

    /// Arms the descriptor, and expects no event.
    pub(crate) fn arm(&mut self) {
        self.take_in();
        assert!(self.events.is_empty(), "{:?}", self.events);
    }

    /// Waits for the descriptor, without polling first.
    #[track_caller]
    pub(crate) fn wait(&self) {
        let handle = self.runtime.handle();
        let ready = handle.timeout(TIMEOUT, self.readiness.ready(self.interest));
        match self.runtime.block_on(ready) {
            Ok(result) => result.expect("a descriptor"),
            Err(_) => panic!("nothing has happened: {:?}", self.pair),
        }
    }

    /// Polls all events, until a wait is necessary.
    fn take_in(&mut self) {
        let known = self.events.len();
        loop {
            self.pair.poll(&mut self.events);
            if self.events.len() > known {
                return;
            }
            self.interest = match self.pair.arm() {
                Wait::No => continue,
                Wait::Readable => Interest::Readable,
                Wait::ReadableOrWritable => Interest::ReadableOrWritable,
            };
            return;
        }
    }

    /// The next event.
    #[track_caller]
    pub(crate) fn next(&mut self) -> Event {
        loop {
            self.take_in();
            if !self.events.is_empty() {
                return self.events.remove(0);
            }
            self.wait();
        }
    }

    /// The next event. On the emulation the peer may have to poll for it, too.
    #[track_caller]
    pub(crate) fn next_with(&mut self, peer: &mut Self) -> Event {
        loop {
            self.take_in();
            if !self.events.is_empty() {
                return self.events.remove(0);
            }
            let known = peer.events.len();
            peer.take_in();
            if peer.events.len() == known {
                wait(&self.runtime, self.waiting(), peer.waiting());
            }
        }
    }

    /// All events until the end of the connection, and the reason for the end.
    #[track_caller]
    pub(crate) fn end(&mut self, peer: &mut Self) -> (Vec<Event>, Failure) {
        let mut events = Vec::new();
        loop {
            match self.next_with(peer) {
                Event::Disconnected(failure) => return (events, failure),
                event => events.push(event),
            }
        }
    }

    /// The same, without polling a peer.
    #[track_caller]
    pub(crate) fn end_alone(&mut self) -> (Vec<Event>, Failure) {
        let mut events = Vec::new();
        loop {
            match self.next() {
                Event::Disconnected(failure) => return (events, failure),
                event => events.push(event),
            }
        }
    }

    pub(crate) fn send(&mut self, id: u64, bytes: &[u8], invalidate: Option<u32>) {
        self.pair
            .post_send(WorkId(id), vec![piece(bytes)], invalidate);
        self.pair.flush();
    }

    #[track_caller]
    pub(crate) fn expect_received(&mut self) -> Vec<u8> {
        match self.next() {
            Event::Received(slot, bytes) => {
                let message = slot[..bytes].to_vec();
                self.pair.post_receive(slot);
                message
            }
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
