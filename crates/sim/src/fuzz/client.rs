//! The client's core: against any bytes, and against a server's core with corrupted responses.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use proto::carrier::{Carrier, RdmaLimits};
use proto::client::effect::Leg;
use proto::client::request::{Create, Durability, FileRef, LeaseRequest, ReadData, Reply};
use proto::client::{
    Config, Connection, Effect, Effects, Expect, Failure, Fate, Request, RequestId, Role, Step,
};
use proto::effect::{Inbound, Outbound};
use proto::time::Now;
use wire::access::{
    AccessMask, CreateDisposition, CreateOptions, FileAttributes, OplockLevel, ShareAccess,
};
use wire::change_notify::CompletionFilter;
use wire::compound::Members;
use wire::fsctl::CtlCode;
use wire::header::HEADER_LEN;
use wire::query_info::InfoType;
use wire::smbd::BufferDescriptorV1;
use wire::{FileId, Flags, Guid, Header, TreeId};

use super::server::Guest;

/// Maximum number of steps of one input.
const STEPS_MAX: usize = 300;
/// Offsets of the Command, the Flags, the MessageId and the SessionId in a header. \[MS-SMB2\]
/// 2.2.1.2
const COMMAND: std::ops::Range<usize> = 12..14;
const FLAGS: std::ops::Range<usize> = 16..20;
const MESSAGE_ID: std::ops::Range<usize> = 24..32;
const TREE_ID: std::ops::Range<usize> = 36..40;
const SESSION_ID: std::ops::Range<usize> = 40..48;

/// A byte of flags, then steps. With the lowest flag, the client is connected to a share before the
/// steps; with the next one, frames of any bytes get the expected ids; with the next one, the
/// server's core responds, and the script corrupts its responses. A step is a byte with its
/// parameters: a request, a CANCEL, a time that passes, or a frame.
pub(super) fn bytes(input: &[u8]) {
    follow(input, Carrier::TCP);
    follow(input, RDMA);
}

/// SMB Direct, with limits that a script can reach.
const RDMA: Carrier = Carrier::smb_direct(RdmaLimits {
    max_read_write: 512 << 10,
    max_descriptors: 4,
    max_send: 128 << 10,
    max_receive: 256 << 10,
});

/// Runs an input over one transport. Returns the number of successful responses.
fn follow(input: &[u8], carrier: Carrier) -> usize {
    let Some((flags, input)) = input.split_first() else {
        return 0;
    };
    let mut script = Script(input);
    let mut customer = Customer::new(carrier);
    if flags & 1 != 0 {
        customer.enter();
    }
    for _ in 0..STEPS_MAX {
        let Some(step) = script.byte() else {
            break;
        };
        match step % 8 {
            0 | 1 => customer.ask(&mut script),
            2 => customer.cancel(&mut script),
            3 => customer.pass(script.byte().unwrap_or(1)),
            _ if flags & 4 != 0 => customer.serve(&mut script),
            _ => {
                let mut frame = script.piece();
                if flags & 2 != 0 {
                    customer.address(&mut frame);
                }
                customer.hear(frame);
            }
        }
    }
    let good = customer.good;
    customer.leave();
    good
}

/// The rest of an input.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self) -> u16 {
        let low = self.byte().unwrap_or(0);
        u16::from_le_bytes([low, self.byte().unwrap_or(0)])
    }

    /// Returns the bytes after a length of two bytes.
    fn piece(&mut self) -> Vec<u8> {
        let length = usize::from(self.number()).min(self.0.len());
        let (piece, rest) = self.0.split_at(length);
        self.0 = rest;
        piece.to_vec()
    }
}

/// A client, and a server.
struct Customer {
    client: Connection,
    guest: Guest,
    now: Now,
    /// Requests without a response.
    asked: BTreeMap<RequestId, Request>,
    /// Frames of the client without a response.
    sent: VecDeque<Vec<u8>>,
    legs: usize,
    next: u64,
    tree: TreeId,
    file: FileId,
    is_over: bool,
    /// Number of successful responses.
    good: usize,
    /// Memory that the server may access: keys and bytes.
    named: BTreeMap<RequestId, (u32, u32)>,
}

