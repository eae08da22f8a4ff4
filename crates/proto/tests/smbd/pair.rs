//! Two peers and a wire that executes all effects at once; also for tests of one peer.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use smbeam_proto::smbd::{
    Config, Connection, Effect, Effects, MessageToken, Negotiated, Role, SendId, Violation,
};
use smbeam_proto::time::Instant;
use wire::smbd::{DataTransfer, NegotiateRequest, NegotiateResponse, TransferFlags, VERSION_1};

/// A point in time.
pub(crate) fn at(seconds: u64) -> Instant {
    Instant(Duration::from_secs(seconds))
}

/// A SEND with its bytes.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) bytes: Vec<u8>,
    pub(crate) invalidate: Option<u32>,
}

impl Sent {
    /// The header in front of its data.
    pub(crate) fn transfer(&self) -> DataTransfer {
        DataTransfer::decode(&self.bytes).expect("a data transfer")
    }
}

/// One peer, with a driver that executes all effects at once.
pub(crate) struct Side {
    pub(crate) core: Connection,
    pub(crate) effects: Effects,
    pub(crate) now: Instant,
    /// Whether receives are posted.
    pub(crate) posts: bool,
    /// Whether sends are completed.
    pub(crate) completes: bool,
    /// Number of receives that were requested and are not posted.
    pub(crate) asked: u32,
    /// Number of posted receives.
    pub(crate) posted: u32,
    /// SENDs in flight to the peer.
    pub(crate) out: VecDeque<Sent>,
    /// Messages to send.
    pub(crate) messages: BTreeMap<MessageToken, Vec<u8>>,
    /// The incoming message.
    pub(crate) partial: Vec<u8>,
    /// Received messages.
    pub(crate) got: Vec<Vec<u8>>,
    /// Messages that are completely sent.
    pub(crate) done: Vec<u64>,
    pub(crate) ready: Option<Negotiated>,
    pub(crate) end: Option<Violation>,
    pub(crate) last: Option<SendId>,
    next: u64,
}

impl Side {
    pub(crate) fn new(config: Config) -> Self {
        Self {
            core: Connection::new(config),
            effects: Effects::new(),
            now: at(0),
            posts: true,
            completes: true,
            asked: 0,
            posted: 0,
            out: VecDeque::new(),
            messages: BTreeMap::new(),
            partial: Vec::new(),
            got: Vec::new(),
            done: Vec::new(),
            ready: None,
            end: None,
            last: None,
            next: 0,
        }
    }

    pub(crate) fn start(&mut self) {
        self.core.started(self.now, &mut self.effects);
        self.settle(&[]);
    }

    pub(crate) fn receive(&mut self, bytes: &[u8]) {
        assert!(self.posted > 0, "a receive is posted for each SEND");
        self.posted -= 1;
        self.core.received(self.now, bytes, &mut self.effects);
        self.settle(bytes);
    }

    pub(crate) fn send(&mut self, message: &[u8], invalidate: Option<u32>) {
        let token = MessageToken(self.next);
        self.next += 1;
        self.messages.insert(token, message.to_vec());
        let length = message.len() as u32;
        self.core
            .send(self.now, token, length, invalidate, &mut self.effects)
            .expect("the message can be sent");
        self.settle(&[]);
    }

    /// Advances the time.
    pub(crate) fn wait_until(&mut self, seconds: u64) {
        self.now = at(seconds);
        self.core.timeout(self.now, &mut self.effects);
        self.settle(&[]);
    }

    /// Posts requested receives, at most `count`.
    pub(crate) fn post(&mut self, count: u32) {
        let count = count.min(self.asked);
        self.asked -= count;
        self.posted += count;
        self.core.posted(self.now, count, &mut self.effects);
        self.settle(&[]);
    }

    /// Executes all effects.
    pub(crate) fn settle(&mut self, received: &[u8]) {
        while let Some(effect) = self.effects.pop() {
            assert_eq!(self.end, None, "nothing comes after the end");
            self.act(effect, received);
        }
    }

