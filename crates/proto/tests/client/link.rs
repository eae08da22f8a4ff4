//! The driver of a client under test: what it sends goes to a server's core, what comes back is
//! given to it, and data go where the test wants them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use proto::carrier::Carrier;
use proto::client::effect::Leg;
use proto::client::request::{Create, Durability, FileRef, ReadData, Reply, Step};
use proto::client::{
    Config, Connection, Direction, Effect, Effects, Expect, Failure, Fate, Request, RequestId,
    Role, Session, Violation,
};
use proto::effect::{Inbound, Outbound};
use proto::id::ConnectionId;
use proto::time::Now;
use wire::access::{
    AccessMask, CreateDisposition, CreateOptions, FileAttributes, OplockLevel, ShareAccess,
};
use wire::{FileId, Guid, TreeId};

use crate::harness::Rig;

/// What came of a request.
pub(crate) type Results = Vec<Result<Reply, Failure>>;

/// What a client offers: everything.
pub(crate) fn config() -> Config {
    Config {
        credits: 64,
        ..Config::new(Guid([9; 16]), "server")
    }
}

/// A client's connection and what its driver holds.
pub(crate) struct Link {
    pub(crate) id: ConnectionId,
    pub(crate) client: Connection,
    pub(crate) now: Now,
    /// Tokens to say, one a leg.
    pub(crate) tokens: VecDeque<&'static str>,
    pub(crate) session_key: Vec<u8>,
    pub(crate) session: Option<Arc<Session>>,
    /// Frames that wait to be brought to the server.
    pub(crate) outbox: VecDeque<Vec<u8>>,
    pub(crate) answers: BTreeMap<RequestId, Results>,
    pub(crate) lost: Vec<(RequestId, Request, Fate)>,
    pub(crate) breaks: Vec<Effect>,
    pub(crate) ended: Option<Violation>,
    pub(crate) sources: BTreeMap<RequestId, Vec<u8>>,
    pub(crate) destinations: BTreeMap<RequestId, Vec<u8>>,
    /// What each READ of an answer brought in its frame, or held from an earlier one.
    pub(crate) parts: BTreeMap<RequestId, Vec<Vec<u8>>>,
    /// Answers that were placed without a copy.
    pub(crate) placed: usize,
    /// Requests whose memory is to be named.
    pub(crate) exposing: VecDeque<(RequestId, Direction, u32)>,
    /// Whether there is any.
    pub(crate) has_memory: bool,
    /// Keys of memory, and which way it is used.
    pub(crate) named: BTreeMap<RequestId, (u32, Direction)>,
    /// Memory that the server can use no more, and whether its answer had taken the key back.
    pub(crate) withdrawn: Vec<(RequestId, bool)>,
    next: u64,
}

impl Link {
    /// A client of a connection that is accepted, which has said its first word.
    pub(crate) fn new(rig: &mut Rig, config: Config, role: Role) -> Self {
        Self::over(rig, Carrier::TCP, config, role)
    }

    /// The same over a transport of its own kind.
    pub(crate) fn over(rig: &mut Rig, carrier: Carrier, config: Config, role: Role) -> Self {
        let id = rig.accept_over(carrier);
        Self::carried(id, carrier, config, role, rig.now)
    }

    fn carried(id: ConnectionId, carrier: Carrier, config: Config, role: Role, now: Now) -> Self {
        let seed = [id.0 as u8; 32];
        let mut link = Self {
            id,
            client: Connection::new(Arc::new(config), role, carrier, &seed),
            now,
            tokens: VecDeque::from(["user"]),
            session_key: Rig::SESSION_KEY.to_vec(),
            session: None,
            outbox: VecDeque::new(),
            answers: BTreeMap::new(),
            lost: Vec::new(),
            breaks: Vec::new(),
            ended: None,
            sources: BTreeMap::new(),
            destinations: BTreeMap::new(),
            parts: BTreeMap::new(),
            placed: 0,
            exposing: VecDeque::new(),
            has_memory: true,
            named: BTreeMap::new(),
            withdrawn: Vec::new(),
            next: 1,
        };
        link.call(Connection::start);
        link
    }

    /// A client that has logged in.
    pub(crate) fn logged_in(rig: &mut Rig, config: Config) -> Self {
        let mut link = Self::new(rig, config, Role::First);
        link.run(rig);
        assert_eq!(link.ended, None);
        assert!(link.session.is_some(), "the login is done");
        link
    }

    /// A client that has logged in and entered the share of files.
    pub(crate) fn in_share(rig: &mut Rig, config: Config) -> (Self, TreeId) {
        let mut link = Self::logged_in(rig, config);
        let tree = link.enter(rig, "files");
        (link, tree)
    }

    pub(crate) fn enter(&mut self, rig: &mut Rig, share: &str) -> TreeId {
        let step = Step::TreeConnect(share.into());
        match self.ask_one(rig, None, step) {
            Ok(Reply::TreeConnected { tree, .. }) => tree,
            other => panic!("{other:?}, {:?}", self.ended),
        }
    }