impl Customer {
    fn new(carrier: Carrier) -> Self {
        let mut config = Config::new(Guid([1; 16]), "sim");
        config.allow_guest = true;
        config.credits = 40;
        let client = Connection::new(Arc::new(config), Role::First, carrier, &[7; 32]);
        let mut customer = Self {
            client,
            guest: Guest::new(true),
            now: Now::default(),
            asked: BTreeMap::new(),
            sent: VecDeque::new(),
            legs: 0,
            next: 0,
            tree: TreeId(1),
            file: FileId::default(),
            is_over: false,
            good: 0,
            named: BTreeMap::new(),
        };
        customer.call(Connection::start);
        customer
    }

    /// Logs in, connects to the share and opens a file, without faults.
    fn enter(&mut self) {
        self.submit(None, Step::TreeConnect("data".into()));
        self.submit_all();
        self.submit(Some(self.tree), Step::Create(create(0)));
        self.submit_all();
    }

    fn submit_all(&mut self) {
        let mut honest = Script(&[]);
        while !self.sent.is_empty() {
            self.serve(&mut honest);
        }
    }

    fn submit(&mut self, tree: Option<TreeId>, step: Step) {
        self.submit_request(Request::new(tree, vec![step]));
    }

    fn submit_request(&mut self, request: Request) {
        self.next += 1;
        let id = RequestId(self.next);
        self.asked.insert(id, request.clone());
        self.call(|client, now, effects| client.request(now, id, request, effects));
    }

    /// Sends the request that the script chooses.
    fn ask(&mut self, script: &mut Script<'_>) {
        let choice = script.byte().unwrap_or(0);
        let length = u32::from(script.number()) << (choice >> 5);
        let count = usize::from(choice & 16 != 0) * 2;
        let mut steps = vec![step(choice & 15, FileRef::Id(self.file), length)];
        if count > 0 {
            let inner = step(choice & 7, FileRef::Previous, length);
            let file = FileRef::Previous;
            let last = Step::Close { file, query: true };
            steps = vec![Step::Create(create(choice)), inner, last];
            // One message may read many files.
            if choice & 7 == 0 {
                steps.extend(steps.clone());
            }
        }
        let mut request = Request::new(Some(self.tree), steps);
        if choice & 32 != 0 {
            request.timeout = Some(Some(Duration::from_secs(1)));
        }
        self.submit_request(request);
    }

    fn cancel(&mut self, script: &mut Script<'_>) {
        let index = usize::from(script.byte().unwrap_or(0));
        let Some(id) = self.asked.keys().nth(index).copied() else {
            return;
        };
        self.call(|client, now, effects| client.cancel(now, id, effects));
    }

    fn pass(&mut self, seconds: u8) {
        let duration = Duration::from_secs(seconds.into());
        self.now.instant = self.now.instant.after(duration);
        let now = self.now.instant;
        if self.client.next_timeout().is_some_and(|at| at <= now) {
            self.call(Connection::timeout);
        }
        let next = self.client.next_timeout();
        assert!(next.is_none_or(|at| at > now), "a timeout is done with");
    }

    /// Delivers the next frame to the server, and its responses to the client; the script may
    /// corrupt them.
    fn serve(&mut self, script: &mut Script<'_>) {
        let Some(frame) = self.sent.pop_front() else {
            return;
        };
        self.guest
            .send(frame)
            .expect("the server keeps its promises");
        while let Some(mut answer) = self.guest.frames.pop_front() {
            for _ in 0..script.byte().unwrap_or(0) % 4 {
                let place = usize::from(script.number()) % (2 * answer.len() + 1);
                let mask = script.byte().unwrap_or(0);
                if let Some(byte) = answer.get_mut(place) {
                    *byte ^= mask;
                }
            }
            self.hear(answer);
        }
    }

