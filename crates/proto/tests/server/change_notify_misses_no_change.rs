//! Changes through the server and by local processes, in random order, with requests at random
//! times: the server reports each change once and in order, or reports STATUS_NOTIFY_ENUM_DIR.

use proto::file::{FileKey, LocalChange, LocalEvent};
use proto::path::SharePath;
use wire::access::{CreateDisposition, CreateOptions};
use wire::change_notify::{ChangeNotifyFlags, CompletionFilter, Request, Response};
use wire::fscc::{FileAction, FileNotifyInformation, NotifyEntries, NotifyWriter};
use wire::text::utf16;
use wire::{Command, FileId, Status, Utf16};

use crate::harness::{Client, Options, Rig, bytes_of, file_id};

/// Number of runs, each with another seed, and number of steps of a run.
const SEEDS: u64 = 60;
const STEPS: usize = 120;
/// The smallest buffer holds two or three names, the largest all names of a run.
const ROOM: [u32; 3] = [64, 300, 60_000];

type Change = (FileAction, String);

/// An open with a watch.
struct Watcher {
    client: Client,
    directory: FileId,
    is_tree: bool,
    room: u32,
    /// Whether a request is pending.
    is_waiting: bool,
    /// Changes since the last response; `None` after an overflow.
    unreported: Option<Vec<Change>>,
    answers: usize,
}

impl Watcher {
    fn new(rig: &mut Rig, is_tree: bool, room: u32) -> Self {
        let mut client = enter(rig);
        let directory = open_directory(rig, &mut client);
        Self {
            client,
            directory,
            is_tree,
            room,
            is_waiting: false,
            unreported: Some(Vec::new()),
            answers: 0,
        }
    }

    fn ask(&mut self, rig: &mut Rig) {
        if self.is_waiting {
            return;
        }
        let request = Request {
            flags: match self.is_tree {
                true => ChangeNotifyFlags::WATCH_TREE,
                false => ChangeNotifyFlags::NONE,
            },
            output_buffer_length: self.room,
            file_id: self.directory,
            completion_filter: CompletionFilter::FILE_NAME,
        };
        let body = bytes_of(|out| request.encode(out));
        let message = self.client.message(Command::CHANGE_NOTIFY, body);
        self.client.say(rig, vec![message]);
        self.is_waiting = true;
        self.hear(rig);
    }

    fn cancel(&mut self, rig: &mut Rig) {
        // Only the last request is pending.
        if self.is_waiting {
            let body = bytes_of(|out| wire::echo::Request.encode(out));
            let mut cancel = self.client.message(Command::CANCEL, body);
            cancel.header.message_id.0 -= 1;
            self.client.say(rig, vec![cancel]);
            self.hear(rig);
        }
    }

    /// Records changes in the directory or below it.
    fn happened(&mut self, changes: &[Change]) {
        let is_seen = |(_, name): &&Change| self.is_tree || !name.contains('\\');
        let seen: Vec<_> = changes.iter().filter(is_seen).cloned().collect();
        if let Some(unreported) = &mut self.unreported {
            unreported.extend(seen);
            if !fits(unreported, self.room) {
                self.unreported = None;
            }
        }
    }

    /// Takes a response, and compares it with the recorded changes.
    fn hear(&mut self, rig: &mut Rig) {
        let Some(answers) = self.client.hear(rig) else {
            return;
        };
        let [answer] = &answers[..] else {
            panic!("one request, one answer: {answers:?}");
        };
        self.is_waiting = false;
        if answer.status() == Status::CANCELLED {
            return;
        }
        self.answers += 1;
        match self.unreported.replace(Vec::new()) {
            None => assert_eq!(answer.status(), Status::NOTIFY_ENUM_DIR),
            Some(unreported) => {
                assert_eq!(answer.status(), Status::SUCCESS);
                let response = Response::decode(&answer.message).expect("a response");
                let reported: Vec<Change> = NotifyEntries::new(response.output)
                    .map(|entry| entry.expect("an entry"))
                    .map(|entry| (entry.action, entry.name.decode().expect("a name")))
                    .collect();
                assert_eq!(reported, unreported);
            }
        }
    }

    fn is_owed(&self) -> bool {
        self.unreported
            .as_ref()
            .is_none_or(|unreported| !unreported.is_empty())
    }
}