    /// Calls the core, and does what it asks for.
    pub(crate) fn call(&mut self, call: impl FnOnce(&mut Connection, Now, &mut Effects)) {
        let mut effects = Effects::new();
        call(&mut self.client, self.now, &mut effects);
        self.perform(effects, &[]);
    }

    fn perform(&mut self, mut effects: Effects, frame: &[u8]) {
        while let Some(effect) = effects.pop() {
            let is_late = matches!(
                effect,
                Effect::Lost(_, _, Fate::Unsent) | Effect::Withdraw { .. }
            );
            assert!(
                self.ended.is_none() || is_late,
                "nothing is said after the end: {effect:?}"
            );
            match effect {
                Effect::Send(outbound) => {
                    let frame = self.render(outbound);
                    self.outbox.push_back(frame);
                }
                Effect::Authenticate(_) => {
                    let leg = match self.tokens.pop_front() {
                        Some(token) => Leg::Token(token.as_bytes().to_vec()),
                        None => Leg::Done {
                            session_key: self.session_key.clone(),
                        },
                    };
                    self.call(|client, now, effects| client.authenticated(now, leg, effects));
                }
                Effect::Ready(session) => self.session = Some(session),
                Effect::Answer(id, results) => self.answered(id, results, frame),
                Effect::Lost(id, request, fate) => self.lost.push((id, request, fate)),
                Effect::OplockBreak { .. } | Effect::LeaseBreak(_) => self.breaks.push(effect),
                Effect::Disconnect(violation) => self.ended = Some(violation),
                Effect::Expose {
                    request,
                    direction,
                    length,
                } => self.exposing.push_back((request, direction, length)),
                Effect::Withdraw {
                    request,
                    is_revoked,
                } => {
                    let answered = self.answers.contains_key(&request);
                    assert!(!answered, "memory is withdrawn before its answer");
                    self.withdrawn.push((request, is_revoked));
                }
            }
        }
    }

    fn answered(&mut self, id: RequestId, results: Results, frame: &[u8]) {
        for result in &results {
            let Ok(Reply::Read(data)) = result else {
                continue;
            };
            let bytes = match data {
                ReadData::Inbound(range) => frame[range.clone()].to_vec(),
                ReadData::Held(bytes) => bytes.clone(),
                // Fetched from where it was exposed, once the answers are there.
                ReadData::Remote(_) => continue,
                ReadData::Placed(len) => {
                    self.placed += 1;
                    self.destinations[&id][..*len as usize].to_vec()
                }
            };
            self.parts.entry(id).or_default().push(bytes.clone());
            self.destinations.insert(id, bytes);
        }
        let before = self.answers.insert(id, results);
        assert!(before.is_none(), "a request is answered once");
    }

    /// What goes over the wire, signed and sealed.
    fn render(&mut self, outbound: Outbound) -> Vec<u8> {
        let Outbound {
            messages,
            encryption,
            invalidate: _,
        } = outbound;
        let mut frame = Vec::new();
        for mut message in messages {
            let payload = message.payload.map(|payload| {
                let source = &self.sources[&RequestId(payload.token.0)];
                assert_eq!(source.len(), payload.len as usize);
                source.clone()
            });
            let payload = payload.unwrap_or_default();
            if let Some(sign) = &message.sign {
                assert!(
                    encryption.is_none(),
                    "messages of an encrypted frame are not signed"
                );
                sign.apply(&mut message.head, &payload, message.padding);
            }
            frame.extend_from_slice(&message.head);
            frame.extend_from_slice(&payload);
            frame.resize(frame.len() + usize::from(message.padding), 0);
        }
        match encryption {
            Some(encryption) => {
                let head = encryption.apply(&mut [frame.as_mut_slice().into()]);
                [head.as_slice(), &frame].concat()
            }
            None => frame,
        }
    }

    /// Brings what the client said to the server and what the server said to the client, until
    /// both are silent.
    pub(crate) fn run(&mut self, rig: &mut Rig) {
        loop {
            self.withdraw(rig);
            if let Some((id, direction, length)) = self.exposing.pop_front() {
                self.expose(rig, id, direction, length);
            } else if let Some(frame) = self.outbox.pop_front() {
                rig.deliver(self.id, &frame);
            } else if let Some(frame) = rig.read(self.id) {
                for key in std::mem::take(&mut rig.invalidated) {
                    self.client.invalidated(key);
                }
                self.hear(frame);
            } else {
                return;
            }
        }
    }

    /// Names all memory that is to be named.
    pub(crate) fn expose_all(&mut self, rig: &mut Rig) {
        while let Some((id, direction, length)) = self.exposing.pop_front() {
            self.expose(rig, id, direction, length);
        }
    }

    fn expose(&mut self, rig: &mut Rig, id: RequestId, direction: Direction, length: u32) {
        let piece = self.has_memory.then(|| {
            let empty = vec![0xEE; length as usize];
            let bytes = match direction {
                Direction::Read => &empty,
                Direction::Write => &self.sources[&id],
            };
            let piece = rig.memory.expose(bytes);
            assert_eq!(piece.length, length);
            self.named.insert(id, (piece.token, direction));
            vec![piece]
        });
        self.call(|client, now, effects| client.exposed(now, id, piece, effects));
    }