    /// Turns a frame of any bytes into a response to the oldest request.
    fn address(&mut self, frame: &mut [u8]) {
        let Some(asked) = self.sent.pop_front() else {
            return;
        };
        let asked: Vec<&[u8]> = Members::new(&asked).map_while(Result::ok).collect();
        let lengths: Vec<usize> = (Members::new(frame))
            .map_while(|member| member.ok().map(<[u8]>::len))
            .collect();
        let mut start = 0;
        for (length, asked) in lengths.into_iter().zip(asked) {
            let member = &mut frame[start..start + length];
            start += length;
            if length < HEADER_LEN {
                return;
            }
            for field in [COMMAND, MESSAGE_ID, TREE_ID] {
                member[field.clone()].copy_from_slice(&asked[field]);
            }
            // In a login, the frame contains the SessionId.
            if asked[SESSION_ID] != [0; 8] {
                member[SESSION_ID].copy_from_slice(&asked[SESSION_ID]);
            }
            member[FLAGS.start] |= Flags::SERVER_TO_REDIR.0 as u8;
            member[FLAGS.start] &= !(Flags::SIGNED.0 as u8);
        }
    }

    /// Passes a frame to the client, as a driver does.
    fn hear(&mut self, mut frame: Vec<u8>) {
        let mut effects = Effects::new();
        let now = self.now;
        let len = frame.len();
        match self.client.expect(&frame[..len.min(80)], len) {
            Expect::Split { head, request, len } => {
                let asked = &self.asked[&request];
                assert_eq!(reads(asked).count(), 1, "{request:?}");
                assert!(reads(asked).all(|most| len <= most), "{request:?}");
                let (head, payload) = frame.split_at_mut(head);
                assert_eq!(payload.len(), len as usize);
                self.client.receive_split(now, head, payload, &mut effects);
            }
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
        }
        self.perform(effects, len);
    }

    fn call(&mut self, call: impl FnOnce(&mut Connection, Now, &mut Effects)) {
        let mut effects = Effects::new();
        call(&mut self.client, self.now, &mut effects);
        self.perform(effects, 0);
    }

    fn perform(&mut self, mut effects: Effects, frame_len: usize) {
        while let Some(effect) = effects.pop() {
            let is_late = matches!(
                effect,
                Effect::Lost(_, _, Fate::Unsent) | Effect::Withdraw { .. }
            );
            assert!(!self.is_over || is_late, "said after the end: {effect:?}");
            match effect {
                Effect::Send(outbound) => self.sent.push_back(render(outbound)),
                Effect::Authenticate(_) => {
                    self.legs += 1;
                    let leg = match self.legs {
                        1 => Leg::Token(b"let me in".to_vec()),
                        _ => Leg::Done {
                            session_key: vec![3; 16],
                        },
                    };
                    self.call(|client, now, effects| client.authenticated(now, leg, effects));
                }
                Effect::Expose {
                    request, length, ..
                } => self.expose(request, length),
                Effect::Withdraw { request, .. } => {
                    let named = self.named.remove(&request);
                    assert!(
                        named.is_some(),
                        "{request:?} was not named, or not any more"
                    );
                }
                Effect::Answer(id, results) => {
                    assert!(!self.named.contains_key(&id), "{id:?} is named still");
                    let request = self.asked.remove(&id).expect("asked, and not answered");
                    assert_eq!(request.steps.len(), results.len());
                    for (step, result) in request.steps.iter().zip(&results) {
                        self.check(step, result, frame_len);
                    }
                }
                Effect::Lost(id, request, _) => {
                    assert!(!self.named.contains_key(&id), "{id:?} is named still");
                    let asked = self.asked.remove(&id).expect("asked, and not answered");
                    assert_eq!(asked.steps.len(), request.steps.len());
                }
                Effect::Disconnect(_) => self.is_over = true,
                Effect::Ready(_) | Effect::OplockBreak { .. } | Effect::LeaseBreak(_) => {}
            }
        }
    }

    /// Registers memory, sometimes in two segments; sometimes that fails.
    fn expose(&mut self, id: RequestId, length: u32) {
        let token = id.0 as u32;
        let piece = |offset, length| BufferDescriptorV1 {
            offset,
            token,
            length,
        };
        let pieces = match id.0 % 4 {
            0 => None,
            1 if length > 1 => Some(vec![piece(0, 1), piece(1 << 20, length - 1)]),
            _ => Some(vec![piece(0, length)]),
        };
        if pieces.is_some() {
            let before = self.named.insert(id, (token, length));
            assert_eq!(before, None, "memory is named once");
        }
        self.call(|client, now, effects| client.exposed(now, id, pieces, effects));
    }