fn fits(changes: &[Change], room: u32) -> bool {
    let mut writer = NotifyWriter::new(room as usize);
    changes.iter().all(|(action, name)| {
        let name = utf16(name);
        writer.push(&FileNotifyInformation {
            action: *action,
            name: Utf16(&name),
        })
    })
}

fn enter(rig: &mut Rig) -> Client {
    let mut client = Client::in_share(rig, Options::default(), "alice", "files");
    let body = bytes_of(|out| wire::echo::Request.encode(out));
    let mut echo = client.message(Command::ECHO, body);
    echo.header.credits = 2000;
    client.ask(rig, echo);
    client
}

fn open_directory(rig: &mut Rig, client: &mut Client) -> FileId {
    let create = CreateDisposition::OPEN_IF;
    let message = client.create_with("d", create, CreateOptions::DIRECTORY_FILE);
    file_id(&client.ask(rig, message))
}

/// Random numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        // The generator of Numerical Recipes; its upper bits are good enough.
        self.0 = (self.0.wrapping_mul(6_364_136_223_846_793_005)).wrapping_add(1_442_695_040_888);
        (self.0 >> 33) % limit
    }
}

/// Creates a file through the server. Its name is relative to `d`.
fn make(rig: &mut Rig, maker: &mut Client, name: &str) -> Vec<Change> {
    let open = maker.create(rig, &format!("d\\{name}"));
    let close = maker.close_message(open);
    maker.ask(rig, close);
    vec![(FileAction::ADDED, name.to_owned())]
}

/// Creates or renames a file as a local process.
fn happen(rig: &mut Rig, directory: FileKey, name: &str, is_rename: bool) -> Vec<Change> {
    let changes = match is_rename {
        true => vec![
            (FileAction::RENAMED_OLD_NAME, name.to_owned()),
            (FileAction::RENAMED_NEW_NAME, format!("{name}-new")),
        ],
        false => vec![(FileAction::ADDED, name.to_owned())],
    };
    let event = |(action, name): &Change| {
        LocalEvent::Change(LocalChange {
            directory,
            path: SharePath::from_trusted(&name.replace('\\', "/")),
            action: *action,
            filter: CompletionFilter::FILE_NAME,
        })
    };
    rig.happen_locally(&changes.iter().map(event).collect::<Vec<_>>());
    changes
}

#[test]
fn each_change_is_reported_once_and_in_order_or_as_overflow() {
    for seed in 1..=SEEDS {
        println!("seed {seed}");
        run(seed);
    }
}

fn run(seed: u64) {
    let mut random = Random(seed);
    let mut rig = Rig::new(|_| {});
    let mut maker = enter(&mut rig);
    open_directory(&mut rig, &mut maker);
    let key = rig.disk.key("d");
    let mut watchers: Vec<Watcher> = (ROOM.into_iter())
        .flat_map(|room| [(room, true), (room, false)])
        .map(|(room, is_tree)| Watcher::new(&mut rig, is_tree, room))
        .collect();
    // A watch does not report changes before its first request.
    for watcher in &mut watchers {
        watcher.ask(&mut rig);
    }
    for step in 0..STEPS {
        let directory = if random.below(3) == 0 { "sub\\" } else { "" };
        let name = format!("{directory}f{step}");
        let changes = match random.below(10) {
            0..3 => make(&mut rig, &mut maker, &name),
            3..5 => happen(&mut rig, key, &name, false),
            5 => happen(&mut rig, key, &name, true),
            6 if random.below(8) == 0 => {
                rig.happen_locally(&[LocalEvent::Lost(None)]);
                watchers
                    .iter_mut()
                    .for_each(|watcher| watcher.unreported = None);
                Vec::new()
            }
            _ => {
                let index = random.below(watchers.len() as u64) as usize;
                match random.below(4) {
                    0 => watchers[index].cancel(&mut rig),
                    _ => watchers[index].ask(&mut rig),
                }
                continue;
            }
        };
        for watcher in &mut watchers {
            watcher.happened(&changes);
            watcher.hear(&mut rig);
        }
    }
    // The server reports all remaining changes, and then the requests wait.
    for watcher in &mut watchers {
        watcher.ask(&mut rig);
        watcher.ask(&mut rig);
        assert!(!watcher.is_owed(), "seed {seed}: a change was not reported");
        assert!(watcher.is_waiting, "seed {seed}: a report without a change");
        assert!(watcher.answers > 0);
    }
}