    /// Takes back what is withdrawn, and what a READ brought.
    fn withdraw(&mut self, rig: &mut Rig) {
        for (id, is_revoked) in &self.withdrawn {
            let Some((key, direction)) = self.named.remove(id) else {
                continue;
            };
            assert_eq!(rig.memory.of(key).is_none(), *is_revoked);
            if !is_revoked {
                rig.memory.revoke(key);
            }
            if direction == Direction::Read {
                let bytes = rig.memory.left_in(key).to_vec();
                self.destinations.insert(*id, bytes);
            }
        }
    }

    /// Gives the client a frame, as a driver that asks what to expect does.
    pub(crate) fn hear(&mut self, mut frame: Vec<u8>) {
        let mut effects = Effects::new();
        let now = self.now;
        let start = &frame[..frame.len().min(80)];
        match self.client.expect(start, frame.len()) {
            Expect::Frame => {
                let bytes = &mut frame;
                self.client.receive(
                    now,
                    Inbound {
                        bytes,
                        scratch: &mut Vec::new(),
                    },
                    &mut effects,
                );
            }
            Expect::Split { head, request, len } => {
                let (head, payload) = frame.split_at_mut(head);
                assert_eq!(payload.len(), len as usize);
                self.destinations.insert(request, payload.to_vec());
                self.client.receive_split(now, head, payload, &mut effects);
            }
        }
        self.perform(effects, &frame);
    }

    /// Gives the core a request.
    pub(crate) fn submit(&mut self, request: Request) -> RequestId {
        let id = self.next_id();
        self.call(|client, now, effects| client.request(now, id, request, effects));
        id
    }

    pub(crate) fn next_id(&mut self) -> RequestId {
        self.next += 1;
        RequestId(self.next)
    }

    /// Asks, and takes the answer.
    pub(crate) fn ask(&mut self, rig: &mut Rig, tree: Option<TreeId>, steps: Vec<Step>) -> Results {
        let id = self.submit(Request::new(tree, steps));
        self.run(rig);
        let answer = self.answers.remove(&id);
        answer.unwrap_or_else(|| panic!("no answer, {:?}", self.ended))
    }

    pub(crate) fn ask_one(
        &mut self,
        rig: &mut Rig,
        tree: Option<TreeId>,
        step: Step,
    ) -> Result<Reply, Failure> {
        self.ask(rig, tree, vec![step]).remove(0)
    }

    /// Opens a file, which is made if it is not there.
    pub(crate) fn open(&mut self, rig: &mut Rig, tree: TreeId, name: &str) -> FileId {
        match self.ask_one(rig, Some(tree), Step::Create(create(name))) {
            Ok(Reply::Created(created)) => created.file_id,
            other => panic!("{other:?}"),
        }
    }

    /// Writes, with data of the driver's.
    pub(crate) fn write(
        &mut self,
        rig: &mut Rig,
        tree: TreeId,
        file: FileId,
        offset: u64,
        data: &[u8],
    ) -> Result<Reply, Failure> {
        let id = self.next_id();
        self.sources.insert(id, data.to_vec());
        let step = Step::Write {
            file: FileRef::Id(file),
            offset,
            length: data.len() as u32,
            through: false,
        };
        let request = Request::new(Some(tree), vec![step]);
        self.call(|client, now, effects| client.request(now, id, request, effects));
        self.run(rig);
        self.answers.remove(&id).expect("an answer").remove(0)
    }

    /// Reads; the data.
    pub(crate) fn read(
        &mut self,
        rig: &mut Rig,
        tree: TreeId,
        file: FileId,
        offset: u64,
        length: u32,
    ) -> Result<Vec<u8>, Failure> {
        let step = Step::Read {
            file: FileRef::Id(file),
            offset,
            length,
            minimum: 0,
        };
        let id = self.submit(Request::new(Some(tree), vec![step]));
        self.run(rig);
        let results = self.answers.remove(&id);
        let results = results.unwrap_or_else(|| panic!("no answer, {:?}", self.ended));
        let reply = results[0].clone()?;
        let mut data = self.destinations.remove(&id).expect("the data");
        if let Reply::Read(ReadData::Remote(len)) = reply {
            data.truncate(len as usize);
        }
        Ok(data)
    }
}

/// A CREATE that opens a file for everything, or makes it.
pub(crate) fn create(name: &str) -> Create {
    Create {
        name: name.into(),
        oplock: OplockLevel::NONE,
        access: AccessMask::GENERIC_ALL,
        attributes: FileAttributes::NONE,
        share: ShareAccess::READ | ShareAccess::WRITE | ShareAccess::DELETE,
        disposition: CreateDisposition::OPEN_IF,
        options: CreateOptions::NONE,
        lease: None,
        create_guid: None,
        durable: Durability::None,
        allocation: None,
        query_maximal_access: false,
        posix_mode: None,
        driver_acknowledges: false,
    }
}

/// A CLOSE of a file.
pub(crate) fn close(file: FileId) -> Step {
    Step::Close {
        file: FileRef::Id(file),
        query: true,
    }
}