    /// No response returns more than the request permits.
    fn check(&mut self, step: &Step, result: &Result<Reply, Failure>, frame_len: usize) {
        let Ok(reply) = result else {
            return;
        };
        self.good += 1;
        match (step, reply) {
            (Step::Read { length, .. }, Reply::Read(data)) => {
                let bytes = match data {
                    ReadData::Placed(len) | ReadData::Remote(len) => *len as usize,
                    ReadData::Held(bytes) => bytes.len(),
                    ReadData::Inbound(range) => {
                        assert!(range.end <= frame_len);
                        range.len()
                    }
                };
                assert!(bytes <= *length as usize);
            }
            (Step::Write { length, .. }, Reply::Written(count)) => assert!(count <= length),
            (
                Step::QueryDirectory { length, .. }
                | Step::QueryInfo { length, .. }
                | Step::ChangeNotify { length, .. },
                Reply::Output(output, _),
            ) => assert!(output.len() <= *length as usize),
            (Step::Ioctl { max_output, .. }, Reply::Ioctl(output, _)) => {
                assert!(output.len() <= *max_output as usize);
            }
            (Step::Create(_), Reply::Created(created)) => self.file = created.file_id,
            (Step::TreeConnect(_), Reply::TreeConnected { tree, .. }) => self.tree = *tree,
            (Step::Close { .. }, Reply::Closed(_)) | (_, Reply::Done) => {}
            (step, reply) => panic!("{reply:?} answers {step:?}"),
        }
    }

    /// The transport is cut: every request ends.
    fn leave(mut self) {
        self.call(Connection::closed);
        assert!(self.is_over && self.client.is_over());
        assert!(self.asked.is_empty(), "forgotten: {:?}", self.asked);
        self.guest.leave().expect("nothing is left");
    }
}

/// Returns the lengths that the READs of a request ask for.
fn reads(request: &Request) -> impl Iterator<Item = u32> {
    request.steps.iter().filter_map(|step| match step {
        Step::Read { length, .. } => Some(*length),
        _ => None,
    })
}

fn create(choice: u8) -> Create {
    let is_leased = choice & 64 != 0;
    Create {
        name: format!("file-{}", choice & 3),
        oplock: match is_leased {
            true => OplockLevel::LEASE,
            false => OplockLevel::BATCH,
        },
        access: AccessMask::MAXIMUM_ALLOWED,
        attributes: FileAttributes::NONE,
        share: ShareAccess::READ | ShareAccess::WRITE | ShareAccess::DELETE,
        disposition: CreateDisposition::OPEN_IF,
        options: CreateOptions::NONE,
        lease: is_leased.then_some(LeaseRequest::new(Guid([choice & 3; 16]), 7)),
        create_guid: None,
        durable: match choice & 64 {
            0 => Durability::None,
            _ => Durability::Request,
        },
        allocation: None,
        query_maximal_access: true,
        posix_mode: None,
        driver_acknowledges: choice & 128 != 0,
    }
}

/// Returns one request of each kind.
fn step(choice: u8, file: FileRef, length: u32) -> Step {
    match choice {
        0 => Step::Read {
            file,
            offset: 0,
            length,
            minimum: 0,
        },
        1 => Step::Write {
            file,
            offset: 3,
            length: length & 0xFFFF,
            through: false,
        },
        2 => Step::QueryInfo {
            file,
            info_type: InfoType::FILE,
            class: 18,
            additional: 0,
            length,
        },
        3 => Step::QueryDirectory {
            file,
            class: 37,
            restart: true,
            pattern: "*".into(),
            length,
        },
        4 => Step::ChangeNotify {
            file,
            recursive: true,
            filter: CompletionFilter::FILE_NAME,
            length,
        },
        5 => Step::Ioctl {
            file: Some(file),
            code: CtlCode::QUERY_ALLOCATED_RANGES,
            input: vec![0; 16],
            max_output: length,
        },
        6 => Step::SetInfo {
            file,
            info_type: InfoType::FILE,
            class: 20,
            additional: 0,
            buffer: vec![1, 0, 0, 0, 0, 0, 0, 0],
        },
        7 => Step::Flush(file),
        8 => Step::Close { file, query: true },
        9 => Step::TreeConnect("data".into()),
        10 => Step::Echo,
        11 => Step::TreeDisconnect,
        12 => Step::Logoff,
        _ => Step::Create(create(choice)),
    }
}

