//! A client with up to four channels writes to its files while it loses channels at any time. It
//! repeats each request without a response. No acknowledged write is undone, each CREATE makes one
//! open, opens last as long as a channel does, and at the end nothing is left.
//!
//! A seed decides the order of frames, operations and notices. A channel that the client has given
//! up may continue for a while at the server, which still reads frames sent before.

use std::collections::BTreeMap;

use proto::id::ConnectionId;
use wire::access::OplockLevel;
use wire::dialect::Dialect;
use wire::{Command, FileId, MessageId, Status};

use crate::harness::{Answer, Ask, Client, Message, Rig, bytes_of, created, data, multichannel};

const SEEDS: u64 = 300;
const STEPS: usize = 400;
const CHANNELS: usize = 4;
const FILES: u8 = 4;

/// The purpose of a request, so that the client can repeat it.
#[derive(Clone, Copy, Debug)]
enum What {
    Open(u8),
    /// A value for a file.
    Write(u8, u64),
    /// The value of the file at the time of the request.
    Read(u8, u64),
}

/// A file as the client knows it.
#[derive(Debug, Default)]
struct File {
    id: Option<FileId>,
    is_opening: bool,
    /// The last written value, perhaps not yet acknowledged.
    value: u64,
    is_writing: bool,
}

struct World {
    rig: Rig,
    random: u64,
    /// Has the keys of the session, even after its connection ended.
    first: Client,
    channels: BTreeMap<ConnectionId, Client>,
    /// Channels that the client has given up and the server has not yet lost.
    given_up: Vec<ConnectionId>,
    files: BTreeMap<u8, File>,
    sequence: u16,
    last_value: u64,
    /// Frames in flight.
    frames: Vec<(ConnectionId, Vec<u8>)>,
    sent: BTreeMap<(ConnectionId, MessageId), What>,
    /// Requests to repeat.
    again: Vec<What>,
    replays: usize,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rig = Rig::new(|_| {});
        let options = multichannel(Dialect::SMB_3_1_1);
        let mut client = Client::in_share(&mut rig, options.clone(), "alice", "files");
        let bytes = bytes_of(|bytes| wire::echo::Request.encode(bytes));
        let mut echo = client.message(Command::ECHO, bytes);
        echo.header.credits = 64;
        client.ask(&mut rig, echo);
        let mut first = Client::on(client.id, options);
        first.knows(&client);
        first.login_hash = client.login_hash.clone();
        first.cipher = client.cipher;
        first.dialect = client.dialect;
        rig.is_slow = true;
        Self {
            rig,
            random: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
            first,
            channels: BTreeMap::from([(client.id, client)]),
            given_up: Vec::new(),
            files: (0..FILES).map(|file| (file, File::default())).collect(),
            sequence: 0,
            last_value: 0,
            frames: Vec::new(),
            sent: BTreeMap::new(),
            again: Vec::new(),
            replays: 0,
        }
    }

    /// A number below `bound`.
    fn below(&mut self, bound: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 33) as usize % bound
    }

    fn step(&mut self) {
        match self.below(20) {
            0 => self.give_up(),
            1 => self.lose(),
            2 => self.bind(),
            3..7 => self.ask(),
            7..9 => self.replay(),
            9..14 => self.arrive(),
            14..18 => self.work(),
            _ => self.deliver_notice(),
        }
        self.hear();
    }

    fn living(&mut self) -> Option<ConnectionId> {
        let living: Vec<ConnectionId> = self.channels.keys().copied().collect();
        let living: Vec<_> = (living.into_iter())
            .filter(|id| !self.given_up.contains(id))
            .collect();
        (!living.is_empty()).then(|| living[self.below(living.len())])
    }

    fn count(&self) -> usize {
        self.channels.len() - self.given_up.len()
    }

    /// The client considers a channel lost.
    fn give_up(&mut self) {
        if self.count() < 2 {
            return;
        }
        let id = self.living().expect("there are two");
        self.given_up.push(id);
        self.sequence = self.sequence.wrapping_add(1);
        let lost: Vec<_> = (self.sent.keys().copied())
            .filter(|(channel, _)| *channel == id)
            .collect();
        for key in lost {
            let what = self.sent.remove(&key).expect("it was just seen");
            self.again.push(what);
        }
    }

    /// The server loses a given-up channel.
    fn lose(&mut self) {
        if self.given_up.is_empty() {
            return;
        }
        let index = self.below(self.given_up.len());
        let id = self.given_up.swap_remove(index);
        self.channels.remove(&id);
        self.frames.retain(|(channel, _)| *channel != id);
        self.rig.cut(id);
    }

    fn bind(&mut self) {
        if self.channels.len() < CHANNELS {
            let channel = Client::channel_of(&mut self.rig, &self.first);
            self.channels.insert(channel.id, channel);
        }
    }

    /// Sends a new request for a file without a pending one.
    fn ask(&mut self) {
        let number = self.below(FILES.into()) as u8;
        let reads = self.below(3) == 0;
        let file = self.files.get_mut(&number).expect("there is one");
        let what = match file.id {
            _ if file.is_opening || file.is_writing => return,
            None => {
                file.is_opening = true;
                What::Open(number)
            }
            Some(_) if reads => What::Read(number, file.value),
            Some(_) => {
                self.last_value += 1;
                file.is_writing = true;
                file.value = self.last_value;
                What::Write(number, self.last_value)
            }
        };
        self.send(what, false);
    }

    fn replay(&mut self) {
        if !self.again.is_empty() {
            let index = self.below(self.again.len());
            let what = self.again.swap_remove(index);
            self.replays += 1;
            self.send(what, true);
        }
    }

    fn send(&mut self, what: What, is_replay: bool) {
        let id = self.living().expect("one is left");
        let client = self.channels.get_mut(&id).expect("it lives");
        let file_id = |file: &u8| self.files[file].id.expect("it is open");
        let mut message = match &what {
            What::Open(file) => {
                let ask = Ask::alone(OplockLevel::NONE);
                client.named_open(&name(*file), ask, *file + 1)
            }
            What::Write(file, value) => client.write_message(file_id(file), &value.to_le_bytes()),
            What::Read(file, _) => client.read_message(file_id(file), 100),
        };
        message.header.credits = 16;
        let message: Message = match is_replay {
            true => message.replayed(self.sequence),
            false => message.numbered(self.sequence),
        };
        self.sent.insert((id, message.header.message_id), what);
        let frame = client.frame(vec![message]);
        self.frames.push((id, frame));
    }

    fn arrive(&mut self) {
        if !self.frames.is_empty() {
            let index = self.below(self.frames.len());
            let (id, frame) = self.frames.remove(index);
            self.rig.deliver(id, &frame);
        }
    }

    fn work(&mut self) {
        if !self.rig.slow.is_empty() {
            let index = self.below(self.rig.slow.len());
            self.rig.work(index);
        }
    }

    fn deliver_notice(&mut self) {
        if !self.rig.notices.is_empty() {
            let index = self.below(self.rig.notices.len());
            self.rig.deliver_notice(index);
        }
    }

    fn hear(&mut self) {
        let mut heard = Vec::new();
        for (id, client) in &mut self.channels {
            while let Some(answers) = client.hear(&mut self.rig) {
                heard.extend(answers.into_iter().map(|answer| (*id, answer)));
            }
        }
        for (id, answer) in heard {
            // The client no longer reads from a channel that it gave up.
            if let Some(what) = self.sent.remove(&(id, answer.header.message_id)) {
                self.take(what, &answer);
            }
        }
    }

    fn take(&mut self, what: What, answer: &Answer) {
        if answer.status() == Status::FILE_NOT_AVAILABLE {
            return self.again.push(what);
        }
        match what {
            What::Open(number) => {
                let file = self.files.get_mut(&number).expect("there is one");
                (file.id, file.is_opening) = (Some(created(answer).0), false);
            }
            What::Write(number, value) => {
                assert_eq!(answer.status(), Status::SUCCESS, "{what:?}");
                let file = self.files.get_mut(&number).expect("there is one");
                assert_eq!(file.value, value);
                file.is_writing = false;
            }
            What::Read(number, value) => {
                let is_old = self.files[&number].value != value;
                match value {
                    _ if is_old => {}
                    0 => assert_eq!(answer.status(), Status::END_OF_FILE),
                    _ => assert_eq!(data(answer), value.to_le_bytes(), "a write was lost"),
                }
            }
        }
    }

    /// Everything pending completes.
    fn settle(&mut self) {
        for _ in 0..10_000 {
            self.replay();
            self.arrive();
            self.work();
            self.deliver_notice();
            self.hear();
            let is_quiet = self.frames.is_empty() && self.again.is_empty();
            if is_quiet && self.rig.slow.is_empty() && self.rig.notices.is_empty() {
                assert!(
                    self.sent.is_empty(),
                    "not all was answered: {:?}",
                    self.sent
                );
                return;
            }
        }
        panic!("it goes on for ever");
    }

    fn check(&self) {
        let open = self.files.iter().filter(|(_, file)| file.id.is_some());
        assert_eq!(
            self.rig.disk.opens.len(),
            open.clone().count(),
            "one open each"
        );
        for (number, file) in open.filter(|(_, file)| file.value > 0) {
            let content = self.rig.disk.content(&name(*number));
            assert_eq!(content, file.value.to_le_bytes(), "the last write counts");
        }
    }

    /// The last channel ends, and the session with it.
    fn end(&mut self) {
        let ids: Vec<ConnectionId> = self.channels.keys().copied().collect();
        for id in &ids {
            self.rig.cut(*id);
        }
        self.channels.clear();
        self.frames.clear();
        while !self.rig.slow.is_empty() || !self.rig.notices.is_empty() {
            self.work();
            self.deliver_notice();
        }
        assert_eq!(self.rig.disk.opens.len(), 0, "nothing stays open");
        for id in ids {
            assert!(self.rig.connection(id).is_idle());
        }
        self.rig.is_slow = false;
        let options = self.first.options.clone();
        let mut other = Client::in_share(&mut self.rig, options, "bob", "files");
        for number in 0..FILES {
            let message = other.open_message(&name(number), Ask::alone(OplockLevel::NONE));
            created(&other.ask(&mut self.rig, message));
        }
    }
}

fn name(file: u8) -> String {
    format!("file {file}")
}

#[test]
fn nothing_is_lost_and_nothing_is_left() {
    let mut replays = 0;
    for seed in 0..SEEDS {
        println!("seed {seed}");
        let mut world = World::new(seed);
        for _ in 0..STEPS {
            world.step();
        }
        // In half of the runs, channels that the client gave up live to the end.
        if seed % 2 == 0 {
            world.settle();
            world.check();
        }
        replays += world.replays;
        world.end();
    }
    println!("{replays} requests were sent again");
    assert!(replays > 1000, "{replays} are not enough to see anything");
}