    fn act(&mut self, effect: Effect, received: &[u8]) {
        match effect {
            Effect::PostReceives(count) => {
                self.asked += count;
                if self.posts {
                    self.asked -= count;
                    self.posted += count;
                    self.core.posted(self.now, count, &mut self.effects);
                }
            }
            Effect::Send(send) => {
                let mut bytes = send.header.as_slice().to_vec();
                if let Some(piece) = &send.piece {
                    let range = piece.range.start as usize..piece.range.end as usize;
                    bytes.extend_from_slice(&self.messages[&piece.token][range]);
                }
                assert_eq!(send.len(), bytes.len());
                let invalidate = send.invalidate;
                self.out.push_back(Sent { bytes, invalidate });
                self.last = Some(send.id);
                if self.completes {
                    self.core.sent(self.now, send.id, &mut self.effects);
                }
            }
            Effect::Fragment {
                range,
                offset,
                total,
            } => {
                assert_eq!(offset as usize, self.partial.len());
                self.partial.extend_from_slice(&received[range]);
                assert!(self.partial.len() <= total as usize);
            }
            Effect::Message { length } => {
                assert_eq!(length as usize, self.partial.len());
                self.got.push(std::mem::take(&mut self.partial));
            }
            Effect::MessageSent(token) => {
                self.messages
                    .remove(&token)
                    .expect("a message is done once");
                self.done.push(token.0);
            }
            Effect::Ready(sizes) => self.ready = Some(sizes),
            Effect::Disconnect(violation) => self.end = Some(violation),
        }
    }

    /// The data transfers in flight.
    pub(crate) fn transfers(&mut self) -> Vec<DataTransfer> {
        self.out.drain(..).map(|sent| sent.transfer()).collect()
    }
}

/// Delivers all SENDs in both directions until none is left. Returns their number.
pub(crate) fn run(one: &mut Side, other: &mut Side) -> usize {
    let mut count = 0;
    loop {
        let sent = one.out.pop_front().map(|sent| (sent, true));
        let sent = sent.or_else(|| other.out.pop_front().map(|sent| (sent, false)));
        let Some((sent, is_first)) = sent else {
            return count;
        };
        let to = if is_first { &mut *other } else { &mut *one };
        to.receive(&sent.bytes);
        count += 1;
        assert!(count < 1_000_000, "the two never stop");
    }
}

/// Two peers after the negotiation.
pub(crate) fn connected(client: Config, server: Config) -> (Side, Side) {
    let (mut client, mut server) = (Side::new(client), Side::new(server));
    server.start();
    client.start();
    run(&mut client, &mut server);
    assert!(client.ready.is_some() && server.ready.is_some());
    (client, server)
}

/// The request of a client.
pub(crate) fn request() -> NegotiateRequest {
    NegotiateRequest {
        min_version: VERSION_1,
        max_version: VERSION_1,
        credits_requested: 10,
        preferred_send_size: 1024,
        max_receive_size: 1024,
        max_fragmented_size: 131_072,
    }
}

/// The response of a server.
pub(crate) fn response() -> NegotiateResponse {
    NegotiateResponse {
        min_version: VERSION_1,
        max_version: VERSION_1,
        negotiated_version: VERSION_1,
        credits_requested: 10,
        credits_granted: 10,
        status: wire::Status::SUCCESS,
        max_read_write_size: 1 << 20,
        preferred_send_size: 1024,
        max_receive_size: 1024,
        max_fragmented_size: 131_072,
    }
}

/// A message without data that grants credits.
pub(crate) fn grant(credits_granted: u16) -> DataTransfer {
    DataTransfer {
        credits_requested: 10,
        credits_granted,
        flags: TransferFlags::NONE,
        remaining_data_length: 0,
        data_offset: 0,
        data_length: 0,
    }
}

/// The bytes of a data transfer.
pub(crate) fn bytes(transfer: &DataTransfer, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    transfer.encode(&mut bytes);
    if !data.is_empty() {
        bytes.resize(24, 0);
        bytes.extend_from_slice(data);
    }
    bytes
}

/// A message of one fragment.
pub(crate) fn data(length: u32, remaining: u32) -> Vec<u8> {
    let transfer = DataTransfer {
        remaining_data_length: remaining,
        data_offset: if length > 0 { 24 } else { 0 },
        data_length: length,
        ..grant(1)
    };
    bytes(&transfer, &vec![7; length as usize])
}

/// A server after the negotiation with a client that sent [`request`].
pub(crate) fn server() -> Side {
    let mut side = Side::new(Config::new(Role::Server));
    side.start();
    let mut message = Vec::new();
    request().encode(&mut message);
    side.receive(&message);
    assert!(side.ready.is_some());
    side.out.clear();
    side
}

/// A client after the negotiation with a server that sent [`response`].
pub(crate) fn client() -> Side {
    let mut side = Side::new(Config::new(Role::Client));
    side.start();
    let mut message = Vec::new();
    response().encode(&mut message);
    side.receive(&message);
    assert!(side.ready.is_some());
    side.out.clear();
    side
}