/// Returns the bytes of a frame. A guest has no keys, and its writes contain zeros.
fn render(outbound: Outbound) -> Vec<u8> {
    let Outbound {
        messages,
        encryption,
        invalidate: _,
    } = outbound;
    assert!(encryption.is_none(), "a guest has no keys");
    let mut frame = Vec::new();
    for message in messages {
        assert!(message.sign.is_none(), "a guest has no keys");
        let header = Header::decode(&message.head).expect("a header");
        assert!(!header.is_response());
        let data = message.payload.map_or(0, |payload| payload.len as usize);
        frame.extend_from_slice(&message.head);
        frame.resize(frame.len() + data + usize::from(message.padding), 0);
    }
    frame
}

/// Returns an input of `len` + 1 bytes for the fuzz target `client_bytes`, in which the server's
/// core responds, sometimes corrupted.
pub fn client_script(seed: u64, len: usize) -> Vec<u8> {
    let mut input = vec![5];
    input.extend(super::script(seed, len));
    input
}

/// Returns an input of the fuzz target `client_bytes` with the frames that a client received for
/// one request of each kind, on a connection to a share.
pub fn client_frames(seed: u64) -> Vec<u8> {
    let mut customer = Customer::new(Carrier::TCP);
    customer.enter();
    let mut input = vec![3];
    for index in 0..16 {
        // Except CLOSE, and the commands that end the tree or the session.
        let choice = [0, 1, 2, 3, 5, 6, 7, 10, 13, 14][(seed as usize + index) % 10];
        let length: u16 = 1000;
        input.extend([0, choice]);
        input.extend(length.to_le_bytes());
        let file = FileRef::Id(customer.file);
        customer.submit(Some(customer.tree), step(choice, file, length.into()));
        let frame = customer.sent.pop_front().expect("it goes out");
        customer
            .guest
            .send(frame)
            .expect("the server keeps its promises");
        while let Some(answer) = customer.guest.frames.pop_front() {
            let length = u16::try_from(answer.len()).expect("answers are short");
            input.push(7);
            input.extend(length.to_le_bytes());
            input.extend(&answer);
            customer.hear(answer);
        }
    }
    customer.leave();
    input
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seeds that fail at the start would find nothing.
    #[test]
    fn a_guest_gets_in_and_is_served() {
        let mut customer = Customer::new(Carrier::TCP);
        customer.enter();
        assert_eq!(customer.good, 2);
        assert!(!customer.is_over);
        for choice in 0..16 {
            customer.submit(
                Some(customer.tree),
                step(choice, FileRef::Id(customer.file), 1000),
            );
            if choice == 8 {
                break;
            }
        }
        customer.submit_all();
        assert!(customer.good > 6, "{}", customer.good);
        customer.leave();
    }

    /// The client accepts a recorded conversation again, and corruption does no harm.
    #[test]
    fn recorded_answers_are_taken_and_spoiled_ones_do_no_harm() {
        for seed in 0..2 {
            let input = client_frames(seed);
            let good = follow(&input, Carrier::TCP);
            assert!(good > 9, "two to get in, and half of sixteen: {good}");
            for index in 1..input.len() {
                let mut spoiled = input.clone();
                spoiled[index] ^= 1 << (index % 8);
                bytes(&spoiled);
            }
        }
    }

    #[test]
    fn scripts_are_followed_to_their_ends() {
        for seed in 0..200 {
            bytes(&client_script(seed, 400));
        }
    }
}
